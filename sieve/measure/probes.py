"""Probes of style: does anything but what the documents say about the question tell distracted sets apart?"""

import random
from collections.abc import Callable, Sequence
from typing import Literal

from rag.records import Document, Example, Record, Text
from sieve.measure.groups import should_flag
from sieve.measure.intervals import Draw, auc_figure
from sieve.measure.scores import Request, Scored, request
from sieve.measure.style import Passage, bag_of_words

Score = Callable[[Sequence[Request], str], dict[str, Scored]]


class Probe(Record):
    """A question put to style: an area under the ROC curve that should be about 0.5."""

    name: Literal["other_question", "single_document", "bag_of_words", "bag_of_words_training"]
    source: Text = ""
    """Examples of this source only; all of them where it is blank."""
    positive: int
    """Distracted sets, or false documents."""
    negative: int
    """Other sets, or documents that give a true answer."""
    auc: float | None
    low: float | None
    high: float | None


def other_questions(examples: Sequence[Example], seed: int) -> dict[str, str]:
    """For each question id the text of another question: the next one in an order drawn by the seed. Empty for a single question."""
    texts = {example.question_id: example.question for example in examples}
    order = sorted(texts)
    random.Random(f"{seed}:questions").shuffle(order)
    return {name: texts[following] for name, following in zip(order, order[1:] + order[:1], strict=True)} if len(order) > 1 else {}


def under_other_questions(examples: Sequence[Example], score: Score, draw: Draw) -> list[Probe]:
    """The Sieve on each set under the question of another: the documents and their style stay, the conflict about the question goes."""
    others = other_questions(examples, draw.seed)
    asked = [request(f"other_question:{e.id}", others[e.question_id], e.documents) for e in examples if others]
    by_key = score(asked, "other questions")
    rows = [(by_key[a.key].score, should_flag(e), e.question_id, e.source) for a, e in zip(asked, examples, strict=False)]
    return _probes("other_question", rows, draw)


def single_documents(found: Sequence[Passage], score: Score, draw: Draw) -> list[Probe]:
    """The Sieve on single documents under their own question: one document contradicts nothing, whatever it is written like."""
    asked = [
        request(f"single:{place}:{passage.question_id}", passage.question, (Document(id="d", text=passage.text),))
        for place, passage in enumerate(found)
    ]
    by_key = score(asked, "single documents")
    rows = [(by_key[a.key].score, p.false, p.question_id, p.source) for a, p in zip(asked, found, strict=True)]
    return _probes("single_document", rows, draw)


MOST_PASSAGES = 5_000


def words_alone(found: Sequence[Passage], name: Literal["bag_of_words", "bag_of_words_training"], draw: Draw) -> list[Probe]:
    """Words alone on single documents, without the question: whether the data let style carry the label.

    Of more than `MOST_PASSAGES`, that many are drawn by the seed: more take long and make the interval no narrower than it need be.
    """
    if len(found) > MOST_PASSAGES:
        found = random.Random(draw.seed).sample(found, MOST_PASSAGES)
    sources = sorted({passage.source for passage in found})
    probes = []
    for source in ["", *(sources if len(sources) > 1 else ())]:
        part = [passage for passage in found if source in ("", passage.source)]
        scores = bag_of_words(part, draw.seed)
        rows = [(s, p.false, p.question_id, source) for s, p in zip(scores, part, strict=True)] if scores is not None else []
        probes.append(_probe(name, source, rows, draw) if rows else _not_run(name, source, part))
    return probes


Row = tuple[float, bool, str, str]
"""Score, positive, question id, source."""


def _probes(name: Literal["other_question", "single_document"], rows: Sequence[Row], draw: Draw) -> list[Probe]:
    """The probe over all rows, then by source where there are several."""
    sources = sorted({source for *_, source in rows})
    by_source = [_probe(name, source, [row for row in rows if row[3] == source], draw) for source in sources if len(sources) > 1 and source]
    return [_probe(name, "", rows, draw), *by_source]


def _probe(name: str, source: str, rows: Sequence[Row], draw: Draw) -> Probe:
    positive = [row[1] for row in rows]
    figure = auc_figure([row[0] for row in rows], positive, [row[2] for row in rows], resamples=draw.resamples, seed=draw.seed)
    counts = {"positive": sum(positive), "negative": len(positive) - sum(positive)}
    return Probe.model_validate({"name": name, "source": source, **counts, "auc": figure.value, "low": figure.low, "high": figure.high})


def _not_run(name: str, source: str, found: Sequence[Passage]) -> Probe:
    false = sum(passage.false for passage in found)
    values = {"positive": false, "negative": len(found) - false, "auc": None, "low": None, "high": None}
    return Probe.model_validate({"name": name, "source": source, **values})
