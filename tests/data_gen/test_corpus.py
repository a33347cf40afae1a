"""Corpora and questions from files: passages that several questions share stand once, and every gold document is in the corpus."""

import json
from pathlib import Path
from typing import Any

import pytest

from data_gen.corpus import CorpusJob, run
from rag.errors import InputError
from rag.retrieval.corpus import Corpus
from rag.retrieval.gold import read_questions

RECORDS = [
    {"question": "Where is Lima?", "answers": ["Peru"], "ctx": {"text": "Lima is in Peru (C++ $5)."}},
    {"question": "What is in Peru?", "answers": ["Lima"], "ctx": {"text": "Lima is in Peru (C++ $5)."}},
    {"question": "Blank?", "answers": ["x"], "ctx": {"text": " "}},
    {"question": "Where is 東京?", "answers": ["日本"], "ctx": {"text": "東京 is in 日本."}},
]


def job(target: str, path: Path, duplicates: str = "drop") -> Any:
    documents = {"_target_": f"data_gen.retrieval_sets.{target}", "path": str(path)}
    return CorpusJob.model_validate({"documents": documents, "duplicates": duplicates})


def test_gold_passages_become_a_corpus_and_questions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "gold.json"
    path.write_text(json.dumps(RECORDS), encoding="utf-8")
    with caplog.at_level("INFO"):
        corpus = run(job("from_gold_passages", path), tmp_path / "out")
    assert "1 questions with a blank passage left out" in caplog.text
    assert [(d.id, d.text) for d in corpus] == [("gold-0-passage", RECORDS[0]["ctx"]["text"]), ("gold-3-passage", "東京 is in 日本.")]  # type: ignore[index]
    questions = read_questions(tmp_path / "out" / "questions.jsonl")
    assert [(q.id, q.gold) for q in questions] == [
        ("gold-0", ("gold-0-passage",)),
        ("gold-1", ("gold-0-passage",)),
        ("gold-3", ("gold-3-passage",)),
    ]
    first = (tmp_path / "out" / "corpus" / "documents.jsonl").read_bytes()
    assert run(job("from_gold_passages", path), tmp_path / "again").fingerprint == corpus.fingerprint
    assert (tmp_path / "again" / "corpus" / "documents.jsonl").read_bytes() == first


def test_documents_without_questions_write_no_questions(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": "x"}\n')
    (tmp_path / "p.tsv").write_text("id\ttext\ttitle\n1\tx\ty\n")
    assert len(run(job("from_jsonl", tmp_path / "d.jsonl"), tmp_path / "one")) == 1
    assert len(run(job("from_jsonl", tmp_path / "d.jsonl", "keep"), tmp_path / "two")) == 2
    assert run(job("from_psgs", tmp_path / "p.tsv"), tmp_path / "three")[0].title == "y"
    assert Corpus.open(tmp_path / "three" / "corpus").card.source == "p.tsv"
    assert not list(tmp_path.glob("*/questions.jsonl"))
    with pytest.raises(InputError, match="nowhere.jsonl: expected a JSONL file of Document records"):
        run(job("from_jsonl", tmp_path / "nowhere.jsonl"), tmp_path / "four")
