"""Pictures of what reports say, from plain numbers; needs matplotlib, the extra `figures`.

Colours are those of Okabe and Ito (2008), which colour-blind readers tell apart; marks, line styles and hatches differ too, so that pictures
printed in grey still read.
"""

import io
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, PercentFormatter

from eval.cost.pareto import front
from eval.records import MetricRow
from eval.side_by_side import Average
from rag.calibration import Bin

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKS: Final = ("o", "^", "s", "D", "v", "P", "X", "*", "<", ">", "h")
"""Their number and that of the colours share no divisor: 77 systems differ in one of the two."""
LINES: Final = ("-", "--", "-.", ":")
ENDINGS: Final = (
    ("correct answers", "#009E73", ""),
    ("correct abstentions", "#56B4E9", "...."),
    ("incorrect abstentions", "#F0C45A", "///"),
    ("incorrect answers", "#D55E00", "xxx"),
    ("unparsed", "#B0B0B0", "---"),
    ("errors", "#303030", ""),
)
"""How examples end, in the order of a bar: first what is right, then what is wrong."""

_DARK: Final = """
@media screen and (prefers-color-scheme: dark) {
 svg { fill: #e6e8ea }
 [style*="fill: #ffffff"] { fill: #1c2026 !important }
 [style*="stroke: #ffffff"] { stroke: #1c2026 !important }
 [style*="fill: #000000"] { fill: #e6e8ea !important }
 [style*="stroke: #000000"] { stroke: #e6e8ea !important }
 [style*="fill: #303030"] { fill: #d8d8d8 !important }
 [style*="fill: #0072b2"] { fill: #3a9bd9 !important }
 [style*="stroke: #0072b2"] { stroke: #3a9bd9 !important }
}
"""
"""Paper and ink change places on a dark screen; the other colours stay, so that they mean what they mean in the page."""


class Point(NamedTuple):
    """One system: its name, its place, and how far its interval goes up and down, or to both sides."""

    name: str
    x: MetricRow | Average | float
    y: MetricRow | Average


def plot_trade_off(names: Sequence[str], x: Sequence[Average], y: Sequence[Average], labels: tuple[str, str], path: Path) -> None:
    """Draw one point with its two intervals for each name, joined in the order given. A point without a value is not drawn."""
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel=labels[0], ylabel=labels[1], xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    points = [Point(name, across, up) for name, across, up in zip(names, x, y, strict=True)]
    pairs = _points(axes, points)
    if pairs:
        axes.plot([pair[0] for pair in pairs], [pair[1] for pair in pairs], color="grey", linewidth=0.8, zorder=0)
        axes.legend(loc="best", fontsize="small")
    path.write_bytes(png(figure))


