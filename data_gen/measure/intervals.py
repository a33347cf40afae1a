"""Means with a seeded percentile interval, resampled by question."""

from collections.abc import Sequence

import numpy as np

from rag.records import Record

LEVEL = 0.95


class Figure(Record):
    """A mean and its 95 % interval; all three are none without values."""

    value: float | None
    low: float | None
    high: float | None


def mean(values: Sequence[float], questions: Sequence[str], *, resamples: int, seed: int) -> Figure:
    """Mean over values; `questions` says which question each belongs to, and those of one question are drawn together.

    The order of values does not matter. The mean of paired differences is a paired difference of means, and so is its interval.
    """
    if not values:
        return Figure(value=None, low=None, high=None)
    names, index = np.unique(np.array(questions), return_inverse=True)
    # Float sums depend on their order, so rows are put in one.
    order = np.lexsort((np.array(values), index))
    weights = np.array(values, dtype=np.float64)[order]
    sums = np.column_stack([np.bincount(index[order], weights=weights), np.bincount(index)])
    # Drawing questions with replacement draws each distinct row a multinomial number of times.
    patterns, sizes = np.unique(sums, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    totals = np.array([rng.multinomial(len(names), sizes / len(names)) @ patterns for _ in range(resamples)])
    low, high = np.quantile(totals[:, 0] / totals[:, 1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value=float(sums[:, 0].sum() / sums[:, 1].sum()), low=float(low), high=float(high))
