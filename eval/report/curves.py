"""The numbers behind the pictures of a report: thresholds swept over stored scores, reliability, risk and coverage, states confused."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from eval.certainty.risk import risk_coverage
from eval.metrics import Judged
from eval.outcomes import Match, judge
from eval.pairs import pairs
from eval.tally import FloatArray
from rag.calibration import reliability
from rag.records import Example, Outcome, Prediction, Record, RetrievalState

NONE: Final = "none"
"""The column of predictions that name no state."""
STEPS: Final = 200
"""Steps of the threshold from 0 to 1, and points of a curve at most."""


class Threshold(Record):
    """What the Sieve's own decision would be at one threshold; a score equal to it is flagged."""

    threshold: float
    true_positive_rate: float | None
    """None where no distracted set has a score."""
    false_positive_rate: float | None
    macro_f1: float
    """Over clean and distracted, by the convention of `eval.metrics.macro_f1`."""


class Sweep(Record):
    """Thresholds swept over the scores that a run stored; no model is called."""

    n: int
    """Sets with a score."""
    distracted: int
    used: tuple[float, ...]
    """The thresholds that the run decided by."""
    points: tuple[Threshold, ...]


class Bin(Record):
    """Predictions whose probability lies from `low` up to `high`, which belongs to the next bin, save the last one's."""

    low: float
    high: float
    n: int
    mean_score: float
    """Mean probability."""
    frequency: float
    """Share for which it came true."""


class Reliability(Record):
    """How often what was said with a probability was so."""

    of: Literal["sieve", "sage"]
    """`sieve`: P(distracted) against sets that are; `sage`: the confidence of answers against those that are correct."""
    n: int
    bins: tuple[Bin, ...]
    """Those of ten bins of equal width that hold predictions."""


class CurvePoint(Record):
    """What is kept from one confidence upwards; predictions of equal confidence are kept together."""

    confidence: float
    kept: int
    coverage: float
    value: float


class Curves(Record):
    """Everything that a report draws."""

    states: tuple[tuple[int, ...], ...]
    """Examples by gold state (rows: answerable, unanswerable, distracted) and state named (columns: those, and none)."""
    sweep: Sweep | None
    """None where no set has a score."""
    reliability: tuple[Reliability, ...]
    risk: tuple[CurvePoint, ...]
    """Share of wrong answers among those kept, over the share of all examples that they are."""
    selective: tuple[CurvePoint, ...]
    """Share of correct answers among those kept, over the share of the answerable sets that they are; answerable sets only."""
    unconfident: int
    """Answers without a confidence: in neither curve, nor in the Sage's reliability."""


class Row(NamedTuple):
    """One example, judged."""

    example: Example
    prediction: Prediction
    judged: Judged


def judged_rows(examples: Iterable[Example], predictions: Iterable[Prediction], match: Match, *, texts: bool = True) -> list[Row]:
    """Examples with their predictions and what became of them, sorted by id; without `texts` they lose their documents and prompts.

    Both are read once. Raises InputError where they do not match one to one.
    """
    rows = (Row(example, prediction, judge(example, prediction, match)) for example, prediction in pairs(examples, predictions))
    return sorted((row if texts else _bare(row) for row in rows), key=lambda row: row.example.id)


def _bare(row: Row) -> Row:
    """Most of a row's memory is in its texts, of which the curves need none."""
    without: dict[str, Any] = {
        "prompt": None,
        "output": None,
        "readings": {},
        "leave_one_out": {},
        "added": (),
        "citations": (),
        "timings": {},
    }
    return Row(row.example.model_copy(update={"documents": ()}), row.prediction.model_copy(update=without), row.judged)


def curves(rows: Sequence[Row]) -> Curves:
    """All of them; the order of rows does not matter."""
    answered = [row for row in rows if row.judged.answered]
    sure = [row for row in answered if row.prediction.confidence is not None]
    answerable = [row for row in sure if row.example.state is RetrievalState.ANSWERABLE]
    return Curves(
        states=confusion([row.judged for row in rows]),
        sweep=sweep(rows),
        reliability=_reliabilities(rows, sure),
        risk=_kept(sure, len(rows)),
        selective=tuple(
            point.model_copy(update={"value": 1 - point.value})
            for point in _kept(answerable, sum(row.example.state is RetrievalState.ANSWERABLE for row in rows))
        ),
        unconfident=len(answered) - len(sure),
    )