def trade_off(points: Sequence[Point], labels: tuple[str, str]) -> Figure:
    """One metric against another, a point with its two intervals for each system; the legend stands outside, so that it hides none."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot(xlabel=labels[0], ylabel=labels[1], xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.grid(alpha=0.25)
    _points(axes, points)
    _legend(figure, loc="outside right upper", fontsize="small", frameon=False)
    return figure


def pareto(panels: Mapping[str, Sequence[Point]], references: Mapping[str, tuple[str, float]], time: str) -> Figure:
    """A panel for each metric against time: a point with its interval for each system, and the line of those that no other beats.

    `references` draws a level that needs no time, such as that of always abstaining, in the panel of its name.
    """
    figure = Figure(figsize=(4.3 * len(panels), 4.6), layout="constrained")
    for number, (title, points) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), number, xlabel=time.replace(" (", "\n("), ylabel=title, ylim=(-0.03, 1.03))
        axes.grid(alpha=0.25)
        places = sorted(_points(axes, points))
        best = [place for place, unbeaten in zip(places, front(places), strict=True) if unbeaten]
        label = "no system is both faster and better"
        axes.step(
            [x for x, _ in best], [y for _, y in best], where="post", color="grey", linestyle="--", linewidth=1, label=label, zorder=0
        )
        if places and max(places)[0] > 8 * max(min(places)[0], 1e-9):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        else:
            axes.set_xlim(0, 1.1 * max((x for x, _ in places), default=1.0))
        if title in references:
            name, level = references[title]
            axes.axhline(level, color="black", linestyle=":", linewidth=1, label=f"{name}: {level:.3f}")
    entries = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    return figure


def _points(axes: Axes, points: Sequence[Point]) -> list[tuple[float, float]]:
    """Draw those that have both values; their places."""
    drawn = []
    for point, colour, mark in zip(points, cycle(COLOURS), cycle(MARKS), strict=False):
        x, across = (point.x.value, _reach(point.x)) if not isinstance(point.x, float) else (point.x, None)
        if x is None or point.y.value is None:
            continue
        drawn.append((x, point.y.value))
        axes.errorbar(
            *(x, point.y.value, _reach(point.y), across),
            color=colour,
            marker=mark,
            markersize=8,
            markeredgecolor="white",
            markeredgewidth=0.5,
            elinewidth=1,
            linestyle="none",
            capsize=3,
            label=point.name,
        )
    return drawn


def responses(bars: Mapping[str, Sequence[int]]) -> Figure:
    """A bar for each name: how its examples ended, in shares, with the number in each part that has room for it."""
    figure = Figure(figsize=(7.2, 1.3 + 0.42 * len(bars)), layout="constrained")
    axes = figure.add_subplot(xlabel="share of examples", xlim=(0, 1))
    names = list(bars)
    for place, counts in enumerate(bars.values()):
        total, left = sum(counts), 0.0
        for (label, colour, hatch), count in zip(ENDINGS, counts, strict=True):
            width = count / total
            axes.barh(
                place, width, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.6, label=label if not place else None
            )
            if width > 0.035:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
                axes.text(left + width / 2, place, str(count), ha="center", va="center", fontsize="small", bbox=box)
            left += width
    axes.set_yticks(range(len(names)), [f"{name} (n = {sum(counts)})" for name, counts in bars.items()])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.spines[["top", "right", "left"]].set_visible(False)
    _legend(figure, loc="outside lower center", ncols=3, fontsize="small", frameon=False, handlelength=2.5, handleheight=1.2)
    return figure


def selective(curves: Mapping[str, Sequence[tuple[float, float]]], points: Sequence[Point]) -> Figure:
    """Accuracy of the answers kept over the share of answerable sets that they are, and where each system stands, with its intervals."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot(xlabel="coverage of answerable sets", ylabel="selective accuracy", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.grid(alpha=0.25)
    _curves(axes, curves)
    _points(axes, points)
    _legend(figure, loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    return figure


def risk(curves: Mapping[str, Sequence[tuple[float, float]]], of: str = "all examples") -> Figure:
    """Share of wrong answers among those kept, over the share that they are `of`; a mark where all are kept."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    label = "risk: wrong answers / answers kept"
    axes = figure.add_subplot(xlabel=f"coverage: answers kept / {of}", ylabel=label, xlim=(0, 1.03), ylim=(-0.03, 1.03))
    axes.grid(alpha=0.25)
    _curves(axes, curves, marker="o", markersize=5, markevery=[-1])
    _legend(figure, loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    return figure


def _curves(axes: Axes, curves: Mapping[str, Sequence[tuple[float, float]]], **how: Any) -> None:
    for (name, curve), colour, line in zip(curves.items(), cycle(COLOURS), cycle(LINES), strict=False):
        if curve:
            x, y = zip(*curve, strict=True)
            axes.plot(x, y, color=colour, linestyle=line, linewidth=1.5, label=name, zorder=1, **how)


def sweep(thresholds: Sequence[float], rates: Mapping[str, Sequence[float | None]], used: Sequence[float]) -> Figure:
    """Rates over the threshold; upright lines mark the thresholds in use. A rate that is nowhere defined is not drawn."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot(xlabel="threshold on P(distracted)", ylabel="rate", xlim=(0, 1), ylim=(-0.03, 1.03))
    axes.grid(alpha=0.25)
    for (name, values), colour, line in zip(rates.items(), COLOURS, LINES, strict=False):
        drawn = [(at, value) for at, value in zip(thresholds, values, strict=True) if value is not None]
        if drawn:
            axes.plot([at for at, _ in drawn], [value for _, value in drawn], color=colour, linestyle=line, linewidth=1.6, label=name)
    for threshold in used:
        axes.axvline(threshold, color="black", linestyle=(0, (1, 3)), linewidth=1.2, label=f"threshold in use: {threshold:.3f}")
    _legend(figure, loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    return figure


def reliability(panels: Mapping[tuple[str, str, str], Sequence[Bin]]) -> Figure:
    """A panel for each (title, label across, label up): share that came true over mean probability, and below it the number in each bin."""
    figure = Figure(figsize=(max(6.4, 4.2 * len(panels)), 4.8), layout="constrained")
    grid = figure.add_gridspec(2, len(panels), height_ratios=(3, 1))
    for column, ((title, across, up), bins) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[0, column], ylabel=up, xlim=(0, 1), ylim=(-0.03, 1.03))
        axes.set_title(title, fontsize="medium")
        axes.grid(alpha=0.25)
        axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="said as often as it is so")
        axes.plot([b.mean_score for b in bins], [b.frequency for b in bins], color=COLOURS[0], marker=MARKS[0], label="measured")
        below = figure.add_subplot(grid[1, column], xlabel=across, ylabel="n", xlim=(0, 1))
        numbers = [b.n for b in bins]
        drawn = below.bar(
            [b.low for b in bins],
            numbers,
            width=[b.high - b.low for b in bins],
            align="edge",
            color="#8aa4b8",
            edgecolor="white",
        )
        below.bar_label(drawn, [str(n) for n in numbers], fontsize="small", padding=1)
        below.set_ylim(0, max(numbers) * 1.35)
        below.spines[["top", "right"]].set_visible(False)
    if panels:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    return figure


