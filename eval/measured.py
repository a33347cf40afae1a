"""A metric with its interval and how many questions it is of, and tables of some."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from eval.bootstrap import interval
from eval.tally import Tally
from rag.records import Record, Text


class Measured(Record):
    """One metric."""

    name: Text
    value: float
    low: float | None
    high: float | None
    n: int
    """Questions."""


def measured(name: str, tally: Tally, resamples: int, seed: int) -> Measured:
    """The metric of a tally with its 95 % interval."""
    low, high, _ = interval(tally, resamples=resamples, seed=seed)
    return Measured(name=name, value=tally.value, low=low, high=high, n=tally.n)


def table(figures: Sequence[Measured]) -> Table:
    """Metrics as rows of a terminal's table."""
    shown = Table("", "value", "95 % interval", "n", box=box.SIMPLE_HEAD, pad_edge=False)
    for figure in figures:
        between = "" if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"
        shown.add_row(figure.name, f"{figure.value:.3f}", between, str(figure.n))
    return shown
