"""Pictures of what a report says; needs matplotlib, the extra `figures`."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from eval.tables import Average


def plot_trade_off(names: Sequence[str], x: Sequence[Average], y: Sequence[Average], labels: tuple[str, str], path: Path) -> None:
    """Draw one point with its two intervals for each name, joined in the order given. A point without a value is not drawn."""
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel=labels[0], ylabel=labels[1], xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    for name, across, up in zip(names, x, y, strict=True):
        if across.value is not None and up.value is not None:
            axes.errorbar(across.value, up.value, xerr=_reach(across), yerr=_reach(up), fmt="o", capsize=3, label=name)
    pairs = [(a.value, b.value) for a, b in zip(x, y, strict=True) if a.value is not None and b.value is not None]
    if pairs:
        axes.plot([pair[0] for pair in pairs], [pair[1] for pair in pairs], color="grey", linewidth=0.8, zorder=0)
        axes.legend(loc="best", fontsize="small")
    # Without the version in it, the same figures give the same bytes.
    figure.savefig(path, format="png", metadata={"Software": None})


def _reach(row: Average) -> list[list[float]] | None:
    """How far the interval, or the spread over runs, goes below and above the value; a resampled interval need not hold it."""
    if row.value is not None and row.spread is not None:
        return [[row.spread], [row.spread]]
    if row.value is None or row.low is None or row.high is None:
        return None
    return [[max(0.0, row.value - row.low)], [max(0.0, row.high - row.value)]]
