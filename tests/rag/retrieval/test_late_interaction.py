"""Late interaction: MaxSim as the library computes it, over a whole corpus and as re-ranker; long questions are read whole or refused."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.errors import InputError
from rag.records import Document
from rag.retrieval import late_interaction
from rag.retrieval.bm25_index import Bm25Index
from rag.retrieval.corpus import Corpus, write_corpus
from rag.retrieval.late_interaction import LateInteraction, LateInteractionEncoder, maxsim
from rag.retrieval.reranked import Reranked
from rag.retrieval.retriever import Retriever
from rag.rounding import TOLERANCE

QUESTIONS = ["w1 w2 w3", "w50 w7 ?", "w9 w31 w4 w77 w21"]


@pytest.fixture(scope="module")
def model(colbert: Callable[..., str]) -> str:
    return colbert()


def test_maxsim_by_hand() -> None:
    question = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert maxsim(question, np.array([[0.6, 0.8], [0.8, 0.6]])) == pytest.approx(1.6)
    assert maxsim(question, np.array([[-1.0, 0.0]])) == -1.0
    assert maxsim(question, np.empty((0, 2))) == 0.0


def test_scores_are_those_of_the_library(model: str) -> None:
    from sentence_transformers import MultiVectorEncoder

    texts = ["w1 w2 w3 .", "w50", "w9 w4 w77"]
    library = MultiVectorEncoder(model, device="cpu")
    for question in QUESTIONS:
        expected = library.similarity(library.encode_query([question]), library.encode_document(texts))[0].tolist()
        assert LateInteractionEncoder(model).score(question, texts) == pytest.approx(expected, rel=1e-4)
    assert LateInteractionEncoder(model).score("w1", []) == []


def test_a_whole_corpus_is_searched_exactly(corpus: Corpus, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = LateInteraction(corpus.folder, model)
    encoder = LateInteractionEncoder(model)
    texts = [f"{d.title} {d.text}" if d.title else d.text for d in corpus]
    alone = [retriever.search(question, 60) for question in QUESTIONS]
    for question, found in zip(QUESTIONS, alone, strict=True):
        scores = dict(zip((d.id for d in corpus), encoder.score(question, texts), strict=True))
        assert {d.id: d.score for d in found} == pytest.approx(scores, rel=1e-2), "the index keeps half precision"
        assert [d.rank for d in found] == list(range(1, 61))
        assert [d.score for d in found] == sorted((d.score or 0.0 for d in found), reverse=True)
    for scanned in (1, 100):
        monkeypatch.setattr(late_interaction, "_SCANNED", scanned)
        for k in (60, 4):
            for each, other in zip(retriever.search_many(QUESTIONS, k), alone, strict=True):
                assert [d.id for d in each] == [d.id for d in other[:k]]
                assert [d.score for d in each] == pytest.approx([d.score for d in other[:k]], rel=TOLERANCE["float32"])
    assert retriever.search_many([], 4) == []


def test_equal_documents_are_in_the_order_of_their_ids(tmp_path: Path, model: str) -> None:
    names = ["d3", "d10", "É", "a"]
    documents = [Document(id="x", text="w5"), *(Document(id=name, text="w1 w2") for name in names)]
    corpus = write_corpus(documents, tmp_path / "c", duplicates="keep")
    found = LateInteraction(corpus.folder, model).search("w1 w2", 9)
    assert [d.id for d in found if d.id in names] == sorted(names)


def test_two_long_questions_that_differ_in_their_last_words_are_told_apart_or_refused(
    corpus: Corpus, model: str, make_words: Callable[..., str]
) -> None:
    """Pitfall E11: ColBERT cuts each question at 32 tokens, so the last five of sixty words would have no effect."""
    one, other = f"{make_words(55)} w60 w61 w62 w63 w64", f"{make_words(55)} w70 w71 w72 w73 w74"
    raising = LateInteractionEncoder(model)
    assert len(raising.question(one)) == 63
    assert not np.allclose(raising.question(one)[-6:], raising.question(other)[-6:])
    assert raising.score(one, ["w60 w71"]) != pytest.approx(raising.score(other, ["w60 w71"]), rel=TOLERANCE["float32"])
    whole = LateInteraction(corpus.folder, model)
    assert [d.score for d in whole.search(one, 5)] != pytest.approx([d.score for d in whole.search(other, 5)], rel=TOLERANCE["float32"])
    refusing = LateInteractionEncoder(model, long_questions="refuse")
    for question in (one, other):
        with pytest.raises(InputError, match="a question has 63 tokens and the model reads 32: .*; set long_questions=raise"):
            refusing.question(question)
    with pytest.raises(InputError, match="a question has 103 tokens and the model reads 96"):
        raising.question(make_words(100))


def test_raising_the_limit_leaves_short_questions_as_they_were(model: str) -> None:
    raising, refusing = LateInteractionEncoder(model), LateInteractionEncoder(model, long_questions="refuse")
    for question in QUESTIONS:
        assert len(raising.question(question)) == 32, "padded with mask tokens, which are scored"
        assert raising.question(question) == pytest.approx(refusing.question(question), abs=TOLERANCE["float32"])
    assert raising.name != refusing.name


def test_documents_that_are_cut_are_counted_and_their_length_can_be_raised(
    tmp_path: Path, model: str, make_words: Callable[..., str], caplog: Any
) -> None:
    corpus = write_corpus([Document(id=f"d{n}", text=make_words(n)) for n in (10, 57, 58, 70)], tmp_path / "c")
    with caplog.at_level(logging.WARNING):
        assert LateInteraction(corpus.folder, model).cut_documents == 2
    assert "2 of 4 documents are longer than the 60 tokens" in caplog.text
    assert LateInteraction(corpus.folder, model, document_length=96).cut_documents == 0
    with pytest.raises(InputError, match="document_length=97: .* reads at most 96 tokens"):
        LateInteractionEncoder(model, document_length=97)


def test_a_stopped_build_goes_on_and_another_model_is_refused(
    corpus: Corpus, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_interaction, "_BUILT_AT_ONCE", 16)
    whole = LateInteraction(corpus.folder, model, tmp_path / "whole")
    encoded: list[int] = []
    original = LateInteractionEncoder.documents

    def stops(self: LateInteractionEncoder, texts: list[str]) -> Any:
        if len(encoded) == 2:
            (tmp_path / "i" / "tokens.bin").open("ab").close()
            raise KeyboardInterrupt
        encoded.append(len(texts))
        return original(self, texts)

    monkeypatch.setattr(LateInteractionEncoder, "documents", stops)
    with pytest.raises(KeyboardInterrupt):
        LateInteraction(corpus.folder, model, tmp_path / "i")
    with (tmp_path / "i" / "tokens.bin").open("ab") as torn:
        torn.write(b"half a row")
    encoded[:] = [0, 0, 0]
    resumed = LateInteraction(corpus.folder, model, tmp_path / "i")
    assert encoded == [0, 0, 0, 16, 12]
    assert (tmp_path / "i" / "offsets.bin").read_bytes() == (tmp_path / "whole" / "offsets.bin").read_bytes()
    made, expected = (np.fromfile(tmp_path / name / "tokens.bin", dtype=np.float16) for name in ("i", "whole"))
    assert made.shape == expected.shape and np.allclose(made, expected, atol=TOLERANCE["float16"])
    assert resumed.name == whole.name
    with pytest.raises(InputError, match="document_length: 60 there, 50 asked for"):
        LateInteraction(corpus.folder, model, tmp_path / "i", document_length=50)


def test_as_re_ranker_of_bm25(corpus: Corpus, model: str) -> None:
    first, encoder = Bm25Index(corpus.folder), LateInteractionEncoder(model)
    two: Retriever = Reranked(first, encoder, candidates=10)
    found = two.search("w1 w2 w3", 5)
    candidates = first.search("w1 w2 w3", 10)
    scores = encoder.score("w1 w2 w3", [f"{d.title} {d.text}" if d.title else d.text for d in candidates])
    expected = sorted(zip(scores, (d.id for d in candidates), strict=True), key=lambda pair: (-pair[0], pair[1]))[:5]
    assert [d.id for d in found] == [name for _, name in expected]
    assert [d.score for d in found] == pytest.approx([score for score, _ in expected], rel=TOLERANCE["float32"])
