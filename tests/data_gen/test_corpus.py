"""Corpora and questions from files: passages that several questions share stand once, and gold documents are found by the ids that sources give."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from data_gen import corpora
from data_gen.corpus import CorpusJob, run
from data_gen.sources import astroqa, bioasq, gold_passages, nq_wiki
from rag.errors import InputError
from rag.retrieval.bm25_index import Bm25Index
from rag.retrieval.corpus import Corpus
from rag.retrieval.gold import read_questions

RECORDS = [
    {"question": "Where is Lima?", "answers": ["Peru"], "ctx": {"text": "Lima is in Peru (C++ $5)."}},
    {"question": "What is in Peru?", "answers": ["Lima"], "ctx": {"text": "Lima is  in Peru (c++ $5)."}},
    {"question": "Blank?", "answers": ["x"], "ctx": {"text": " "}},
    {"question": "Where is 東京?", "answers": ["日本"], "ctx": {"text": "東京 is in 日本."}},
]
PUBMED = """<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>11</PMID><Article><ArticleTitle>T</ArticleTitle><Abstract>
<AbstractText>HBB is mutated.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"""
BIOASQ = {
    "id": "q1", "type": "factoid", "body": "Which gene?", "exact_answer": [["HBB"]],
    "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/11", "http://www.ncbi.nlm.nih.gov/pubmed/12"],
}  # fmt: skip
DPR = {"question": "who dug it", "answers": ["Bo"], "positive_ctxs": [{"title": "Rill", "text": "Bo dug it.", "passage_id": "2"}]}
ASTRO = {"question": "What powers it?", "answer": "A wind", "paper_id": "2401.00001", "title": "On it", "abstract": "A wind powers it."}


def job(documents: Any, path: Path, questions: Any = None, of: Path | None = None, **settings: Any) -> CorpusJob:
    """The functions themselves stand for their dotted names."""

    def named(function: Any, file: Path | None) -> dict[str, Any]:
        return {"_target_": f"{function.__module__}.{function.__qualname__}", "path": str(file)}

    asked = {"questions": named(questions, of or path)} if questions else {}
    return CorpusJob.model_validate({"documents": {**named(documents, path), **settings}, **asked, "duplicates": "drop"})


def test_gold_passages_become_a_corpus_and_questions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "gold.json"
    path.write_text(json.dumps(RECORDS), encoding="utf-8")
    settings = job(gold_passages.documents, path, gold_passages.questions)
    with caplog.at_level("INFO"):
        corpus = run(settings, tmp_path / "out")
    assert "left out 1: passage repeats another" in caplog.text and "left out 1: passage without text" in caplog.text
    assert "left out 1 of 4 questions: no gold document is known" in caplog.text
    assert [d.text for d in corpus] == [RECORDS[0]["ctx"]["text"], "東京 is in 日本."]  # type: ignore[index]
    assert corpus.card.source == "data_gen.sources.gold_passages.documents gold.json"
    questions = read_questions(tmp_path / "out" / "questions.jsonl")
    assert {q.id: q.gold for q in questions} == {q.id: q.gold for q in gold_passages.questions(path) if q.gold}
    first, second, third = questions
    assert first.gold == second.gold == (corpus[0].id,) and third.gold == (corpus[1].id,)
    found = Bm25Index(corpus.folder).search("Where is Lima?", 1)
    assert [document.id for document in found] == list(first.gold)
    written = (tmp_path / "out" / "corpus" / "documents.jsonl").read_bytes()
    assert run(settings, tmp_path / "again").fingerprint == corpus.fingerprint
    assert (tmp_path / "again" / "corpus" / "documents.jsonl").read_bytes() == written


@pytest.mark.parametrize(
    ("documents", "content", "questions", "record", "gold"),
    [
        (corpora.pubmed, PUBMED, bioasq.questions, {"questions": [BIOASQ]}, ("11", "12")),
        (corpora.wikipedia, "id\ttext\ttitle\n1\tx\ty\n2\tBo dug it.\tRill\n", nq_wiki.questions, [DPR], ("2",)),
        (
            corpora.arxiv,
            json.dumps({"id": "2401.00001", "title": "T", "abstract": "A", "categories": "astro-ph.HE"}),
            astroqa.questions,
            [ASTRO],
            ("2401.00001",),
        ),
    ],
)
def test_the_gold_ids_of_a_source_are_those_of_its_corpus(
    documents: Any, content: str, questions: Any, record: Any, gold: tuple[str, ...], tmp_path: Path
) -> None:
    ending = {corpora.pubmed: "xml.gz", corpora.wikipedia: "tsv.gz", corpora.arxiv: "json.gz"}[documents]
    (tmp_path / f"all.{ending}").write_bytes(gzip.compress(content.encode()))
    (tmp_path / "questions.json").write_text(json.dumps(record))
    corpus = run(job(documents, tmp_path / f"all.{ending}", questions, tmp_path / "questions.json"), tmp_path / "out")
    [question] = read_questions(tmp_path / "out" / "questions.jsonl")
    assert question.gold == gold
    assert corpus.find(question.gold[0]) is not None


def test_the_abstracts_that_astronomy_questions_come_with(tmp_path: Path) -> None:
    (tmp_path / "astroqa.jsonl").write_text(json.dumps(ASTRO) + "\n")
    corpus = run(job(astroqa.documents, tmp_path / "astroqa.jsonl", astroqa.questions), tmp_path / "out")
    assert [(d.id, d.title, d.text) for d in corpus] == [("2401.00001", "On it", "A wind powers it.")]
    assert [q.gold for q in read_questions(tmp_path / "out" / "questions.jsonl")] == [("2401.00001",)]


def test_documents_without_questions_write_no_questions(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": "x"}\n{"id": "c", "text": ""}\n')
    (tmp_path / "p.tsv").write_text("id\ttext\ttitle\n1\tx\ty\n")
    untitled = job(corpora.jsonl, tmp_path / "d.jsonl", title=None)
    assert len(run(untitled, tmp_path / "one")) == 1
    assert len(run(untitled.model_copy(update={"duplicates": "keep"}), tmp_path / "two")) == 2
    assert run(job(corpora.wikipedia, tmp_path / "p.tsv"), tmp_path / "three")[0].title == "y"
    assert Corpus.open(tmp_path / "three" / "corpus").card.source == "data_gen.corpora.wikipedia p.tsv"
    assert not list(tmp_path.glob("*/questions.jsonl"))


def test_questions_of_another_corpus_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("id\ttext\ttitle\n1\tx\ty\n")
    (tmp_path / "astroqa.jsonl").write_text(json.dumps(ASTRO) + "\n")
    with pytest.raises(
        InputError, match=r"none of their gold documents, such as '2401\.00001', is in the corpus of data_gen\.corpora\.wikipedia p\.tsv"
    ):
        run(job(corpora.wikipedia, tmp_path / "p.tsv", astroqa.questions, tmp_path / "astroqa.jsonl"), tmp_path / "out")
    (tmp_path / "astroqa.jsonl").write_text(json.dumps({"question": "Why?", "answer": "So"}) + "\n")
    with pytest.raises(InputError, match=r"the source data_gen\.sources\.astroqa names no gold documents; set questions=null"):
        run(job(corpora.wikipedia, tmp_path / "p.tsv", astroqa.questions, tmp_path / "astroqa.jsonl"), tmp_path / "out2")
