"""Pictures of what systems cost; needs matplotlib, the extra `figures`."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eval.cost.break_even import BreakEven
from eval.figures import COLOURS, LINES, png


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
    path.write_bytes(png(figure))


def _draw_gate(axes: Axes, row: BreakEven, number: int, divisor: float) -> None:
    colour, style = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
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
