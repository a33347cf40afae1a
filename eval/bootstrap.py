"""Seeded percentile bootstrap intervals, resampled by question, so that all variants of a question move together."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eval.tally import FloatArray, Tally, mean_of_ratios

_BLOCK = 2**22
"""Drawn counts held in memory at once (32 MiB)."""
_EXACT = 2.0**53
"""Whole numbers up to here are exact as floats."""


class Interval(NamedTuple):
    """A percentile interval."""

    low: float | None
    """None when no resample was defined."""
    high: float | None
    undefined: int
    """Resamples left out because a denominator was zero in them."""


def interval(tally: Tally, *, resamples: int = 1000, seed: int = 0, level: float = 0.95) -> Interval:
    """Interval of one metric. The same tally, seed and number of resamples give the same numbers, whatever the order of its rows.

    Raises ValueError when no row counts for the metric.
    """
    if not tally.defined:
        raise ValueError("expected at least one row that counts for this metric, got none")
    _, sums = _question_sums(tally)
    return percentiles(mean_of_ratios(_resampled(sums, resamples, seed)), level)


def difference(first: Tally, second: Tally, *, resamples: int = 1000, seed: int = 0, level: float = 0.95) -> Interval:
    """Interval of `first` minus `second`, both computed on the same resamples of the same questions.

    Raises ValueError when the two tallies are not over the same questions, or when no row counts in one of them.
    """
    if not (first.defined and second.defined):
        raise ValueError("expected at least one row that counts for each metric, got none")
    names, sums = _question_sums(first)
    other_names, other_sums = _question_sums(second)
    if unpaired := sorted(set(names) ^ set(other_names)):
        raise ValueError(f"expected the same questions on both sides, only one has: {', '.join(unpaired[:5])} ({len(unpaired)} in all)")
    drawn = _resampled(np.hstack([sums, other_sums]), resamples, seed)
    width = sums.shape[1]
    return percentiles(mean_of_ratios(drawn[:, :width]) - mean_of_ratios(drawn[:, width:]), level)


def _question_sums(tally: Tally) -> tuple[tuple[str, ...], FloatArray]:
    """Counts summed by question, questions sorted by id; rows are sorted first where float sums would depend on their order."""
    names, index = _coded(tally.groups)
    counts = tally.counts
    if not _whole(counts):
        order = np.lexsort((*counts.T, index))
        counts, index = counts[order], index[order]
    sums: FloatArray = np.column_stack([np.bincount(index, weights=column).astype(np.float64) for column in counts.T])
    return names, sums


@lru_cache(maxsize=2)
def _coded(groups: tuple[str, ...]) -> tuple[tuple[str, ...], npt.NDArray[np.intp]]:
    """Distinct ids in order, and the place of each group among them. A report asks twenty times for the same rows."""
    names = tuple(sorted(set(groups)))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places[group] for group in groups], dtype=np.intp)


def _whole(counts: FloatArray) -> bool:
    return bool((counts == np.rint(counts)).all())


def _resampled(sums: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Column totals of each resample, [resamples, columns].

    Drawing Q questions with replacement draws each distinct row of `sums` a multinomial number of times. There are few distinct rows
    (most metrics count zeros and ones), so this costs far less than drawing Q indices and gives the same distribution.
    """
    if resamples < 1:
        raise ValueError(f"resamples: expected at least 1, got {resamples}")
    rng = np.random.default_rng(seed)
    patterns, sizes = _distinct(sums)
    questions = len(sums)
    block = max(1, _BLOCK // len(patterns))
    totals = [
        rng.multinomial(questions, sizes / questions, size=min(block, resamples - start)) @ patterns for start in range(0, resamples, block)
    ]
    return np.vstack(totals)


def draws(questions: int, resamples: int, seed: int) -> FloatArray:
    """How often each resample draws each question, [resamples, questions]: for figures that are no ratios of sums."""
    counts = np.random.default_rng(seed).multinomial(questions, np.full(questions, 1 / questions), size=resamples)
    return counts.astype(np.float64)


def _distinct(sums: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Distinct rows in the order of their columns, and how often each occurs: `np.unique` by rows, which is slow where rows are many."""
    radix = sums.max(axis=0) + 1
    if not _whole(sums) or sums.min() < 0 or radix.prod() > _EXACT:
        patterns, sizes = np.unique(sums, axis=0, return_counts=True)
        return patterns, sizes
    # Small whole numbers are digits of one number, whose order is that of the rows.
    weights = np.append(np.cumprod(radix[:0:-1])[::-1], 1)
    _, first, sizes = np.unique(sums @ weights, return_index=True, return_counts=True)
    return sums[first], sizes


def percentiles(values: FloatArray, level: float) -> Interval:
    """The interval that holds a share `level` of resampled values, as many below as above; those that are not a number count as undefined."""
    if not 0 < level < 1:
        raise ValueError(f"level: expected a share between 0 and 1, got {level}")
    defined = values[~np.isnan(values)]
    undefined = len(values) - len(defined)
    if not len(defined):
        return Interval(None, None, undefined)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), undefined)
