"""Which pictures a report has, with what they show in words; needs matplotlib, the extra `figures`."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from matplotlib.figure import Figure

from eval import figures
from eval.records import ConditionRow, MetricRow, Report
from eval.report.content import Run, always_abstaining
from eval.report.curves import NONE, CurvePoint, Curves, Reliability
from eval.report.words import METRIC_TITLES
from rag.calibration import Bin
from rag.records import RetrievalState

RELIABILITY: Final = {
    "sieve": ("Sieve: P(distracted)", "mean P(distracted)", "share of distracted sets"),
    "sage": ("Sage: confidence of answers", "mean confidence", "share of correct answers"),
}


class Picture(NamedTuple):
    """A picture for the page and for a file, and what it says in words."""

    name: str
    """Of the file in `figures/`, without its ending."""
    title: str
    caption: str
    alt: str
    svg: str
    png: bytes


def run_pictures(report: Report, curves: Curves) -> list[Picture]:
    """The pictures of one run: those that its data allow."""
    made: list[Picture] = []

    def add(name: str, title: str, figure: Figure, caption: str, alt: str) -> None:
        made.append(Picture(name, title, caption, alt, figures.svg(figure), figures.png(figure)))

    bars = {"all": _ends(report.conditions)} | {_group(row): _ends([row]) for row in report.conditions}
    add(
        "responses",
        "How the examples ended",
        figures.responses(bars),
        f"Distribution of responses, n = {report.n} (as figure 4b of paper 002). An abstention is correct on unanswerable and distracted sets.",
        "; ".join(f"{name}: " + _listed(counts) for name, counts in bars.items()),
    )
    rows = {row.name: row for row in report.metrics}
    coverage, accuracy = rows["coverage"], rows["selective_accuracy"]
    if coverage.value is not None:
        curve = [(point.coverage, point.value) for point in curves.selective]
        add(
            "selective",
            "Coverage against selective accuracy",
            figures.selective({"keeping only answers above a confidence": curve}, [figures.Point("this run", coverage, accuracy)]),
            f"Answerable sets only, n = {coverage.n} (as figure 4a of paper 002); the bars are intervals. The curve says what would be left "
            f"if only answers above some confidence were given{_without_confidence(curves)}.",
            f"Coverage {_value(coverage)}, selective accuracy {_value(accuracy)}.",
        )
    if curves.risk:
        last = curves.risk[-1]
        add(
            "risk_coverage",
            "Risk and coverage",
            figures.risk({"answers by confidence": _places(curves.risk)}),
            f"{last.kept} answers of {report.n} examples, the surest first; answers of equal confidence enter together. Any answer to a set "
            f"that is not answerable counts as wrong{_without_confidence(curves)}.{_said(rows, 'aurc')}",
            f"All {last.kept} answers: coverage {last.coverage:.3f}, {last.value:.3f} of them wrong.",
        )
    if curves.reliability:
        add(
            "reliability",
            "Reliability",
            figures.reliability({RELIABILITY[kind.of]: _bins(kind) for kind in curves.reliability}),
            f"Ten bins of equal width ({' and '.join(f'{_OF[kind.of]}, n = {kind.n}' for kind in curves.reliability)}); points of bins with few "
            f"examples say little.{_said(rows, 'ece_midpoint', 'ece_mean')}",
            "; ".join(f"{_OF[kind.of]}: {_in_words(kind)}" for kind in curves.reliability),
        )
    if curves.sweep is not None:
        points, swept = curves.sweep.points, curves.sweep
        rates: dict[str, list[float | None]] = {
            "distracted sets flagged (TPR)": [point.true_positive_rate for point in points],
            "other sets flagged (FPR)": [point.false_positive_rate for point in points],
            "Macro-F1, clean or distracted": [point.macro_f1 for point in points],
        }
        best = max(points, key=lambda point: point.macro_f1)
        add(
            "sweep",
            "The Sieve's threshold",
            figures.sweep([point.threshold for point in points], rates, swept.used),
            f"The Sieve's own decision at other thresholds, from the scores of {swept.n} sets, {swept.distracted} of them distracted. To "
            "choose a threshold by this picture would be to choose it on the test set.",
            f"Macro-F1 is highest, {best.macro_f1:.3f}, at {best.threshold:.3f}; in use: {', '.join(f'{t:.3f}' for t in swept.used) or 'none'}.",
        )
    gold, named = [state.value for state in RetrievalState], [*(state.value for state in RetrievalState), NONE]
    add(
        "confusion",
        "States confused",
        figures.confusion(curves.states, gold, named),
        f"States of the sets and states that the system named, n = {report.n}, with the share of each row.",
        "; ".join(f"{state}: {_pairs(named, row)}" for state, row in zip(gold, curves.states, strict=True)),
    )
    if report.latency:
        add(
            "latency",
            "Time by stage",
            figures.latency([(row.stage, row.median, row.p95, row.n) for row in report.latency]),
            "Milliseconds per example, as this run measured them (median / 95th percentile); a batch's time is shared by its examples.",
            "; ".join(f"{row.stage}: median {row.median:.1f}, 95th percentile {row.p95:.1f} ms, n = {row.n}" for row in report.latency),
        )
    return made


def comparison_pictures(runs: Sequence[Run], time: str) -> list[Picture]:
    """The pictures of several runs; `time` labels their milliseconds and says how they were measured."""
    made: list[Picture] = []

    def add(name: str, title: str, figure: Figure, caption: str, alt: str) -> None:
        made.append(Picture(name, title, caption, alt, figures.svg(figure), figures.png(figure)))

    rows = {run.name: {row.name: row for row in run.report.metrics} for run in runs}
    timed = [run for run in runs if run.milliseconds is not None]
    if timed:
        metrics = ("system_accuracy", "macro_f1")
        panels = {
            METRIC_TITLES[metric]: [figures.Point(run.name, run.milliseconds or 0.0, rows[run.name][metric]) for run in timed]
            for metric in metrics
        }
        levels = {always_abstaining(run.report) for run in runs}
        always = {METRIC_TITLES["system_accuracy"]: ("always abstaining", levels.pop())} if len(levels) == 1 else {}
        label = time.partition(";")[0]
        figure = figures.pareto(panels, always, label)
        untimed = [run.name for run in runs if run.milliseconds is None]
        caption = f"As figure 3 of paper 002, n = {_numbers(runs)}; the bars are intervals. {time[0].upper()}{time[1:]}." + (
            f" Without a time, and so not drawn: {', '.join(untimed)}." if untimed else ""
        )
        alt = "; ".join(
            f"{run.name}: {run.milliseconds:.0f} ms, " + ", ".join(f"{METRIC_TITLES[m]} {_value(rows[run.name][m])}" for m in metrics)
            for run in timed
        )
        add("pareto", "Quality against time", figure, caption, alt)
    figure = figures.responses({run.name: _ends(run.report.conditions) for run in runs})
    caption = f"Distribution of responses over all examples, n = {_numbers(runs)} (as figure 4b of paper 002)."
    alt = "; ".join(f"{run.name}: {_listed(_ends(run.report.conditions))}" for run in runs)
    add("responses", "How the examples ended", figure, caption, alt)
    points = [figures.Point(run.name, rows[run.name]["coverage"], rows[run.name]["selective_accuracy"]) for run in runs]
    figure = figures.trade_off(points, (METRIC_TITLES["coverage"], METRIC_TITLES["selective_accuracy"]))
    silent = [run.name for run in runs if rows[run.name]["selective_accuracy"].value is None]
    caption = "Answerable sets only (as figure 4a of paper 002); the bars are intervals." + (
        f" Answers none of them, and so has no selective accuracy: {', '.join(silent)}." if silent else ""
    )
    alt = "; ".join(
        f"{run.name}: coverage {_value(rows[run.name]['coverage'])}, selective accuracy {_value(rows[run.name]['selective_accuracy'])}"
        for run in runs
    )
    add("selective", "Coverage against selective accuracy", figure, caption, alt)
    if any(run.details.curves.risk for run in runs):
        figure = figures.risk({run.name: _places(run.details.curves.risk) for run in runs})
        areas = [f"{name} {_value(of_run['aurc'])}" for name, of_run in rows.items() if "aurc" in of_run]
        caption = (
            "Answers by confidence, the surest first; answers of equal confidence enter together. The further right and down, the better. "
            f"{METRIC_TITLES['aurc']}: {', '.join(areas)}."
        )
        ends = [(run.name, run.details.curves.risk[-1]) for run in runs if run.details.curves.risk]
        alt = "; ".join(f"{name}: all answers at coverage {end.coverage:.3f} with risk {end.value:.3f}" for name, end in ends)
        add("risk_coverage", "Risk and coverage", figure, caption, alt)
    return made


_OF: Final = {"sieve": "the Sieve's score", "sage": "the Sage's confidence"}


def _ends(rows: Sequence[ConditionRow]) -> tuple[int, ...]:
    """Correct answers, correct abstentions, incorrect abstentions, incorrect answers, unparsed, errors."""
    answerable = [row for row in rows if row.state is RetrievalState.ANSWERABLE]
    others = [row for row in rows if row.state is not RetrievalState.ANSWERABLE]
    abstained = sum(row.abstained for row in others), sum(row.abstained for row in answerable)
    wrong, unparsed, errors = (sum(getattr(row, name) for row in rows) for name in ("wrong", "unparsed", "error"))
    return sum(row.correct for row in rows), *abstained, wrong, unparsed, errors


def _group(row: ConditionRow) -> str:
    return row.condition.value if row.condition.value == row.state.value else f"{row.condition.value} ({row.state.value})"


def _listed(counts: Sequence[int]) -> str:
    names = ("correct answers", "correct abstentions", "incorrect abstentions", "incorrect answers", "unparsed", "errors")
    return _pairs(names, counts)


def _pairs(names: Sequence[str], counts: Sequence[int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))


def _value(row: MetricRow) -> str:
    if row.value is None:
        return "n/a"
    return f"{row.value:.3f}" + ("" if row.low is None or row.high is None else f" ({row.low:.3f} to {row.high:.3f})")


def _said(rows: Mapping[str, MetricRow], *names: str) -> str:
    """Figures of the report with their intervals, as sentences; nothing of one that it does not have."""
    return "".join(f" {METRIC_TITLES[name]} {_value(rows[name])}." for name in names if name in rows)


def _places(points: Sequence[CurvePoint]) -> list[tuple[float, float]]:
    return [(point.coverage, point.value) for point in points]


def _bins(kind: Reliability) -> list[Bin]:
    return [Bin(**part.model_dump()) for part in kind.bins]


def _in_words(kind: Reliability) -> str:
    return ", ".join(f"{part.frequency:.2f} where {part.mean_score:.2f} was said (n = {part.n})" for part in kind.bins)


def _without_confidence(curves: Curves) -> str:
    return f"; {curves.unconfident} answers came without a confidence and are left out" if curves.unconfident else ""


def _numbers(runs: Sequence[Run]) -> str:
    return " / ".join(dict.fromkeys(str(run.report.n) for run in runs))
