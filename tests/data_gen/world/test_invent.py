"""Invented names and values."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.world.invent import Value, draw, number_word, stems
from data_gen.world.vocabulary import ValueKind
from rag.text import contains


@pytest.mark.parametrize(
    ("number", "word"), [(1, "one"), (11, "eleven"), (19, "nineteen"), (20, "twenty"), (42, "forty-two"), (99, "ninety-nine")]
)
def test_numbers_in_words(number: int, word: str) -> None:
    assert number_word(number) == word


@pytest.mark.parametrize(
    ("one", "other", "expected"), [("18", "18 crowns", True), ("18", "118", False), ("oak", "oak", True), ("oak", "Oakford", False)]
)
def test_values_overlap_by_whole_words(one: str, other: str, expected: bool) -> None:
    assert Value((one,)).overlaps(Value((other,))) is expected
    assert Value((other,)).overlaps(Value((one,))) is expected


@given(kind=st.sampled_from(ValueKind), seed=st.integers())
def test_a_sentence_with_one_value_does_not_contain_another_drawn_apart_from_it(kind: ValueKind, seed: int) -> None:
    rng = Random(seed)
    first = draw(rng, kind)
    second = draw(rng, kind, (first,))
    for form in first.forms:
        sentence = f"It is {form}, as the register shows."
        assert contains(sentence, form)
        assert not any(contains(sentence, other) for other in second.forms)


def test_stems_are_distinct_and_their_order_comes_from_the_seed() -> None:
    assert len(set(stems(0))) == len(stems(0)) >= 8 * 3000
    assert stems(0) != stems(1)
    assert set(stems(0)) == set(stems(1))