def confusion(rows: Sequence[Judged]) -> tuple[tuple[int, ...], ...]:
    """Counts by gold state and by the state named, none last; they add up to the number of rows."""
    counted = Counter((row.gold, row.state) for row in rows)
    return tuple(tuple(counted[gold, named] for named in (*RetrievalState, None)) for gold in RetrievalState)


def sweep(rows: Sequence[Row]) -> Sweep | None:
    """Rates of the Sieve's decision at thresholds from 0 to 1 in steps of 0.005."""
    scored = [row for row in rows if row.prediction.sieve_score is not None]
    if not scored:
        return None
    scores = np.array([row.prediction.sieve_score for row in scored], dtype=np.float64)
    distracted = np.array([row.example.state is RetrievalState.DISTRACTED for row in scored])
    grid = np.arange(STEPS + 1) / STEPS
    hits, alarms = _at_least(scores[distracted], grid), _at_least(scores[~distracted], grid)
    positive, negative = int(distracted.sum()), int((~distracted).sum())
    # F1 of a class is 2 x hits / (gold + predicted); a class with neither is left out of the mean.
    flagged = hits + alarms
    sizes = np.stack([positive + flagged, negative + len(scored) - flagged])
    f1 = np.divide(2 * np.stack([hits, negative - alarms]), sizes, out=np.zeros(sizes.shape), where=sizes > 0)
    macro = f1.sum(axis=0) / (sizes > 0).sum(axis=0)
    points = [
        Threshold(
            threshold=float(threshold),
            true_positive_rate=float(hits[place] / positive) if positive else None,
            false_positive_rate=float(alarms[place] / negative) if negative else None,
            macro_f1=float(macro[place]),
        )
        for place, threshold in enumerate(grid)
    ]
    used = sorted({row.prediction.threshold for row in scored if row.prediction.threshold is not None})
    return Sweep(n=len(scored), distracted=positive, used=tuple(used), points=tuple(points))


def _at_least(scores: FloatArray, grid: FloatArray) -> FloatArray:
    """How many scores reach each threshold."""
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), grid, side="left"), dtype=np.float64)


def _reliabilities(rows: Sequence[Row], sure: Sequence[Row]) -> tuple[Reliability, ...]:
    scored = [(row.prediction.sieve_score, row.example.state is RetrievalState.DISTRACTED) for row in rows]
    said = [(score, true) for score, true in scored if score is not None]
    answers = [(_confidence(row), row.judged.outcome is Outcome.CORRECT) for row in sure]
    kinds: tuple[tuple[Literal["sieve", "sage"], list[tuple[float, bool]]], ...] = (("sieve", said), ("sage", answers))
    return tuple(
        Reliability(
            of=name,
            n=len(pairs),
            bins=tuple(Bin(**part._asdict()) for part in reliability([said for said, _ in pairs], [true for _, true in pairs])),
        )
        for name, pairs in kinds
        if pairs
    )


def _kept(answers: Sequence[Row], total: int) -> tuple[CurvePoint, ...]:
    """The share of wrong answers among those kept, over the share of `total` that they are; at most 200 points."""
    if not answers:
        return ()
    curve = risk_coverage([_confidence(row) for row in answers], [row.judged.outcome is Outcome.CORRECT for row in answers])
    kept = np.cumsum(curve.sizes).astype(int)
    # The first and the last stay, and between them those at even distances.
    places = np.unique(np.linspace(0, len(kept) - 1, STEPS).round().astype(int))
    return tuple(
        CurvePoint(confidence=float(curve.confidence[i]), kept=int(kept[i]), coverage=int(kept[i]) / total, value=float(curve.risk[i]))
        for i in places
    )


def _confidence(row: Row) -> float:
    assert row.prediction.confidence is not None
    return row.prediction.confidence
