"""What timings of one interleaved run say: milliseconds by stage, speedups with paired intervals, throughput by batch size."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from eval.bootstrap import draws, interval, percentiles
from eval.cost.timing import Timing
from eval.score import STAGES
from eval.tally import FloatArray, Tally
from rag.records import Record, Text

TOTAL = "total"


class StageRow(Record):
    """Milliseconds per example of one stage of one system; `total` is the whole call, measured from outside."""

    system: Text
    stage: Text
    n: int
    """Examples that went through it."""
    mean: float
    """Over all calls."""
    median: float
    """Over examples, each counting its own median over the rounds."""
    low: float
    """Interval of the median, resampled by question."""
    high: float
    p95: float
    """95th percentile of all calls."""


class SpeedupRow(Record):
    """How many times as long the baseline takes."""

    system: Text
    baseline: Text
    value: float
    """Sum over examples of the baseline's median time, by that of the system's."""
    low: float
    high: float
    n: int
    questions: int


class ThroughputRow(Record):
    """One system at one batch size."""

    system: Text
    batch_size: int
    calls: int
    examples_per_second: float
    peak_bytes: int | None
    """The highest of all calls, above what was held before each; none where it is not measured."""
    failed: int


def stage_rows(
    timings: Sequence[Timing], questions: Mapping[str, str], *, resamples: int, seed: int, level: float = 0.95
) -> list[StageRow]:
    """One row for each system and stage; `questions` gives the question of each example. Timings of one batch size."""
    rows = []
    for system in dict.fromkeys(timing.system for timing in timings):
        times = by_stage([timing for timing in timings if timing.system == system])
        known = [stage for stage in STAGES if stage in times and stage != TOTAL]
        for stage in [*known, *sorted(set(times) - {*known, TOTAL}), TOTAL]:
            calls = np.array([value for values in times[stage].values() for value in values])
            medians = {example: median(values) for example, values in times[stage].items()}
            low, high = median_interval(medians, questions, resamples=resamples, seed=seed, level=level)
            rows.append(
                StageRow(
                    system=system,
                    stage=stage,
                    n=len(medians),
                    mean=float(calls.mean()),
                    median=median(medians.values()),
                    low=low,
                    high=high,
                    p95=float(np.percentile(calls, 95)),
                )
            )
    return rows


def by_stage(timings: Sequence[Timing]) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of one system by stage and example; an equal share of the batch's time."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for timing in timings:
        for example, stages in zip(timing.examples, timing.stages, strict=True):
            for stage, milliseconds in {**stages, TOTAL: timing.milliseconds / len(timing.examples)}.items():
                times[stage][example].append(milliseconds)
    return times


def example_medians(timings: Sequence[Timing], system: str, stage: str = TOTAL) -> dict[str, float]:
    """Of each example that went through the stage, its median over the rounds; sorted by id."""
    times = by_stage([timing for timing in timings if timing.system == system])[stage]
    return {example: median(values) for example, values in sorted(times.items())}


def speedup(
    timings: Sequence[Timing], system: str, baseline: str, questions: Mapping[str, str], *, resamples: int, seed: int, level: float = 0.95
) -> SpeedupRow:
    """The speedup of a system against a baseline; its interval resamples questions, each with the times of both."""
    own, other = example_medians(timings, system), example_medians(timings, baseline)
    tally = Tally(tuple(questions[example] for example in own), tuple((other[example], own[example]) for example in own))
    low, high, _ = interval(tally, resamples=resamples, seed=seed, level=level)
    value = tally.value
    return SpeedupRow(
        system=system,
        baseline=baseline,
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        n=tally.n,
        questions=tally.questions,
    )


def throughput_rows(timings: Sequence[Timing]) -> list[ThroughputRow]:
    """One row for each system and batch size."""
    groups: dict[tuple[str, int], list[Timing]] = defaultdict(list)
    for timing in timings:
        groups[timing.system, timing.batch_size].append(timing)
    order = list(dict.fromkeys(timing.system for timing in timings))
    rows = []
    for (system, size), calls in sorted(groups.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        peaks = [call.peak_bytes for call in calls if call.peak_bytes is not None]
        seconds = sum(call.milliseconds for call in calls) / 1000
        rows.append(
            ThroughputRow(
                system=system,
                batch_size=size,
                calls=len(calls),
                examples_per_second=sum(len(call.examples) for call in calls) / max(seconds, 1e-9),
                peak_bytes=max(peaks, default=None),
                failed=sum(call.failed for call in calls),
            )
        )
    return rows


def median_interval(
    values: Mapping[str, float], questions: Mapping[str, str], *, resamples: int, seed: int, level: float = 0.95
) -> tuple[float, float]:
    """Percentile interval of the median over examples, resampled by question."""
    examples = sorted(values, key=lambda example: (values[example], example))
    ordered = np.array([values[example] for example in examples])
    names, place = np.unique(np.array([questions[example] for example in examples]), return_inverse=True)
    medians = weighted_medians(ordered, draws(len(names), resamples, seed)[:, place])
    low, high, _ = percentiles(medians, level)
    assert low is not None and high is not None, "every resample has a median"
    return low, high


def weighted_medians(ordered: FloatArray, weights: FloatArray) -> FloatArray:
    """Medians of ascending values, each taken as often as its weight says, by row of `weights`; the mean of the two middle ones of an even number."""
    below = np.cumsum(weights, axis=1)
    half = below[:, -1:] / 2
    return np.asarray((ordered[(below >= half).argmax(axis=1)] + ordered[(below > half).argmax(axis=1)]) / 2)
