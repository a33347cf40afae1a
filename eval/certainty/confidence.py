"""Which confidences there are and how they agree with what was right: readable rows, temperature by halves, Brier score."""

import math
from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

from rag.calibration import expected_calibration_error, fit_temperature, logit, rescale
from rag.records import Outcome, Prediction

Source = Literal["reply", "sieve", "product"]
"""Whose confidence: `reply`, the Sage's probability of its output; `sieve`, 1 - the Sieve's score; `product`, both multiplied."""
Rows = Literal["answers", "all"]
"""`answers`: rows are the answers given, right or wrong, and abstentions have no place in the curve. `all`: every example is a row, right
where the behaviour was (paper 000, appendix A), and an abstention that no confidence came with has confidence 0, as that paper's gates do."""


class Row(NamedTuple):
    """One prediction as calibration sees it."""

    question_id: str
    confidence: float | None
    """As it came: anything but a number from 0 to 1 is unreadable."""
    correct: bool


class Readable(NamedTuple):
    """Rows whose confidence can be read, and how many others there were."""

    rows: list[Row]
    """Sorted by question, then confidence, so that sums do not depend on the order given."""
    unreadable: int
    """Rows left out of calibration, and of nothing else."""

    @property
    def confidence(self) -> list[float]:
        """Their confidences."""
        return [row.confidence for row in self.rows if row.confidence is not None]

    @property
    def correct(self) -> list[bool]:
        """Whether each was right."""
        return [row.correct for row in self.rows]


class Half(NamedTuple):
    """What a temperature does to rows that it was not fitted on."""

    temperature: float
    fitted_on: int
    """Questions it was fitted on."""
    reported_on: int
    """Questions below."""
    n: int
    """Rows below."""
    ece_before: float
    ece_after: float
    brier_before: float
    brier_after: float


def confidence_of(prediction: Prediction, source: Source = "reply") -> float | None:
    """The confidence of a prediction; none where a part of it is missing."""
    reply, score = prediction.confidence, prediction.sieve_score
    if source == "reply":
        return reply
    if score is None:
        return None
    if source == "sieve":
        return 1 - score
    return None if reply is None else reply * (1 - score)


def row_of(prediction: Prediction, outcome: Outcome, answerable: bool, source: Source = "reply", rows: Rows = "answers") -> Row | None:
    """The row of one prediction; none where it has no place: an abstention, unparsed output or an error among `answers`.

    Among `all`, an abstention on an answerable set, unparsed output and an error are wrong; the latter have no confidence but what came
    with them.
    """
    confidence = confidence_of(prediction, source)
    if rows == "answers":
        return Row(prediction.question_id, confidence, outcome is Outcome.CORRECT) if outcome in (Outcome.CORRECT, Outcome.WRONG) else None
    if outcome is Outcome.ABSTAINED:
        return Row(prediction.question_id, 0.0 if confidence is None else confidence, not answerable)
    return Row(prediction.question_id, confidence, outcome is Outcome.CORRECT)


def readable(rows: Sequence[Row]) -> Readable:
    """Rows with a confidence from 0 to 1; none, not a number, 85, -0.1 and the like are counted and left out."""
    kept = sorted(row for row in rows if row.confidence is not None and 0 <= row.confidence <= 1)
    return Readable(kept, len(rows) - len(kept))


def brier(confidence: Sequence[float], correct: Sequence[bool]) -> float:
    """Mean square of confidence - (1 if right else 0), from 0 to 1, 0 is best. 0.8 right and 0.6 wrong: (0.04 + 0.36) / 2 = 0.2.

    Raises ValueError without rows.
    """
    if not confidence:
        raise ValueError("expected at least one row, got none")
    return math.fsum((value - right) ** 2 for value, right in zip(confidence, correct, strict=True)) / len(confidence)


def temper(rows: Sequence[Row], seed: int = 0) -> Half | None:
    """Fit a temperature on half of the questions and report the other half at it; none where a half has no readable row.

    The seed deals the questions; all rows of one go to one half, so that nothing is reported on what it was fitted on.
    """
    questions = sorted({row.question_id for row in readable(rows).rows})
    Random(f"{seed}:temperature").shuffle(questions)
    first = set(questions[: len(questions) // 2])
    fitting, reporting = (readable([row for row in rows if (row.question_id in first) is part]) for part in (True, False))
    if not fitting.rows or not reporting.rows:
        return None
    temperature = fit_temperature([logit(value) for value in fitting.confidence], fitting.correct)
    before, right = reporting.confidence, reporting.correct
    after = rescale(before, 1.0, temperature)
    return Half(
        temperature=temperature,
        fitted_on=len(first),
        reported_on=len(questions) - len(first),
        n=len(before),
        ece_before=expected_calibration_error(before, right),
        ece_after=expected_calibration_error(after, right),
        brier_before=brier(before, right),
        brier_after=brier(after, right),
    )
