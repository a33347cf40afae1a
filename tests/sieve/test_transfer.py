"""The table of transfer by hand, which checkpoints make a learning curve, and a rerun that calls no model."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag.checkpoint import Base, Manifest
from rag.errors import InputError
from rag.jsonl import write_records
from rag.models.lora import LoraSettings
from rag.records import Condition, Example, RetrievalState
from sieve.measure.scores import Readable
from sieve.predict import load
from sieve.settings import TrainJob
from sieve.train import train
from sieve.transfer import CurvePoint, TransferJob, _Checkpoint, curves, measures, run

MakeExample = Callable[..., Example]
STATES = {Condition.ANSWERABLE: RetrievalState.ANSWERABLE, Condition.UNANSWERABLE: RetrievalState.UNANSWERABLE}
LORA = LoraSettings(r=4, alpha=8)


@pytest.fixture
def sets(make_example: MakeExample) -> Callable[..., list[Example]]:
    """Sets of these conditions, numbered from `start`, each about a question of its own."""

    def make(conditions: Sequence[Condition], start: int = 0) -> list[Example]:
        return [
            make_example(
                i,
                condition,
                state=STATES.get(condition, RetrievalState.DISTRACTED),
                answers=() if condition is Condition.UNANSWERABLE else ("blue",),
            )
            for i, condition in enumerate(conditions, start)
        ]

    return make


def test_the_columns_by_hand(sets: Callable[..., list[Example]]) -> None:
    """Four answerable, one flagged; two unanswerable, one flagged; three conflict, two flagged; one negated, flagged; no adversarial."""
    conditions = [Condition.ANSWERABLE] * 4 + [Condition.UNANSWERABLE] * 2 + [Condition.CONFLICT] * 3 + [Condition.NEGATED]
    flagged = [True, False, False, False, True, False, True, True, False, True]
    found = measures(Readable(sets(conditions), 0), flagged, resamples=200, seed=0)
    assert {name: (measure.value, measure.n) for name, measure in found.items()} == {
        "respond@answerable": (3 / 4, 4),
        "respond@unanswerable": (1 / 2, 2),
        "abstain@conflict": (pytest.approx(2 / 3), 3),
        "abstain@negated": (1.0, 1),
        "abstain@adversarial": (None, 0),
        # Clean: 4 of 6 passed, 5 passed in all. Distracted: 3 of 4 flagged, 5 flagged in all.
        "respond_f1": (pytest.approx(8 / 11), 10),
        "abstain_f1": (pytest.approx(6 / 9), 10),
        "macro_f1": (pytest.approx((8 / 11 + 6 / 9) / 2), 10),
    }
    assert all(m.low is not None and m.low <= m.value <= m.high for m in found.values() if m.value is not None)
    assert (found["abstain@negated"].low, found["abstain@negated"].high) == (1.0, 1.0)
    assert found["respond@answerable"].low < 3 / 4 < found["respond@answerable"].high


def test_a_class_that_is_absent_on_both_sides_has_no_f1(sets: Callable[..., list[Example]]) -> None:
    found = measures(Readable(sets([Condition.ANSWERABLE] * 3), 0), [False] * 3, resamples=20, seed=0)
    assert (found["respond_f1"].value, found["abstain_f1"].value) == (1.0, None)


def checkpoint(name: str, digest: str, files: dict[str, str], **settings: Any) -> _Checkpoint:
    manifest = Manifest(stage="sieve", base=Base(id="b", fingerprint="f"), settings=settings, data=files)
    return _Checkpoint(name, Path(name), manifest, digest)


def test_a_curve_joins_checkpoints_of_one_start_and_one_set() -> None:
    nq, astro, bio = {"nq": "1"}, {"astro": "2"}, {"bio": "3"}
    of = [
        checkpoint("bio-200", "d5", bio, init="d1", data={"limit": 200, "examples": 180}),
        checkpoint("nq", "d1", nq, init=None, data={"limit": None, "examples": 800}),
        checkpoint("astro-all", "d4", astro, init="d1", data={"limit": None, "examples": 400}),
        checkpoint("astro-100", "d3", astro, init="d1", data={"limit": 100, "examples": 100}),
        checkpoint("alone", "d6", astro, init=None, data={"limit": 100, "examples": 100}),
        checkpoint("old", "d7", nq, model={}),
    ]
    points = [tuple((point.checkpoint, point.examples) for point in curve.points) for curve in curves(of)]
    assert points == [(("nq", 0), ("bio-200", 180)), (("nq", 0), ("astro-100", 100), ("astro-all", 400))]
    # Without its start a curve needs two points of its own.
    assert [curve.points for curve in curves([c for c in of if c.name != "nq"])] == [
        (CurvePoint(checkpoint="astro-100", examples=100), CurvePoint(checkpoint="astro-all", examples=400))
    ]


@pytest.fixture(scope="module")
def trained(
    base: Callable[[str], Path], job_in: Callable[..., TrainJob], make_example: MakeExample, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A checkpoint, two that went on from it on few examples of another set, and one that is no gate."""
    folder = tmp_path_factory.mktemp("transfer")
    other = [make_example(i, condition) for i in range(20, 28) for condition in (Condition.ANSWERABLE, Condition.CONFLICT)]
    made = {}
    for name, limit, init in (("start", None, None), ("few", 6, "start"), ("more", 12, "start")):
        (folder / name).mkdir()
        job = job_in(folder / name, base("llama"), train=None if init is None else other, lora=LORA, epochs=1, init=made.get(init))
        job = job.model_copy(update={"data": job.data.model_copy(update={"limit": limit})})
        train(job, folder / name / f"sieve-{name}")
        made[name] = folder / name / f"sieve-{name}"
    return made


