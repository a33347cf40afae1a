"""Run a system on a data set and score it: `python -m eval.pipeline dataset=... system=...`; `predictions=FILE` scores again without a model."""

from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from conf.job import job
from eval.predict import EXAMPLES, predict
from eval.report import example_lines, render_table, write_report
from eval.score import Report, score
from eval.settings import EvalJob
from rag.jsonl import iter_records, read_examples
from rag.provenance import command, provenance
from rag.records import Example, Prediction


class Evaluation(NamedTuple):
    """What an evaluation gives beside the files it writes."""

    examples: list[Example]
    predictions: list[Prediction]
    report: Report


def evaluate(settings: EvalJob, out: Path) -> Evaluation:
    """Predict what `out` does not hold yet, score all of it, and write `report.json` and `report.md` beside the predictions.

    Predictions are written as they come: a run that was stopped goes on where it was when it is repeated with the same `out`.
    """
    if settings.predictions is None:
        examples = settings.dataset.build()
        predictions = predict(examples, settings, out)
    else:
        predictions = list(iter_records(settings.predictions, Prediction))
        beside = settings.predictions.with_name(EXAMPLES)
        examples = read_examples(beside) if beside.is_file() else settings.dataset.build()
    report = score(examples, predictions, match=settings.match, resamples=settings.resamples, seed=settings.seed)
    write_report(out, report, {"command": command("eval.pipeline"), **provenance()})
    settings.tracking.log(_figures(report), report.n)
    for name in ("report.json", "report.md"):
        settings.tracking.file(out / name)
    console = Console(width=100)
    for lines in example_lines(examples, predictions, settings.show, settings.match):
        console.print(lines)
    console.print(render_table(report))
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return Evaluation(examples, predictions, report)


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
