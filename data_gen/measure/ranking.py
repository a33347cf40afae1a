"""Where simulated documents come when they are ranked together with those that were retrieved (paper 002, appendix A.1, table 3)."""

import hashlib
import json
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

from data_gen.measure.folder import gold, usable
from data_gen.measure.intervals import Figure, mean
from data_gen.pipeline.cases import Case
from rag.errors import InputError
from rag.jsonl import Journal, iter_records
from rag.models.rerank import Reranker
from rag.records import DocumentLabel, Id, Record, Text

logger = logging.getLogger(__name__)

KINDS = (DocumentLabel.CONFLICT, DocumentLabel.ADVERSARIAL, DocumentLabel.NEGATED)
"""In the order of table 3."""
GOLD = "gold"


class Row(Record):
    """Ranks of one kind of document."""

    kind: Text
    """A kind of simulated document, or `gold`: the best retrieved document that gives the answer."""
    documents: int
    questions: int
    raw: Figure
    """Mean rank, 1 is best."""
    scaled: Figure
    """Mean of (rank - 1) / (passages - 1): 0 is first, 1 is last."""


class Ranking(Record):
    """Table 3 for one data set."""

    reranker: Text
    questions: int
    """Questions with a simulated document that can be used; the others are not ranked."""
    fewest: int | None
    """Passages that were ranked for one question, simulated ones included."""
    most: int | None
    rows: tuple[Row, ...]


class Scores(Record):
    """The reranker's scores of one question, kept so that a run that was killed goes on."""

    key: Id
    """Fingerprint of reranker, question and passages."""
    scores: tuple[float, ...]


class _Mixture(NamedTuple):
    """The passages of one question, retrieved ones first."""

    question_id: str
    question: str
    texts: tuple[str, ...]
    kinds: tuple[str, ...]
    """The kind of each passage that a row is about, else blank."""

    def key(self, reranker: str) -> str:
        return hashlib.sha256(json.dumps([reranker, self.question, self.texts]).encode()).hexdigest()[:32]


class _Ranked(NamedTuple):
    kind: str
    question_id: str
    raw: float
    scaled: float


def rank(cases: Sequence[Case], reranker: Reranker, journal: Path, *, resamples: int, seed: int) -> Ranking:
    """Mix each question's usable simulated documents with its candidates, rank them, and average the ranks of each kind.

    Equal scores share the mean of their ranks. A passage is its title and its text. Scores that are in `journal` are not made again.
    Raises InputError for a score that is no number.
    """
    mixtures = [_mixture(case) for case in cases if usable(case)]
    scores = _scores(mixtures, reranker, journal)
    ranked = [row for mixture in mixtures for row in _ranked(mixture, scores[mixture.key(reranker.name)])]
    sizes = [len(mixture.texts) for mixture in mixtures]
    return Ranking(
        reranker=reranker.name,
        questions=len(mixtures),
        fewest=min(sizes, default=None),
        most=max(sizes, default=None),
        rows=tuple(_row(kind, [r for r in ranked if r.kind == kind], resamples, seed) for kind in (GOLD, *map(str, KINDS))),
    )


def ranks(scores: Sequence[float]) -> list[float]:
    """The rank of each score from 1, the highest; equal scores share the mean of the ranks that they take up."""
    return [1 + sum(other > score for other in scores) + (sum(other == score for other in scores) - 1) / 2 for score in scores]


def _mixture(case: Case) -> _Mixture:
    best = gold(case)
    simulations = usable(case)
    return _Mixture(
        case.question.id,
        case.question.question,
        (*(f"{c.document.title}\n{c.document.text}".strip() for c in case.candidates), *(s.text for s in simulations)),
        (*(GOLD if c.document is best else "" for c in case.candidates), *(str(s.kind) for s in simulations)),
    )


def _scores(mixtures: Sequence[_Mixture], reranker: Reranker, path: Path) -> dict[str, tuple[float, ...]]:
    journal = Journal(path)
    done = {row.key: row.scores for row in iter_records(path, Scores)} if path.exists() else {}
    wanted = {mixture.key(reranker.name): mixture for mixture in mixtures}
    todo = {key: mixture for key, mixture in wanted.items() if key not in done}
    if len(todo) < len(wanted):
        logger.info("ranking: %d of %d questions are in %s already", len(wanted) - len(todo), len(wanted), path)
    for key, mixture in track(todo.items(), "ranking", total=len(todo), console=Console(stderr=True), disable=not todo):
        made = Scores(key=key, scores=_finite(mixture, reranker.score(mixture.question, mixture.texts)))
        journal.append([made])
        done[key] = made.scores
    return done


def _finite(mixture: _Mixture, scores: Sequence[float]) -> tuple[float, ...]:
    if len(scores) != len(mixture.texts) or not all(map(math.isfinite, scores)):
        raise InputError(
            f"reranker: expected {len(mixture.texts)} finite scores for the question '{mixture.question_id}', got {list(scores)}; "
            "set reranker to another model"
        )
    return tuple(scores)


def _ranked(mixture: _Mixture, scores: Sequence[float]) -> Iterator[_Ranked]:
    for kind, place in zip(mixture.kinds, ranks(scores), strict=True):
        if kind:
            # At least one candidate and one simulated document: there is a last rank other than the first.
            yield _Ranked(kind, mixture.question_id, place, (place - 1) / (len(scores) - 1))


def _row(kind: str, ranked: Sequence[_Ranked], resamples: int, seed: int) -> Row:
    questions = [row.question_id for row in ranked]
    return Row(
        kind=kind,
        documents=len(ranked),
        questions=len(set(questions)),
        raw=mean([row.raw for row in ranked], questions, resamples=resamples, seed=seed),
        scaled=mean([row.scaled for row in ranked], questions, resamples=resamples, seed=seed),
    )