def confusion(counts: Sequence[Sequence[int]], rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """Counts with the share of their row, darker where the share is larger. Cells keep their colour on a dark screen, and so do the counts."""
    figure = Figure(figsize=(6.0, 3.4), layout="constrained")
    axes = figure.add_subplot(xlabel="state that the system named", ylabel="state of the set")
    shares = [[count / max(sum(row), 1) for count in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for y, row in enumerate(counts):
        for x, count in enumerate(row):
            axes.text(x, y, f"{count}\n{shares[y][x]:.0%}", ha="center", va="center", color="#fefefe" if shares[y][x] > 0.55 else "#010101")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), [f"{name}\n(n = {sum(row)})" for name, row in zip(rows, counts, strict=True)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def latency(stages: Sequence[tuple[str, float, float, int]]) -> Figure:
    """A bar for each stage: the median, and a line to the 95th percentile. A stage is its name, the two in milliseconds, and n."""
    figure = Figure(figsize=(6.4, 1.1 + 0.45 * len(stages)), layout="constrained")
    axes = figure.add_subplot(xlabel="milliseconds per example (bar: median; line: to the 95th percentile)")
    for place, (_, median, p95, _) in enumerate(stages):
        axes.barh(place, median, height=0.55, color="#8aa4b8")
        axes.plot([median, p95], [place, place], color="black", linewidth=1.2)
        axes.plot([p95], [place], color="black", marker="|", markersize=9)
        axes.annotate(
            f"{median:.1f} / {p95:.1f}", (max(median, p95), place), (7, 0), textcoords="offset points", va="center", fontsize="small"
        )
    axes.set_yticks(range(len(stages)), [f"{name} (n = {n})" for name, _, _, n in stages])
    axes.set_xlim(0, max(max(median, p95) for _, median, p95, _ in stages) * 1.25 or 1)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def png(figure: Figure) -> bytes:
    """The picture for files; without the version in it, the same numbers give the same bytes."""
    _settle(figure)
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=150, metadata={"Software": None})
    return written.getvalue()


def svg(figure: Figure) -> str:
    """The picture for a page, light or dark as the reader's screen; without a date and with fixed ids, the same numbers give the same text."""
    _settle(figure)
    written = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "eval"}):
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue().replace("</style>", f"{_DARK}</style>", 1)


def _settle(figure: Figure) -> None:
    """Lay the parts out once: each file would do it again, which takes most of the time."""
    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def _legend(figure: Figure, **how: Any) -> None:
    """A legend where there is anything to explain: without data nothing is drawn, and matplotlib would warn."""
    if any(axes.get_legend_handles_labels()[0] for axes in figure.axes):
        figure.legend(**how)


def _reach(row: MetricRow | Average) -> list[list[float]] | None:
    """How far the interval, or the spread over runs, goes below and above the value; a resampled interval need not hold it."""
    if isinstance(row, Average) and row.spread is not None:
        return [[row.spread], [row.spread]]
    if row.value is None or row.low is None or row.high is None:
        return None
    return [[max(0.0, row.value - row.low)], [max(0.0, row.high - row.value)]]
