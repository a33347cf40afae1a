import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.extractive.answers import Relation, bare, compare

SAME = [
    ("twelve", "12"),
    ("twenty-one", "21"),
    ("two hundred and five", "205"),
    ("one hundred thousand", "100,000"),
    ("a dozen eggs", "12 eggs"),
    ("second", "2nd"),
    ("$1.2 million", "1,200,000 dollars"),
    ("about 3,600 people", "3,559"),
    ("25%", "25 percent"),
    ("28 years", "twenty-eight"),
    ("64 bridges", "sixty-four"),
    ("10-12", "10 to 12"),
    ("3 pm", "15:00"),
    ("3 p.m.", "3:00 pm"),
    ("1999", "12 May 1999"),
    ("in 1941", "1941"),
    ("May 12, 1999", "12th of May 1999"),
    ("1999-05-12", "12 May 1999"),
    ("30 June", "June 30, 2020"),
    ("UK", "United Kingdom"),
    ("U.S.", "United States"),
    ("J. R. R. Tolkien", "John Ronald Reuel Tolkien"),
    ("Tolkien", "J. R. R. Tolkien"),
    ("The Beatles", "beatles"),
    ("“Paris”", "Paris"),
    ("Mayor Ada Lundberg", "Ada Lundberg"),
]
DIFFERENT = [
    ("1967", "1968"),
    ("12 May 1999", "12 May 1998"),
    ("May 1999", "June 1999"),
    ("five", "six"),
    ("3,559", "3,600"),
    ("3 pm", "4 pm"),
    ("15:00", "3:30 pm"),
    ("$5 million", "$5 billion"),
    ("about 3,600", "about 5,000"),
    ("Apollo 11", "Gemini 8"),
    ("300 mg", "445 mg"),
]
UNSURE = [
    ("Ada Lundberg", "Hugo Marlsen"),
    ("UK", "Britain"),
    ("red", "blue"),
    ("J. Smith", "K. Smithers"),
    ("IBM", "Apple"),
]


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        (*pair, relation)
        for relation, pairs in ((Relation.SAME, SAME), (Relation.DIFFERENT, DIFFERENT), (Relation.UNSURE, UNSURE))
        for pair in pairs
    ],
)
def test_rules_tell_answers_apart_in_either_order(first: str, second: str, relation: Relation) -> None:
    assert compare(first, second) is relation
    assert compare(second, first) is relation


@settings(deadline=None)
@given(st.text(min_size=1).filter(str.strip))
def test_an_answer_is_the_same_as_itself(answer: str) -> None:
    assert compare(answer, answer) is Relation.SAME


@settings(deadline=None)
@given(st.text(), st.text())
def test_the_order_does_not_matter(first: str, second: str) -> None:
    assert compare(first, second) is compare(second, first)


@settings(deadline=None)
@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_whole_numbers_are_the_same_where_they_are_equal(first: int, second: int) -> None:
    assert (compare(f"{first:,}", str(second)) is Relation.SAME) is (first == second)


def test_a_denial_is_told_by_its_first_word() -> None:
    assert bare("not 1999") == "1999"
    assert bare("nothing") == "nothing"
