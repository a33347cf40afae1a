"""Choose the Sieve's threshold on validation data by a stated rule, and what a threshold means in rates."""

import logging
import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from rag.settings import Settings

logger = logging.getLogger(__name__)

DEFAULT = 0.5
"""The paper's default threshold (paper 002, section 3.2)."""

Rule = Literal["best_macro_f1", "target_fpr", "costs"]


class ThresholdSettings(Settings):
    """How the threshold is chosen, and whether scores are calibrated before it is."""

    rule: Rule = "best_macro_f1"
    """`best_macro_f1`; `target_fpr`: the largest recall among thresholds that flag at most `target_fpr` of the clean sets; `costs`: the
    lowest expected cost of a set."""
    target_fpr: float | None = Field(default=None, ge=0, le=1)
    """Rule `target_fpr`: largest share of clean validation sets that may be flagged."""
    cost_wrong: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Rule `costs`: cost of a distracted set that passes, and so of a wrong answer let through."""
    cost_abstain: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Rule `costs`: cost of a clean set that is flagged, a needless abstention, in the same unit."""
    prior: float | None = Field(default=None, gt=0, lt=1)
    """Rule `costs`: share of distracted sets where the Sieve will be used; that of the validation data where it is none."""
    calibrate: bool = True
    """Fit a temperature on validation data before the threshold is chosen (`sieve.calibration`)."""

    @model_validator(mode="after")
    def _the_rule_has_its_keys_and_no_others(self) -> Self:
        needed: dict[Rule, tuple[str, ...]] = {"best_macro_f1": (), "target_fpr": ("target_fpr",), "costs": ("cost_wrong", "cost_abstain")}
        allowed = {*needed[self.rule], *(("prior",) if self.rule == "costs" else ())}
        given = {name for name in ("target_fpr", "cost_wrong", "cost_abstain", "prior") if getattr(self, name) is not None}
        if missing := [name for name in needed[self.rule] if name not in given]:
            raise ValueError(f"rule={self.rule} needs {' and '.join(f'sieve.threshold.{name}' for name in missing)}")
        if unused := sorted(given - allowed):
            raise ValueError(
                f"rule={self.rule} does not use {', '.join(f'sieve.threshold.{name}' for name in unused)}; set sieve.threshold.rule"
            )
        return self

    def describe(self) -> str:
        """The rule in words."""
        if self.rule == "target_fpr":
            return f"largest recall with at most {self.target_fpr:g} of the clean validation sets flagged"
        if self.rule == "costs":
            prior = "as many distracted sets as in validation" if self.prior is None else f"{self.prior:g} of all sets distracted"
            costs = f"{self.cost_wrong:g} for a distracted set that passes and {self.cost_abstain:g} for a clean one that is flagged"
            return f"lowest expected cost: {costs}, {prior}"
        return "best macro-F1 on validation"


MACRO_F1 = ThresholdSettings()


class Rates(NamedTuple):
    """Binary rates of `score >= threshold` against labels, each from 0 to 1; none where its class is absent."""

    tpr: float | None
    """Distracted sets that were flagged."""
    fpr: float | None
    """Clean sets that were flagged."""
    macro_f1: float
    """Mean of the F1 of both classes; a class without gold and without predictions counts as 0."""


class Cut(NamedTuple):
    """A threshold, and what it flags of the sets it was derived from."""

    threshold: float
    tp: int
    """Distracted sets flagged."""
    fp: int
    """Clean sets flagged."""


def rates(scores: Sequence[float], distracted: Sequence[bool], threshold: float) -> Rates:
    """Rates at one threshold; a score equal to it is flagged."""
    pairs = [(score >= threshold, label) for score, label in zip(scores, distracted, strict=True)]
    tp, fp = sum(f and y for f, y in pairs), sum(f and not y for f, y in pairs)
    return _rates(tp, fp, sum(distracted), len(pairs) - sum(distracted))


def _rates(tp: int, fp: int, positive: int, negative: int) -> Rates:
    f1 = [2 * hit / (2 * hit + fp + positive - tp) if hit else 0.0 for hit in (tp, negative - fp)]
    return Rates(tp / positive if positive else None, fp / negative if negative else None, sum(f1) / 2)


