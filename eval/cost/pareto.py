"""Which systems no other beats in both quality and time (paper 002, figure 3)."""

from collections.abc import Sequence

from eval.score import MetricRow
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
    return [
        ParetoPoint(
            system=name,
            metric=metric,
            quality=row,
            milliseconds=time[0],
            low=time[1],
            high=time[2],
            front=not any(
                other >= value and others[0] <= time[0] and (other > value or others[0] < time[0]) for _, _, other, others in known
            ),
        )
        for name, row, value, time in known
    ]
