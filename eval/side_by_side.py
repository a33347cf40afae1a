"""Reports of several runs as rows of one table, in the columns of paper 002, table 15; runs of one row are averaged, with their spread."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table

from eval.records import MetricRow, Report, ResponseCountsRow
from eval.report import METRIC_TITLES
from eval.report.content import REPORT, read_report, total_milliseconds
from rag import card
from rag.checkpoint import sha256
from rag.errors import InputError, nearest
from rag.provenance import command, provenance
from rag.records import Record

COUNTS: Final = ("answers right / wrong", "abstentions right / wrong", "ms per example")
"""Columns that are no metrics: how the examples ended, and the mean time of the whole system in its own run."""


class Run(Record):
    """One run of `eval.pipeline`."""

    folder: str
    commit: str
    """Of the code that made it."""
    n: int
    questions: int
    counts: ResponseCountsRow
    milliseconds: float | None
    """Mean of the whole system; none where the run did not measure it."""
    metrics: dict[str, MetricRow]


class Average(Record):
    """A metric over the runs of a row."""

    value: float | None
    """Mean of the runs in which it is defined; none where it is in no run."""
    low: float | None = None
    """Of a single run, the lower end of its interval."""
    high: float | None = None
    spread: float | None = None
    """Standard deviation over the runs (n - 1); none for fewer than two."""
    runs: int
    """Runs in which it is defined."""


class Row(Record):
    """One row: a run, or runs that differ in a seed alone."""

    name: str
    runs: tuple[Run, ...]
    metrics: dict[str, Average]


def tabulate(
    folders: Sequence[Path],
    names: Sequence[str],
    out: Path,
    *,
    columns: Sequence[str],
    plot: tuple[str, str] | None,
    same_examples: bool,
    title: str,
    made_by: str,
    note: str = "",
) -> list[Row]:
    """Write and show the table of runs, and draw `plot` where it is given and matplotlib is installed; `made_by` is the job's module.

    Raises InputError for a folder without a report, for a metric that no report has, and for runs whose matching rule differs or, where
    they should be the same, their examples.
    """
    require_metrics(columns=columns, plot=plot or ())
    found = [read(folder, (*columns, *(plot or ()))) for folder in folders]
    require_alike(folders, [report for _, report in found], same_examples)
    table = rows(names, [run for run, _ in found])
    notes = " ".join(part for part in (note, how_made(found[0][1])) if part)
    console = Console(width=160)
    console.print(write(out, title, table, columns, notes, {"command": command(made_by), **provenance()}))
    if plot is not None and not _plot(table, plot, out / "table.png"):
        console.print("no picture: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return table


def _plot(table: Sequence[Row], plot: tuple[str, str], path: Path) -> bool:
    """Draw the rows; whether matplotlib is there to draw with."""
    try:
        from eval.figures import plot_trade_off
    except ImportError:
        return False
    x, y = ([row.metrics[column] for row in table] for column in plot)
    plot_trade_off([row.name for row in table], x, y, (METRIC_TITLES[plot[0]], METRIC_TITLES[plot[1]]), path)
    return True


def read(folder: Path, metrics: Iterable[str]) -> tuple[Run, Report]:
    """A run's folder as a row's content, and its whole report. Raises InputError for a folder without a report."""
    report, content = read_report(folder / REPORT)
    wanted = set(metrics)
    run = Run(
        folder=str(folder),
        commit=str(content.get("provenance", {}).get("commit", "unknown")),
        n=report.n,
        questions=report.questions,
        counts=report.counts,
        milliseconds=total_milliseconds(report),
        metrics={row.name: row for row in report.metrics if row.name in wanted},
    )
    return run, report


def require_metrics(**keys: Sequence[str]) -> None:
    """Raises InputError for a name that no metric of a report has, with the key that holds it."""
    for key, names in keys.items():
        if unknown := [name for name in names if name not in METRIC_TITLES]:
            raise InputError(f"{key}: no metric is called '{unknown[0]}'{nearest(unknown[0], METRIC_TITLES)}")


def require_alike(folders: Sequence[Path], reports: Sequence[Report], same_examples: bool) -> None:
    """Raises InputError for runs by different matching rules or, where they should be the same, on different examples.

    Of a run without examples beside it, such as one of an earlier version that scored predictions again, the counts alone are compared.
    """
    files = [folder / "examples.jsonl" for folder in folders]
    hashes = {sha256(path) for path in files if path.is_file()} if same_examples else set()
    counts = {(report.n, report.questions, report.match) if same_examples else report.match for report in reports}
    if len(hashes) > 1 or len(counts) > 1:
        found = "; ".join(f"{f}: {r.n} examples of {r.questions} questions, match={r.match}" for f, r in zip(folders, reports, strict=True))
        hint = "; set same_examples=false for runs that differ on purpose" if same_examples else ""
        raise InputError(
            f"runs: expected runs {'on the same examples and ' if same_examples else ''}by the same matching rule, got {found}{hint}"
        )


def rows(names: Sequence[str], runs: Sequence[Run]) -> list[Row]:
    """One row for each name, in the order of their first runs; runs of one name are averaged."""
    grouped: dict[str, list[Run]] = {}
    for name, run in zip(names, runs, strict=True):
        grouped.setdefault(name, []).append(run)
    return [Row(name=name, runs=tuple(of_row), metrics=_averaged(of_row)) for name, of_row in grouped.items()]


def _averaged(runs: Sequence[Run]) -> dict[str, Average]:
    return {
        name: average([run.metrics[name] for run in runs if name in run.metrics])
        for name in dict.fromkeys(n for r in runs for n in r.metrics)
    }


def average(of_runs: Sequence[MetricRow]) -> Average:
    """One run's value with its interval, or the mean of several with their standard deviation: 0.4 and 0.6 give 0.5, spread 0.141."""
    defined = [row for row in of_runs if row.value is not None]
    values = [row.value for row in defined if row.value is not None]
    if len(of_runs) == 1 and defined:
        return Average(value=values[0], low=defined[0].low, high=defined[0].high, runs=1)
    return Average(
        value=fmean(values) if values else None,
        spread=stdev(values) if len(values) > 1 else None,
        runs=len(values),
    )


