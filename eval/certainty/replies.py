"""What a stored run would have done at other thresholds: its replies with their Sieve scores, and which of them would have been given."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from eval.comparison.comparable import same_examples
from eval.outcomes import Match, outcome, pair
from eval.predict import EXAMPLES, PREDICTIONS
from rag.errors import InputError
from rag.jsonl import iter_records, read_examples
from rag.records import Example, Outcome, Prediction, Reason, RetrievalState

FILTERED = frozenset({Reason.STILL_DISTRACTED, Reason.ALL_REMOVED})
"""Reasons of a system that removes documents and asks again."""


class Point(NamedTuple):
    """An operating point: what is flagged, and which answers are held back."""

    threshold: float
    """Sets whose Sieve score is at least this are flagged."""
    confidence: float | None = None
    """Answers whose confidence is below this, or that have none, are held back; none: all are given."""


class Reply(NamedTuple):
    """One set: what it is, how it was scored, and what the Sage said where it was asked."""

    id: str
    question_id: str
    answerable: bool
    answered: bool
    """Whether there is an answer to give; not where the set was flagged in the run, nor for abstentions, unreadable output and errors."""
    correct: bool
    score: float | None
    """The Sieve's score; none where the system has none, or the set never came to it."""
    confidence: float | None


class Run(NamedTuple):
    """The replies of a stored run."""

    replies: list[Reply]
    """Sorted by id."""
    reach: float
    """The highest threshold that the run can tell about: its own. Above it there are sets that the Sage never saw."""
    scored: bool
    """Whether the system has a Sieve."""


def read_pairs(folder: Path) -> list[tuple[Example, Prediction]]:
    """Examples and predictions of a run of `eval.pipeline`, by id. Raises InputError for a folder that holds none, or not all."""
    for name in (EXAMPLES, PREDICTIONS):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: expected the folder of a run of eval.pipeline, found no {name} in it")
    return pair(read_examples(folder / EXAMPLES), list(iter_records(folder / PREDICTIONS, Prediction)))


def run_of(pairs: Sequence[tuple[Example, Prediction]], match: Match, scores: Sequence[tuple[Example, Prediction]] | None = None) -> Run:
    """Reduce a run to its replies; with `scores`, the Sieve's scores come from another run on the same examples.

    Raises InputError where the examples of the two differ, where predictions have different thresholds, and for a run that went on after a
    flag: what it removed, and what it then answered, belong to its own threshold and tell nothing of another one.
    """
    if scores is not None:
        _require_same_examples(pairs, scores)
        by_id = {prediction.id: prediction for _, prediction in scores}
        pairs = [(e, p.model_copy(update={"sieve_score": by_id[p.id].sieve_score})) for e, p in pairs if _has_no_score(p)]
    _require_no_recovery([prediction for _, prediction in pairs])
    thresholds = {prediction.threshold for _, prediction in pairs if prediction.threshold is not None}
    if len(thresholds) > 1:
        raise InputError(f"predictions: expected one threshold in a run, got {', '.join(map(str, sorted(thresholds)))}")
    replies = [_reply(example, prediction, match) for example, prediction in pairs]
    scored = any(reply.score is not None for reply in replies)
    return Run(replies, thresholds.pop() if thresholds else 1.0, scored)


def _has_no_score(prediction: Prediction) -> bool:
    if prediction.sieve_score is not None:
        raise InputError("runs: expected the first run to have no Sieve where a second one gives the scores; name one of the two only")
    return True


def _require_same_examples(first: Sequence[tuple[Example, Prediction]], second: Sequence[tuple[Example, Prediction]]) -> None:
    if not same_examples([example for example, _ in first], [example for example, _ in second]):
        raise InputError("runs: expected the run of the replies and that of the scores on the same examples, and they differ")


def _require_no_recovery(predictions: Sequence[Prediction]) -> None:
    for p in predictions:
        flagged = p.sieve_score is not None and p.threshold is not None and p.sieve_score >= p.threshold
        if p.removed or p.added or p.recovery or p.reason in FILTERED or (flagged and p.answer is not None):
            raise InputError(
                f"predictions: '{p.id}' was flagged and went on (on_flag=filter, or a recovery), which tells nothing of another threshold; "
                "run eval.pipeline with system.on_flag=abstain"
            )


def _reply(example: Example, prediction: Prediction, match: Match) -> Reply:
    ended = outcome(example, prediction, match)
    return Reply(
        id=example.id,
        question_id=example.question_id,
        answerable=example.state is RetrievalState.ANSWERABLE,
        answered=ended in (Outcome.CORRECT, Outcome.WRONG),
        correct=ended is Outcome.CORRECT,
        score=prediction.sieve_score,
        confidence=prediction.confidence,
    )


def at(replies: Sequence[Reply], point: Point, reach: float = 1.0) -> list[bool]:
    """Which of the replies are given as answers at a point; a score equal to the threshold is flagged.

    Raises InputError above the run's reach, with the command that makes a run for all thresholds.
    """
    require_reach([point], reach)
    return [_given(reply, point) for reply in replies]


def _given(reply: Reply, point: Point) -> bool:
    if not reply.answered or (reply.score is not None and reply.score >= point.threshold):
        return False
    return point.confidence is None or (reply.confidence is not None and reply.confidence >= point.confidence)


def require_reach(points: Sequence[Point], reach: float) -> None:
    """Refuse thresholds at which sets would pass that the run flagged. Raises InputError."""
    if beyond := [point.threshold for point in points if point.threshold > reach]:
        raise InputError(
            f"thresholds: {max(beyond):g} is above the run's own threshold {reach:g}: the Sage never saw what lies between; {FULL_RUN}"
        )


FULL_RUN = "make a run in which every set reaches the Sage: python -m eval.pipeline ... system.threshold=1 system.on_flag=abstain"


def one_each(replies: Sequence[Reply], seed: int, what: str) -> list[Reply]:
    """One reply for each question, drawn by the seed and `what` it is for; neither the order of rows nor other questions play a part."""
    by_question: dict[str, list[Reply]] = {}
    for reply in sorted(replies, key=lambda reply: reply.id):
        by_question.setdefault(reply.question_id, []).append(reply)
    return [Random(f"{seed}:{what}:{question}").choice(of) for question, of in sorted(by_question.items())]
