"""Read what runs of `eval.pipeline` left in their folders: the examples they share, their predictions and reports."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eval.predict import EXAMPLES, PREDICTIONS
from eval.records import Report
from eval.report.content import REPORT, read_report
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import iter_records, read_examples
from rag.records import Example, Prediction


class StoredRun(NamedTuple):
    """A run that has been made."""

    name: str
    folder: Path
    predictions: dict[str, Prediction]
    """By example id."""
    report: Report | None
    """None where the run was not scored."""


def read_runs(folders: Sequence[Path], names: Sequence[str] | None) -> tuple[list[Example], list[StoredRun]]:
    """The examples that all runs share, and the runs. Raises InputError for names that do not fit, and for runs on other examples."""
    names = [folder.name for folder in folders] if names is None else names
    if len(names) != len(folders) or len(set(names)) != len(names):
        raise InputError(f"names: expected one name for each of {len(folders)} runs, all different, got {list(names)}; set names=[...]")
    for folder in folders:
        if not (folder / EXAMPLES).is_file():
            raise InputError(f"runs: {folder}: expected the folder of a run of eval.pipeline, found no {EXAMPLES} in it")
    digests = {folder: sha256(folder / EXAMPLES) for folder in folders}
    if len(set(digests.values())) > 1:
        sizes = "; ".join(
            f"{folder}: {len(read_examples(folder / EXAMPLES))} examples, SHA-256 {digest[:12]}" for folder, digest in digests.items()
        )
        raise InputError(f"runs: expected runs on the same examples, got {sizes}; a time of one set says nothing of another")
    return read_examples(folders[0] / EXAMPLES), [_read(name, folder) for name, folder in zip(names, folders, strict=True)]


def _read(name: str, folder: Path) -> StoredRun:
    path, report = folder / PREDICTIONS, folder / REPORT
    predictions = {p.id: p for p in iter_records(path, Prediction)} if path.is_file() else {}
    return StoredRun(name, folder, predictions, read_report(report)[0] if report.is_file() else None)


def drawn(examples: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    """At most `limit` of the examples, in their order."""
    if limit is None or limit >= len(examples):
        return list(examples)
    places = random.Random(f"{seed}:limit").sample(range(len(examples)), limit)
    return [examples[place] for place in sorted(places)]


def of_baselines(baseline: Sequence[Path] | None, runs: Sequence[StoredRun]) -> list[str]:
    """Names of the runs that the others are set against. Raises InputError for a folder that is none of the runs."""
    if baseline is None:
        return [run.name for run in runs]
    by_folder = {run.folder.resolve(): run.name for run in runs}
    if unknown := [folder for folder in baseline if folder.resolve() not in by_folder]:
        raise InputError(f"baseline: {unknown[0]} is none of the runs; expected one of {', '.join(str(run.folder) for run in runs)}")
    return [by_folder[folder.resolve()] for folder in baseline]
