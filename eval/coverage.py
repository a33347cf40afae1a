"""Set runs of `eval.pipeline` side by side, and plot coverage against unanswerable F1; no model is called.

`python -m eval.coverage 'runs=[runs/ratio/eval-10,runs/ratio/eval-3,runs/ratio/eval-1]' 'names=["10:1","3:1","1:1"]'`
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError
from rich import box
from rich.console import Console
from rich.table import Table

from conf.job import job
from eval.report import METRIC_TITLES
from eval.score import MetricRow, Report
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import describe, read_json
from rag.provenance import provenance
from rag.records import Record, Text
from rag.settings import Files, JobSettings

COLUMNS: Final = ("coverage", "unanswerable_f1", "selective_accuracy", "system_accuracy", "macro_f1")
"""Metrics of the table; the first is plotted against the second."""


class CoverageJob(JobSettings):
    """Settings of this job."""

    runs: Files
    """Folders of `eval.pipeline` on the same examples, in the order of the table."""
    names: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """What to call them; the folders' names where it is none."""


class Run(Record):
    """One run's row."""

    name: str
    folder: str
    n: int
    questions: int
    metrics: dict[str, MetricRow]


def compare(settings: CoverageJob, out: Path) -> list[Run]:
    """Write `coverage.json` and `coverage.md`, and `coverage.png` where matplotlib is installed.

    Raises InputError for a folder without a report, and for runs whose examples or matching rule differ.
    """
    names = settings.names or tuple(folder.name for folder in settings.runs)
    if len(names) != len(settings.runs) or len(set(names)) != len(names):
        raise InputError(
            f"names: expected one name for each of {len(settings.runs)} runs, all different, got {list(names)}; set names=[...]"
        )
    reports = [_read(folder) for folder in settings.runs]
    _require_same_examples(settings.runs, reports)
    runs = [
        Run(
            name=name,
            folder=str(folder),
            n=report.n,
            questions=report.questions,
            metrics={row.name: row for row in report.metrics if row.name in COLUMNS},
        )
        for name, folder, report in zip(names, settings.runs, reports, strict=True)
    ]
    origin = {"command": f"python -m eval.coverage {' '.join(sys.argv[1:])}".strip(), **provenance()}
    content = {"provenance": origin, "runs": [run.model_dump(mode="json") for run in runs]}
    (out / "coverage.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    header, rows = ("run", *(METRIC_TITLES[column] for column in COLUMNS), "n"), [_cells(run) for run in runs]
    lines = [header, ("---", *("---:" for _ in header[1:])), *rows]
    table = "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
    listed = "".join(f"- {name}: `{value}`\n" for name, value in origin.items())
    (out / "coverage.md").write_text(f"# Coverage and abstention\n\n{table}\n{listed}", encoding="utf-8")
    console = Console(width=140)
    shown = Table(*header, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        shown.add_row(*row)
    console.print(shown)
    try:
        from eval.figures import plot_trade_off
    except ImportError:
        console.print("no picture: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
    else:
        x, y = ([run.metrics[column] for run in runs] for column in COLUMNS[:2])
        plot_trade_off(names, x, y, (METRIC_TITLES[COLUMNS[0]], METRIC_TITLES[COLUMNS[1]]), out / "coverage.png")
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return runs


def _read(folder: Path) -> Report:
    path = folder / "report.json"
    content = read_json(path)
    if not isinstance(content, dict) or "report" not in content:
        raise InputError(f"{path}: expected a report that eval.pipeline wrote")
    try:
        return Report.model_validate_json(json.dumps(content["report"]))
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Report)}") from error


def _require_same_examples(folders: Sequence[Path], reports: Sequence[Report]) -> None:
    """Runs that scored predictions again keep no examples beside them: of those the counts alone are compared."""
    files = [folder / "examples.jsonl" for folder in folders]
    hashes = {sha256(path) for path in files if path.is_file()}
    counts = {(report.n, report.questions, report.match) for report in reports}
    if len(hashes) > 1 or len(counts) > 1:
        found = "; ".join(f"{f}: {r.n} examples of {r.questions} questions, match={r.match}" for f, r in zip(folders, reports, strict=True))
        raise InputError(f"runs: expected runs on the same examples and by the same matching rule, got {found}")


def _cells(run: Run) -> tuple[str, ...]:
    return (run.name, *(_cell(run.metrics[column]) for column in COLUMNS), str(run.n))


def _cell(row: MetricRow) -> str:
    if row.value is None or row.low is None or row.high is None:
        return "n/a"
    return f"{row.value:.3f} ({row.low:.3f} to {row.high:.3f})"


main = job(compare, CoverageJob, config_name="eval_coverage")

if __name__ == "__main__":
    main()
