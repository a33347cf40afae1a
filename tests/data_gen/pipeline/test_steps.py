"""A step over shards: two engines, one result."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from data_gen.pipeline.cases import Case
from data_gen.pipeline.reference import refer
from data_gen.pipeline.steps import DONE, Done, Engine, Work, run, totals
from rag.cluster import Workers
from rag.jsonl import iter_records, write_records
from tests.data_gen.pipeline.stand_ins import QUESTION, Chat, writer


@dataclass(frozen=True)
class Refer:
    """Writes reference sentences, by a chat model that is made where the work is done."""

    name: str = "2_reference"
    mark: str = ""

    def start(self) -> Work:
        chat = Chat(writer)
        return lambda cases: Done(refer(cases, chat, 1, seed=0), {"requests": len(cases)})


def _shards(folder: Path) -> list[Path]:
    paths = [folder / f"train-{n:05}.jsonl" for n in range(3)]
    for n, path in enumerate(paths):
        names = (f"q{n}\u2028a", f"q{n}b")
        write_records(
            path, [Case(question=QUESTION.model_copy(update={"id": name, "question": f"where\u2028is {name}?"})) for name in names]
        )
    return paths


# Ray warns of its own settings when it reads them.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*")
@pytest.mark.filterwarnings("ignore::FutureWarning:ray.*")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_ray_writes_the_files_that_one_process_writes(tmp_path, ray_cluster):
    shards = _shards(tmp_path)
    here = run(Refer(), shards, tmp_path / "here", Engine.LOCAL, Workers(1))
    there = run(Refer(), shards, tmp_path / "there", Engine.RAY, Workers(2))
    assert [path.name for path in there] == [path.name for path in shards]
    assert [path.read_bytes() for path in there] == [path.read_bytes() for path in here]
    for folder in ("here", "there"):
        done = totals(tmp_path / folder / "2_reference" / DONE)
        assert (done["questions"], done["requests"]) == (6, 6)
    assert "The answer to it is Lima." in here[0].read_text(encoding="utf-8")


def test_shards_are_kept_that_were_made_from_the_same(tmp_path):
    shards = _shards(tmp_path)
    made = run(Refer(), shards, tmp_path / "out", Engine.LOCAL, Workers(1))
    before = [path.stat().st_mtime_ns for path in made]
    run(Refer(), shards, tmp_path / "out", Engine.LOCAL, Workers(1))
    assert [path.stat().st_mtime_ns for path in made] == before
    write_records(shards[1], [Case(question=QUESTION)])
    run(Refer(), shards, tmp_path / "out", Engine.LOCAL, Workers(1))
    assert [path.stat().st_mtime_ns == time for path, time in zip(made, before, strict=True)] == [True, False, True]
    assert len(list(iter_records(made[1], Case))) == 1
    run(Refer(mark="another corpus"), shards, tmp_path / "out", Engine.LOCAL, Workers(1))
    assert all(path.stat().st_mtime_ns != time for path, time in zip(made, before, strict=True))
