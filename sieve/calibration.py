"""Fit the Sieve's temperature and choose its threshold on the scores that it gives."""

from collections.abc import Sequence
from typing import NamedTuple

from rag.calibration import fit_temperature, probability
from sieve.threshold import ThresholdSettings, choose


class OperatingPoint(NamedTuple):
    """What calibration and the threshold's rule give on validation data."""

    temperature: float
    threshold: float
    scores: list[float]
    """The validation scores at that temperature, in the order given."""


def calibrate(logits: Sequence[float], distracted: Sequence[bool], settings: ThresholdSettings) -> OperatingPoint:
    """Fit the temperature on validation logits, then choose the threshold on the scores it gives.

    Raises ValueError as `choose` does.
    """
    temperature = fit_temperature(logits, distracted) if settings.calibrate else 1.0
    scores = [probability(value, temperature) for value in logits]
    return OperatingPoint(temperature, choose(scores, distracted, settings), scores)
