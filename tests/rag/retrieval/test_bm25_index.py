"""BM25 on disk finds exactly what BM25 in memory finds, goes on after a stop, and knows what it was made for."""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import bm25s
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import InputError
from rag.records import Document
from rag.retrieval import bm25_index
from rag.retrieval.bm25 import Bm25
from rag.retrieval.bm25_index import Bm25Index
from rag.retrieval.corpus import Corpus, write_corpus
from rag.retrieval.retriever import Retriever

WORDS = st.sampled_from(["river", "River", "sea", "the", "école", "e\u0301cole", "C++", "$5", "東京都", "?!", "a.b", "(x|y)*", "x" * 30])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=30)


@given(
    TEXTS,
    st.lists(WORDS, max_size=6).map(" ".join),
    st.integers(1, 40),
    st.sampled_from([1, 2, 7, 100]),
    st.sampled_from([(1.5, 0.75), (0.9, 0.4), (0.0, 1.0), (1.2, 0.0)]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None)
def test_disk_is_memory(texts: list[str], question: str, k: int, block: int, formula: tuple[float, float], rng: random.Random) -> None:
    ids = [f"d{i}" for i in range(len(texts))]
    rng.shuffle(ids)
    documents = [Document(id=name, text=text, title="sea" if name.endswith("3") else "") for name, text in zip(ids, texts, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            corpus = write_corpus(documents, Path(folder) / "c")
        except InputError:
            assert not any(text.strip() for text in texts)
            return
        found = Bm25Index(corpus.folder, k1=formula[0], b=formula[1], block=block).search(question, k)
        assert found == Bm25(list(corpus), *formula).search(question, k)


def test_larger_corpora_agree_too(tmp_path: Path) -> None:
    rng = random.Random(0)
    words = [f"w{i}" for i in range(300)]
    weights = [1 / (i + 1) for i in range(300)]
    documents = [Document(id=f"d{i}", text=" ".join(rng.choices(words, weights, k=rng.randint(1, 60)))) for i in range(600)]
    corpus = write_corpus(documents, tmp_path / "c")
    index: Retriever = Bm25Index(corpus.folder, block=130)
    memory = Bm25(list(corpus))
    for _ in range(40):
        question = " ".join(rng.choices(words, k=5))
        assert index.search(question, 20) == memory.search(question, 20)


def test_the_files_are_those_of_the_library(corpus: Corpus, tmp_path: Path) -> None:
    Bm25Index(corpus.folder, tmp_path / "i")
    loaded = bm25s.BM25.load(tmp_path / "i", mmap=True)
    assert type(loaded.scores["data"]).__name__ == "memmap" and loaded.scores["num_docs"] == 60
    assert {path.name for path in (tmp_path / "i").iterdir()} == {
        *("data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy", "vocab.index.json", "params.index.json"),
        *("index.json", "lock"),
    }


def test_a_corpus_without_a_single_word_finds_nothing(tmp_path: Path) -> None:
    corpus = write_corpus([Document(id="a", text="?!")], tmp_path / "c")
    assert Bm25Index(corpus.folder).search("river ?!", 3) == []


def test_an_index_is_made_once(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Bm25Index(corpus.folder, tmp_path / "i")
    monkeypatch.setattr(bm25_index, "_Builder", None)
    second = Bm25Index(corpus.folder, tmp_path / "i")
    assert first.name == second.name and first.name.startswith("bm25-")
    assert first.search("w1 w5", 9) == second.search("w1 w5", 9) != []


def test_without_a_folder_each_setting_has_its_own(corpus: Corpus) -> None:
    names = {Bm25Index(corpus.folder, k1=k1).name for k1 in (1.5, 0.9, 1.5)}
    assert {path.name for path in (corpus.folder / "index").iterdir()} == names and len(names) == 2


def test_an_index_of_another_corpus_or_formula_is_refused(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Bm25Index(corpus.folder, tmp_path / "i")
    other = write_corpus([Document(id="a", text="w1")], tmp_path / "other")
    with pytest.raises(
        InputError, match=rf"made for something else \(corpus: '{corpus.fingerprint} of 60 documents' there.*'{other.fingerprint}"
    ):
        Bm25Index(other.folder, tmp_path / "i")
    with pytest.raises(
        InputError, match=r"\(k1: 1.5 there, 0.9 asked for\); set index to a new folder .* delete this one to make it again"
    ):
        Bm25Index(corpus.folder, tmp_path / "i", k1=0.9)
    monkeypatch.setattr(bm25_index, "tokenize", str.split)
    with pytest.raises(InputError, match=r"\(tokenizer: 'words of .* there, 'words of .* asked for\)"):
        Bm25Index(corpus.folder, tmp_path / "i")


def test_a_stopped_build_goes_on_and_counts_no_document_twice(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Bm25Index(corpus.folder, tmp_path / "whole")
    counted: list[int] = []
    original = bm25_index._Builder._counts

    def stops(self: Any, documents: Any) -> Any:
        if len(counted) == 3:
            raise KeyboardInterrupt
        counts = original(self, documents)
        counted.append(len(counts.lengths))
        return counts

    monkeypatch.setattr(bm25_index._Builder, "_counts", stops)
    with pytest.raises(KeyboardInterrupt):
        Bm25Index(corpus.folder, tmp_path / "i", block=13)
    assert counted == [13, 13, 13] and not (tmp_path / "i" / "index.json").exists()
    with pytest.raises(InputError, match="k1: 1.5 there, 2.0 asked for"):
        Bm25Index(corpus.folder, tmp_path / "i", k1=2)
    counted.clear()
    resumed = Bm25Index(corpus.folder, tmp_path / "i", block=20)
    assert counted == [20, 1]
    assert resumed.name == whole.name
    for question in ("w1 w2", "w50 w7 w3"):
        assert resumed.search(question, 60) == whole.search(question, 60)


def test_a_folder_with_other_files_or_a_damaged_index_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="expected a new folder or an index, found thesis.txt"):
        Bm25Index(corpus.folder, tmp_path / "full")
    Bm25Index(corpus.folder, tmp_path / "i")
    (tmp_path / "i" / "data.csc.index.npy").write_bytes(b"x")
    with pytest.raises(InputError, match="bm25s cannot read it .* delete the folder"):
        Bm25Index(corpus.folder, tmp_path / "i")
    (tmp_path / "i" / "index.json").write_text(json.dumps({"kind": "bm25"}))
    with pytest.raises(InputError, match="index.json: corpus: Field required"):
        Bm25Index(corpus.folder, tmp_path / "i")


def test_what_cannot_be_asked_is_refused(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="k: expected at least 1, got 0"):
        Bm25Index(corpus.folder).search("w1", 0)
    for wrong in ({"k1": -1}, {"b": 1.5}, {"block": 0}):
        with pytest.raises(InputError, match="expected k1 of 0 and up"):
            Bm25Index(corpus.folder, **wrong)  # type: ignore[arg-type]
