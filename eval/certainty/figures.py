"""Pictures of certificates and drift; needs matplotlib, the extra `figures`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from eval.certainty.learn_then_test import Certification, upper_bound
from eval.figures import COLOURS, png


def plot_certification(tested: Certification, path: Path) -> None:
    """Draw both rates of the certified test over the threshold with their one-sided bounds, the limits, and what was certified.

    Only the points that ask for the same least confidence as the chosen one are drawn (as the first one tested, where none was).
    """
    chosen = tested.chosen()
    floor = tested.points[0 if chosen is None else chosen].confidence
    places = sorted((i for i, p in enumerate(tested.points) if p.confidence == floor), key=lambda i: tested.points[i].threshold)
    thresholds = [tested.points[i].threshold for i in places]
    counts, limits = tested.counts, tested.limits
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.add_subplot(xlabel="threshold of the Sieve", ylabel="share", ylim=(-0.06, 1.02))
    risks: tuple[tuple[str, Any, Any, float, str, str], ...] = (
        ("wrong among answers", counts.wrong, counts.answers, limits.alpha, COLOURS[1], "o"),
        ("answerable sets refused", counts.refused, counts.clean, limits.beta, COLOURS[0], "s"),
    )
    for name, events, n, limit, colour, mark in risks:
        rate = [events[i] / n[i] if n[i] else np.nan for i in places]
        bound = [upper_bound(int(events[i]), int(n[i]), limits.delta) if n[i] else np.nan for i in places]
        axes.plot(thresholds, rate, color=colour, marker=mark, markersize=3, label=name)
        axes.fill_between(thresholds, rate, bound, color=colour, alpha=0.15, linewidth=0, label=f"up to its {1 - limits.delta:.0%} bound")
        axes.axhline(limit, color=colour, linestyle="--", linewidth=1, label=f"its limit {limit:g}")
    certified = [i for i in places if i < tested.certified]
    if certified and chosen is not None:
        axes.plot([tested.points[i].threshold for i in certified], [-0.03] * len(certified), "|", color="black", label="certified")
        axes.axvline(tested.points[chosen].threshold, color="black", linestyle=":", label=f"chosen: {tested.points[chosen].threshold:.4g}")
    title = "" if floor is None else f", answers of confidence {floor:.3g} or more"
    verdict = f"{tested.certified} of {len(tested.points)} points certified" if tested.certified else "nothing certified"
    axes.set_title(f"{verdict}; {tested.tested_on} questions{title}", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=3 if certified else 2, fontsize="x-small")
    path.write_bytes(png(figure))


def plot_drift(before: Sequence[float], live: Sequence[float], threshold: float, path: Path) -> None:
    """Draw how the scores that a certificate rests on and live ones are distributed, and the threshold."""
    figure = Figure(figsize=(5.8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="Sieve score", ylabel="share of sets at or below", xlim=(-0.01, 1.01), ylim=(0, 1.02))
    for name, scores, colour, line in (("certificate", before, COLOURS[0], "-"), ("live", live, COLOURS[1], "--")):
        ordered = np.sort(np.array([0.0, *scores, 1.0]))
        share = np.clip((np.arange(len(ordered))) / max(1, len(scores)), 0, 1)
        axes.step(ordered, share, where="post", color=colour, linestyle=line, label=f"{name} (n = {len(scores)})")
    axes.axvline(threshold, color="black", linestyle=":", label=f"threshold {threshold:.4g}")
    axes.legend(loc="best", fontsize="small")
    path.write_bytes(png(figure))
