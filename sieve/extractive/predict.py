"""Serve an extractive Sieve: what each document says, how far any two of them disagree, and which one to leave out."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from transformers import PreTrainedModel

from rag.calibration import logit, probability
from rag.records import Document
from rag.render import as_documents, ranked
from sieve.extractive.answers import Relation, compare
from sieve.extractive.context import around
from sieve.extractive.decision import Contest, DecisionSettings, Statement, set_score
from sieve.extractive.inputs import Encoding
from sieve.extractive.judge import Claim, Judge, Verdict
from sieve.extractive.reader import Reader
from sieve.extractive.spans import Reading
from sieve.screening import Removal, Screening, groups

MAY_SPEAK = 0.05
"""A document that answers with a lower probability than this is not judged: nothing it said could flag a set."""
UNJUDGED = Verdict(0.0, 0.0, 1.0)


class Passage(NamedTuple):
    """All that the reading of a document depends on."""

    question: str
    title: str
    text: str


class Read(NamedTuple):
    """A document and what it says."""

    text: str
    """What was read; spans are places in it."""
    reading: Reading
    statement: Statement
    context: str
    """The sentences around its answer."""
    truncated: bool
    tokens: int


class _Set(NamedTuple):
    """One question's documents, near-identical ones together, best first, and the passage that stands for each group."""

    groups: list[list[Document]]
    passages: list[Passage]


class ExtractiveSieve:
    """A reader and a judge in memory, with the interface of `sieve.predict.Sieve`; `sieve.predict.load` makes either.

    Each document is read alone, so a score depends neither on the order of the documents nor on those that say nothing, and leaving
    one out costs no further reading. The score of a set is that of its worst disagreement (`decision.set_score`), at the temperature;
    near-identical documents are read once. A single document scores the floor: it has nothing to disagree with.
    """

    def __init__(
        self,
        reader: Reader,
        judge: Judge,
        decision: DecisionSettings,
        *,
        threshold: float,
        temperature: float = 1.0,
        remembered: int = 4_096,
    ) -> None:
        """Serve two models. When more than `remembered` documents have been read, the next call begins with none."""
        self.reader = reader
        self.judge = judge
        self.decision = decision
        self.threshold = threshold
        self.temperature = temperature
        self.remembered = remembered
        self._read: dict[Passage, Read] = {}
        self._verdicts: dict[Claim, Verdict] = {}

    @property
    def models(self) -> tuple[PreTrainedModel, ...]:
        """The encoders that a decision takes: the reader, and the judge of what is contested."""
        return self.reader.model, self.judge.model

    def forget(self) -> None:
        """Remember no reading: the next call costs what it costs for documents that were never seen."""
        self._read, self._verdicts = {}, {}

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[Screening]:
        """Score each question with its own set of documents, best first. Plain texts get the ids `d1`, `d2`, ... in each set.

        Raises InputError for a question that leaves no room for documents, and for documents that are not text.
        """
        sets = _sets(questions, documents)
        contests = self._contests(sets)
        return [self._screening(item, of_set) for item, of_set in zip(sets, contests, strict=True)]

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[list[Removal]]:
        """For each set, score it without each of its groups of near-identical documents (the paper, section 6).

        Documents are as `screen` takes them. A group that is the whole set is not tried. What was read for `screen` is remembered, so this
        costs nothing after it.
        """
        sets = _sets(questions, documents)
        removals: list[list[Removal]] = []
        for item, of_set in zip(sets, self._contests(sets), strict=True):
            place = {document.id: n for n, document in enumerate(ranked([d for group in item.groups for d in group]), start=1)}
            removals.append(
                [
                    Removal(
                        ids=tuple(document.id for document in group),
                        rank=place[group[0].id],
                        score=self._score([contest for pair, contest in of_set.items() if left_out not in pair]),
                    )
                    for left_out, group in enumerate(item.groups)
                    if len(item.groups) > 1
                ]
            )
        return removals

    def contests(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[tuple[Document, Document, Contest]]]:
        """For each set, its pairs of documents that may both answer; one document stands for all near-identical ones."""
        sets = _sets(questions, documents)
        return [
            [(item.groups[i][0], item.groups[j][0], contest) for (i, j), contest in of_set.items()]
            for item, of_set in zip(sets, self._contests(sets), strict=True)
        ]

    def _score(self, contests: Sequence[Contest]) -> float:
        return probability(logit(set_score(contests, self.decision)), self.temperature)

    def _screening(self, item: _Set, of_set: Mapping[tuple[int, int], Contest]) -> Screening:
        read = [self._read[passage] for passage in item.passages]
        together = [(document, one) for group, one in zip(item.groups, read, strict=True) for document in group]
        return Screening(
            score=self._score(list(of_set.values())),
            truncated=tuple(document.id for document, one in together if one.truncated),
            tokens=sum(one.tokens for one in read),
            readings={document.id: one.statement.answer if one.statement.speaks >= 0.5 else "" for document, one in together},
        )

    def _contests(self, sets: Sequence[_Set]) -> list[dict[tuple[int, int], Contest]]:
        """Of each set, the contests by the places of the two groups. Reads and judges what is not remembered."""
        if len(self._read) > self.remembered:
            self.forget()
        self._read_new(list(dict.fromkeys(passage for item in sets for passage in item.passages if passage not in self._read)))
        pairs = [
            [
                pair
                for pair in combinations(range(len(item.passages)), 2)
                if all(self._read[item.passages[place]].statement.speaks >= MAY_SPEAK for place in pair)
            ]
            for item in sets
        ]
        crossed = dict.fromkeys(
            claim for item, of_set in zip(sets, pairs, strict=True) for pair in of_set for claim in self._crossed(item, pair)
        )
        self._judge([claim for claim in crossed if claim not in self._verdicts])
        return [{pair: self._contest(item, pair) for pair in of_set} for item, of_set in zip(sets, pairs, strict=True)]

    def _read_new(self, passages: Sequence[Passage]) -> None:
        encodings = self.reader.encode([(p.question, Document(id="d", title=p.title, text=p.text)) for p in passages])
        readings = self.reader.read(encodings)
        spoken = [_said(passage, encoding, reading) for passage, encoding, reading in zip(passages, encodings, readings, strict=True)]
        own = [
            Claim(passage.question, answer, context)
            for passage, (answer, context), reading in zip(passages, spoken, readings, strict=True)
            if 1 - reading.silent >= MAY_SPEAK and answer
        ]
        self._judge([claim for claim in dict.fromkeys(own) if claim not in self._verdicts])
        for passage, encoding, reading, (answer, context) in zip(passages, encodings, readings, spoken, strict=True):
            verdict = self._verdicts.get(Claim(passage.question, answer, context), UNJUDGED)
            self._read[passage] = Read(
                text=encoding.text,
                reading=reading,
                statement=Statement(answer, 1 - reading.silent if answer else 0.0, verdict),
                context=context,
                truncated=encoding.truncated,
                tokens=sum(len(window.ids) for window in encoding.windows),
            )

    def _judge(self, claims: Sequence[Claim]) -> None:
        verdicts = self.judge.judge(claims)
        # `min` and `max` below would pass over what is no number, and so over the document.
        if not all(math.isfinite(value) for verdict in verdicts for value in verdict):
            raise RuntimeError("the judge's verdicts are not numbers")
        self._verdicts |= zip(claims, verdicts, strict=True)

    def _crossed(self, item: _Set, pair: tuple[int, int]) -> list[Claim]:
        """The answer of each of two documents beside the sentences of the other, where rules do not say that the answers are one."""
        first, second = (self._read[item.passages[place]] for place in pair)
        if compare(first.statement.answer, second.statement.answer) is Relation.SAME:
            return []
        question = item.passages[0].question
        return [Claim(question, first.statement.answer, second.context), Claim(question, second.statement.answer, first.context)]

    def _contest(self, item: _Set, pair: tuple[int, int]) -> Contest:
        first, second = (self._read[item.passages[place]] for place in pair)
        relation = compare(first.statement.answer, second.statement.answer)
        crossed = [self._verdicts[claim] for claim in self._crossed(item, pair)]
        one, other = first.statement.verdict, second.statement.verdict
        return Contest(
            speaks=min(first.statement.speaks, second.statement.speaks),
            states=min(one.states, other.states),
            contradicts=max((verdict.contradicts for verdict in crossed), default=0.0),
            support=max(_support(first, second), _support(second, first), *(verdict.states for verdict in crossed), 0.0),
            relation=relation,
            denied=max(one.states * other.contradicts, other.states * one.contradicts),
            confusable=_confusable(item.passages[0].question, first) or _confusable(item.passages[0].question, second),
        )


