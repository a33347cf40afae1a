"""The job that makes pages of runs: from what `eval.pipeline` leaves in a folder, of today or from before there were pages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.job import run_folder
from eval.html import HtmlJob, page
from eval.outcomes import Match
from eval.pipeline import evaluate
from eval.report import write_report
from eval.score import score
from eval.settings import EvalJob
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Condition, Document, Example, Prediction, Reason, RetrievalState
from rag.settings import Component
from serve.systems.always_abstain import AlwaysAbstain

EXAMPLES = [
    Example(
        id=f"e{n}",
        question_id=f"q{n}",
        question=f"Who is number {n}?",
        documents=(Document(id="d1", text="Ada."),),
        answers=("Ada",),
        state=RetrievalState.ANSWERABLE if n < 4 else RetrievalState.UNANSWERABLE,
        condition=Condition.ANSWERABLE if n < 4 else Condition.UNANSWERABLE,
    )
    for n in range(8)
]


def made(answered: int) -> list[Prediction]:
    return [
        Prediction(id=e.id, question_id=e.question_id, state=RetrievalState.ANSWERABLE, answer="Ada", timings={"total": 10.0})
        if n < answered
        else Prediction(id=e.id, question_id=e.question_id, state=RetrievalState.UNANSWERABLE, reason=Reason.UNANSWERABLE)
        for n, e in enumerate(EXAMPLES)
    ]


def job(*runs: Path, **settings: Any) -> HtmlJob:
    return HtmlJob.model_validate({"runs": runs, "html_examples": 100, **settings})


@pytest.fixture
def run_at(tmp_path: Path) -> Callable[..., Path]:
    """The folder of a run as it was before there were pages: no settings that today's job could read, no format in its report."""

    def make(name: str, answered: int = 6, match: Match = "exact") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        write_records(folder / "examples.jsonl", EXAMPLES)
        write_records(folder / "predictions.jsonl", made(answered))
        write_report(folder, score(EXAMPLES, made(answered), match=match, resamples=20), {"commit": "abc"})
        content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        del content["format"]
        (folder / "report.json").write_text(json.dumps(content), encoding="utf-8")
        return folder

    return make


def test_an_old_run_gets_its_page_with_its_examples(run_at: Callable[..., Path], tmp_path: Path) -> None:
    (run,) = page(job(run_at("old")), tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "old on unknown data" in text and "Who is number 7?" in text and "abc" in text
    assert run.report.counts.correct_answers == 4 and (tmp_path / "out" / "figures" / "responses.png").is_file()


def test_several_runs_share_one_page(run_at: Callable[..., Path], tmp_path: Path) -> None:
    page(job(run_at("bold", 6), run_at("timid", 2), names=["6 of 8", "<b>2</b> of 8"]), tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "6 of 8" in text and "&lt;b&gt;2&lt;/b&gt; of 8" in text and "<b>2" not in text
    assert "each run&#39;s own hour" in text and "interleaved" not in text
    pictures = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert pictures == {"pareto.png", "responses.png", "selective.png"}


def test_times_of_one_interleaved_run_take_the_place_of_each_run_s_own(run_at: Callable[..., Path], tmp_path: Path) -> None:
    rows = [{"system": name, "stage": stage, "median": ms, "n": 8} for name, ms in (("a", 7.0), ("b", 9.0)) for stage in ("sage", "total")]
    (tmp_path / "profile.json").write_text(json.dumps({"profile": {"latency": rows}}), encoding="utf-8")
    runs = page(job(run_at("a"), run_at("b"), times=tmp_path / "profile.json"), tmp_path / "out")
    assert [run.milliseconds for run in runs] == [7.0, 9.0]
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "one interleaved run of eval.profile" in text and "own hour" not in text
    with pytest.raises(InputError, match="no time of 'c', only of a, b; set names="):
        page(job(run_at("c"), times=tmp_path / "profile.json"), tmp_path / "out")
    with pytest.raises(InputError, match=r"expected the profile\.json that eval\.profile wrote"):
        page(job(tmp_path / "c", times=tmp_path / "c" / "report.json"), tmp_path / "out")


def test_what_cannot_be_shown_is_refused_by_name(run_at: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="names: expected one name for each of 1 runs"):
        page(job(run_at("one"), names=["x", "y"]), out)
    with pytest.raises(InputError, match=r"expected runs by the same matching rule, got match=contains, match=exact"):
        page(job(run_at("two"), run_at("three", match="contains")), out)
    (tmp_path / "one" / "predictions.jsonl").unlink()
    with pytest.raises(InputError, match=r"expected examples\.jsonl and predictions\.jsonl"):
        page(job(tmp_path / "one"), out)
    report = tmp_path / "two" / "report.json"
    newer = {**json.loads(report.read_text(encoding="utf-8")), "format": 99}
    report.write_text(json.dumps(newer), encoding="utf-8")
    with pytest.raises(InputError, match="expected a report of format 1, got format 99"):
        page(job(tmp_path / "two"), out)
    report.write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match=r"expected a report that eval\.pipeline wrote"):
        page(job(tmp_path / "two"), out)
    write_records(tmp_path / "three" / "examples.jsonl", EXAMPLES[:7])
    write_records(tmp_path / "three" / "predictions.jsonl", made(6)[:7])
    with pytest.raises(InputError, match="reports on 8 examples"):
        page(job(tmp_path / "three"), out)
    assert not out.exists()


def test_the_pipeline_writes_the_same_page_beside_its_predictions_and_a_rescored_run_is_found(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_records(first / "examples.jsonl", EXAMPLES)
    write_records(first / "predictions.jsonl", made(6))
    values = {"seed": 0, "batch_size": 2, "match": "contains", "resamples": 20, "show": 0, "predictions": str(first / "predictions.jsonl")}
    target = {"_target_": "serve.systems.always_abstain.AlwaysAbstain", "state": "distracted"}
    run_folder({**values, "system": target, "dataset": target, "out": str(second)}, tmp_path, "eval_pipeline", [])
    component = Component(AlwaysAbstain, {"state": "distracted"})
    settings = EvalJob(**{**values, "predictions": first / "predictions.jsonl"}, system=component, dataset=component, html=True)
    evaluate(settings, second)
    text = (second / "report.html").read_text(encoding="utf-8")
    assert "<h1>predictions of predictions on first</h1>" in text
    assert page(job(second), tmp_path / "out")[0].report.match == "contains"
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8") == text
    assert (second / "report.md").read_text(encoding="utf-8").startswith("# Evaluation report: predictions of predictions on first\n")
    evaluate(settings.model_copy(update={"html": False}), tmp_path / "third")
    assert sorted(path.name for path in (tmp_path / "third").iterdir()) == [
        "examples.jsonl",
        "predictions.jsonl",
        "report.json",
        "report.md",
    ]