def choose(scores: Sequence[float], distracted: Sequence[bool], settings: ThresholdSettings = MACRO_F1) -> float:
    """Return the threshold that the rule prefers; among equals the one nearest to 0.5, the paper's default. O(n log n).

    Candidates are 0.5 and the midpoints between neighbouring scores, so that no set lies on the threshold; the rules `target_fpr`
    and `costs` may also flag everything (0) or nothing (midway from the highest score to 1, unless that is 1).
    Where no threshold keeps to `target_fpr` and flags any distracted set, one with the lowest false-positive rate is returned, which
    may flag nothing, and a warning says so.
    Raises ValueError when one of the classes is absent, since nothing can be chosen then, and for scores outside 0 to 1.
    """
    if len(set(distracted)) < 2:
        raise ValueError("choosing a threshold needs both clean and distracted validation sets")
    if outside := [score for score in scores if not 0 <= score <= 1]:
        raise ValueError(f"expected scores from 0 to 1, got {outside[0]}")
    positive = sum(distracted)
    negative = len(distracted) - positive
    candidates = _cuts(scores, distracted)
    if settings.rule == "best_macro_f1":
        candidates = [cut for cut in candidates if cut.threshold == DEFAULT or 0 < cut.tp + cut.fp < len(scores)]
    value = _value(settings, positive, negative)
    best = max(candidates, key=lambda cut: (value(cut), -abs(cut.threshold - DEFAULT), cut.threshold))
    if settings.rule == "target_fpr" and (best.tp == 0 or best.fp / negative > _limit(settings)):
        reachable = min((cut.fp / negative for cut in candidates if cut.tp), default=math.nan)
        logger.warning(
            "sieve.threshold.target_fpr=%g cannot be kept to: the lowest false-positive rate at which any of the %d distracted validation "
            "sets is flagged is %.3g; the threshold %.4g flags %d of them and %d of the %d clean ones",
            _limit(settings), positive, reachable, best.threshold, best.tp, best.fp, negative,
        )  # fmt: skip
    return best.threshold


def _limit(settings: ThresholdSettings) -> float:
    return settings.target_fpr if settings.target_fpr is not None else 1.0


def _cuts(scores: Sequence[float], distracted: Sequence[bool]) -> list[Cut]:
    """All thresholds that differ in what they flag, and 0.5, from the highest to the lowest score; one pass over sorted scores."""
    ordered = sorted(zip(scores, distracted, strict=True), reverse=True)
    highest = ordered[0][0]
    cuts = [Cut((highest + 1) / 2, 0, 0)] if (highest + 1) / 2 > highest else []
    tp = fp = 0
    above: float | None = None
    at_default = Cut(DEFAULT, 0, 0)
    for score, group in groupby(ordered, key=lambda pair: pair[0]):
        if above is not None:
            middle = (score + above) / 2
            # Between two neighbouring floats there is no third.
            cuts.append(Cut(middle if middle > score else above, tp, fp))
        labels = [label for _, label in group]
        tp, fp = tp + sum(labels), fp + len(labels) - sum(labels)
        if score >= DEFAULT:
            at_default = Cut(DEFAULT, tp, fp)
        above = score
    return [*cuts, Cut(0.0, tp, fp), at_default]


def _value(settings: ThresholdSettings, positive: int, negative: int) -> Callable[[Cut], tuple[float, ...]]:
    """What the rule maximises, as a tuple that is compared from the left."""
    if settings.rule == "target_fpr":
        limit = _limit(settings)

        def recall(cut: Cut) -> tuple[float, ...]:
            kept = cut.fp / negative <= limit
            return (1.0, cut.tp / positive, -cut.fp / negative) if kept else (0.0, -cut.fp / negative, cut.tp / positive)

        return recall
    if settings.rule == "costs":
        prior = positive / (positive + negative) if settings.prior is None else settings.prior
        wrong, abstain = prior * (settings.cost_wrong or 0.0), (1 - prior) * (settings.cost_abstain or 0.0)
        # Equal costs must compare as equal, whatever order their parts were added in.
        return lambda cut: (-round(wrong * (positive - cut.tp) / positive + abstain * cut.fp / negative, 12),)
    return lambda cut: (_rates(cut.tp, cut.fp, positive, negative).macro_f1,)