def write(out: Path, title: str, table: Sequence[Row], columns: Sequence[str], notes: str, origin: Mapping[str, str]) -> RenderableType:
    """Write `table.json` and `table.md`; give the table for the terminal."""
    content = {"provenance": dict(origin), "rows": [row.model_dump(mode="json") for row in table]}
    (out / "table.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    header = ("run", *(METRIC_TITLES[column] for column in columns), *COUNTS, "n")
    cells = [_cells(row, columns) for row in table]
    if any(len(row.runs) > 1 for row in table):
        notes += " A row of several runs: their mean ± their standard deviation, and in brackets how many they are; its counts are sums."
    made = {
        f"{row.name}: {Path(run.folder).name}": f"commit `{run.commit}`, {run.questions} questions" for row in table for run in row.runs
    }
    sections = {
        "": notes,
        "Runs": card.table(header, cells),
        "Where the numbers come from": card.table(("", ""), [*origin.items(), *made.items()]),
    }
    (out / "table.md").write_text(card.render(title, sections), encoding="utf-8")
    shown = Table(*header, title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in cells:
        shown.add_row(*row)
    return Group(shown, notes)


def how_made(report: Report) -> str:
    """How the intervals of these runs were made."""
    return (
        f"Intervals: {report.level:.0%}, bootstrap by question, {report.resamples} resamples, seed {report.seed}. Times are of each run's own "
        "hour and no measure of speed between runs."
    )


def _cells(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    counts = [run.counts for run in row.runs]
    answers = f"{sum(c.correct_answers for c in counts)} / {sum(c.incorrect_answers for c in counts)}"
    abstentions = f"{sum(c.correct_abstentions for c in counts)} / {sum(c.incorrect_abstentions for c in counts)}"
    times = [run.milliseconds for run in row.runs if run.milliseconds is not None]
    time = f"{fmean(times):.0f}" if times else "n/a"
    return (
        row.name,
        *(cell(row.metrics.get(column)) for column in columns),
        answers,
        abstentions,
        time,
        str(sum(run.n for run in row.runs)),
    )


def cell(figure: Average | None) -> str:
    """A figure as a table shows it."""
    if figure is None or figure.value is None:
        return "n/a"
    if figure.low is not None and figure.high is not None:
        return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"
    return f"{figure.value:.3f}" + (f" ± {figure.spread:.3f} ({figure.runs})" if figure.spread is not None else "")
