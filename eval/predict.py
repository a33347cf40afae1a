"""Predict what a run's folder does not hold yet, batch by batch, so that a run that was stopped goes on where it was."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from eval.settings import EvalJob
from rag.errors import InputError
from rag.jsonl import Journal, dump, iter_records, write_records
from rag.records import Example, Prediction
from serve.systems import System

logger = logging.getLogger(__name__)

EXAMPLES = "examples.jsonl"
PREDICTIONS = "predictions.jsonl"


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
