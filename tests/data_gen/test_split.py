"""Splits go by question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.split import assign, shared_documents
from rag.errors import InputError
from rag.records import Condition, Document, Example, RetrievalState
from rag.splits import normalise_question, require_disjoint


def example(question_id: str, question: str, text: str = "Nothing here.") -> Example:
    return Example(
        id=f"{question_id}-unanswerable",
        question_id=question_id,
        question=question,
        documents=(Document(id="d", text=text),),
        state=RetrievalState.UNANSWERABLE,
        condition=Condition.UNANSWERABLE,
    )


@pytest.mark.parametrize(
    ("question", "expected"),
    [("Who won?", "who won"), ("  who   WON ", "who won"), ("Café – open?", "café open"), ("C++", "c"), ("???", "???")],
)
def test_a_question_without_case_punctuation_and_spacing(question: str, expected: str) -> None:
    assert normalise_question(question) == expected


@given(question=st.text(min_size=1), seed=st.integers(0, 5))
def test_spelling_does_not_move_a_question(question: str, seed: int) -> None:
    shares = {"train": 0.6, "validation": 0.15, "test": 0.25}
    assert assign(f" {question} ", shares, seed) == assign(question, shares, seed)


def test_shares_are_kept_on_the_whole() -> None:
    shares = {"train": 3.0, "validation": 1.0, "test": 0.0}
    dealt = [assign(f"question {i}", shares, seed=0) for i in range(2000)]
    assert 1400 < dealt.count("train") < 1600
    assert dealt.count("test") == 0


@pytest.mark.parametrize("shares", [{}, {"train": 0.0}, {"train": 1.0, "test": -0.5}])
def test_shares_that_deal_nothing_out_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(InputError, match="shares: expected a positive share"):
        assign("Who won?", shares, seed=0)


def test_a_question_in_two_splits_is_refused_by_id_and_by_text() -> None:
    """Pitfall G5."""
    with pytest.raises(InputError, match=r"question_id 'q1' in train \(example q1-unanswerable\) and in test"):
        require_disjoint({"train": [example("q1", "Who won?")], "test": [example("q1", "Who lost?")]})
    with pytest.raises(
        InputError, match=r"question 'who won' in train \(example q1-unanswerable\) and in test \(example q2-unanswerable\)"
    ):
        require_disjoint({"train": [example("q1", "Who won?")], "test": [example("q2", "who won")]})


def test_variants_of_a_question_may_share_a_split() -> None:
    require_disjoint({"train": [example("q1", "Who won?"), example("q2", "who won")], "test": [example("q3", "Who lost?")]})


def test_documents_in_two_splits_are_counted_once() -> None:
    splits = {
        "train": [example("q1", "a?", "x"), example("q2", "b?", "x")],
        "validation": [example("q3", "c?", "x")],
        "test": [example("q4", "d?", "y")],
    }
    assert shared_documents(splits) == 1