@pytest.fixture
def job(trained: dict[str, Path], sets: Callable[..., list[Example]], tmp_path: Path) -> TransferJob:
    conditions = [Condition.ANSWERABLE, Condition.CONFLICT, Condition.NEGATED, Condition.UNANSWERABLE]
    for name, start in (("x", 70), ("y", 85)):
        write_records(tmp_path / f"{name}.jsonl", sets(conditions * 3, start))
    files = (tmp_path / "x.jsonl", tmp_path / "y.jsonl")
    return TransferJob(checkpoints=tuple(trained.values()), data=files, resamples=50, batch_size=8)


def test_every_checkpoint_on_every_set(
    job: TransferJob, trained: dict[str, Path], sets: Callable[..., list[Example]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    result = run(job, out)
    names = ["sieve-start", "sieve-few", "sieve-more"]
    assert [(row.checkpoint, row.data) for row in result.rows] == [(name, data) for name in names for data in ("x.jsonl", "y.jsonl")]
    assert [row.examples for row in result.rows] == [32, 32, 6, 6, 12, 12]
    assert not any(row.seen for row in result.rows)

    sieve, examples = (
        load(trained["few"]),
        sets([Condition.ANSWERABLE, Condition.CONFLICT, Condition.NEGATED, Condition.UNANSWERABLE] * 3, 85),
    )
    flagged = [s.score >= sieve.threshold for s in sieve.screen([e.question for e in examples], [e.documents for e in examples])]
    assert result.rows[3].measures == measures(Readable(examples, 0), flagged, resamples=50, seed=0)

    assert [[(p.checkpoint, p.examples) for p in curve.points] for curve in result.curves] == [
        [("sieve-start", 0), ("sieve-few", 6), ("sieve-more", 12)]
    ]
    assert (out / "transfer.png").read_bytes().startswith(b"\x89PNG")
    report = (out / "transfer.md").read_text()
    value = result.rows[3].measures["respond@answerable"]
    assert f"| y.jsonl | sieve-few | {value.value:.3f} ({value.low:.3f} to {value.high:.3f}), n = 3 |" in report
    assert "| sieve-start, sieve-few, sieve-more | x.jsonl | 6 |" in report
    written = json.loads((out / "transfer.json").read_text())
    assert written["rows"][0]["measures"]["abstain@negated"]["n"] == 3

    monkeypatch.setattr("sieve.joint.predict.Sieve.screen", None)
    assert run(job, out).rows == result.rows


def test_a_set_that_a_checkpoint_was_trained_on_is_marked(job: TransferJob, trained: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    seen = trained["few"].parent / "train.jsonl"
    result = run(job.model_copy(update={"data": (seen,)}), out)
    assert [row.seen for row in result.rows] == [False, True, True]
    assert "| train.jsonl | sieve-few * |" in (out / "transfer.md").read_text()


def test_a_checkpoint_named_twice_is_refused(job: TransferJob, trained: dict[str, Path], tmp_path: Path) -> None:
    twice = (trained["few"], trained["few"].parent / "." / "sieve-few")
    with pytest.raises(InputError, match="checkpoints: expected each path once, got .*sieve-few twice"):
        run(job.model_copy(update={"checkpoints": twice}), tmp_path)
