"""Recall@k and MRR by hand; a stopped run goes on; gold documents that are not in the corpus are counted."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from eval.retrieval import Ranks, RetrievalJob, evaluate, recall, reciprocal_rank
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Document
from rag.retrieval.corpus import Corpus, write_corpus
from rag.retrieval.gold import GoldQuestion, read_questions
from rag.settings import Component

TEXTS = ["the river is long", "a tall bridge", "the bridge over the river", "sea", "C++ (a|b)*", "東京都"]
QUESTIONS = [
    GoldQuestion(id="q1", question="tall bridge?", gold=("d1",)),
    GoldQuestion(id="q2", question="river bridge?", gold=("d0", "d2")),
    GoldQuestion(id="q3", question="nothing like it", gold=("d3",)),
]


def ranks(name: str, **gold: int | None) -> Ranks:
    return Ranks(id=name, gold=gold, retrieved=(), milliseconds=1.0)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus([Document(id=f"d{i}", text=text) for i, text in enumerate(TEXTS)], tmp_path / "corpus")


def job(tmp_path: Path, questions: Sequence[GoldQuestion] = QUESTIONS, **keys: Any) -> Any:
    write_records(tmp_path / "questions.jsonl", questions)
    values = {"ks": [1, 2], "batch_size": 2, "resamples": 50, "corpus": str(tmp_path / "corpus"), **keys}
    retriever = {"_target_": "rag.retrieval.bm25_index.Bm25Index", "corpus": values["corpus"]}
    return RetrievalJob.model_validate({"retriever": retriever, "data": str(tmp_path / "questions.jsonl"), **values})


def run(settings: RetrievalJob, out: Path) -> dict[str, float]:
    out.mkdir(exist_ok=True)
    return {figure.name: figure.value for figure in evaluate(settings, out).figures}


class Stops:
    """A retriever whose process is stopped at its third question."""

    name = "stops"
    asked: ClassVar[list[str]] = []

    def __init__(self, corpus: Path) -> None:
        self.corpus = corpus

    def search(self, question: str, k: int) -> list[Document]:
        if question == "nothing like it" and len(self.asked) == 2:
            self.asked.append("stopped")
            raise KeyboardInterrupt
        self.asked.append(question)
        return [Document(id="d1", text="x")]


def test_recall_and_reciprocal_rank_by_hand() -> None:
    rows = [ranks("q1", a=3), ranks("q2", b=1, c=None)]
    assert [recall(rows, k).value for k in (1, 2, 3)] == [0.25, 0.25, 0.75]
    assert reciprocal_rank(rows).value == pytest.approx((1 / 3 + 1) / 2)
    assert recall([ranks("q", a=None)], 5).value == reciprocal_rank([ranks("q", a=None)]).value == 0.0


def test_a_retriever_is_measured(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """q1 finds d1 first; q2 finds d2 first and the shorter d0 or d1 second; q3 finds nothing."""
    figures = run(job(tmp_path, ks=[6, 1]), tmp_path / "out")
    assert figures == pytest.approx({"Recall@1": (1 + 0.5 + 0) / 3, "Recall@6": 2 / 3, "MRR@6": 2 / 3})
    written = json.loads((tmp_path / "out" / "retrieval.json").read_text(encoding="utf-8"))
    assert (written["documents"], written["questions"], written["gold_documents"], written["not_in_corpus"]) == (6, 3, 4, 0)
    assert written["corpus"] == corpus.fingerprint and written["retriever"].startswith("bm25-")
    assert all(0 <= figure["low"] <= figure["value"] <= figure["high"] <= 1 for figure in written["figures"])
    assert "commit" in written["provenance"]
    said = capsys.readouterr().out
    assert "Recall@1" in said and "0.500" in said and "not in the corpus" not in said


def test_a_stopped_run_goes_on_where_it_was(corpus: Corpus, tmp_path: Path) -> None:
    settings = job(tmp_path)
    settings = settings.model_copy(update={"retriever": Component(Stops, {"corpus": corpus.folder})})
    Stops.asked.clear()
    with pytest.raises(KeyboardInterrupt):
        run(settings, tmp_path / "out")
    assert Stops.asked == ["tall bridge?", "river bridge?", "stopped"]
    assert run(settings, tmp_path / "out")["Recall@1"] == pytest.approx(1 / 3)
    assert Stops.asked[3:] == ["nothing like it"]


def test_ranks_of_other_questions_are_refused(corpus: Corpus, tmp_path: Path) -> None:
    run(job(tmp_path), tmp_path / "out")
    with pytest.raises(InputError, match=r"ranks.jsonl: holds ranks of other questions"):
        run(job(tmp_path, QUESTIONS[1:]), tmp_path / "out")


def test_gold_documents_that_the_corpus_does_not_hold_are_counted(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = [*QUESTIONS, GoldQuestion(id="q4", question="sea", gold=("wiki:7",))]
    assert run(job(tmp_path, lost), tmp_path / "out")["Recall@1"] == pytest.approx((1 + 0.5) / 4)
    assert "1 of 5 gold documents are not in the corpus and count as not found" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"none of its gold documents, such as 'wiki:7', is in corpus="):
        run(job(tmp_path, lost[3:]), tmp_path / "other")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "expected at least one question with gold documents"),
        ('{"id": "a", "question": "?", "gold": []}', "questions.jsonl:1: gold: Tuple should have at least 1 item"),
        ('{"id": 7, "question": "?", "gold": ["d"]}', "id: expected text, got int 7"),
        ('{"id": "a", "question": "?", "gold": ["d", "d"]}', "gold: 'a' names a document twice"),
        ('{"id": "a", "question": "?", "gold": ["d"]}\n{"id": "a", "question": "!", "gold": ["d"]}', "id: 'a' comes twice"),
    ],
)
def test_questions_that_do_not_fit_are_named(lines: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(lines)
    with pytest.raises(InputError, match=message):
        read_questions(tmp_path / "questions.jsonl")
