"""Run a system on a data set and score it: `python -m eval.pipeline dataset=... system=...`; `predictions=FILE` scores again without a model."""

import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from conf.job import job
from eval.predict import EXAMPLES, predict
from eval.report import example_lines, render_table, write_report
from eval.report.content import Run, details, total_milliseconds
from eval.report.curves import judged_rows
from eval.report.page import write_page
from eval.score import Report, score
from eval.settings import EvalJob
from rag.jsonl import iter_records, read_examples
from rag.provenance import provenance
from rag.records import Example, Prediction


class Evaluation(NamedTuple):
    """What an evaluation gives beside the files it writes."""

    examples: list[Example]
    predictions: list[Prediction]
    report: Report


def evaluate(settings: EvalJob, out: Path) -> Evaluation:
    """Predict what `out` does not hold yet, score all of it, and write the reports beside the predictions.

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
    origin = {"command": f"python -m eval.pipeline {' '.join(sys.argv[1:])}".strip(), **provenance()}
    rows = judged_rows(examples, predictions, settings.match)
    more = details(rows, settings.system, settings.dataset)
    write_report(out, report, origin, more)
    if settings.html:
        write_page(out, Run(out.name, report, origin, more, rows, total_milliseconds(report)), settings.html_examples)
    console = Console(width=100)
    for lines in example_lines(examples, predictions, settings.show, settings.match):
        console.print(lines)
    console.print(render_table(report))
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return Evaluation(examples, predictions, report)


main = job(evaluate, EvalJob, config_name="eval_pipeline")

if __name__ == "__main__":
    main()
