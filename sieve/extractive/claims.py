"""The judge's training rows: what documents say and do not say, and what the reader falls for in documents that say nothing."""

import gzip
import json
import logging
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from rag.errors import InputError
from rag.records import Document, DocumentLabel, Example, Record, Text
from sieve.extractive.answers import Relation, bare, compare
from sieve.extractive.context import around
from sieve.extractive.data import documents, speaks, stretches, wordings
from sieve.extractive.judge import LABELS, Claim
from sieve.extractive.spans import Reading

logger = logging.getLogger(__name__)


class Labelled(NamedTuple):
    """A claim with its place in `LABELS`."""

    claim: Claim
    label: int


STATES, CONTRADICTS, NEITHER = range(len(LABELS))


class Read(NamedTuple):
    """A document of which it is known what it says, as the reader read it."""

    example: Example
    document: Document
    text: str
    """What the reader read; spans are places in it."""
    reading: Reading


def sample(examples: Sequence[Example], limit: int, seed: int) -> list[tuple[Example, Document]]:
    """At most `limit` documents of which it is known what they say, drawn by the seed."""
    usable = list(documents(examples, Counter()))
    return [usable[place] for place in sorted(random.Random(seed).sample(range(len(usable)), limit))] if limit < len(usable) else usable


def claims(read: Sequence[Read], seed: int) -> list[Labelled]:
    """Claims from documents: two or three of each.

    A document that speaks states its answer, in any wording, and contradicts other answers: one that a document beside it gives, one of
    another question that asks for the like, one that the reader took second. A denial contradicts what it denies. Of a silent document,
    what the reader takes for an answer is none, the more so the surer it was; nor does it say anything of the true one.
    """
    rng = random.Random(seed)
    pool: dict[str, list[str]] = {}
    for one in read:
        if speaks(one.document):
            pool.setdefault(_asks(one.example.question), []).append(bare(one.document.answer or ""))
    found = [labelled for one in read for labelled in (_speaking if speaks(one.document) else _silent)(one, pool, rng)]
    rng.shuffle(found)
    counts = Counter(LABELS[one.label] for one in found)
    logger.info("judge: %s claims from %d documents", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())), len(read))
    return found


def _asks(question: str) -> str:
    """The words by which two questions ask for answers of one kind."""
    words = question.casefold().split()
    for place, word in enumerate(words):
        if word in ("who", "when", "where", "why"):
            return word
        if word in ("what", "which", "how"):
            return " ".join(words[place : place + 2])
    return ""


def _speaking(one: Read, pool: dict[str, list[str]], rng: random.Random) -> Iterator[Labelled]:
    spans = stretches(one.text, wordings(one.example, one.document))
    if not spans:
        return
    start, end = rng.choice(spans)
    context = around(one.text, start, end)
    question = one.example.question
    own = one.text[start:end]
    if one.document.label is DocumentLabel.NEGATED:
        yield Labelled(Claim(question, own, context), CONTRADICTS)
        return
    said = rng.choice((own, *one.example.answers)) if one.document.label is DocumentLabel.ANSWERABLE else own
    yield Labelled(Claim(question, said, context), STATES)
    others = [bare(other.answer) for other in one.example.documents if other.answer and other.label is DocumentLabel.CONFLICT]
    if one.document.label is DocumentLabel.CONFLICT:
        others = list(one.example.answers)
    others += [one.text[span.start : span.end] for span in one.reading.spans[:3]]
    others += rng.sample(alike := pool.get(_asks(question), []), min(2, len(alike)))
    wrong = [
        other for other in dict.fromkeys(others) if _differs(other, (own, *(one.example.answers if own in one.example.answers else ())))
    ]
    if wrong:
        # What stands beside the answer is the harder lesson, so it is drawn more often.
        yield Labelled(Claim(question, wrong[min(int(rng.expovariate(1.0)), len(wrong) - 1)], context), CONTRADICTS)


_SURELY_SILENT, _KEPT = 0.95, 0.4
"""Of documents that the reader surely leaves alone, the judge sees this share: it is there for the others."""


def _silent(one: Read, pool: dict[str, list[str]], rng: random.Random) -> Iterator[Labelled]:
    if not one.reading.spans or (one.reading.silent > _SURELY_SILENT and rng.random() > _KEPT):
        return
    best = one.reading.spans[0]
    context = around(one.text, best.start, best.end)
    yield Labelled(Claim(one.example.question, one.text[best.start : best.end], context), NEITHER)
    if one.example.answers and rng.random() < 0.5:
        yield Labelled(Claim(one.example.question, rng.choice(one.example.answers), context), NEITHER)
    elif (alike := pool.get(_asks(one.example.question))) and rng.random() < 0.5:
        yield Labelled(Claim(one.example.question, rng.choice(alike), context), NEITHER)


def _differs(answer: str, own: Sequence[str]) -> bool:
    """Whether rules alone say that an answer is another one: names that share no word, numbers that differ."""
    words = {word for text in own for word in text.casefold().split()}
    return bool(answer.strip()) and all(
        compare(answer, text) is Relation.DIFFERENT
        or (compare(answer, text) is Relation.UNSURE and words.isdisjoint(answer.casefold().split()))
        for text in own
    )


class _Pair(Record):
    """A line of a file of sentence pairs."""

    first: Text
    second: Text
    relation: Literal["entails", "contradicts", "neutral"]
    source: Text = ""


def pairs(path: Path, limit: int, seed: int) -> list[Labelled]:
    """Claims from pairs of sentences: JSON lines of `first`, `second` and `relation`, gzipped or not; at most `limit`, drawn by the seed.

    Raises InputError for a file that is not there or holds something else.
    """
    if not path.is_file():
        raise InputError(
            f"data.pairs: expected JSON lines of first, second and relation, found nothing at {path}; docs/data.md says where to get them"
        )
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            read = [_Pair.model_validate(json.loads(line)) for line in lines]
    except ValueError as error:
        raise InputError(f"{path}: expected JSON lines of first, second and relation: {error}") from error
    chosen = random.Random(seed).sample(read, min(limit, len(read)))
    labels = {"entails": STATES, "contradicts": CONTRADICTS, "neutral": NEITHER}
    return [Labelled(Claim(pair.second, "", pair.first), labels[pair.relation]) for pair in chosen]
