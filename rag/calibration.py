"""How well scores agree with frequencies, and one temperature that makes them agree better; the standard library alone."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

LOWEST, HIGHEST = 0.05, 20.0
"""Bounds of the temperature: logits are stretched or shrunk twentyfold at most."""
LARGEST_LOGIT = 30.0
"""Logit that stands for a score of 1, where a float holds no larger one that tells anything."""

Centre = Literal["mean", "midpoint"]
"""What a bin's frequency is compared with: the mean score of the bin (Guo et al. 2017), or the middle of its edges (paper 000, appendix A)."""


class Bin(NamedTuple):
    """Rows whose scores lie in one part of 0 to 1."""

    low: float
    high: float
    n: int
    mean_score: float
    """Mean score of the bin's rows."""
    frequency: float
    """Share of them for which the scored event happened."""

    @property
    def midpoint(self) -> float:
        """The middle between the two edges."""
        return (self.low + self.high) / 2


def probability(logit: float, temperature: float = 1.0) -> float:
    """The probability of a logit at a temperature; not a number where the logit is none."""
    scaled = logit / temperature
    if scaled >= 0:
        return 1 / (1 + math.exp(-scaled))
    odds = math.exp(scaled)
    return odds / (1 + odds)


def logit(score: float) -> float:
    """The inverse of `probability` at temperature 1; scores of 0 and 1 become finite."""
    if score <= 0 or score >= 1:
        return math.copysign(LARGEST_LOGIT, score - 0.5)
    return min(max(math.log(score / (1 - score)), -LARGEST_LOGIT), LARGEST_LOGIT)


def rescale(scores: Sequence[float], before: float, after: float) -> list[float]:
    """Scores at temperature `before` as they would be at temperature `after`."""
    return [probability(logit(score) * before, after) for score in scores]


def fit_temperature(logits: Sequence[float], happened: Sequence[bool]) -> float:
    """The temperature with the lowest cross-entropy on these rows (Guo et al. 2017), from 0.05 to 20.

    Targets are (n + 1) / (n + 2) and 1 / (n + 2) in place of 1 and 0, n being the size of the class (Platt 1999), so that data the
    logits separate do not drive the temperature to 0. Logits that say nothing, or the opposite, end at the upper bound; logits that are
    all zero leave it at 1. The loss is convex in 1 / temperature, whose root is found by bisection: no order of rows, no seed.
    """
    positive = sum(happened)
    high, low = (positive + 1) / (positive + 2), 1 / (len(happened) - positive + 2)
    rows = [(value, high if label else low) for value, label in zip(logits, happened, strict=True)]
    if not any(value for value, _ in rows):
        return 1.0

    def slope(sharpness: float) -> float:
        return math.fsum(value * (probability(value * sharpness) - target) for value, target in rows)

    below, above = 1 / HIGHEST, 1 / LOWEST
    if slope(below) >= 0:
        return HIGHEST
    if slope(above) <= 0:
        return LOWEST
    for _ in range(60):
        middle = (below + above) / 2
        below, above = (middle, above) if slope(middle) < 0 else (below, middle)
    return 2 / (below + above)


def reliability(scores: Sequence[float], happened: Sequence[bool], bins: int = 10) -> list[Bin]:
    """Bins of equal width that hold rows, from low to high; a score on an edge belongs to the upper bin, and 1 to the last."""
    members: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for score, label in zip(scores, happened, strict=True):
        members[min(int(score * bins), bins - 1)].append((score, label))
    return [_bin(i / bins, (i + 1) / bins, rows) for i, rows in enumerate(members) if rows]


def equal_mass(scores: Sequence[float], happened: Sequence[bool], bins: int = 10) -> list[Bin]:
    """At most `bins` bins of as equal numbers of rows as ties allow, from low to high; equal scores are never parted.

    A bin's edges are its lowest and its highest score. Scores 0.1, 0.5, 0.5, 0.9 in two bins: (0.1, 0.5, 0.5) and (0.9).
    """
    ordered = sorted(zip(scores, happened, strict=True))
    members: list[list[tuple[float, bool]]] = []
    place = -1
    for rank, row in enumerate(ordered):
        if not members or (row[0] > members[-1][-1][0] and rank * bins // len(ordered) > place):
            members.append([])
            place = rank * bins // len(ordered)
        members[-1].append(row)
    return [_bin(rows[0][0], rows[-1][0], rows) for rows in members]


def _bin(low: float, high: float, rows: Sequence[tuple[float, bool]]) -> Bin:
    return Bin(low, high, len(rows), math.fsum(score for score, _ in rows) / len(rows), sum(label for _, label in rows) / len(rows))


def expected_calibration_error(scores: Sequence[float], happened: Sequence[bool], bins: int = 10, centre: Centre = "mean") -> float:
    """Mean distance between a bin's frequency and its mean score, or its midpoint, weighted by size; from 0 to 1.

    Bins have equal width. The midpoint's form never reaches 0 for scores of 0 or 1, which lie 0.05 from the middle of their bin where there
    are ten. Scores 0.92 and 0.96, one of them right: |0.5 - 0.94| = 0.44 by the mean, |0.5 - 0.95| = 0.45 by the midpoint.
    Raises ValueError without rows.
    """
    if not scores:
        raise ValueError("expected at least one row, got none")
    parts = reliability(scores, happened, bins)
    return math.fsum(part.n * abs((part.mean_score if centre == "mean" else part.midpoint) - part.frequency) for part in parts) / len(
        scores
    )
