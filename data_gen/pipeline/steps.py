"""Run the steps over shards of questions, in this process or on a Ray cluster, so that a run that was killed goes on where it was.

A step is a frozen dataclass of settings; `start` builds its models where the work is done and returns the function from cases to cases.
Each shard is a JSONL file of Cases in the step's folder, written whole or not at all. Both engines write the same files.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.progress import track

from data_gen.pipeline.cases import Case
from rag.checkpoint import sha256
from rag.cluster import Workers, spread
from rag.jsonl import iter_records, write_records
from rag.provenance import provenance

logger = logging.getLogger(__name__)


class Done(NamedTuple):
    """What a step made of one shard."""

    cases: list[Case]
    spent: Mapping[str, float] = MappingProxyType({})
    """Requests, tokens and cost of the chat models it asked."""


Work = Callable[[list[Case]], Done]
STEPS = "steps"
"""Folder, inside that of a build, of the steps' own folders."""
VALIDATED = "5_validate"
"""Folder of the last step, whose cases hold everything."""
DONE = "done.json"
ORIGINS = "origins.json"
"""Hash of what each shard of a step was made from."""


class Engine(StrEnum):
    """Where steps run."""

    LOCAL = "local"
    """One process."""
    RAY = "ray"
    """Workers on the machines of the cluster that `RAY_ADDRESS` names, or on this machine."""


class Step(Protocol):
    """Settings of a step."""

    @property
    def name(self) -> str:
        """The step's folder."""
        ...

    @property
    def mark(self) -> str:
        """What decides the result beside the settings and the cases, such as a corpus' fingerprint; its content may change under one path."""
        ...

    def start(self) -> Work:
        """Build what the step needs, where the work is done, and return its work on one shard."""
        ...


def split_of(shard: Path) -> str:
    """The split of a shard, by its name."""
    return shard.name.partition("-")[0]


def run(step: Step, shards: Sequence[Path], folder: Path, engine: Engine, workers: Workers) -> list[Path]:
    """Run a step over shards of Cases and return the files it wrote to its folder in `folder`, one for each shard.

    A file that is there is kept where it was made from the same cases, by the same code and under the same `mark`; else it is made again.
    Each of Ray's `workers` has its own models. Seconds, questions, documents and what the models cost are added to `done.json`.
    """
    out = [folder / step.name / shard.name for shard in shards]
    code = provenance()["commit"]
    made_from = [_origin(shard, step.mark, code) for shard in shards]
    known = _origins(folder / step.name)
    todo = [(n, shards[n]) for n, path in enumerate(out) if not path.is_file() or known.get(path.name) != made_from[n]]
    if not todo:
        return out
    logger.info("%s: %d of %d shards to do", step.name, len(todo), len(shards))
    results = _on_ray(step, todo, workers) if engine is Engine.RAY else _here(step, todo)
    start = time.perf_counter()
    for number, done in track(results, description=step.name, total=len(todo), console=Console(stderr=True)):
        write_records(out[number], done.cases)
        known[out[number].name] = made_from[number]
        (folder / step.name / ORIGINS).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        documents = sum(len(case.candidates) + len(case.simulations) for case in done.cases)
        # Noted with each shard, so that what a run that is killed has paid for is on record.
        now = time.perf_counter()
        _note(
            folder / step.name / DONE,
            {"seconds": now - start, "questions": len(done.cases), "documents": documents, **done.spent},
        )
        start = now
    return out


def _origin(shard: Path, mark: str, code: str) -> str:
    return hashlib.sha256("\0".join((sha256(shard), mark, code)).encode()).hexdigest()


def _origins(folder: Path) -> dict[str, str]:
    path = folder / ORIGINS
    known: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return known


def _here(step: Step, todo: Sequence[tuple[int, Path]]) -> Iterator[tuple[int, Done]]:
    work = step.start()
    for number, path in todo:
        yield number, work(list(iter_records(path, Case)))


def _on_ray(step: Step, todo: Sequence[tuple[int, Path]], workers: Workers) -> Iterator[tuple[int, Done]]:
    numbers = {path.name: number for number, path in todo}

    def start() -> Callable[[list[Case]], tuple[list[Case], dict[str, float]]]:
        work = step.start()

        def of_one_shard(cases: list[Case]) -> tuple[list[Case], dict[str, float]]:
            done = work(cases)
            return done.cases, dict(done.spent)

        return of_one_shard

    # Cases travel with their work, so that machines need no common folder for them.
    shards = {path.name: list(iter_records(path, Case)) for _, path in todo}
    for name, (cases, spent) in spread(start, shards, workers):
        yield numbers[name], Done(cases, spent)


def _note(path: Path, total: Mapping[str, float]) -> None:
    earlier = totals(path)
    sums = {key: total.get(key, 0) + earlier.get(key, 0) for key in {**earlier, **total}}
    path.write_text(json.dumps(sums) + "\n", encoding="utf-8")


def totals(path: Path) -> dict[str, float]:
    """What a step's `done.json` says over all its runs; nothing where it is not there."""
    done: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return done
