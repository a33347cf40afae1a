"""Calibrate the Sieve's scores by one temperature, and measure how well scores agree with frequencies."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from sieve.threshold import ThresholdSettings, choose

LOWEST, HIGHEST = 0.05, 20.0
"""Bounds of the temperature: logits are stretched or shrunk twentyfold at most."""
LARGEST_LOGIT = 30.0
"""Logit that stands for a score of 1, where a float holds no larger one that tells anything."""


class OperatingPoint(NamedTuple):
    """What calibration and the threshold's rule give on validation data."""

    temperature: float
    threshold: float
    scores: list[float]
    """The validation scores at that temperature, in the order given."""


class Bin(NamedTuple):
    """Sets whose scores lie in one part of 0 to 1."""

    low: float
    high: float
    n: int
    mean_score: float
    """Mean score of the bin's sets."""
    distracted: float
    """Share of them that are distracted."""


def probability(logit: float, temperature: float = 1.0) -> float:
    """P(distracted) of a logit at a temperature; not a number where the logit is none."""
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


def calibrate(logits: Sequence[float], distracted: Sequence[bool], settings: ThresholdSettings) -> OperatingPoint:
    """Fit the temperature on validation logits, then choose the threshold on the scores it gives.

    Raises ValueError as `choose` does.
    """
    temperature = fit_temperature(logits, distracted) if settings.calibrate else 1.0
    scores = [probability(value, temperature) for value in logits]
    return OperatingPoint(temperature, choose(scores, distracted, settings), scores)


def fit_temperature(logits: Sequence[float], distracted: Sequence[bool]) -> float:
    """The temperature with the lowest cross-entropy on these sets (Guo et al. 2017), from 0.05 to 20.

    Targets are (n + 1) / (n + 2) and 1 / (n + 2) in place of 1 and 0, n being the size of the class (Platt 1999), so that data the
    logits separate do not drive the temperature to 0. Logits that say nothing, or the opposite, end at the upper bound; logits that are
    all zero leave it at 1. The loss is convex in 1 / temperature, whose root is found by bisection: no order of rows, no seed.
    """
    positive = sum(distracted)
    high, low = (positive + 1) / (positive + 2), 1 / (len(distracted) - positive + 2)
    rows = [(value, high if label else low) for value, label in zip(logits, distracted, strict=True)]
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


def reliability(scores: Sequence[float], distracted: Sequence[bool], bins: int = 10) -> list[Bin]:
    """Bins of equal width that hold sets, from low to high; a score on an edge belongs to the upper bin, and 1 to the last."""
    members: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for score, label in zip(scores, distracted, strict=True):
        members[min(int(score * bins), bins - 1)].append((score, label))
    return [
        Bin(i / bins, (i + 1) / bins, len(rows), math.fsum(s for s, _ in rows) / len(rows), sum(y for _, y in rows) / len(rows))
        for i, rows in enumerate(members)
        if rows
    ]


def expected_calibration_error(scores: Sequence[float], distracted: Sequence[bool], bins: int = 10) -> float:
    """Mean distance between a bin's mean score and its share of distracted sets, weighted by size; from 0 to 1.

    Raises ValueError without sets.
    """
    if not scores:
        raise ValueError("expected at least one set, got none")
    return math.fsum(part.n * abs(part.mean_score - part.distracted) for part in reliability(scores, distracted, bins)) / len(scores)
