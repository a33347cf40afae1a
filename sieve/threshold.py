"""Choose the Sieve's threshold on validation data, and what a threshold means in rates."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

DEFAULT = 0.5
"""The paper's default threshold (paper 002, section 3.2)."""


class Rates(NamedTuple):
    """Binary rates of `score >= threshold` against labels, each from 0 to 1; none where its class is absent."""

    tpr: float | None
    """Distracted sets that were flagged."""
    fpr: float | None
    """Clean sets that were flagged."""
    macro_f1: float
    """Mean of the F1 of both classes; a class without gold and without predictions counts as 0."""


def rates(scores: Sequence[float], distracted: Sequence[bool], threshold: float) -> Rates:
    """Rates at one threshold; a score equal to it is flagged."""
    pairs = [(score >= threshold, label) for score, label in zip(scores, distracted, strict=True)]
    tp, fp = sum(f and y for f, y in pairs), sum(f and not y for f, y in pairs)
    fn, tn = sum(not f and y for f, y in pairs), sum(not f and not y for f, y in pairs)
    f1 = [2 * hit / (2 * hit + fp + fn) if hit else 0.0 for hit in (tp, tn)]
    return Rates(tp / (tp + fn) if tp + fn else None, fp / (fp + tn) if fp + tn else None, sum(f1) / 2)


def choose(scores: Sequence[float], distracted: Sequence[bool]) -> float:
    """Return the threshold with the best macro-F1; among equals the one nearest to 0.5, the paper's default.

    Candidates are 0.5 and the midpoints between neighbouring scores, so that no set lies on the threshold.
    Raises ValueError when one of the classes is absent: nothing can be chosen then.
    """
    if len(set(distracted)) < 2:
        raise ValueError("choosing a threshold needs both clean and distracted validation sets")
    ordered = sorted(set(scores))
    candidates = [DEFAULT, *((low + high) / 2 for low, high in pairwise(ordered))]
    return max(candidates, key=lambda t: (rates(scores, distracted, t).macro_f1, -abs(t - DEFAULT)))
