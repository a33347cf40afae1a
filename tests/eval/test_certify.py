"""The job that certifies: what it writes and says, from full runs and from parts, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from eval.certainty import certificate as record
from eval.certify import CertifyJob, _checkpoints, certify
from rag.checkpoint import MANIFEST, sha256
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Condition, Document, Example, Prediction, Reason, RetrievalState
from rag.settings import Component

CONFIG = """
dataset: {_target_: data_gen.sources.demo.load}
system: {_target_: serve.systems.always_abstain.AlwaysAbstain}
out: null
seed: 0
predictions: null
batch_size: 8
match: exact
resamples: 10
show: 0
"""
DEFAULTS: dict[str, Any] = {
    "alpha": 0.1,
    "beta": 0.2,
    "delta": 0.1,
    "learn": 0.3,
    "points": 20,
    "confidences": 0,
    "confidence": "reply",
    "bins": 10,
    "resamples": 50,
}
Make = Callable[..., Path]


def job(**settings: Any) -> CertifyJob:
    return CertifyJob.model_validate(DEFAULTS | settings)


def examples(questions: int, prefix: str) -> list[Example]:
    """For each question an answerable set, and for every fourth a distracted one as well."""
    made = []
    for n in range(questions):
        for state in (RetrievalState.ANSWERABLE, *([RetrievalState.DISTRACTED] if n % 4 == 0 else [])):
            made.append(
                Example(
                    id=f"{prefix}{n:03d}-{state.value}",
                    question_id=f"{prefix}{n:03d}",
                    question="Who?",
                    documents=(Document(id="d", text="Ada."),),
                    answers=("Ada",),
                    state=state,
                    condition=Condition.CONFLICT if state is RetrievalState.DISTRACTED else Condition.ANSWERABLE,
                )
            )
    return made


def predictions(of: list[Example], errors: float, threshold: float | None, seed: int) -> list[Prediction]:
    """Distracted sets score from 0.7 up, others from 0 to 0.6; answers are wrong with chance `errors`."""
    random = Random(seed)
    made = []
    for example in of:
        score = random.random() * 0.3 + 0.7 if example.state is RetrievalState.DISTRACTED else random.random() * 0.6
        answer = "Bo" if random.random() < errors else "Ada"
        common: dict[str, Any] = {"id": example.id, "question_id": example.question_id, "sieve_score": score, "threshold": threshold}
        if threshold is None:
            common |= {"sieve_score": None}
        if threshold is not None and score >= threshold:
            made.append(Prediction(**common, reason=Reason.DISTRACTED, state=RetrievalState.DISTRACTED))
        else:
            made.append(Prediction(**common, answer=answer, confidence=0.9 if answer == "Ada" else 0.6, prompt="..."))
    return made


@pytest.fixture
def run_at(tmp_path: Path) -> Make:
    def make(name: str, questions: int = 120, errors: float = 0.0, threshold: float | None = 1.0, prefix: str = "q", seed: int = 0) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        of = examples(questions, prefix)
        write_records(folder / "examples.jsonl", of)
        write_records(folder / "predictions.jsonl", predictions(of, errors, threshold, seed))
        (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
        (folder / "run.json").write_text(json.dumps({"versions": {"commit": "abc"}}), encoding="utf-8")
        return folder

    return make


@pytest.fixture
def pictures() -> None:
    """Asked for by the tests that look at pictures."""


@pytest.fixture(autouse=True)
def _draw_where_pictures_are_looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr("eval.certify._draw", lambda *_: None)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_a_good_system_is_certified_and_the_certificate_reads_back(run_at: Make, out: Path, pictures: None) -> None:
    """Distracted sets score above 0.7, all answers to the others are right: some threshold at or above 0.6 does, and 1 does not."""
    result = certify(job(calibration=run_at("full"), test=run_at("test", prefix="t", seed=1)), out)
    assert result.certified and result.threshold is not None and 0.4 < result.threshold <= 1
    assert (result.questions, result.learnt_on, result.tested_on) == (120, 36, 84)
    chosen = next(row for row in result.points if row.threshold == result.threshold)
    assert chosen.certified and chosen.wrong.p_value <= 0.1 and chosen.refused.p_value <= 0.1
    assert chosen.wrong.bound <= 0.1 and chosen.refused.bound <= 0.2, "a p-value below delta is a bound below the limit"
    assert result.check is not None and result.check.threshold == result.threshold and result.check.certified
    assert len(result.scores) == 120 and result.scores == tuple(sorted(result.scores)) and result.without_score == 0
    assert set(result.data) == {f"{p}{f}.jsonl" for p in ("full/", "test: test/") for f in ("examples", "predictions")}
    assert result.system == {"system": "serve.systems.always_abstain.AlwaysAbstain", "commit": "abc"}
    assert record.read(out) == result and record.withdrawn(out) is None
    page = (out / "certificate.md").read_text(encoding="utf-8")
    assert page.startswith("# Certificate\n\nCertified: at most 10.0% of the answers wrong and at most 20.0% of the answerable sets")
    assert f"Serve with threshold {result.threshold:.6g}." in page and "both rates are within their limits" in page
    for name in ("certification.png", "reliability.png", "risk_coverage.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


def test_the_same_runs_give_the_same_certificate_and_pictures(run_at: Make, tmp_path: Path, pictures: None) -> None:
    run = run_at("full", errors=0.1)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        certify(job(calibration=run, alpha=0.3), tmp_path / name)
    first, second = (record.read(tmp_path / name) for name in ("first", "second"))
    assert first == second
    for name in ("certification.png", "reliability.png", "risk_coverage.png"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_too_few_examples_are_told_how_many_it_takes(run_at: Make, out: Path) -> None:
    """20 questions have too few answers: at a rate of 0, 22 of them are needed, and 11 answerable sets."""
    result = certify(job(calibration=run_at("full", questions=20), thresholds=[0.65], learn=0), out)
    assert not result.certified and result.threshold is None and result.required is not None
    assert (result.required.answers, result.required.clean) == (22, 11)
    assert 22 <= result.required.questions < 40
    assert result.said.startswith("Not certified: ") and f"about {result.required.questions} labelled questions would do" in result.said
    assert (out / "certificate.md").read_text(encoding="utf-8").startswith("# No certificate\n")


def test_a_bad_system_is_told_that_no_number_will_do(run_at: Make, out: Path) -> None:
    result = certify(job(calibration=run_at("full", errors=0.5)), out)
    assert not result.certified and result.required is None
    assert "If the rates seen on these questions are the true ones, no number of examples will do" in result.said
    assert "Nearest comes threshold " in result.said


def test_wrong_answers_of_less_confidence_can_be_held_back(run_at: Make, out: Path) -> None:
    """One answer in seven is wrong, and every wrong one says 0.6 where right ones say 0.9: only a least confidence of 0.9 is certified."""
    run = run_at("full", questions=300, errors=0.14)
    (out / "plain").mkdir()
    assert not certify(job(calibration=run), out / "plain").certified
    result = certify(job(calibration=run, confidences=5), out)
    assert result.certified and result.least_confidence == 0.9
    assert "answers of confidence 0.9 or more" in result.said


def test_replies_and_scores_may_come_from_two_runs(run_at: Make, out: Path, tmp_path: Path) -> None:
    alone, gated, full = run_at("alone", threshold=None), run_at("gated", threshold=0.5), run_at("full")
    result = certify(job(calibration=[alone, gated]), out)
    (tmp_path / "whole").mkdir()
    whole = certify(job(calibration=full), tmp_path / "whole")
    assert result.points == whole.points and result.reach == 1.0
    assert result.system["alone: commit"] == result.system["gated: commit"] == "abc"


def test_a_run_at_its_own_threshold_tells_of_lower_ones_and_says_so(run_at: Make, out: Path) -> None:
    run = run_at("gated", threshold=0.3)
    result = certify(job(calibration=run), out)
    assert not result.certified and result.reach == 0.3 and max(row.threshold for row in result.points) == 0.3
    assert "Thresholds above 0.3 cannot be told from this run" in result.said and "system.threshold=1" in result.said
    with pytest.raises(InputError, match=r"thresholds: 0\.65 is above the run's own threshold 0\.3.*system\.threshold=1"):
        certify(job(calibration=run, thresholds=[0.65]), out)


def test_thresholds_fixed_before_are_tested_in_their_order_on_all_questions(run_at: Make, out: Path) -> None:
    result = certify(job(calibration=run_at("full"), thresholds=[0.65, 0.62, 0.1, 0.66], learn=0), out)
    assert [row.threshold for row in result.points] == [0.65, 0.62, 0.1, 0.66]
    assert [row.certified for row in result.points] == [True, True, False, False]
    assert (result.learnt_on, result.tested_on) == (0, 120) and result.threshold == 0.62


def test_a_system_without_a_sieve_has_its_confidence_alone(run_at: Make, out: Path) -> None:
    result = certify(job(calibration=run_at("alone", questions=300, errors=0.3, threshold=None), confidences=3, alpha=0.3, beta=0.5), out)
    assert result.certified and result.threshold == 1.0 and result.least_confidence == 0.9 and result.scores == ()


def test_what_it_refuses(run_at: Make, out: Path, tmp_path: Path) -> None:
    run = run_at("full", questions=8)
    with pytest.raises(InputError, match="test: expected other questions than those of calibration, both have 8, such as 'q000'"):
        certify(job(calibration=run, test=run), out)
    with pytest.raises(InputError, match="expected the folder of a run"):
        certify(job(calibration=tmp_path / "nothing"), out)
    with pytest.raises(InputError, match="questions to learn from and questions to test on, got 1 in all"):
        certify(job(calibration=run_at("one", questions=1)), out)
    for settings, said in (
        ({"calibration": [run] * 3}, "expected a run, or one of replies and one of scores, got 3"),
        ({"calibration": run, "learn": 0}, "learn: expected a share above 0"),
        ({"calibration": run, "thresholds": [0.5], "confidences": 2}, "confidences: not used where thresholds are given"),
    ):
        with pytest.raises(ValidationError, match=said):
            job(**settings)


def test_checkpoints_of_systems_within_systems_are_named(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{}", encoding="utf-8")
    inner = Component(dict, {"sieve": tmp_path, "sage": None, "elsewhere": tmp_path / "none"})
    named = f"{tmp_path.name} {sha256(tmp_path / MANIFEST)}"
    assert _checkpoints(Component(dict, {"system": inner, "k": 5})) == {"system.sieve": named}
