"""Drift: what holds, what is withdrawn, what stays undecided, and how rarely a certificate is withdrawn for nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eval.certainty import certificate as record
from eval.certainty.certificate import Certificate
from eval.drift import EXIT_STATUS, DriftJob, Verdict, compare, look, one_each, run, spend
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Prediction, Reason
from rag.tracking import Run, Tracking


def scores(count: int, seed: int, shift: float = 0.0) -> list[float]:
    random = Random(seed)
    return [min(1.0, random.random() * 0.8 + shift) for _ in range(count)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A certificate at 0.5."""
    made = tmp_path / "certificate"
    made.mkdir()
    certificate = Certificate(
        certified=True,
        threshold=0.5,
        least_confidence=None,
        alpha=0.1,
        beta=0.2,
        delta=0.1,
        said="Certified.",
        points=(),
        questions=300,
        learnt_on=90,
        tested_on=210,
        reach=1.0,
        match="exact",
        seed=0,
        scores=tuple(sorted(scores(300, 0))),
        without_score=0,
        data={},
        system={},
        provenance={},
    )
    record.write(made, certificate)
    return made


def live(path: Path, values: list[float | None], threshold: float | None = 0.5) -> Path:
    write_records(
        path,
        [
            Prediction(id=f"r{n}", question_id=f"r{n}", sieve_score=value, threshold=threshold, reason=Reason.DISTRACTED)
            for n, value in enumerate(values)
        ],
    )
    return path


def job(folder: Path, path: Path, **settings: Any) -> DriftJob:
    return DriftJob.model_validate({"certificate": folder, "live": path, "level": 0.05, "least": 50, **settings})


def test_scores_like_those_certified_on_hold(folder: Path, tmp_path: Path) -> None:
    found = look(job(folder, live(tmp_path / "live.jsonl", [*scores(200, 1)])), tmp_path)
    assert (found.verdict, found.look, found.questions, found.scored) == (Verdict.HOLDS, 1, 200, 200)
    assert found.distance is not None and found.visible is not None and found.distance < found.visible
    assert record.withdrawn(folder) is None
    assert json.loads((tmp_path / "drift.json").read_text(encoding="utf-8"))["verdict"] == "holds"
    assert (tmp_path / "drift.png").read_bytes().startswith(b"\x89PNG")
    run(job(folder, tmp_path / "live.jsonl"), tmp_path)


def test_the_last_bits_of_another_processor_are_no_drift(folder: Path, tmp_path: Path) -> None:
    """Where many sets have one score, all of them move with it, and across the threshold where that is one of the scores."""
    certified = record.read(folder)
    record.write(folder, certified.model_copy(update={"scores": (0.02,) * 150 + (0.5,) * 150}))
    moved = [0.02 + 1e-8] * 100 + [0.5 - 1e-7] * 100
    found = look(job(folder, live(tmp_path / "live.jsonl", [*moved])), tmp_path)
    assert (found.verdict, found.distance, found.flagged_live, found.flagged_before) == (Verdict.HOLDS, 0.0, 0.5, 0.5)


def test_other_scores_withdraw_the_certificate_for_good(folder: Path, tmp_path: Path) -> None:
    drifted = live(tmp_path / "live.jsonl", [*scores(200, 1, shift=0.2)])
    found = look(job(folder, drifted), tmp_path)
    assert found.verdict is Verdict.WITHDRAWN and (found.flagged_live or 0) > (found.flagged_before or 1)
    note = record.withdrawn(folder)
    assert note is not None and note.date == found.date and "The certificate is withdrawn." in note.reason
    with pytest.raises(SystemExit) as ended:
        run(job(folder, live(tmp_path / "good.jsonl", [*scores(200, 2)])), tmp_path)
    assert ended.value.code == EXIT_STATUS[Verdict.WITHDRAWN] == 3
    assert record.withdrawn(folder) == note
    assert "Withdrawn already" in json.loads((tmp_path / "drift.json").read_text(encoding="utf-8"))["said"]
    assert len((folder / "looks.jsonl").read_text(encoding="utf-8").splitlines()) == 1


def test_a_shift_in_what_is_flagged_is_seen_where_the_shape_hides_it() -> None:
    """All scores that lay just below the threshold now lie just above it: a small distance, and half as many flags again."""
    before = [0.49] * 60 + [0.2] * 440
    distance, p_distance, p_flagged = compare(before, [0.5] * 60 + [0.2] * 440, 0.5)
    assert distance == pytest.approx(0.12) and p_flagged < 1e-10 < p_distance
    assert compare(before, before, 0.5) == pytest.approx((0, 1, 1))


