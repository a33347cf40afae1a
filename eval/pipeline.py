"""Run a system on a data set and score it: `python -m eval.pipeline dataset=... system=...`; `predictions=FILE` scores again without a model."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from conf.job import job
from eval.predict import EXAMPLES, PREDICTIONS, predict
from eval.records import Report
from eval.report import example_lines, render_table, write_report
from eval.report.content import Part, Run, details, named_parts, part, total_milliseconds
from eval.report.curves import judged_rows
from eval.report.page import write_page
from eval.score import score
from eval.settings import EvalJob
from rag.checkpoint import sha256
from rag.jsonl import Records, read_json, write_records
from rag.provenance import command, provenance
from rag.records import Example, Prediction


class Evaluation(NamedTuple):
    """What an evaluation gives beside the files it writes."""

    examples: Iterable[Example]
    predictions: Iterable[Prediction]
    report: Report


def evaluate(settings: EvalJob, out: Path) -> Evaluation:
    """Predict what `out` does not hold yet, score all of it, and write the reports beside the predictions.

    Predictions are written as they come: a run that was stopped goes on where it was when it is repeated with the same `out`.
    """
    system, dataset = part(settings.system), part(settings.dataset)
    if settings.predictions is None:
        examples = settings.dataset.build()
        predictions: Iterable[Prediction] = predict(examples, settings, out)
    else:
        system, dataset = _made_elsewhere(settings.predictions, dataset)
        examples, predictions = _taken_over(settings, settings.predictions, out)
    if settings.name is not None:
        system = system.model_copy(update={"name": settings.name})
    report = score(examples, predictions, match=settings.match, resamples=settings.resamples, seed=settings.seed)
    origin = {"command": command("eval.pipeline"), "examples": f"sha256 {sha256(out / EXAMPLES)}", **provenance()}
    rows = judged_rows(examples, predictions, settings.match, texts=settings.html)
    more = details(rows, system, dataset)
    write_report(out, report, origin, more)
    if settings.html:
        write_page(out, Run(out.name, report, origin, more, rows, total_milliseconds(report)), settings.html_examples)
    settings.tracking.log(_figures(report), report.n)
    for name in ("report.json", "report.md"):
        settings.tracking.file(out / name)
    console = Console(width=100)
    for lines in example_lines(examples, predictions, settings.show, settings.match) if settings.show else ():
        console.print(lines)
    console.print(render_table(report))
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return Evaluation(examples, predictions, report)


def _taken_over(settings: EvalJob, path: Path, out: Path) -> tuple[Iterable[Example], Iterable[Prediction]]:
    """Copy predictions that were made elsewhere, and their examples, into the run's folder, which then is like that of any run.

    They are read while they are scored: documents and prompts of a large run need not fit in memory.
    """
    out.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(EXAMPLES)
    for source, copy in ((path, out / PREDICTIONS), (beside, out / EXAMPLES)):
        if source.is_file() and source.resolve() != copy.resolve():
            shutil.copyfile(source, copy)
    if not beside.is_file():
        write_records(out / EXAMPLES, settings.dataset.build())
    return Records(out / EXAMPLES, Example), Records(out / PREDICTIONS if path.is_file() else path, Prediction)


def _made_elsewhere(path: Path, dataset: Part) -> tuple[Part, Part]:
    """What the predictions of a file are of: what the report beside it says, else the file's own name and the data set scored on."""
    beside = path.with_name("report.json")
    content = read_json(beside) if beside.is_file() else {}
    if isinstance(content, dict) and (named := named_parts(content)):
        return named
    if path.with_name(EXAMPLES).is_file():
        dataset = Part(name=path.parent.name, settings={})
    return Part(name=f"predictions of {path.stem}", settings={}), dataset


def _figures(report: Report) -> dict[str, float | None]:
    """What a tracker draws of a report: metrics with the ends of their intervals, how examples ended, and median latency."""
    ends = {"": "value", "_low": "low", "_high": "high"}
    return {
        **{f"metrics/{row.name}{end}": getattr(row, field) for row in report.metrics for end, field in ends.items()},
        **{f"counts/{name}": float(count) for name, count in report.counts},
        **{f"median_milliseconds/{row.stage}": row.median for row in report.latency},
    }


main = job(evaluate, EvalJob, config_name="eval_pipeline")

if __name__ == "__main__":
    main()
