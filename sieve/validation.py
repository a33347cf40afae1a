"""What validation data decide and measure at the end of a training: temperature, threshold, and figures with their intervals."""

from collections.abc import Sequence
from typing import NamedTuple

from rag.calibration import expected_calibration_error, logit
from sieve.calibration import calibrate
from sieve.measure.intervals import Figure, auc_figure, macro_f1, share
from sieve.threshold import ThresholdSettings, rates

RESAMPLES = 1000


class Validated(NamedTuple):
    """What goes into the manifest."""

    temperature: float
    threshold: float
    metrics: dict[str, float]
    """`sets`, `questions`, `macro_f1`, `tpr`, `fpr`, `auc`, and `ece_uncalibrated` and `ece`: calibration error before and after."""
    intervals: dict[str, tuple[float, float]]
    """95 % intervals by question of `macro_f1`, `tpr`, `fpr` and `auc`, at the chosen threshold."""


def validate(
    scores: Sequence[float], distracted: Sequence[bool], questions: Sequence[str], settings: ThresholdSettings, *, seed: int
) -> Validated:
    """Calibrate and choose on these sets. `scores` are those at temperature 1; metrics are of the scores that will be served.

    Raises ValueError when one of the classes is absent.
    """
    point = calibrate([logit(score) for score in scores], distracted, settings)
    flagged = [score >= point.threshold for score in point.scores]
    by_class = {label: [i for i, value in enumerate(distracted) if value is label] for label in (True, False)}
    draw = {"resamples": RESAMPLES, "seed": seed}
    figures: dict[str, Figure] = {
        "macro_f1": macro_f1(flagged, distracted, questions, **draw),
        "tpr": share([flagged[i] for i in by_class[True]], [questions[i] for i in by_class[True]], **draw),
        "fpr": share([flagged[i] for i in by_class[False]], [questions[i] for i in by_class[False]], **draw),
        "auc": auc_figure(point.scores, distracted, questions, **draw),
    }
    at = rates(point.scores, distracted, point.threshold)
    metrics = {"sets": float(len(scores)), "questions": float(len(set(questions))), "macro_f1": at.macro_f1}
    metrics |= {name: figure.value for name, figure in figures.items() if figure.value is not None and name != "macro_f1"}
    metrics["ece_uncalibrated"] = expected_calibration_error(scores, distracted)
    metrics["ece"] = expected_calibration_error(point.scores, distracted)
    intervals = {name: (f.low, f.high) for name, f in figures.items() if f.low is not None and f.high is not None}
    return Validated(point.temperature, point.threshold, metrics, intervals)
