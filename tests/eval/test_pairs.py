"""Examples and predictions brought together: whatever the order, and without holding either side."""

import weakref
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.pairs import pairs
from rag.errors import InputError
from rag.records import Condition, Example, Prediction, Reason, RetrievalState


def example(name: str) -> Example:
    state, condition = RetrievalState.UNANSWERABLE, Condition.UNANSWERABLE
    return Example(id=name, question_id=name, question="why?", documents=(), state=state, condition=condition)


def prediction(name: str, question_id: str | None = None) -> Prediction:
    return Prediction(id=name, question_id=question_id or name, reason=Reason.POLICY)


@given(st.lists(st.text("abc", min_size=1), min_size=1, unique=True), st.randoms(use_true_random=False))
def test_every_example_meets_its_prediction_whatever_the_order(names: list[str], random: Random) -> None:
    there = random.sample(names, len(names))
    met = list(pairs(map(example, names), map(prediction, there)))
    assert sorted(e.id for e, _ in met) == sorted(names)
    assert all(e.id == p.id for e, p in met)


def test_two_sides_in_one_order_are_held_one_at_a_time() -> None:
    alive: list[weakref.ref[Example]] = []

    def read() -> Iterator[Example]:
        for n in range(50):
            one = example(f"e{n}")
            alive.append(weakref.ref(one))
            yield one

    most = 0
    for _ in pairs(read(), (prediction(f"e{n}") for n in range(50))):
        most = max(most, sum(reference() is not None for reference in alive))
    assert len(alive) == 50 and most <= 3


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (["a", "a"], ["a"], "more than one example with id a"),
        (["a"], ["a", "a"], "more than one prediction for a"),
        (["a", "b", "c"], ["b"], "expected exactly one for each of the 3 examples, got 1: no prediction for a, c"),
        (["a"], ["b", "a", "c"], "predictions without an example b, c"),
        ([], ["a"], "examples: expected at least one to score, got none"),
        ([*"abcdefg"], ["a"], "no prediction for b, c, d, e, f and 1 more"),
    ],
)
def test_what_does_not_match_one_to_one_is_named(left: list[str], right: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(pairs(map(example, left), map(prediction, right)))


def test_a_pair_that_disagrees_about_its_question_is_named() -> None:
    with pytest.raises(InputError, match="another question_id than the example's in b"):
        list(pairs(map(example, "ab"), [prediction("b", "q"), prediction("a")]))
