"""Risk over coverage: what share of the most confident rows is wrong, and how well confidence ranks right before wrong."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Curve(NamedTuple):
    """One point for each distinct confidence, from the highest to the lowest; rows of equal confidence enter together."""

    confidence: FloatArray
    """Rows of at least this confidence are kept."""
    coverage: FloatArray
    """Share of all rows that are kept; the last is 1."""
    risk: FloatArray
    """Share of the kept rows that are wrong."""
    sizes: FloatArray
    """Rows that enter at each point."""


def risk_coverage(confidence: Sequence[float] | FloatArray, correct: Sequence[bool] | npt.NDArray[np.bool_]) -> Curve:
    """The curve of these rows; their order does not matter. O(n log n), no loop over rows.

    Raises ValueError without rows, and for a confidence that is no number from 0 to 1. Confidences 0.9, 0.9, 0.5 of a right, a wrong and a
    wrong row: points (2/3, 1/2) and (1, 2/3).
    """
    values, right = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=bool)
    if not len(values):
        raise ValueError("expected at least one row, got none")
    if len(values) != len(right):
        raise ValueError(f"expected as many confidences as rows, got {len(values)} and {len(right)}")
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("expected confidences from 0 to 1; leave unreadable ones out first (eval.certainty.confidence.readable)")
    levels, index = np.unique(-values, return_inverse=True)
    sizes = np.bincount(index, minlength=len(levels)).astype(np.float64)
    wrong = np.bincount(index, weights=(~right).astype(np.float64), minlength=len(levels))
    kept = np.cumsum(sizes)
    return Curve(-levels, kept / len(values), np.cumsum(wrong) / kept, sizes)


def aurc(curve: Curve) -> float:
    """Area under the risk-coverage curve: the mean, over all rows, of the risk at the point where the row has entered; 0 is best.

    Without ties this is paper 000, appendix A: the mean over k of the share of wrong rows among the k most confident. Rows of equal
    confidence all count with the risk of their whole group, so that no order within a tie can flatter or harm. The example of
    `risk_coverage` has (2 x 1/2 + 2/3) / 3 = 0.556; all tied, it has the error rate, 2/3.
    """
    return float(curve.risk @ curve.sizes / curve.sizes.sum())


def best_aurc(n: int, wrong: int) -> float:
    """The lowest area that `wrong` wrong rows among `n` allow: all of them ranked last, without ties. Two of three: (0 + 1/2 + 2/3) / 3."""
    ranks = np.arange(n - wrong + 1, n + 1, dtype=np.float64)
    return float(np.sum((ranks - (n - wrong)) / ranks) / n)


def excess_aurc(curve: Curve) -> float:
    """`aurc` above the best that this error rate allows (Geifman et al. 2019): 0 where every right row stands before every wrong one."""
    n = round(float(curve.sizes.sum()))
    return aurc(curve) - best_aurc(n, round(float(curve.risk[-1]) * n))


def risk_at(curve: Curve, coverages: Sequence[float]) -> list[tuple[float, float]]:
    """(Coverage reached, risk there) at the first point that keeps at least each of these shares; ties may keep more.

    Raises ValueError for a share that is not above 0 and at most 1.
    """
    if outside := [share for share in coverages if not 0 < share <= 1]:
        raise ValueError(f"coverages: expected shares above 0 and at most 1, got {outside[0]}")
    # Shares such as 0.3 and 3 / 10 must meet.
    places = np.searchsorted(curve.coverage, np.asarray(coverages, dtype=np.float64) - 1e-12)
    return [(float(curve.coverage[place]), float(curve.risk[place])) for place in places]
