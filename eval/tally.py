"""A metric on rows as counts that add up, so that an interval can resample them."""

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def mean_of_ratios(sums: FloatArray) -> FloatArray:
    """Mean over the (numerator, denominator) column pairs of the last axis; NaN where a denominator is zero."""
    numerators, denominators = sums[..., 0::2], sums[..., 1::2]
    ratios = np.divide(numerators, denominators, out=np.full_like(numerators, np.nan), where=denominators > 0)
    return np.asarray(ratios.mean(axis=-1))


class Tally:
    """One metric on one list of rows, kept as counts that add up over rows, so that an interval can resample them.

    Every metric here is a ratio of sums, or a mean of such ratios: accuracy is (correct, rows), the F1 of a class is
    (2 x hits, gold + predicted), macro-F1 has one such pair for each class.
    """

    def __init__(self, groups: Sequence[str], counts: npt.ArrayLike, not_applicable: Sequence[str] = ()) -> None:
        """Keep the question id of each row and its counts; `not_applicable` names classes that no row has as gold or as prediction.

        `counts` holds for each row (numerator, denominator), repeated for each ratio; a row that does not count holds zeros.
        Raises ValueError when there is not one line of counts for each group.
        """
        self.groups = tuple(groups)
        self.counts: FloatArray = np.asarray(counts, dtype=np.float64) if len(self.groups) else np.zeros((0, 2))
        self.not_applicable = tuple(not_applicable)
        if self.counts.ndim != 2 or len(self.counts) != len(self.groups):
            raise ValueError(f"counts: expected one line for each of {len(self.groups)} rows, got the shape {self.counts.shape}")

    @property
    def value(self) -> float:
        """The metric. Raises ValueError when no row counts. Sums are exact, so row order does not matter."""
        if not self.defined:
            raise ValueError("expected at least one row that counts for this metric, got none")
        return float(mean_of_ratios(np.array([math.fsum(column) for column in self.counts.T.tolist()])))

    @property
    def defined(self) -> bool:
        """Whether any row counts; without one the metric is not applicable."""
        return bool(self._counted.any())

    @property
    def n(self) -> int:
        """Rows that count: those with a denominator above zero."""
        return int(self._counted.sum())

    @property
    def questions(self) -> int:
        """Distinct questions among the rows that count."""
        return len(set(compress(self.groups, self._counted.tolist())))

    @property
    def _counted(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.counts[:, 1::2] != 0).any(axis=1))
