"""The job: from a folder that a build wrote to the audit."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_gen.audit import AuditJob, run
from data_gen.measure.folder import drawn, read
from data_gen.measure.report import Audit, markdown
from data_gen.pipeline.cases import Case
from rag.errors import InputError
from rag.records import Condition, DocumentLabel, Example
from rag.settings import Component

ROOT = Path(__file__).parents[3]
MODELS = """
from rag.models.chat import Completion

class Chat:
    def __init__(self, reply: str):
        self.name, self.reply = f"says {reply}", reply
    def complete(self, requests):
        return [Completion(self.reply, 0, 0, True) for _ in requests]

class Reranker:
    name = "by length"
    def score(self, question, texts):
        return [float(len(text)) for text in texts]
"""


@pytest.fixture
def folder(bridge: Case, make_example: Callable[..., Example], write_folder: Callable[..., Path], tmp_path: Path) -> Path:
    """One question with all conditions, one without an answerable document."""
    gold, plain = ("Ada built the bridge.", DocumentLabel.ANSWERABLE), ("The bridge is long.", DocumentLabel.UNANSWERABLE)
    false = {s.kind: s.text for s in reversed(bridge.simulations)}
    built = [make_example(bridge, Condition.ANSWERABLE, [gold, plain])]
    built += [make_example(bridge, Condition(kind), [gold, (text, kind)]) for kind, text in false.items()]
    other = bridge.model_copy(
        update={"question": bridge.question.model_copy(update={"id": "dark"}), "candidates": bridge.candidates[1:2], "simulations": ()}
    )
    return write_folder(tmp_path / "data", [bridge, other], built)


def job(folder: Path, **values: Any) -> AuditJob:
    return AuditJob(data=folder, resamples=20, **values)


def test_all_parts_of_an_audit(folder: Path, scripted: Any, scorer: Any, tmp_path: Path) -> None:
    scores = {
        "Ada built the bridge.": 5.0,
        "The bridge is long.": 4.0,
        "Ada likes bridges.": 3.0,
        "No Ada.": 2.0,
        "Bo built the bridge.": 6.0,
        "Ada never built the bridge.": 1.0,
        "Cy built the tower.": 0.0,
    }
    settings = job(
        folder,
        reranker=Component(scorer, {"scores": scores}),
        judge=Component(scripted, {"reply": lambda prompt: "conflict"}),
        answerer=Component(scripted, {"reply": lambda prompt: "Bo" if "Bo" in prompt else "Ada"}),
    )
    audit = run(settings, tmp_path / "out")
    assert (audit.questions, audit.answerable, audit.asked) == (2, 1, 1)
    assert audit.yields["conflict"] == {"the answer, or a form of it, is in it": 1, "used": 1}
    assert audit.ranking is not None and {r.kind: r.raw.value for r in audit.ranking.rows} == {
        "gold": 2,
        "conflict": 1,
        "adversarial": 7,
        "negated": 6,
    }
    assert audit.relation is not None and audit.relation.overall.value == 0.25
    assert audit.effect is not None
    assert {str(r.condition): r.exact_difference.value for r in audit.effect.rows} == {
        "answerable": 0,
        "unanswerable": 0,
        "conflict": -1,
        "negated": 0,
        "adversarial": 0,
    }
    assert Audit.model_validate_json((tmp_path / "out" / "audit.json").read_bytes()) == audit
    text = (tmp_path / "out" / "audit.md").read_text(encoding="utf-8")
    assert text == markdown(audit)
    assert "| conflict | 1 | 1 | 1.000 (1.000 to 1.000) | 0.000 (0.000 to 0.000) |" in text
    assert "| conflict | 1 | 0 | 0.0 % (0.0 to 0.0) | -100.0 (-100.0 to -100.0) |" in text
    assert "1 questions, 7 passages each" in text
    assert "| negated | 1 | 0 | 0 | 0 | 0 |" in text, "a row of the confusion table"
    assert "Who built the bridge?" in (tmp_path / "out" / "sheet.html").read_text(encoding="utf-8")
    assert set(audit.data) == {"steps/5_validate/test-00000.jsonl", "steps/5_validate/test-00001.jsonl", "test.jsonl"}


def test_what_a_model_said_once_is_not_asked_for_again(folder: Path, scripted: Any, tmp_path: Path) -> None:
    asked: list[str] = []
    judge = Component(scripted, {"reply": lambda prompt: asked.append(prompt) or "conflict"})
    first = run(job(folder, judge=judge, replies=tmp_path / "replies"), tmp_path / "a")
    count = len(asked)
    assert count > 0
    second = run(job(folder, judge=judge, replies=tmp_path / "replies"), tmp_path / "b")
    assert len(asked) == count
    assert second.relation == first.relation


def test_each_part_without_a_model_is_skipped_and_says_so(folder: Path, tmp_path: Path) -> None:
    audit = run(job(folder), tmp_path / "out")
    assert audit.ranking is audit.relation is audit.effect is None
    text = (tmp_path / "out" / "audit.md").read_text(encoding="utf-8")
    for keys in ("reranker=...", "chat@judge=...", "chat@answerer=..."):
        assert f"Skipped: no model was given; set {keys}." in text
    assert not (tmp_path / "out" / "ranked.jsonl").exists()


def test_a_folder_without_usable_simulations_is_audited_all_the_same(
    make_case: Any, make_example: Any, write_folder: Any, scripted: Any, scorer: Any, tmp_path: Path
) -> None:
    case = make_case("q", [("Ada.", DocumentLabel.ANSWERABLE)], [(DocumentLabel.CONFLICT, "", "no passage: the reply is blank")])
    example = make_example(case, Condition.ANSWERABLE, [("Ada.", DocumentLabel.ANSWERABLE)])
    models = {"judge": Component(scripted, {"reply": str}), "answerer": Component(scripted, {"reply": lambda _: None})}
    audit = run(job(write_folder(tmp_path, [case], [example]), reranker=Component(scorer, {"scores": {}}), **models), tmp_path / "out")
    text = markdown(audit)
    assert "No question has a simulated document that can be used." in text
    assert "No pair of documents was judged." in text
    assert "No question with an answerable set was answered." in text


def test_a_folder_of_another_source_and_unknown_splits_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"data=.*nothing: expected a folder that `python -m data_gen.build` made of question-answer pairs"
    ):
        read(tmp_path / "nothing", None)
    with pytest.raises(InputError, match=r"splits: .*data has no 'train'; it has test"):
        read(folder, ["test", "train"])
    assert [case.question.id for case in read(folder, ["test"]).cases] == ["the bridge", "dark"]


def test_examples_of_another_build_are_refused(bridge: Case, make_case: Any, make_example: Any, write_folder: Any, tmp_path: Path) -> None:
    stranger = make_example(make_case("stranger", []), Condition.ANSWERABLE, [("Ada.", DocumentLabel.ANSWERABLE)])
    with pytest.raises(InputError, match=r"test\.jsonl: no case of steps/5_validate has the question 'stranger'; build the folder again"):
        read(write_folder(tmp_path, [bridge], [stranger]), None)


def test_a_limit_draws_among_questions_with_an_answer_and_keeps_their_order(make_case: Any) -> None:
    labels = (DocumentLabel.ANSWERABLE, DocumentLabel.UNANSWERABLE)
    cases = [make_case(f"q{n}", [("text", labels[n % 2])]) for n in range(40)]
    names = [case.question.id for case in drawn(cases, 5, seed=0)]
    assert len(names) == 5
    assert names == [name for name in (f"q{n}" for n in range(0, 40, 2)) if name in names]
    assert names != [case.question.id for case in drawn(cases, 5, seed=1)]
    assert len(drawn(cases, None, seed=0)) == len(drawn(cases, 99, seed=0)) == 20


def test_the_command_takes_models_and_runs_again_to_the_same_figures(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "stand_ins.py").write_text(MODELS, encoding="utf-8")
    command = [
        *(sys.executable, "-m", "data_gen.audit", f"data={folder}", f"out={tmp_path / 'out'}", "resamples=10", "splits=[test]"),
        "reranker={_target_: stand_ins.Reranker}",
        "judge={_target_: stand_ins.Chat, reply: negated}",
        "answerer={_target_: stand_ins.Chat, reply: Ada}",
    ]
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    written = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        written.append([(tmp_path / "out" / name).read_bytes() for name in ("audit.json", "audit.md", "sheet.html", "ranked.jsonl")])
    assert written[0] == written[1]
    audit = json.loads(written[0][0])
    assert (audit["ranking"]["reranker"], audit["relation"]["judge"], audit["effect"]["answerer"]) == (
        "by length",
        "says negated",
        "says Ada",
    )
    assert "mean scaled rank" in done.stdout