def _said(passage: Passage, encoding: Encoding, reading: Reading) -> tuple[str, str]:
    """The best answer of a document, and the sentences around it."""
    if not reading.spans:
        return "", ""
    best = reading.spans[0]
    answer = " ".join(encoding.text[best.start : best.end].split())
    return answer, around(encoding.text, best.start, best.end, passage.title)


def _support(one: Read, other: Read) -> float:
    """How probable it is that one document, if it answers, answers what the other does."""
    return sum(
        span.probability for span in one.reading.spans if compare(one.text[span.start : span.end], other.statement.answer) is Relation.SAME
    )


_NAME = re.compile(r"(?<!\w)[A-Z][\w'’-]+(?:\s+(?:of\s+the\s+|of\s+|de\s+|and\s+)?[A-Z][\w'’-]+)+")


def _confusable(question: str, read: Read) -> bool:
    """Whether a document does not name the subject asked about, but one that shares a part of its name."""
    asked = [match[0] for match in _NAME.finditer(question)]
    if not asked or any(name in read.text for name in asked):
        return False
    there = [set(match[0].split()) for match in _NAME.finditer(read.text)]
    return any(len(words & set(name.split())) > 0 and not words >= set(name.split()) for name in asked for words in there)


def _sets(questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[_Set]:
    sets = []
    for question, docs in zip(questions, documents, strict=True):
        together = groups(ranked(as_documents(docs)))
        sets.append(_Set(together, [Passage(question, group[0].title, group[0].text) for group in together]))
    return sets