def test_too_few_live_scores_are_undecided_and_spend_nothing(folder: Path, tmp_path: Path) -> None:
    few = live(tmp_path / "few.jsonl", [*scores(49, 1), *[None] * 30])
    with pytest.raises(SystemExit) as ended:
        run(job(folder, few), tmp_path)
    assert ended.value.code == EXIT_STATUS[Verdict.UNDECIDED] == 4
    found = look(job(folder, few), tmp_path)
    assert (found.verdict, found.look, found.questions, found.scored) == (Verdict.UNDECIDED, 1, 79, 49)
    assert found.said == "49 live questions with a score; at least 50 are needed."


def test_each_look_that_decides_spends_less_than_the_one_before(folder: Path, tmp_path: Path) -> None:
    path = live(tmp_path / "live.jsonl", [*scores(200, 1)])
    assert [look(job(folder, path), tmp_path).look for _ in range(3)] == [1, 2, 3]
    assert spend(0.05, 1) == 0.025 and spend(0.05, 2) == pytest.approx(0.05 / 6)
    assert sum(spend(0.05, n) for n in range(1, 10_000)) == pytest.approx(0.05, rel=1e-3)


def test_a_certificate_is_seldom_withdrawn_for_nothing() -> None:
    """100 worlds without drift, five looks each at a level of 0.2: at most a fifth of them, with 3 standard errors of slack."""
    wrongly = 0
    for seed in range(100):
        before = scores(120, 2 * seed)
        looks = (compare(before, scores(80, 100_000 + 10 * seed + n), 0.5)[1:] for n in range(1, 6))
        wrongly += any(min(p) <= spend(0.2, n) / 2 for n, p in enumerate(looks, start=1))
    assert 0 < wrongly / 100 <= 0.2 + 3 * (0.2 * 0.8 / 100) ** 0.5


def test_sets_of_one_question_count_once() -> None:
    rows = [
        Prediction(id=f"{q}-{v}", question_id=f"{q}", sieve_score=v / 10, threshold=0.5, reason=Reason.DISTRACTED)
        for q in range(20)
        for v in range(5)
    ]
    drawn = one_each(rows, 0)
    assert len({row.question_id for row in drawn}) == len(drawn) == 20 and one_each(rows[::-1], 0) == drawn


def test_what_it_refuses(folder: Path, tmp_path: Path) -> None:
    good = live(tmp_path / "live.jsonl", [*scores(100, 1)])
    other = live(tmp_path / "other.jsonl", [*scores(100, 1)], threshold=0.7)
    with pytest.raises(InputError, match=r"expected predictions at the certified threshold 0\.5, got 0\.7"):
        look(job(folder, other), tmp_path)
    with pytest.raises(InputError, match="expected a folder that eval.certify wrote"):
        look(job(tmp_path, good), tmp_path)
    certificate = record.read(folder)
    record.write(folder, certificate.model_copy(update={"scores": ()}))
    with pytest.raises(InputError, match="the certified system has no Sieve"):
        look(job(folder, good), tmp_path)
    record.write(folder, certificate.model_copy(update={"certified": False, "threshold": None}))
    with pytest.raises(InputError, match="nothing was certified there"):
        look(job(folder, good), tmp_path)


def test_trackers_get_the_figures_of_a_look_and_a_withdrawal_is_a_finished_run(folder: Path, tmp_path: Path) -> None:
    class Noting:
        def __init__(self) -> None:
            self.told: list[Any] = []

        def start(self, run: Run) -> None: ...

        def log(self, metrics: Mapping[str, float], step: int) -> None:
            self.told.append(dict(metrics))

        def file(self, path: Path) -> None:
            self.told.append(path.name)

        def finish(self, finished: bool) -> None:
            self.told.append(finished)

    noting = Noting()
    tracking = Tracking({"own": lambda: noting})
    drifted = live(tmp_path / "live.jsonl", [*scores(200, 1, shift=0.2)])
    with pytest.raises(SystemExit, match="3"), tracking.running(Run("eval_drift", tmp_path, {}, {})):
        run(job(folder, drifted, tracking=tracking), tmp_path)
    figures, *rest = noting.told
    assert figures["withdrawn"] == 1 and figures["flagged_live"] > figures["flagged_before"]
    assert rest == ["drift.json", True]
