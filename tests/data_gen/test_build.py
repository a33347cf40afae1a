"""The job that writes a source's splits to disk."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from data_gen.build import BuildSettings, build
from data_gen.sources import demo, jsonl
from rag.errors import InputError
from rag.jsonl import read_examples, write_records

DEMO = {"_target_": "data_gen.sources.demo.load", "questions": 20}


def settings(**values: Any) -> BuildSettings:
    return BuildSettings.model_validate(values)


def test_each_split_is_written_and_the_card_says_what_is_in_it(tmp_path: Path) -> None:
    report = build(settings(dataset=DEMO), tmp_path)
    assert report.questions == {"train": 12, "validation": 3, "test": 5}
    assert report.examples["test"] == dict.fromkeys(("adversarial", "answerable", "conflict", "negated", "unanswerable"), 5)
    assert read_examples(tmp_path / "validation.jsonl") == demo.load("validation", questions=20)
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card == report.model_dump()
    assert card["sha256"]["test.jsonl"] == hashlib.sha256((tmp_path / "test.jsonl").read_bytes()).hexdigest()
    assert card["shared_documents"] == 0


def test_building_again_gives_the_same_bytes_and_the_seed_replaces_that_of_the_source(tmp_path: Path) -> None:
    first = build(settings(dataset=DEMO), tmp_path / "a")
    assert build(settings(dataset=DEMO, seed=0), tmp_path / "b").sha256 == first.sha256
    other = build(settings(dataset=DEMO, seed=1), tmp_path / "c")
    assert other.sha256 != first.sha256
    assert other.arguments["seed"] == 1


def test_what_the_source_left_out_is_in_the_card(tmp_path: Path) -> None:
    record = {
        "id": 0,
        "question": "Who?",
        "correct answer": ["Ada"],
        "incorrect answer": "Bo",
        "incorrect_context": [],
        "context": [{"text": "Ada."}],
    }
    (tmp_path / "file.json").write_text(json.dumps([record]), encoding="utf-8")
    dataset = {"_target_": "data_gen.sources.robustrag.load", "path": str(tmp_path / "file.json")}
    report = build(settings(dataset=dataset, splits=["test"]), tmp_path / "out")
    assert report.examples == {"test": {"answerable": 1}}
    assert report.dropped == {"test": {"conflict set without a usable text for the wrong answer": 1}}
    assert report.arguments["path"] == str(tmp_path / "file.json")


def test_a_source_without_splits_says_so(tmp_path: Path) -> None:
    write_records(tmp_path / "mine.jsonl", demo.load("test", questions=20))
    dataset = {"_target_": "data_gen.sources.jsonl.load", "path": str(tmp_path / "mine.jsonl")}
    with pytest.raises(InputError, match=r"splits: the source data_gen.sources.jsonl has no splits; .*splits=\[test\]"):
        build(settings(dataset=dataset), tmp_path / "out")
    with pytest.raises(InputError, match="seed=3: the source data_gen.sources.jsonl draws nothing at random"):
        build(settings(dataset=dataset, seed=3), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert build(settings(dataset=dataset, splits=["test"]), tmp_path / "out").questions == {"test": 5}


def test_a_question_that_crosses_splits_stops_the_build_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall G5."""
    same = demo.load("test", questions=20)
    monkeypatch.setattr(demo, "load", lambda split="test": same)
    with pytest.raises(InputError, match="expected each question in one split"):
        build(settings(dataset={"_target_": "data_gen.sources.demo.load"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_empty_split_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "load", lambda split="test": [])
    with pytest.raises(InputError, match="has no examples for 'train'; leave it out of splits"):
        build(settings(dataset={"_target_": "data_gen.sources.demo.load"}), tmp_path / "out")


def test_the_command_writes_the_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "data_gen.build", "dataset=demo", "dataset.questions=20", f"out={tmp_path / 'demo'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "5 questions: 5 adversarial, 5 answerable" in done.stderr
    assert {"train.jsonl", "validation.jsonl", "test.jsonl", "card.json"} <= {path.name for path in (tmp_path / "demo").iterdir()}


def test_a_jsonl_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    examples = demo.load("test", questions=20)
    write_records(tmp_path / "mine.jsonl", examples)
    assert jsonl.load(tmp_path / "mine.jsonl") == examples
    assert jsonl.load(tmp_path / "mine.jsonl", limit=3) == examples[:3]
    with pytest.raises(InputError, match="limit: expected a number of at least 1, got 0"):
        jsonl.load(tmp_path / "mine.jsonl", limit=0)
