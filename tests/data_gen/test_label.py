"""What a text states."""

from hypothesis import given
from hypothesis import strategies as st

from data_gen.label import names, stated
from rag.text import contains

PIECES = [
    "a",
    "Bo",
    "5",
    "12",
    "C++",
    "1,500",
    "the ",
    "é",
    "'s",
    " ",
    ". ",
    ", ",
    ".",
    ",",
    "-",
    "(",
    ")",
    '"',
    "?",
    "+",
    "#",
    "/",
    ":",
    ";",
]


def test_the_longest_form_is_stated_as_the_text_spells_it() -> None:
    assert stated("She left WASHINGTON, DC on Monday.", ("Washington", "washington, DC")) == "WASHINGTON, DC"
    assert stated("Limassol waits.", ("Lima",)) is None
    assert stated("Lima waits.", ()) is None


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.lists(st.sampled_from(PIECES), min_size=1, max_size=3))
def test_the_short_cut_never_disagrees_with_the_rule(text: list[str], answer: list[str]) -> None:
    assert names("".join(text), "".join(answer)) == contains("".join(text), "".join(answer))
