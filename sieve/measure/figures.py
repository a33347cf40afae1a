"""Pictures of rates and of calibration; needs matplotlib, the extra `figures`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from textwrap import fill

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from rag.calibration import Bin
from sieve.measure.intervals import Figure as Number
from sieve.threshold import rates

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Colours that colour-blind readers tell apart (Okabe and Ito 2008), without their yellow, which is too light on paper."""
MARKS = ("o", "^", "s", "D", "v", "P", "X")


Curve = Sequence[tuple[int, Number, Number]]
"""A learning curve: number of training sets, Macro-F1, F1 of the distracted class."""


def plot_rates(scores: Sequence[float], distracted: Sequence[bool], stored: float, path: Path) -> None:
    """Draw TPR, FPR and Macro-F1 over the threshold, and mark the stored one. A rate without its class is not drawn."""
    grid = [step / 200 for step in range(201)]
    at = [rates(scores, distracted, threshold) for threshold in grid]
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="threshold", ylabel="rate", xlim=(0, 1), ylim=(0, 1.02))
    if all(point.tpr is not None for point in at):
        axes.plot(grid, [point.tpr or 0.0 for point in at], label="distracted sets flagged (TPR)", color="tab:blue")
    if all(point.fpr is not None for point in at):
        axes.plot(grid, [point.fpr or 0.0 for point in at], label="other sets flagged (FPR)", color="tab:red")
    axes.plot(grid, [point.macro_f1 for point in at], label="Macro-F1", color="tab:green", linestyle="--")
    axes.axvline(stored, color="black", linestyle=":", label=f"stored threshold {stored:.3f}")
    axes.legend(loc="best", fontsize="small")
    axes.set_title(f"n = {len(scores)} sets, {sum(distracted)} distracted", fontsize="medium")
    _save(figure, path)


def plot_reliability(curves: Mapping[str, Sequence[Bin]], path: Path) -> None:
    """Draw the share of distracted sets over the mean score of each bin; a calibrated Sieve lies on the diagonal."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="mean score", ylabel="share of distracted sets", xlim=(0, 1), ylim=(0, 1))
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":")
    for name, bins in curves.items():
        axes.plot([part.mean_score for part in bins], [part.frequency for part in bins], marker="o", label=name)
    axes.legend(loc="upper left", fontsize="small")
    _save(figure, path)


def plot_embeddings(maps: Mapping[str, npt.NDArray[np.float64]], conditions: Sequence[str], path: Path) -> None:
    """Draw a panel for each map, [examples, 2], by its title; conditions differ in colour and in mark, so that they do in grey too."""
    figure = Figure(figsize=(4.5 * len(maps), 4.8), layout="constrained")
    names = sorted(set(conditions))
    for number, (title, places) in enumerate(maps.items(), start=1):
        axes = figure.add_subplot(1, len(maps), number, xticks=(), yticks=(), xlabel="t-SNE 1", ylabel="t-SNE 2")
        axes.set_title(title, fontsize="small")
        for name, colour, mark in zip(names, cycle(COLOURS), cycle(MARKS), strict=False):
            rows = places[[condition == name for condition in conditions]]
            label = f"{name} (n = {len(rows)})"
            axes.scatter(rows[:, 0], rows[:, 1], s=22, color=colour, marker=mark, alpha=0.8, linewidths=0, label=label)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names), fontsize="small")
    _save(figure, path)


def plot_curves(panels: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    """Draw a panel of learning curves for each data set: Macro-F1 with its interval in full lines, F1 of distracted sets in broken ones."""
    figure = Figure(figsize=(5.5 * len(panels), 4.5), layout="constrained")
    for number, (title, curves) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), number, xlabel="training sets of the new data", ylabel="F1", ylim=(0, 1.02))
        axes.set_title(title, fontsize="small")
        for (name, curve), colour, mark in zip(curves.items(), cycle(COLOURS), cycle(MARKS), strict=False):
            # A curve alone needs no name; long ones, of folders of a sweep, are broken.
            of = f", {fill(name, 48)}" if len(curves) > 1 else ""
            sizes = [examples for examples, _, _ in curve]
            macro, distracted = [m for _, m, _ in curve], [d for _, _, d in curve]
            axes.plot(sizes, _values(n.value for n in macro), color=colour, marker=mark, label=f"Macro-F1{of}")
            axes.plot(sizes, _values(n.value for n in distracted), color=colour, marker=mark, linestyle="--", label=f"distracted F1{of}")
            low, high = _values(n.low for n in macro), _values(n.high for n in macro)
            axes.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize="x-small", frameon=False)
    _save(figure, path)


def _values(numbers: Iterable[float | None]) -> list[float]:
    return [math.nan if number is None else number for number in numbers]


def _save(figure: Figure, path: Path) -> None:
    # Without the version in it, the same figures give the same bytes.
    figure.savefig(path, format="png", metadata={"Software": None})
