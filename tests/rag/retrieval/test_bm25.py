"""BM25: order and scores computed by hand, ties, and what matches nothing."""

import math
import random

import pytest

from rag.errors import InputError
from rag.records import Document, DocumentLabel
from rag.retrieval.bm25 import Bm25, tokenize
from rag.retrieval.retriever import Retriever


def documents(**texts: str) -> list[Document]:
    return [Document(id=name, text=text) for name, text in texts.items()]


def ids(found: list[Document]) -> list[str]:
    return [document.id for document in found]


def test_the_order_and_the_scores_are_those_of_the_formula() -> None:
    """Lucene's BM25 with k1 = 1.5, b = 0.75 on documents of 2, 4 and 6 words, 4 on average."""
    index = Bm25(documents(short="tall bridge", middle="bridge over the river", long="the river the river the sea"))

    def score(frequency: int, length: int, containing: int) -> float:
        rarity = math.log(1 + (3 - containing + 0.5) / (containing + 0.5))
        return rarity * frequency / (frequency + 1.5 * (0.25 + 0.75 * length / 4))

    found = index.search("Which river bridge?", k=3)
    expected = {
        "middle": score(1, 4, 2) + score(1, 4, 2),
        "short": score(1, 2, 2),
        "long": score(2, 6, 2),
    }
    # middle: 0.47 * 2/2.5 = 0.376; short: 0.47 * 1/1.9375 = 0.243; long: 0.47 * 2/4.0625 = 0.231
    assert ids(found) == ["middle", "short", "long"]
    assert [document.rank for document in found] == [1, 2, 3]
    assert [document.score for document in found] == pytest.approx([expected[name] for name in ids(found)], rel=1e-5)


def test_k1_and_b_are_the_formulas() -> None:
    texts = documents(short="river", long="river river and much else besides")
    assert ids(Bm25(texts, b=1.0).search("river", k=2)) == ["short", "long"]
    assert ids(Bm25(texts, b=0.0).search("river", k=2)) == ["long", "short"]
    tied = Bm25(texts, k1=0.0).search("river", k=2)
    assert ids(tied) == ["long", "short"]  # repetition adds nothing, so the id decides
    assert tied[0].score == tied[1].score


def test_ties_go_by_document_id_in_whatever_order_the_documents_came() -> None:
    texts = documents(d="a river", b="a river", c="a river", a="a road")
    for order in range(5):
        random.Random(order).shuffle(texts)
        assert ids(Bm25(texts).search("river", k=4)) == ["b", "c", "d"]
        assert ids(Bm25(texts).search("river", k=2)) == ["b", "c"]


def test_documents_without_a_matching_term_are_not_returned() -> None:
    index = Bm25(documents(a="a river", b="a road"))
    assert ids(index.search("the river", k=5)) == ["a"]
    for question in ("", " ?!", "sea", "riverside"):
        assert index.search(question, k=5) == []


def test_nothing_to_search_is_no_error() -> None:
    assert Bm25([]).search("river", k=1) == []
    assert Bm25(documents(blank=" ", marks="?!")).search("river", k=1) == []
    assert ids(Bm25(documents(blank="", other="river")).search("river", k=2)) == ["other"]


def test_a_term_is_in_every_document_and_still_counts() -> None:
    assert ids(Bm25(documents(a="river", b="river road")).search("river", k=2)) == ["a", "b"]


def test_title_and_text_are_searched_in_any_case_and_unicode_form() -> None:
    index = Bm25([Document(id="a", title="ÉCOLE", text="It opened."), Document(id="b", text="Nothing.")])
    assert ids(index.search("e\u0301cole", k=2)) == ["a"]
    assert tokenize("The U.S.’s école—№5, snake_case") == ["the", "u", "s", "s", "école", "no5", "snake_case"]


def test_a_document_keeps_everything_but_rank_and_score() -> None:
    document = Document(id="a", title="River", text="Long.", rank=7, score=9.0, label=DocumentLabel.CONFLICT, metadata={"source": "x"})
    found = Bm25([document]).search("river", k=1)[0]
    assert found.model_copy(update={"rank": 7, "score": 9.0}) == document
    assert found.rank == 1 and found.score is not None and 0 < found.score < 1


def test_the_index_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    index: Retriever = Bm25(documents(a="a river"))
    index.search("river", k=1)
    assert capsys.readouterr() == ("", "")


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(InputError, match="k: expected at least 1, got 0"):
        Bm25(documents(a="river")).search("river", k=0)
    with pytest.raises(InputError, match="expected documents with distinct ids, got 'a' twice"):
        Bm25([*documents(a="river"), *documents(a="road")])


def test_the_name_is_that_of_documents_and_settings() -> None:
    texts = documents(a="river", b="road")
    name = Bm25(texts).name
    assert name.startswith("bm25-memory-") and Bm25(texts[::-1]).name == name
    assert len({name, Bm25(texts, k1=1.2).name, Bm25(texts[:1]).name, Bm25(documents(a="river", b="roads")).name}) == 4
