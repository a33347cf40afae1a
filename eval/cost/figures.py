"""Pictures of what systems cost; needs matplotlib, the extra `figures`."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from eval.cost.break_even import BreakEven
from eval.cost.pareto import ParetoPoint

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's: apart for colour-blind readers, and of different lightness in print."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLES = ("-", "--", "-.", ":")


def plot_break_even(rows: Sequence[BreakEven], path: Path) -> None:
    """Expected cost of a question against the share of distracted sets, a panel for each unit, with and without each gate."""
    units = list(dict.fromkeys(row.unit for row in rows))
    figure = Figure(figsize=(5.2 * len(units), 4.4), layout="constrained")
    for place, unit in enumerate(units, start=1):
        of_unit = [row for row in rows if row.unit == unit]
        axes = figure.add_subplot(1, len(units), place)
        divisor, name = _unit(unit, max(point.high for row in of_unit for point in row.curve))
        for number, row in enumerate(of_unit):
            _draw_gate(axes, row, number, divisor)
        tops = [point.high for row in of_unit for point in row.curve] + [row.sage for row in of_unit]
        axes.set(xlabel="share of distracted sets (%)", ylabel=name, xlim=(0, 100), ylim=(0, 1.35 * max(tops) / divisor))
        axes.set_title("Time" if unit == "milliseconds" else "Operations", fontsize="medium")
        axes.legend(loc="upper left", fontsize="small", frameon=False)
    _save(figure, path)


def _draw_gate(axes: Axes, row: BreakEven, number: int, divisor: float) -> None:
    colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
    shares = [100 * point.share for point in row.curve]
    axes.fill_between(
        shares, [p.low / divisor for p in row.curve], [p.high / divisor for p in row.curve], color=colour, alpha=0.15, linewidth=0
    )
    axes.plot(shares, [p.cost / divisor for p in row.curve], style, color=colour, label=f"{row.system}: {_words(row)}")
    axes.axhline(row.sage / divisor, color=colour, linewidth=1, linestyle=(0, (1, 1)), label=f"{row.system}: its Sage alone")
    if row.share is not None:
        axes.plot([100 * row.share], [row.sage / divisor], "o", color=colour, markeredgecolor="black", zorder=3)
        axes.annotate(
            f"{row.share:.0%}", (100 * row.share, row.sage / divisor), (0, -14), textcoords="offset points", ha="center", fontsize="small"
        )


def _words(row: BreakEven) -> str:
    if row.share is None:
        return f"{row.verdict} pays"
    return f"pays {row.verdict} {row.share:.0%} on" if row.verdict == "from" else f"pays until {row.share:.0%}"


def _unit(unit: str, largest: float) -> tuple[float, str]:
    if unit == "milliseconds":
        return (1000.0, "seconds per question") if largest >= 2000 else (1.0, "milliseconds per question")
    return (
        (1e12, "TFLOPs per question")
        if largest >= 1e12
        else (1e9, "GFLOPs per question")
        if largest >= 1e9
        else (1.0, "FLOPs per question")
    )


def plot_pareto(panels: Sequence[tuple[str, Sequence[ParetoPoint]]], path: Path) -> None:
    """Quality against median time, both with intervals, a panel for each metric with its title; the front is joined."""
    figure = Figure(figsize=(5.2 * len(panels), 4.8), layout="constrained")
    handles: dict[str, Line2D] = {}
    for place, (title, points) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        seconds = max((point.high for point in points), default=0) >= 2000
        divisor = 1000.0 if seconds else 1.0
        for number, point in enumerate(points):
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            value = point.quality.value or 0.0
            axes.errorbar(
                point.milliseconds / divisor,
                value,
                xerr=_reach(point.milliseconds, point.low, point.high, divisor),
                yerr=_reach(value, point.quality.low, point.quality.high, 1.0),
                fmt=marker,
                color=colour,
                capsize=3,
                markersize=7,
                elinewidth=1,
            )
            handles.setdefault(point.system, Line2D([], [], color=colour, marker=marker, linestyle="", label=point.system))
        right = 1.06 * max((point.high for point in points), default=1.0) / divisor
        front = sorted((point for point in points if point.front), key=lambda point: point.milliseconds)
        times, values = [p.milliseconds / divisor for p in front], [p.quality.value or 0.0 for p in front]
        # A step: no system lies between two of the front, and whoever has more time can take the better one before.
        axes.plot([*times, right], [*values, *values[-1:]], drawstyle="steps-post", color="grey", linewidth=1, zorder=0)
        axes.set(xlabel=f"median {'seconds' if seconds else 'milliseconds'} per question", ylabel=title, ylim=(-0.02, 1.02))
        axes.set_xlim(-0.03 * right, right)
        axes.grid(visible=True, linewidth=0.3)
    line = Line2D([], [], color="grey", linewidth=1, label="Pareto front")
    figure.legend(
        handles=[*handles.values(), line], loc="outside lower center", ncols=min(4, len(handles) + 1), fontsize="small", frameon=False
    )
    _save(figure, path)


def _reach(value: float, low: float | None, high: float | None, divisor: float) -> list[list[float]] | None:
    """How far the interval goes below and above the value; a resampled interval need not hold it."""
    if low is None or high is None:
        return None
    return [[max(0.0, value - low) / divisor], [max(0.0, high - value) / divisor]]


def _save(figure: Figure, path: Path) -> None:
    # Without the version in it, the same figures give the same bytes.
    figure.savefig(path, format="png", dpi=150, metadata={"Software": None})
