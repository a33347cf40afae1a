"""The comparison by hand on a Sieve that is known, and the job on tiny trained ones of both forms."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rag.checkpoint import Base, Manifest
from rag.errors import InputError
from rag.jsonl import write_records
from rag.models.lora import LoraSettings
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState
from sieve.compare import Compared, CompareJob, Comparison, Cost, compared, cost, run, table_rows
from sieve.measure.intervals import Draw
from sieve.measure.scores import Scored, request
from sieve.settings import TrainJob
from sieve.train import train

MakeExample = Callable[..., Example]
FREE = Cost(screen_ms=1.0, leave_one_out_ms=1.0, screen_gflop=1.0, leave_one_out_gflop=0.0)
DRAW = Draw(resamples=100, seed=0)


def labelled(make_example: MakeExample, number: int, condition: Condition, false: int = 1) -> Example:
    """Two documents, of which the first `false` ones are false where the set is distracted."""
    bad = DocumentLabel(condition.value) if condition is not Condition.ANSWERABLE else DocumentLabel.ANSWERABLE
    labels = [bad if i < false else DocumentLabel.ANSWERABLE for i in range(2)]
    state = RetrievalState.ANSWERABLE if condition is Condition.ANSWERABLE else RetrievalState.DISTRACTED
    documents = tuple(Document(id=f"d{i}", text=f"the answer is w{i}", label=label) for i, label in enumerate(labels))
    return make_example(number, condition, documents=documents, state=state)


def test_the_figures_by_hand(make_example: MakeExample) -> None:
    """Three clean sets, one flagged; two conflict sets, one flagged and blamed rightly; two negated, both flagged, one blamed wrongly."""
    conditions = [Condition.ANSWERABLE] * 3 + [Condition.CONFLICT] * 2 + [Condition.NEGATED] * 2
    examples = [labelled(make_example, i, condition, false=2 if i == 6 else 1) for i, condition in enumerate(conditions)]
    scores = [0.9, 0.1, 0.1, 0.9, 0.1, 0.9, 0.9]
    blamed = [("d0",), (), (), ("d0",), ("d0",), ("d1",), ("d0",)]
    scored = {e.id: Scored(key=e.id, score=s, blamed=b) for e, s, b in zip(examples, scores, blamed, strict=True)}
    sieve = SimpleNamespace(threshold=0.5, models=(torch.nn.Linear(3, 2),))
    manifest = Manifest(stage="sieve", base=Base(id="b", fingerprint="f"), settings={"data": {"examples": 7}, "train": {"minutes": 2.0}})
    row = compared("x", manifest, sieve, examples, scored, FREE, DRAW)  # type: ignore[arg-type]
    assert {kind.group: (kind.sets, kind.distract_f1.value) for kind in row.kinds} == {
        "conflict": (2, pytest.approx(2 / 4)),  # one right, one missed, one false alarm
        "negated": (2, pytest.approx(4 / 5)),  # both right, one false alarm
    }
    assert row.false_positive_rate.value == pytest.approx(1 / 3)
    # Clean: 2 right, 2 wrong. Distracted: 3 right, 2 wrong.
    assert row.macro_f1.value == pytest.approx((4 / 6 + 6 / 8) / 2)
    assert row.blame_precision.value == pytest.approx(2 / 3)
    assert row.blame_recall.value == pytest.approx(2 / 5)  # of 1 + 1 + 1 + 2 false documents
    assert (row.form, row.examples, row.documents, row.minutes, row.parameters) == ("joint", 7, None, 2.0, 8)
    assert table_rows(of_one(row))[0][:3] == ("x", "joint", "7 sets, 2 min")
    settings = {"form": "extractive", "data": {"examples": 7}}
    reader = manifest.model_copy(update={"settings": settings, "counts": {"train": {"conflict": 9, "answerable": 11}}})
    row = compared("x", reader, sieve, examples, scored, FREE, DRAW)  # type: ignore[arg-type]
    assert table_rows(of_one(row))[0][:3] == ("x", "extractive", "20 documents of 7 sets")


def of_one(row: Compared) -> Comparison:
    return Comparison(sets=7, distracted=4, questions=7, rows=(row,), timed_sets=1, resamples=1, seed=0, data={}, provenance={})


class Multiplies:
    """Two matrix products of known size for a screening and one for each document that is left out; remembers as a reader does."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.matrix = torch.ones(10, 10)

    def screen(self, questions: list[str], documents: list[list[Document]]) -> None:
        for question in questions:
            if question not in self.known:
                self.known.add(question)
                self.matrix @ self.matrix @ self.matrix

    def leave_one_out(self, questions: list[str], documents: list[list[Document]]) -> None:
        for _ in documents[0]:
            self.matrix @ self.matrix


