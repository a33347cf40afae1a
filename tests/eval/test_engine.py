"""Where predictions are made: a cluster gives what one process gives, and goes on where a worker is lost."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.engine import Engine, Local, Ray
from eval.predict import EXAMPLES, PREDICTIONS, predict
from eval.settings import EvalJob
from rag.cluster import Workers, spread
from rag.errors import InputError
from rag.jsonl import iter_records, read_examples
from rag.records import Document, Example, Prediction, Query, RetrievalState
from rag.settings import Component

EXAMPLES_9 = [
    Example(
        id=f"e{n}",
        question_id=f"q{n}",
        question=f"What\u2028is {n}?",
        documents=(Document(id="d", text=f"It is {n}."),),
        answers=(str(n),),
        state=RetrievalState.ANSWERABLE,
        condition="answerable",
    )
    for n in range(9)
]


class BatchWise:
    """Answers with what was asked together with a query, as a model in bfloat16 does in its last bits."""

    def __init__(self, folder: Path, poison: str | None, refused: str | None) -> None:
        self.folder, self.poison, self.refused = folder, poison, refused
        (folder / f"worker-{os.getpid()}").touch()

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        ids = [query.id for query in queries]
        if self.refused in ids:
            raise InputError("set system.key to something else")
        if self.poison in ids and not (self.folder / "killed").exists():
            (self.folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [
            Prediction(id=q.id, question_id=q.question_id, state=RetrievalState.ANSWERABLE, answer=" ".join(ids), confidence=0.1)
            for q in queries
        ]


def job(folder: Path, engine: Engine, poison: str | None = None, refused: str | None = None) -> EvalJob:
    folder.mkdir(exist_ok=True)
    system = Component(BatchWise, {"folder": folder, "poison": poison, "refused": refused})
    fields = {"seed": 0, "batch_size": 2, "match": "exact", "resamples": 20, "show": 0}
    return EvalJob(dataset=Component(list, {}), system=system, engine=Component(lambda: engine, {}), **fields)


def made_in(folder: Path, engine: Engine, **trouble: Any) -> list[Prediction]:
    return predict(EXAMPLES_9, job(folder, engine, **trouble), folder)


# Ray warns of its own settings when it reads them.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*")
@pytest.mark.filterwarnings("ignore::FutureWarning:ray.*")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_cluster_makes_the_file_that_one_process_makes_through_a_lost_worker_an_error_and_a_second_run(
    tmp_path: Path, ray_cluster: Any
) -> None:
    """In one test, since a cluster takes its time to start."""
    here = made_in(tmp_path / "here", Local())
    there = made_in(tmp_path / "there", Ray(workers=2), poison="e5")
    assert there == here
    assert (tmp_path / "there" / PREDICTIONS).read_bytes() == (tmp_path / "here" / PREDICTIONS).read_bytes()
    workers = {path.name for path in (tmp_path / "there").glob("worker-*")}
    assert (tmp_path / "there" / "killed").exists()
    assert len(workers) == 3 and f"worker-{os.getpid()}" not in workers

    # A batch that cannot be done is named, its error is what the system raised, and what others did is kept for the next run.
    with pytest.raises(InputError, match="^set system.key to something else") as caught:
        made_in(tmp_path / "again", Ray(workers=1), refused="e6")
    assert caught.value.__notes__ == ["raised by a worker's work on batch 3 (e6 to e7)"]
    kept = [prediction.id for prediction in iter_records(tmp_path / "again" / PREDICTIONS, Prediction)]
    assert kept == [f"e{n}" for n in range(6)]
    assert read_examples(tmp_path / "again" / EXAMPLES) == EXAMPLES_9
    assert made_in(tmp_path / "again", Ray(workers=1)) == here

    def lose() -> Any:
        return lambda _: os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match=r"a worker was lost with the item 2 times, the last time so: "):
        list(spread(lose, {"the item": 1}, Workers(1, attempts=2)))


def test_a_run_that_goes_on_has_the_batches_of_one_that_was_never_stopped(tmp_path: Path) -> None:
    whole = made_in(tmp_path / "whole", Local())
    lines = (tmp_path / "whole" / PREDICTIONS).read_bytes().splitlines(keepends=True)
    part = tmp_path / "part"
    part.mkdir()
    # Workers finish in any order: the second and the last batch are done.
    (part / PREDICTIONS).write_bytes(b"".join(lines[n] for n in (8, 2, 3)))
    assert made_in(part, Local()) == whole
    assert (part / PREDICTIONS).read_bytes() == b"".join(lines)


def test_ray_that_is_not_installed_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"engine=ray needs Ray; pip install 'sieve-and-sage\[ray\]', or set engine=local"):
        made_in(tmp_path, Ray(workers=1))
