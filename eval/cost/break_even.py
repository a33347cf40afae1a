"""From which share of distracted sets a gate pays for itself.

A gate costs its own reading of each set, and saves the Sage's call on each set that it stops:
`sieve + flagged (leave_one_out + passed_on sage) + (1 - flagged) sage` against `sage`, with `flagged = p TPR + (1 - p) FPR`, where p is the
share of distracted sets, and `passed_on` the share of flagged sets that filtering lets through after all. It is linear in p.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from eval.bootstrap import draws, percentiles
from eval.tally import FloatArray
from rag.records import Record, Text

POINTS = 101
"""Of the curve, from p = 0 to p = 1."""


class GateSet(NamedTuple):
    """One set of documents at the gate, with what each stage cost on it; none where the stage was not measured on it."""

    question_id: str
    distracted: bool
    flagged: bool
    passed_on: bool
    """Whether it was flagged and reached the Sage all the same."""
    sieve: float | None
    leave_one_out: float | None
    sage: float | None


class Gate(NamedTuple):
    """Costs by call, and rates; each a number, or an array of one for each resample."""

    sieve: FloatArray
    leave_one_out: FloatArray
    sage: FloatArray
    true_positive_rate: FloatArray
    false_positive_rate: FloatArray
    passed_on_distracted: FloatArray
    """Of flagged distracted sets."""
    passed_on_clean: FloatArray
    """Of flagged sets that are not distracted."""

    def cost(self, share: float) -> FloatArray:
        """Expected cost of a question where `share` of the sets are distracted."""
        flagged = share * self.true_positive_rate + (1 - share) * self.false_positive_rate
        passed_on = (
            share * self.true_positive_rate * self.passed_on_distracted + (1 - share) * self.false_positive_rate * self.passed_on_clean
        )
        return np.asarray(self.sieve + flagged * self.leave_one_out + (1 - flagged + passed_on) * self.sage)

    def crossing(self) -> FloatArray:
        """The smallest share from which on the gate never costs more than the Sage alone: 0 where it never does, infinity where it does at 1."""
        first, last = self.sage - self.cost(0.0), self.sage - self.cost(1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            root = -first / (last - first)
        return np.asarray(np.where(last < 0, np.inf, np.where(first >= 0, 0.0, root)))


class CurvePoint(Record):
    """Expected cost of a question at one share of distracted sets."""

    share: float
    cost: float
    low: float
    high: float


class BreakEven(Record):
    """Where one gate pays for itself, in one unit."""

    system: Text
    unit: Literal["milliseconds", "flops"]
    verdict: Literal["always", "never", "from", "until"]
    """`until`: it flags more clean sets than distracted ones, and pays below `share` only."""
    share: float | None
    """Of distracted sets, at the crossing; none for `always` and `never`."""
    low: float | None
    """Interval of the share from which on it pays, resampled by question; none means never."""
    high: float | None
    never: float
    """Share of resamples in which it never does."""
    undefined: int
    """Resamples left out, because no drawn question had a cost or a rate."""
    sieve: float
    leave_one_out: float
    sage: float
    true_positive_rate: float
    false_positive_rate: float
    passed_on_distracted: float
    passed_on_clean: float
    n: int
    """Sets behind the rates."""
    questions: int
    measured: int
    """Sets behind the costs."""
    distracted_share: float
    """In this data."""
    curve: tuple[CurvePoint, ...]


def break_even(
    system: str, unit: Literal["milliseconds", "flops"], sets: Sequence[GateSet], *, resamples: int, seed: int, level: float = 0.95
) -> BreakEven | None:
    """Where the gate pays for itself; none where a rate or a cost is not known: no distracted set, no other, or no call of a stage."""
    names, place = np.unique(np.array([item.question_id for item in sets]), return_inverse=True)
    sums = np.stack([np.bincount(place, weights=column, minlength=len(names)) for column in np.array([_counts(s) for s in sets]).T], axis=1)
    gate = _gate(sums.sum(axis=0), after_flag=0.0)
    if any(math.isnan(float(value)) for value in gate):
        return None
    resampled = _gate(draws(len(names), resamples, seed) @ sums, after_flag=float(gate.leave_one_out))
    known = ~np.isnan(np.stack(resampled)).any(axis=0)
    resampled = Gate(*(values[known] for values in resampled))
    low, high = _quantiles(resampled.crossing(), level)
    verdict, share = _verdict(gate)
    return BreakEven(
        system=system,
        unit=unit,
        verdict=verdict,
        share=share,
        low=low,
        high=high,
        never=float(np.isinf(resampled.crossing()).mean()) if known.any() else 0.0,
        undefined=int((~known).sum()),
        **{name: float(value) for name, value in gate._asdict().items()},
        n=len(sets),
        questions=len(names),
        measured=sum(item.sieve is not None for item in sets),
        distracted_share=sum(item.distracted for item in sets) / len(sets),
        curve=tuple(_point(gate, resampled, float(at), level) for at in np.linspace(0, 1, POINTS)),
    )


def _counts(item: GateSet) -> list[float]:
    """Numerators and denominators of the seven numbers of a gate, in its order."""
    costs = [part for cost in (item.sieve, item.leave_one_out, item.sage) for part in ((cost or 0.0), float(cost is not None))]
    flagged, distracted = float(item.flagged), float(item.distracted)
    passed_on = float(item.passed_on)
    return [
        *costs,
        *(flagged * distracted, distracted),
        *(flagged * (1 - distracted), 1 - distracted),
        *(passed_on * distracted, flagged * distracted),
        *(passed_on * (1 - distracted), flagged * (1 - distracted)),
    ]


def _gate(sums: FloatArray, after_flag: float) -> Gate:
    """Ratios of the sums, [..., 14]; `after_flag` is what leaving documents out costs where none of these sets came to it."""
    numerators, denominators = sums[..., 0::2], sums[..., 1::2]
    ratios = np.divide(numerators, denominators, out=np.full_like(numerators, np.nan), where=denominators > 0)
    for column, value in ((1, after_flag), (5, 0.0), (6, 0.0)):
        ratios[..., column] = np.nan_to_num(ratios[..., column], nan=value)
    return Gate(*(ratios[..., column] for column in range(7)))


def _verdict(gate: Gate) -> tuple[Literal["always", "never", "from", "until"], float | None]:
    first, last = float(gate.sage - gate.cost(0.0)), float(gate.sage - gate.cost(1.0))
    if first >= 0 and last >= 0:
        return "always", None
    if first < 0 and last < 0:
        return "never", None
    return ("from" if last >= 0 else "until"), first / (first - last)


def _quantiles(crossings: FloatArray, level: float) -> tuple[float | None, float | None]:
    """Ends of the interval, without interpolation, since a share that is never reached lies beyond all others."""
    if not len(crossings):
        return None, None
    ordered = np.sort(crossings)
    last = len(ordered) - 1
    ends = [float(ordered[math.floor(last * (1 - level) / 2)]), float(ordered[math.ceil(last * (1 + level) / 2)])]
    return (None if math.isinf(ends[0]) else ends[0]), (None if math.isinf(ends[1]) else ends[1])


def _point(gate: Gate, resampled: Gate, share: float, level: float) -> CurvePoint:
    cost = float(gate.cost(share))
    low, high, _ = percentiles(np.asarray(resampled.cost(share)), level)
    return CurvePoint(share=share, cost=cost, low=cost if low is None else low, high=cost if high is None else high)
