"""Whether a model can tell how a simulated document relates to one that gives the answer (paper 002, appendix A.2, pairwise verification)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from data_gen.measure.asking import texts
from data_gen.measure.folder import gold, usable
from data_gen.measure.intervals import Figure, mean
from data_gen.pipeline.cases import Case
from data_gen.pipeline.prompts import fill
from data_gen.pipeline.replies import seed_of
from rag.models.chat import ChatModel, ChatRequest
from rag.records import Document, DocumentLabel, Record, Text
from rag.render import delimit

RELATION = (
    "Here are a question and two documents. One of the documents answers the question. How does the other relate to it?\n"
    "conflict: both documents answer the question, and their answers cannot both be right.\n"
    "negated: the other document denies what the one states, without another answer.\n"
    "adversarial: the other document states something similar of another subject; nothing in it contradicts the one.\n"
    "neutral: none of these; the other document neither answers the question nor bears on the answer.\n"
    "Reply with one word: conflict, negated, adversarial or neutral.\n"
    "Question: {QUESTION}\n"
    "{FIRST}\n"
    "{SECOND}\n"
    "Relation:"
)
"""The paper says what was asked and prints no prompt, so this one is ours."""

RELATIONS = (DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL, DocumentLabel.NEUTRAL)
UNREADABLE = "unreadable"
FAILED = "failed"


class Row(Record):
    """What the judge made of the pairs of one kind."""

    kind: DocumentLabel
    pairs: int
    """Pairs that the judge replied to, readable or not."""
    failed: int
    """Pairs beside these whose request failed for good."""
    accuracy: Figure
    """Share of `pairs` with the right relation; a reply that cannot be read is not right."""
    said: dict[Text, int]
    """Replies by relation, and `unreadable`; a row of the confusion table."""


class Relation(Record):
    """Accuracy by kind."""

    judge: Text
    overall: Figure
    pairs: int
    rows: tuple[Row, ...]


class _Pair(NamedTuple):
    """The gold document and one other."""

    case: Case
    kind: DocumentLabel
    gold: Document
    other: str

    def request(self, seed: int) -> ChatRequest:
        """Which document comes first is drawn. Simulated documents have no title, so none is shown."""
        shown = [self.gold.text, self.other]
        Random(f"{seed}:{self.case.question.id}:{self.kind}:first").shuffle(shown)
        first, second = (delimit(Document(id=name, text=text)) for name, text in zip("AB", shown, strict=True))
        values = {"QUESTION": self.case.question.question, "FIRST": first, "SECOND": second}
        return ChatRequest(fill(RELATION, values), seed_of(seed, self.case.question.id, "relation", self.kind))


class _Said(NamedTuple):
    pair: _Pair
    relation: str
    """A relation, `unreadable` or `failed`."""

    @property
    def right(self) -> float:
        return float(self.relation == self.pair.kind)


def relate(cases: Sequence[Case], judge: ChatModel, *, resamples: int, seed: int) -> Relation:
    """Ask for the relation of each question's gold document to the first usable document of each kind, and to the best that is none.

    That one is the best candidate that is `neutral` or `unanswerable`; where a question has none, the pair is left out.
    """
    pairs = [pair for case in cases for pair in _pairs(case)]
    replies = texts(judge, [pair.request(seed) for pair in pairs], "relation")
    said = [_Said(pair, FAILED if reply is None else read(reply)) for pair, reply in zip(pairs, replies, strict=True)]
    replied = [one for one in said if one.relation != FAILED]
    return Relation(
        judge=judge.name,
        overall=_accuracy(replied, resamples, seed),
        pairs=len(replied),
        rows=tuple(_row(kind, [one for one in said if one.pair.kind is kind], resamples, seed) for kind in RELATIONS),
    )


def read(reply: str) -> str:
    """The relation that the reply names and nothing beside it; else `unreadable`. Quotes, emphasis and a full stop may stand around it."""
    word = reply.strip().strip("*_`'\"“”‘’").removesuffix(".").strip("*_`'\"“”‘’").casefold()
    return word if word in RELATIONS else UNREADABLE


def _pairs(case: Case) -> Iterator[_Pair]:
    best = gold(case)
    if best is None:
        return
    simulations = usable(case)
    for kind in RELATIONS[:3]:
        text = next((s.text for s in simulations if s.kind is kind), None)
        if text is not None:
            yield _Pair(case, kind, best, text)
    silent = (DocumentLabel.NEUTRAL, DocumentLabel.UNANSWERABLE)
    text = next((c.document.text for c in case.candidates if c.document.label in silent), None)
    if text is not None:
        yield _Pair(case, DocumentLabel.NEUTRAL, best, text)


def _row(kind: DocumentLabel, said: Sequence[_Said], resamples: int, seed: int) -> Row:
    replied = [one for one in said if one.relation != FAILED]
    return Row(
        kind=kind,
        pairs=len(replied),
        failed=len(said) - len(replied),
        accuracy=_accuracy(replied, resamples, seed),
        said=dict(sorted(Counter(one.relation for one in replied).items())),
    )


def _accuracy(said: Sequence[_Said], resamples: int, seed: int) -> Figure:
    return mean([one.right for one in said], [one.pair.case.question.id for one in said], resamples=resamples, seed=seed)
