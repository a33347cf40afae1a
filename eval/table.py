"""Set runs of `eval.pipeline` side by side in the columns of paper 002, table 15, and plot one metric against another; no model is called.

`python -m eval.table 'runs=[runs/ratio/eval-10,runs/ratio/eval-3,runs/ratio/eval-1]' 'names=["10:1","3:1","1:1"]'`
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError
from rich import box
from rich.console import Console
from rich.table import Table

from conf.job import job
from eval.report import METRIC_TITLES
from eval.score import MetricRow, Report, ResponseCountsRow
from rag import card
from rag.checkpoint import sha256
from rag.errors import InputError, nearest
from rag.jsonl import describe, read_json
from rag.provenance import command, provenance
from rag.records import Record, Text
from rag.settings import Files, JobSettings

COUNTS: Final = ("answers right / wrong", "abstentions right / wrong", "ms per example")
"""Columns that are no metrics: how the examples ended, and the mean time of the whole system in its own run."""


class TableJob(JobSettings):
    """Settings of this job."""

    runs: Files
    """Folders of `eval.pipeline`, in the order of the table."""
    names: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """What to call them; the folders' names where it is none."""
    columns: tuple[Text, ...] = Field(min_length=1)
    """Metrics of the reports."""
    same_examples: bool = True
    """Whether to refuse runs on different examples; those of a sweep over K or over neutral documents differ on purpose."""
    plot: tuple[Text, Text] | None = None
    """Two metrics, the first along and the second up; no picture where it is none."""


class Run(Record):
    """One run's row."""

    name: str
    folder: str
    commit: str
    """Of the code that made it."""
    n: int
    questions: int
    counts: ResponseCountsRow
    milliseconds: float | None
    """Mean of the whole system; none where the run did not measure it."""
    metrics: dict[str, MetricRow]


def tabulate(settings: TableJob, out: Path) -> list[Run]:
    """Write `table.json` and `table.md`, and `table.png` where there is something to plot and matplotlib is installed.

    Raises InputError for a folder without a report, for a metric that no report has, and for runs whose matching rule differs or, where
    they should be the same, their examples.
    """
    names = settings.names or tuple(folder.name for folder in settings.runs)
    if len(names) != len(settings.runs) or len(set(names)) != len(names):
        raise InputError(
            f"names: expected one name for each of {len(settings.runs)} runs, all different, got {list(names)}; set names=[...]"
        )
    for key, metrics in (("columns", settings.columns), ("plot", settings.plot or ())):
        if unknown := [name for name in metrics if name not in METRIC_TITLES]:
            raise InputError(f"{key}: no metric is called '{unknown[0]}'{nearest(unknown[0], METRIC_TITLES)}")
    wanted = dict.fromkeys((*settings.columns, *(settings.plot or ())))
    reports = [_read(folder) for folder in settings.runs]
    _require_alike(settings.runs, reports, settings.same_examples)
    runs = [
        _run(name, folder, commit, report, wanted) for name, folder, (commit, report) in zip(names, settings.runs, reports, strict=True)
    ]
    origin = {"command": command("eval.table"), **provenance()}
    content = {"provenance": origin, "runs": [run.model_dump(mode="json") for run in runs]}
    (out / "table.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    header = ("run", *(METRIC_TITLES[column] for column in settings.columns), *COUNTS, "n")
    rows = [_cells(run, settings.columns) for run in runs]
    first = reports[0][1]
    notes = (
        f"Intervals: {first.level:.0%}, bootstrap by question, {first.resamples} resamples, seed {first.seed}. Times are of each run's own "
        "hour and no measure of speed between runs."
    )
    made = {run.name: f"`{run.folder}`, commit `{run.commit}`, {run.questions} questions" for run in runs}
    sections = {
        "": notes,
        "Runs": card.table(header, rows),
        "Where the numbers come from": card.table(("", ""), [*origin.items(), *made.items()]),
    }
    (out / "table.md").write_text(card.render("Runs side by side", sections), encoding="utf-8")
    settings.tracking.log({f"{run.name}/{name}": row.value for run in runs for name, row in run.metrics.items()}, 0)
    for name in ("table.json", "table.md"):
        settings.tracking.file(out / name)
    console = Console(width=160)
    shown = Table(*header, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        shown.add_row(*row)
    console.print(shown, notes)
    if settings.plot is not None:
        _plot(runs, settings.plot, out / "table.png", console)
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return runs


def _run(name: str, folder: Path, commit: str, report: Report, wanted: Iterable[str]) -> Run:
    whole = next((row.mean for row in report.latency if row.stage == "total"), None)
    return Run(
        name=name,
        folder=str(folder),
        commit=commit,
        n=report.n,
        questions=report.questions,
        counts=report.counts,
        milliseconds=whole,
        metrics={row.name: row for row in report.metrics if row.name in wanted},
    )


def _plot(runs: Sequence[Run], plot: tuple[str, str], path: Path, console: Console) -> None:
    try:
        from eval.figures import plot_trade_off
    except ImportError:
        console.print("no picture: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
        return
    x, y = ([run.metrics[column] for run in runs] for column in plot)
    plot_trade_off([run.name for run in runs], x, y, (METRIC_TITLES[plot[0]], METRIC_TITLES[plot[1]]), path)


def _read(folder: Path) -> tuple[str, Report]:
    """The commit of a run and its report."""
    path = folder / "report.json"
    content = read_json(path)
    if not isinstance(content, dict) or "report" not in content:
        raise InputError(f"{path}: expected a report that eval.pipeline wrote")
    try:
        report = Report.model_validate_json(json.dumps(content["report"]))
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Report)}") from error
    return str(content.get("provenance", {}).get("commit", "unknown")), report


def _require_alike(folders: Sequence[Path], reports: Sequence[tuple[str, Report]], same_examples: bool) -> None:
    """Runs that scored predictions again keep no examples beside them: of those the counts alone are compared."""
    files = [folder / "examples.jsonl" for folder in folders]
    hashes = {sha256(path) for path in files if path.is_file()} if same_examples else set()
    counts = {(report.n, report.questions, report.match) if same_examples else report.match for _, report in reports}
    if len(hashes) > 1 or len(counts) > 1:
        found = "; ".join(
            f"{f}: {r.n} examples of {r.questions} questions, match={r.match}" for f, (_, r) in zip(folders, reports, strict=True)
        )
        hint = "; set same_examples=false for runs that differ on purpose" if same_examples else ""
        raise InputError(
            f"runs: expected runs {'on the same examples and ' if same_examples else ''}by the same matching rule, got {found}{hint}"
        )


def _cells(run: Run, columns: Sequence[str]) -> tuple[str, ...]:
    counts = run.counts
    ended = (f"{counts.correct_answers} / {counts.incorrect_answers}", f"{counts.correct_abstentions} / {counts.incorrect_abstentions}")
    time = "n/a" if run.milliseconds is None else f"{run.milliseconds:.0f}"
    return (run.name, *(_cell(run.metrics.get(column)) for column in columns), *ended, time, str(run.n))


def _cell(row: MetricRow | None) -> str:
    if row is None or row.value is None or row.low is None or row.high is None:
        return "n/a"
    return f"{row.value:.3f} ({row.low:.3f} to {row.high:.3f})"


main = job(tabulate, TableJob, config_name="eval_table")

if __name__ == "__main__":
    main()
