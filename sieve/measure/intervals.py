"""Seeded percentile intervals of the Sieve's own figures, resampled by question, and the area under the ROC curve."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
LEVEL = 0.95
_BLOCK = 2**22
"""Drawn counts held in memory at once (32 MiB)."""


class Figure(NamedTuple):
    """A number with its interval; all three are none where it is not defined."""

    value: float | None
    low: float | None
    high: float | None


class Draw(NamedTuple):
    """How intervals are drawn."""

    resamples: int
    seed: int


NOTHING = Figure(None, None, None)


def share(hits: Sequence[bool], questions: Sequence[str], *, resamples: int, seed: int) -> Figure:
    """Share of rows that hit, with an interval by question; not defined without rows."""
    counts = [(float(hit), 1.0) for hit in hits]
    return ratio(counts, questions, lambda sums: divide(sums[:, 0], sums[:, 1]), resamples=resamples, seed=seed)


def macro_f1(flagged: Sequence[bool], distracted: Sequence[bool], questions: Sequence[str], *, resamples: int, seed: int) -> Figure:
    """Mean F1 of the two classes, with an interval by question; a class without gold and without predictions counts as 0."""
    counts = [(float(f and y), float(not f and not y), float(f != y)) for f, y in zip(flagged, distracted, strict=True)]

    def of(sums: FloatArray) -> FloatArray:
        wrong = sums[:, 2]
        both = [np.nan_to_num(divide(2 * sums[:, i], 2 * sums[:, i] + wrong)) for i in (0, 1)]
        return np.asarray((both[0] + both[1]) / 2)

    return ratio(counts, questions, of, resamples=resamples, seed=seed)


def f1(sums: FloatArray) -> FloatArray:
    """F1 of summed counts, [sums, columns]: right ones of the class, then mistakes of either kind. For `ratio`; not a number without any."""
    doubled = 2 * sums[:, 0]
    return divide(doubled, doubled + sums[:, 1])


def ratio(
    counts: Sequence[tuple[float, ...]],
    questions: Sequence[str],
    statistic: Callable[[FloatArray], FloatArray],
    *,
    resamples: int,
    seed: int,
) -> Figure:
    """A statistic of summed counts, [sums, columns] to [sums], with its interval.

    Rows of one question move together. The order of rows does not matter; resamples in which the statistic is not a number are left out.
    """
    if not counts:
        return NOTHING
    names, index = np.unique(np.array(questions), return_inverse=True)
    columns = np.array(counts, dtype=np.float64)
    sums = np.column_stack([np.bincount(index, weights=column, minlength=len(names)) for column in columns.T])
    value = statistic(sums.sum(axis=0, keepdims=True))[0]
    patterns, sizes = np.unique(sums, axis=0, return_counts=True)
    drawn = np.vstack([weights @ patterns for weights in _weights(sizes, len(names), resamples, seed)])
    return _figure(float(value), statistic(drawn))


def auc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Chance that a positive row has a higher score than a negative one, ties counting half; none where a class is absent."""
    values, labels = np.array(scores, dtype=np.float64), np.array(positive, dtype=bool)
    above, below = values[labels], np.sort(values[~labels])
    if not len(above) or not len(below):
        return None
    wins = (np.searchsorted(below, above, "left") + np.searchsorted(below, above, "right")) / 2
    return float(wins.sum() / (len(above) * len(below)))


def auc_figure(scores: Sequence[float], positive: Sequence[bool], questions: Sequence[str], *, resamples: int, seed: int) -> Figure:
    """`auc` with an interval by question."""
    value = auc(scores, positive)
    if value is None:
        return NOTHING
    names, index = np.unique(np.array(questions), return_inverse=True)
    values, labels = np.array(scores, dtype=np.float64), np.array(positive, dtype=bool)
    # won[p, q]: pairs in which a positive row of question p beats a negative row of question q.
    won = np.zeros((len(names), len(names)))
    negatives, homes = values[~labels], index[~labels]
    for score, home in zip(values[labels], index[labels], strict=True):
        outcome = (score > negatives) + (score == negatives) / 2
        won[home] += np.bincount(homes, weights=outcome, minlength=len(names))
    up, down = np.bincount(index[labels], minlength=len(names)), np.bincount(homes, minlength=len(names))
    drawn = [
        divide(((weights @ won) * weights).sum(axis=1), (weights @ up) * (weights @ down))
        for weights in _weights(np.ones(len(names), dtype=np.int64), len(names), resamples, seed)
    ]
    return _figure(value, np.concatenate(drawn))


def _weights(sizes: npt.NDArray[Any], questions: int, resamples: int, seed: int) -> list[FloatArray]:
    """How often each pattern is drawn when `questions` are drawn with replacement, in blocks of [resamples, patterns]."""
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(sizes))
    return [
        rng.multinomial(questions, sizes / questions, size=min(block, resamples - start)).astype(np.float64)
        for start in range(0, resamples, block)
    ]


def divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Quotients, not a number where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0)


def _figure(value: float, drawn: FloatArray) -> Figure:
    defined = drawn[~np.isnan(drawn)]
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if len(defined) else (value, value)
    return Figure(value, float(low), float(high))
