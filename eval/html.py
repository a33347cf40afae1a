"""One HTML page of runs of `eval.pipeline`, also of old ones; it opens offline, and no model is called.

`python -m eval.html 'runs=[runs/a,runs/b]' out=runs/page`: several runs side by side; `runs=runs/a`: the page of that run.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, Field, ValidationError
from rich.console import Console

from conf.job import job, saved
from eval.predict import EXAMPLES, PREDICTIONS
from eval.report.content import REPORT, Details, Part, Run, named_parts, part, read_report, total_milliseconds
from eval.report.curves import curves, judged_rows
from eval.report.page import FIGURES, PAGE, UNTIMED, write_comparison, write_page
from eval.settings import EvalJob
from rag.errors import InputError
from rag.jsonl import describe, iter_records, read_examples, read_json
from rag.records import Prediction, Record, Text
from rag.settings import Files, InputPath, JobSettings

logger = logging.getLogger(__name__)

INTERLEAVED: Final = "milliseconds per example (median); measured in one interleaved run of eval.profile"


class HtmlJob(JobSettings):
    """Settings of this job."""

    runs: Files
    """Folders of `eval.pipeline`, in the order of the page; one gives the page of a run."""
    names: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """What to call them; the folders' names where it is none."""
    times: InputPath | None = None
    """`profile.json` of `eval.profile`, whose names are those here: times of one interleaved run in place of each run's own."""
    html_examples: int = Field(ge=0)
    """Examples whose documents, prompt and output are in the page of a single run, at most."""


class _Time(Record):
    """What this job reads of a stage's row in `profile.json`."""

    model_config = ConfigDict(extra="ignore")

    system: str
    stage: str
    median: float


def page(settings: HtmlJob, out: Path) -> list[Run]:
    """Write `report.html` and `figures/*.png` into `out`.

    Raises InputError for a folder without a report or without its predictions, and for runs that differ in their matching rule.
    """
    names = settings.names or tuple(folder.name for folder in settings.runs)
    if len(names) != len(settings.runs) or len(set(names)) != len(names):
        raise InputError(
            f"names: expected one name for each of {len(settings.runs)} runs, all different, got {list(names)}; set names=[...]"
        )
    times = None if settings.times is None else _times(settings.times, names)
    runs = [_read(name, folder, times) for name, folder in zip(names, settings.runs, strict=True)]
    if len(rules := {run.report.match for run in runs}) > 1:
        raise InputError(
            f"runs: expected runs by the same matching rule, got match={', match='.join(sorted(rules))}; score them again by one"
        )
    if len(runs) == 1:
        write_page(out, runs[0], settings.html_examples)
    else:
        write_comparison(out, runs, UNTIMED if times is None else INTERLEAVED)
    settings.tracking.file(out / PAGE)
    Console(width=100).print(f"written to {out}: {PAGE}, {FIGURES}/*.png", soft_wrap=True, markup=False)
    return runs


def _read(name: str, folder: Path, times: Mapping[str, float] | None) -> Run:
    """A run from its folder. What is drawn is made again from its predictions, so that runs from before this page have one too."""
    path = folder / REPORT
    report, content = read_report(path)
    try:
        system, dataset, predictions = _origin(folder, content)
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Part)}") from error
    beside = predictions.with_name(EXAMPLES)
    if not (predictions.is_file() and beside.is_file()):
        raise InputError(f"{folder}: expected {EXAMPLES} and {PREDICTIONS}, found them neither here nor where they were scored from")
    rows = judged_rows(read_examples(beside), list(iter_records(predictions, Prediction)), report.match)
    if len(rows) != report.n:
        raise InputError(f"{path}: reports on {report.n} examples, {beside} has {len(rows)}; score them again with eval.pipeline")
    outcomes = {row.example.id: row.judged.outcome for row in rows}
    more = Details(system=system, dataset=dataset, curves=curves(rows), outcomes=outcomes)
    provenance = {key: str(value) for key, value in content.get("provenance", {}).items()}
    return Run(name, report, provenance, more, rows, total_milliseconds(report) if times is None else times[name])


def _origin(folder: Path, content: Mapping[str, object]) -> tuple[Part, Part, Path]:
    """System, data set and the file of predictions, from the report, or for one from before it named them, from the run's config."""
    here = folder / PREDICTIONS
    try:
        settings = saved(folder, EvalJob, Path.cwd())
    except InputError as error:
        # A config of an older version may not fit today's settings, which is no reason not to show its results.
        logger.warning("%s: its settings are not read: %s", folder, error)
        known = None
    else:
        known = part(settings.system), part(settings.dataset)
        # A run from before scored predictions were copied into its folder.
        here = here if here.is_file() else settings.predictions or here
    system, dataset = named_parts(content) or known or (Part(name=folder.name, settings={}), Part(name="unknown data", settings={}))
    return system, dataset, here


def _times(path: Path, names: Sequence[str]) -> dict[str, float]:
    """Median milliseconds of the whole system, by name."""
    content = read_json(path)
    profile = content.get("profile") if isinstance(content, dict) else None
    rows = profile.get("latency") if isinstance(profile, dict) else None
    if not isinstance(rows, list):
        raise InputError(f"{path}: expected the profile.json that eval.profile wrote, found no `profile.latency` in it")
    try:
        known = [_Time.model_validate(row) for row in rows]
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, _Time)}") from error
    times = {row.system: row.median for row in known if row.stage == "total"}
    if missing := [name for name in names if name not in times]:
        raise InputError(
            f"{path}: no time of '{missing[0]}', only of {', '.join(sorted(times)) or 'nothing'}; set names=[...] to its names"
        )
    return times


main = job(page, HtmlJob, config_name="eval_html")

if __name__ == "__main__":
    main()
