"""Fusion: hand-computed sums, the scale of each list, ties, and what must hold for any scores."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.records import Document
from rag.retrieval.hybrid import Hybrid, fuse, normalised
from rag.retrieval.reranked import Reranked
from rag.retrieval.retriever import Retriever, search_all


def found(**scores: float) -> list[Document]:
    return [Document(id=name, text=name, score=score) for name, score in scores.items()]


class Fixed:
    """A retriever that finds the same for every question."""

    def __init__(self, name: str, documents: list[Document]) -> None:
        self.name = name
        self._documents = documents
        self.asked: list[int] = []

    def search(self, question: str, k: int) -> list[Document]:
        self.asked.append(k)
        return self._documents[:k]


class Shortest:
    """A re-ranker that prefers short texts."""

    name = "shortest"

    def score(self, question: str, texts: list[str]) -> list[float]:
        return [-float(len(text)) for text in texts]


def test_the_sums_are_those_computed_by_hand() -> None:
    """First list: a 1, b 0.5, c 0. Second list: b 1, d 0."""
    lists = [found(a=30.0, b=20.0, c=10.0), found(b=0.9, d=0.1)]
    equal = fuse(lists, [1, 1], k=9)
    assert [(d.id, d.rank, d.score) for d in equal] == [("b", 1, 0.75), ("a", 2, 0.5), ("c", 3, 0.0), ("d", 4, 0.0)]
    assert [(d.id, d.score) for d in fuse(lists, [3, 1], k=2)] == [("a", 0.75), ("b", 0.625)]
    assert [d.id for d in fuse(lists, [0, 5], k=1)] == ["b"]


def test_a_list_of_one_score_gives_each_of_its_documents_all_of_its_weight() -> None:
    assert [(d.id, d.score) for d in fuse([found(z=7.0), found(y=2.0, x=2.0)], [1, 1], k=9)] == [("x", 0.5), ("y", 0.5), ("z", 0.5)]
    assert normalised([]) == [] and normalised([-3.0]) == [1.0]
    assert fuse([[], []], [1, 1], k=3) == []
    assert [d.id for d in fuse([[], found(a=1.0)], [1, 1], k=3)] == ["a"]


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1e300, 1e300) | st.sampled_from([0.0, 1.0]))


@given(SCORES, SCORES, st.floats(0.01, 100), st.integers(1, 9), st.randoms(use_true_random=False))
def test_what_holds_for_any_scores(one: dict[str, float], two: dict[str, float], weight: float, k: int, rng: random.Random) -> None:
    lists = [found(**one), found(**two)]
    fused = fuse(lists, [weight, 1], k)
    assert len(fused) == min(k, len(one | two))
    assert [d.rank for d in fused] == list(range(1, len(fused) + 1))
    assert all(d.score is not None and 0 <= d.score <= 1 + 1e-9 for d in fused)
    assert sorted(fused, key=lambda d: (-(d.score or 0.0), d.id)) == fused
    for scores in lists:
        rng.shuffle(scores)
    assert fuse(lists, [weight, 1], k) == fused, "the order within a list says nothing that its scores do not"
    swapped = fuse(lists[::-1], [1, weight], 9)
    assert {d.id: d.score for d in swapped} == pytest.approx({d.id: d.score for d in fuse(lists, [weight, 1], 9)})


def test_a_retriever_of_retrievers() -> None:
    first, second = Fixed("one", found(a=3.0, b=2.0, c=1.0)), Fixed("two", found(c=3.0, b=2.0, a=1.0))
    both: Retriever = Hybrid({"first": first, "second": second}, candidates=2)
    # Of the first two of each: a 1 and b 0, c 1 and b 0.
    assert [(d.id, d.score) for d in both.search("?", 2)] == [("a", 0.5), ("c", 0.5)]
    assert [d.id for d in both.search("?", 3)] == ["a", "b", "c"]
    assert first.asked == [2, 3]
    assert both.name != Hybrid({"first": first, "second": second}, candidates=3).name
    assert both.name != Hybrid({"first": first, "second": second}, {"first": 2, "second": 1}, candidates=2).name
    assert list(search_all(both, ["?"] * 5, 1, batch_size=2)) == [[[both.search("?", 1)[0]]] * n for n in (2, 2, 1)]


def test_what_cannot_be_fused_is_refused() -> None:
    one, two = Fixed("one", found(a=1.0)), Fixed("two", [Document(id="a", text="another", score=1.0)])
    with pytest.raises(InputError, match="document 'a' has two different texts"):
        Hybrid({"one": one, "two": two}).search("?", 1)
    with pytest.raises(InputError, match="weights: expected one for each of one, two, got one"):
        Hybrid({"one": one, "two": two}, {"one": 1})
    for wrong in ({"one": 0.0, "two": 0.0}, {"one": -1.0, "two": 2.0}, {"one": float("inf"), "two": 1.0}):
        with pytest.raises(InputError, match="weights: expected numbers of 0 and up, not all 0"):
            Hybrid({"one": one, "two": two}, wrong)
    with pytest.raises(InputError, match="retrievers: expected two or more, got 1"):
        Hybrid({"one": one})


def test_a_re_ranker_orders_the_candidates_of_the_first_stage_and_no_others() -> None:
    documents = [Document(id=name, text=name[1:] * 3, score=1.0) for name in ("cxxx", "bx", "ax", "dxx", "e")]
    two: Retriever = Reranked(Fixed("one", documents), Shortest(), candidates=4)
    best = two.search("?", 3)
    assert [(d.id, d.rank, d.score) for d in best] == [("ax", 1, -3.0), ("bx", 2, -3.0), ("dxx", 3, -6.0)]
    assert two.search("?", 5)[0].id == "e", "asked for more than the candidates, it re-ranks as many as are asked for"
    assert Reranked(Fixed("one", []), Shortest()).search("?", 3) == []
    assert two.name != Reranked(Fixed("two", documents), Shortest(), candidates=4).name