@pytest.mark.parametrize("sets", [1, 4])
def test_operations_are_counted_on_an_instance_that_remembers_nothing(make_examples: Callable[..., list[Example]], sets: int) -> None:
    asked = [request(str(i), f"{i}", e.documents) for i, e in enumerate(make_examples(2))]
    found = cost(Multiplies(), Multiplies(), asked, sets)  # type: ignore[arg-type]
    assert found.screen_gflop == pytest.approx(2 * 2 * 1000 / 1e9)
    assert found.leave_one_out_gflop == pytest.approx(2 * 2 * 1000 / 1e9)
    assert found.screen_ms > 0 and found.leave_one_out_ms > 0


@pytest.fixture(scope="module")
def trained(base: Callable[[str], Path], job_in: Callable[..., TrainJob], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    folder = tmp_path_factory.mktemp("compare")
    made = []
    for name, family, lora in (("bert", "bert", None), ("llama", "llama", LoraSettings(r=4, alpha=8))):
        (folder / name).mkdir()
        train(job_in(folder / name, base(family), lora=lora, epochs=1), folder / name / f"sieve-{name}")
        made.append(folder / name / f"sieve-{name}")
    return tuple(made)


def test_the_job(trained: tuple[Path, ...], make_example: MakeExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = [Condition.ANSWERABLE, Condition.CONFLICT, Condition.NEGATED] * 4
    write_records(tmp_path / "x.jsonl", [labelled(make_example, i, c) for i, c in enumerate(conditions, start=70)])
    out = tmp_path / "out"
    out.mkdir()
    job = CompareJob(checkpoints=trained, data=(tmp_path / "x.jsonl",), timed_sets=2, resamples=50, batch_size=8)
    result = run(job, out)
    assert (result.sets, result.distracted, result.questions) == (12, 8, 12)
    assert [row.checkpoint for row in result.rows] == ["sieve-bert", "sieve-llama"]
    assert [[kind.group for kind in row.kinds] for row in result.rows] == [["conflict", "negated"]] * 2
    assert all(row.cost.screen_gflop > 0 and row.cost.leave_one_out_gflop > row.cost.screen_gflop for row in result.rows)
    report = (out / "compare.md").read_text()
    assert "| Sieve | form | training data | " in report
    assert "| sieve-bert | joint | 32 sets | " in report and "| Sieve | conflict (n = 4) | negated (n = 4) |" in report
    assert json.loads((out / "compare.json").read_text())["rows"][1]["kinds"][0]["sets"] == 4

    real = __import__("sieve.predict", fromlist=["Sieve"]).Sieve.screen
    sizes: list[int] = []

    def counting(self: Any, questions: Any, documents: Any) -> Any:
        sizes.append(len(questions))
        return real(self, questions, documents)

    monkeypatch.setattr("sieve.joint.predict.Sieve.screen", counting)
    again = run(job, out)
    assert [row.model_copy(update={"cost": FREE}) for row in again.rows] == [row.model_copy(update={"cost": FREE}) for row in result.rows]
    assert set(sizes) == {1}, "only the timed sets are scored again"


def test_clean_sets_alone_tell_nothing(trained: tuple[Path, ...], make_example: MakeExample, tmp_path: Path) -> None:
    write_records(tmp_path / "x.jsonl", [labelled(make_example, i, Condition.ANSWERABLE) for i in range(3)])
    with pytest.raises(InputError, match="expected distracted sets and clean ones"):
        run(CompareJob(checkpoints=trained, data=(tmp_path / "x.jsonl",), timed_sets=1, resamples=10, batch_size=8), tmp_path)
