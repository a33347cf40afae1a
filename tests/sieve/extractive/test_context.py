from hypothesis import given, settings
from hypothesis import strategies as st

from sieve.extractive.context import around

TEXT = "Dr. Ada Lundberg was born in Oslo. She moved to Paris in 1921. There she met J. Smith. They married."


def span(text: str, words: str) -> tuple[int, int]:
    start = text.index(words)
    return start, start + len(words)


def test_the_sentence_of_a_span_is_whole_and_ends_neither_at_a_title_nor_at_an_initial() -> None:
    assert around(TEXT, *span(TEXT, "Oslo"), words=5) == "Dr. Ada Lundberg was born in Oslo."
    assert around(TEXT, *span(TEXT, "Smith"), words=4) == "There she met J. Smith."


def test_sentences_before_come_first_then_those_after() -> None:
    assert around(TEXT, *span(TEXT, "1921"), words=13) == "Dr. Ada Lundberg was born in Oslo. She moved to Paris in 1921."
    assert around(TEXT, *span(TEXT, "Oslo"), words=13) == "Dr. Ada Lundberg was born in Oslo. She moved to Paris in 1921."
    assert around(TEXT, *span(TEXT, "Paris")) == TEXT


def test_the_title_leads_where_the_beginning_is_left_out() -> None:
    assert around(TEXT, *span(TEXT, "1921"), title="Ada Lundberg", words=6) == "Ada Lundberg. She moved to Paris in 1921."
    assert around(TEXT, *span(TEXT, "Oslo"), title="Ada Lundberg", words=6).startswith("Dr. Ada")


@settings(deadline=None)
@given(st.text(alphabet='aB1. !?\n"', min_size=1), st.data())
def test_the_span_is_always_in_what_is_around_it(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert text[start:end].strip() in around(text, start, end, words=3)
