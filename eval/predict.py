"""Predict what a run's folder does not hold yet, batch by batch, so that a run that was stopped goes on where it was."""

import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from eval.comparison.comparable import same_examples
from eval.engine import Engine
from eval.progress import Progress
from eval.settings import EvalJob
from rag.errors import InputError
from rag.jsonl import Journal, iter_records, write_records
from rag.records import Example, Prediction

logger = logging.getLogger(__name__)

EXAMPLES = "examples.jsonl"
PREDICTIONS = "predictions.jsonl"


def predict(examples: Sequence[Example], settings: EvalJob, out: Path) -> list[Prediction]:
    """Predictions of all examples, in their order; those already in `out` are read, the others made and written batch by batch.

    When all are there, the file holds them in the order of the examples too, whatever engine made them.
    """
    _keep_examples(examples, out / EXAMPLES)
    path = out / PREDICTIONS
    journal = Journal(path)
    done = {prediction.id: prediction for prediction in iter_records(path, Prediction)} if path.exists() else {}
    if unknown := sorted(set(done) - {example.id for example in examples}):
        raise InputError(f"{path}: holds predictions of other examples, such as '{unknown[0]}'; set out to a new folder")
    if done:
        logger.info("%d of %d predictions are in %s already", len(done), len(examples), path)
    if batches := _batches(examples, done, settings.batch_size):
        todo = len(examples) - len(done)
        logger.info("%d examples to predict", todo)
        engine: Engine = settings.engine.build()
        made_by = engine.predict(settings.system, [[example.query() for example in batch] for batch in batches])
        with Progress("predicted", todo, settings.tracking.log) as progress:
            for number, made in made_by:
                _require_one_each(batches[number], made)
                journal.append(made)
                done.update((prediction.id, prediction) for prediction in made)
                progress.advance(len(made))
    in_order = [done[example.id] for example in examples]
    if list(done) != [prediction.id for prediction in in_order]:
        write_records(path, in_order)
    return in_order


def _require_one_each(batch: Sequence[Example], made: Sequence[Prediction]) -> None:
    asked, got = [example.id for example in batch], [prediction.id for prediction in made]
    if asked != got:
        raise RuntimeError(f"the system must give one prediction for each query, in order: expected ids {asked}, got {got}")


def _keep_examples(examples: Sequence[Example], path: Path) -> None:
    if not path.is_file():
        write_records(path, examples)
    elif not same_examples(list(iter_records(path, Example)), examples):
        raise InputError(f"{path}: the data set has changed since this run began; set out to a new folder")


def _batches(examples: Sequence[Example], done: Collection[str], size: int) -> list[list[Example]]:
    """The batches of all examples without those that are done: a run that goes on has the batches of one that was never stopped."""
    batches = [examples[start : start + size] for start in range(0, len(examples), size)]
    left = ([example for example in batch if example.id not in done] for batch in batches)
    return [batch for batch in left if batch]
