"""Which systems no other beats in both quality and time (paper 002, figure 3)."""

from collections.abc import Sequence

from eval.records import MetricRow
from rag.records import Record, Text

METRICS = ("system_accuracy", "macro_f1")


class ParetoPoint(Record):
    """One system: its quality from its run's report, its median time from this run."""

    system: Text
    metric: Text
    quality: MetricRow
    milliseconds: float
    low: float
    high: float
    front: bool
    """Whether no other system is at least as good in both and better in one."""


def pareto(metric: str, quality: Sequence[tuple[str, MetricRow]], times: dict[str, tuple[float, float, float]]) -> list[ParetoPoint]:
    """Points of the systems that have a value; `times` gives the median and its interval by system."""
    known = [(name, row, row.value, times[name]) for name, row in quality if row.value is not None and name in times]
    unbeaten = front([(time[0], value) for _, _, value, time in known])
    return [
        ParetoPoint(
            system=name,
            metric=metric,
            quality=row,
            milliseconds=time[0],
            low=time[1],
            high=time[2],
            front=is_unbeaten,
        )
        for (name, row, _, time), is_unbeaten in zip(known, unbeaten, strict=True)
    ]


def front(places: Sequence[tuple[float, float]]) -> list[bool]:
    """Of each (time, quality), whether no other is at least as fast and as good, and better in one of the two. Equal ones do not beat each other."""
    return [not any(time <= own[0] and quality >= own[1] and (time, quality) != own for time, quality in places) for own in places]
