"""Run a system on a data set and score it: `python -m eval.pipeline dataset=... system=...`; `predictions=FILE` scores again without a model."""

import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from conf.job import job
from eval.report import example_lines, render_table, write_report
from eval.score import Match, Report, score
from rag.errors import InputError
from rag.jsonl import Journal, dump, iter_records, read_examples, write_records
from rag.provenance import provenance
from rag.records import Example, Prediction
from rag.settings import InputPath, JobSettings, Target
from serve.systems import System

logger = logging.getLogger(__name__)

EXAMPLES = "examples.jsonl"
PREDICTIONS = "predictions.jsonl"


class EvalJob(JobSettings):
    """Settings of this job."""

    dataset: Target
    """A function that returns Examples."""
    sieve: dict[str, Any] | None = None
    """What the Sieve's checkpoint was trained as, for systems that have one."""
    sage: dict[str, Any] | None = None
    """What the Sage's checkpoint was trained as, for systems that have one."""
    system: Target
    """A function or class that gives a `serve.systems.System`."""
    predictions: InputPath | None = None
    """Score this file instead of running a system; the examples are those beside it, or the data set where there are none."""
    batch_size: int = Field(ge=1)
    """Examples given to the system, and written to disk, at a time."""
    match: Match
    """When an answer counts as correct."""
    resamples: int = Field(ge=1)
    """Bootstrap resamples, drawn by question."""
    show: int = Field(ge=0)
    """Examples to show in the terminal, balanced over conditions."""


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
    write_report(out, report, {"command": f"python -m eval.pipeline {' '.join(sys.argv[1:])}".strip(), **provenance()})
    console = Console(width=100)
    for lines in example_lines(examples, predictions, settings.show, settings.match):
        console.print(lines)
    console.print(render_table(report))
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return Evaluation(examples, predictions, report)


def predict(examples: Sequence[Example], settings: EvalJob, out: Path) -> list[Prediction]:
    """Predictions of all examples, in their order; those already in `out` are read, the others made and written batch by batch."""
    _keep_examples(examples, out / EXAMPLES)
    path = out / PREDICTIONS
    journal = Journal(path)
    done = {prediction.id: prediction for prediction in iter_records(path, Prediction)} if path.exists() else {}
    if unknown := sorted(set(done) - {example.id for example in examples}):
        raise InputError(f"{path}: holds predictions of other examples, such as '{unknown[0]}'; set out to a new folder")
    todo = [example for example in examples if example.id not in done]
    if done:
        logger.info("%d of %d predictions are in %s already", len(done), len(examples), path)
    if todo:
        # The bar below is for terminals: a log would say nothing until the end.
        logger.info("%d examples to predict", len(todo))
        system: System = settings.system.build()
        for batch in _batches(todo, settings.batch_size):
            made = system.predict([example.query() for example in batch])
            _require_one_each(batch, made)
            journal.append(made)
            done.update((prediction.id, prediction) for prediction in made)
    return [done[example.id] for example in examples]


def _require_one_each(batch: Sequence[Example], made: Sequence[Prediction]) -> None:
    asked, got = [example.id for example in batch], [prediction.id for prediction in made]
    if asked != got:
        raise RuntimeError(f"the system must give one prediction for each query, in order: expected ids {asked}, got {got}")


def _keep_examples(examples: Sequence[Example], path: Path) -> None:
    if not path.is_file():
        write_records(path, examples)
    elif path.read_text(encoding="utf-8") != "".join(f"{dump(example)}\n" for example in examples):
        raise InputError(f"{path}: the data set has changed since this run began; set out to a new folder")


def _batches(examples: Sequence[Example], size: int) -> Iterator[Sequence[Example]]:
    columns = (TextColumn("predicting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("predicting", total=len(examples))
        for start in range(0, len(examples), size):
            batch = examples[start : start + size]
            yield batch
            progress.advance(task, len(batch))


main = job(evaluate, EvalJob, config_name="eval_pipeline")

if __name__ == "__main__":
    main()
