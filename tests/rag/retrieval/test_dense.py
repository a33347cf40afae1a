"""Dense retrieval: exact, whatever the blocks and the batch; resumable; nothing is cut in silence."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.errors import InputError
from rag.records import Document
from rag.retrieval import dense
from rag.retrieval.corpus import Corpus, write_corpus
from rag.retrieval.dense import Dense
from rag.retrieval.retriever import BatchRetriever, Retriever
from rag.rounding import TOLERANCE

QUESTIONS = ["w1 w2 w3", "w50 w7", "w9", "w4 w4 w4 w77 w21"]


def brute_force(retriever: Dense, question: str, *, normalise: bool = True) -> list[tuple[str, float]]:
    """All documents by the encoder's own call and plain numpy, ties by id."""
    encoder = retriever._encoder
    texts = [f"{d.title} {d.text}" if d.title else d.text for d in retriever.corpus]
    vectors = encoder.encode_document(texts, normalize_embeddings=normalise).astype(np.float64)
    asked = encoder.encode_query([question], normalize_embeddings=normalise)[0].astype(np.float64)
    pairs = zip([d.id for d in retriever.corpus], (vectors @ asked).tolist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_it_finds_what_a_plain_product_finds(similarity: Any, corpus: Corpus, minilm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = Dense(corpus.folder, minilm, similarity=similarity, dtype="float32", query_prompt="", document_prompt="")
    monkeypatch.setattr(dense, "_SCANNED", 7 * 32 * 4)
    for question in QUESTIONS:
        found = retriever.search(question, 8)
        expected = brute_force(retriever, question, normalise=similarity == "cosine")[:8]
        assert [d.id for d in found] == [name for name, _ in expected]
        assert [d.score for d in found] == pytest.approx([score for _, score in expected], rel=1e-4)
        assert [d.rank for d in found] == list(range(1, 9))
        assert [corpus[int(d.id[1:])] for d in found] == [d.model_copy(update={"rank": None, "score": None}) for d in found]


def require_alike(found: list[list[Document]], expected: list[list[Document]]) -> None:
    """The same documents in the same order, and the same scores but for rounding."""
    assert [[d.id for d in each] for each in found] == [[d.id for d in each] for each in expected]
    for each, other in zip(found, expected, strict=True):
        assert [d.score for d in each] == pytest.approx([d.score for d in other], abs=TOLERANCE["float32"])


def test_a_result_depends_neither_on_the_batch_nor_on_the_blocks(corpus: Corpus, minilm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = Dense(corpus.folder, minilm)
    assert isinstance(retriever, BatchRetriever)
    alone = [retriever.search(question, 60) for question in QUESTIONS]
    require_alike(retriever.search_many(QUESTIONS, 60), alone)
    for scanned in (1, 13 * 32 * 4):
        monkeypatch.setattr(dense, "_SCANNED", scanned)
        require_alike(retriever.search_many(QUESTIONS[::-1], 60), alone[::-1])
        require_alike(retriever.search_many(QUESTIONS, 5), [found[:5] for found in alone])
    assert retriever.search_many([], 5) == []


def test_equal_documents_are_in_the_order_of_their_ids(tmp_path: Path, minilm: str) -> None:
    names = ["d3", "d10", "É", "a", "d2"]
    documents = [Document(id=name, text="w1 w2") for name in names] + [Document(id=f"e{i}", text=f"w{i} w{i}") for i in range(9)]
    corpus = write_corpus(documents, tmp_path / "c", duplicates="keep")
    found = Dense(corpus.folder, minilm, document_prompt="").search("w1 w2", 14)
    tied = [d.id for d in found if d.id in names]
    assert tied == sorted(names)
    assert [d.id for d in Dense(corpus.folder, minilm, document_prompt="").search("w1 w2", 3)] == [d.id for d in found[:3]]


def test_prompts_titles_and_pooling_are_used_and_are_part_of_the_index(corpus: Corpus, encoder: Callable[..., str], tmp_path: Path) -> None:
    plain = encoder()
    stored = encoder(prompts={"query": "w90 ", "document": "w91 "})
    base = Dense(corpus.folder, plain, tmp_path / "i", query_prompt="w90 ", document_prompt="w91 ")
    same = Dense(corpus.folder, stored, tmp_path / "j")
    assert [d.id for d in same.search("w1 w2", 60)] == [d.id for d in base.search("w1 w2", 60)]
    bare = Dense(corpus.folder, stored, tmp_path / "k", query_prompt="", document_prompt="")
    assert bare.search("w1 w2", 60) != base.search("w1 w2", 60)
    for change, message in (
        ({"query_prompt": "w92 "}, "query_prompt: 'w90 ' there, 'w92 ' asked for"),
        ({"document_prompt": ""}, "document_prompt: 'w91 ' there, '' asked for"),
        ({"title_separator": " [SEP] "}, "title_separator: ' ' there"),
        ({"similarity": "dot"}, "similarity: 'cosine' there, 'dot'"),
        ({"dtype": "float32"}, "dtype: 'float16' there"),
        ({"max_length": 40}, "max_length: 96 there, 40 asked for"),
        ({"model": encoder(pooling="cls")}, "weights: '"),
        ({"model": encoder(seed=1)}, "weights: '"),
        ({"query_model": encoder(seed=1)}, "query_weights: '"),
    ):
        settings: dict[str, Any] = {"model": plain, "query_prompt": "w90 ", "document_prompt": "w91 ", **change}
        with pytest.raises(InputError, match=f"made for something else.*{message}"):
            Dense(corpus.folder, index=tmp_path / "i", **settings)


def test_questions_and_documents_may_have_an_encoder_each(corpus: Corpus, encoder: Callable[..., str]) -> None:
    """DPR."""
    passages, questions = encoder(seed=1, pooling="cls"), encoder(seed=2, pooling="cls")
    two: Retriever = Dense(corpus.folder, passages, query_model=questions, similarity="dot", title_separator=" [SEP] ")
    other_way = Dense(corpus.folder, questions, query_model=passages, similarity="dot", title_separator=" [SEP] ")
    assert two.name != other_way.name
    found = two.search("w1 w2", 3)
    from sentence_transformers import SentenceTransformer

    best = found[0]
    text = f"{best.title} [SEP] {best.text}" if best.title else best.text
    product = SentenceTransformer(questions, device="cpu").encode("w1 w2") @ SentenceTransformer(passages, device="cpu").encode(text)
    assert best.score == pytest.approx(float(product), rel=1e-2)


def test_a_stopped_build_goes_on_with_the_rows_that_are_done(
    corpus: Corpus, minilm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "_BUILT_AT_ONCE", 16)
    whole = Dense(corpus.folder, minilm, tmp_path / "whole", batch_size=8)
    encoded: list[int] = []
    original = dense.token_counts

    def stops(encoder: Any, texts: list[str], prompt: str) -> list[int]:
        if len(encoded) == 2:
            raise KeyboardInterrupt
        encoded.append(len(texts))
        return original(encoder, texts, prompt)

    monkeypatch.setattr(dense, "token_counts", stops)
    with pytest.raises(KeyboardInterrupt):
        Dense(corpus.folder, minilm, tmp_path / "i", batch_size=8)
    encoded[:] = [0, 0, 0]
    resumed = Dense(corpus.folder, minilm, tmp_path / "i", batch_size=8)
    assert encoded == [0, 0, 0, 16, 12], "32 of 60 documents were done"
    made, expected = (np.fromfile(tmp_path / name / "embeddings.bin", dtype=np.float16) for name in ("i", "whole"))
    assert made.shape == expected.shape and np.allclose(made, expected, atol=TOLERANCE["float16"])
    assert resumed.name == whole.name
    assert {path.name for path in (tmp_path / "i").iterdir()} == {"embeddings.bin", "index.json", "lock"}


def test_a_long_question_is_refused_or_cut_aloud(corpus: Corpus, minilm: str, make_words: Callable[..., str], caplog: Any) -> None:
    """Pitfall E11."""
    long, other = make_words(90), f"{make_words(85)} w90 w91 w92 w93 w94"
    refusing = Dense(corpus.folder, minilm, max_length=64)
    for question in (long, other):
        with pytest.raises(InputError, match="a question has 92 tokens with its prompt and the encoder reads 64: .* long_questions=cut"):
            refusing.search_many(["w1", question], 3)
    assert refusing.search(make_words(62), 1)[0].rank == 1
    cutting = Dense(corpus.folder, minilm, max_length=64, long_questions="cut")
    with caplog.at_level(logging.WARNING):
        require_alike([cutting.search(long, 3)], [cutting.search(other, 3)])
    assert cutting.cut_questions == 2 and caplog.text.count("long_questions=cut: of 92 tokens of a question the encoder reads 64") == 2
    reading = Dense(corpus.folder, minilm)
    assert [d.score for d in reading.search(long, 3)] != pytest.approx(
        [d.score for d in reading.search(other, 3)], abs=TOLERANCE["float32"]
    )


def test_documents_that_are_cut_are_counted(tmp_path: Path, minilm: str, make_words: Callable[..., str], caplog: Any) -> None:
    documents = [Document(id=f"d{n}", text=make_words(n)) for n in (10, 62, 63, 64, 200)]
    corpus = write_corpus(documents, tmp_path / "c")
    with caplog.at_level(logging.WARNING):
        retriever = Dense(corpus.folder, minilm, max_length=64, document_prompt="")
    assert retriever.cut_documents == 3
    assert "3 of 5 documents are longer than the 64 tokens" in caplog.text
    assert Dense(corpus.folder, minilm, max_length=64, document_prompt="").cut_documents == 3


def test_what_cannot_work_is_refused(corpus: Corpus, minilm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="max_length=97: .* has 96 positions"):
        Dense(corpus.folder, minilm, max_length=97)
    with pytest.raises(InputError, match=r"model '.*/none': cannot be loaded"):
        Dense(corpus.folder, str(tmp_path / "none"))
    monkeypatch.setattr(dense, "_float32", lambda vectors: np.full_like(vectors, 1e9))
    with pytest.raises(InputError, match="numbers that float16 cannot hold; set dtype=float32"):
        Dense(corpus.folder, minilm, tmp_path / "i")
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"pip install 'sieve-and-sage\[retrieval\]'"):
        Dense(corpus.folder, minilm)
