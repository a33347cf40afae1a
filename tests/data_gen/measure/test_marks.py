"""Marks in texts."""

import html as stdlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.measure.marks import Span, changes, html, nearest_sentence, occurrences


def cut(text: str, spans: tuple[Span, ...] | list[Span]) -> list[str]:
    return [text[span.start : span.end] for span in spans]


def test_changed_words_are_marked_on_both_sides() -> None:
    before, after = "Ada Lundberg built the bridge in 1874.", "Bo Holm built the old bridge in 1901."
    found = changes(before, after)
    assert cut(before, found.removed) == ["Ada Lundberg", "1874"]
    assert cut(after, found.added) == ["Bo Holm", "old", "1901"]
    assert found.likeness == pytest.approx(2 * 5 / (8 + 9))


def test_case_is_no_change_and_equal_texts_have_none() -> None:
    found = changes("The Bridge, is.", "the bridge, IS.")
    assert (found.removed, found.added, found.likeness) == ((), (), 1.0)


def test_the_nearest_sentence_is_found_and_its_changes_have_their_places_in_the_text() -> None:
    text = "It rained. Bo built the bridge in 1874! Nobody came."
    found = nearest_sentence(text, "Ada built the bridge in 1874.")
    assert cut(text, found.added)[0] == "Bo"
    assert found.likeness > 0.7
    assert nearest_sentence("", "Ada.").likeness == 0


def test_an_answer_is_found_as_a_word_only() -> None:
    text = "Peruvians live in Peru; PERU is large."
    assert cut(text, occurrences(text, ["Peru"], "answer")) == ["Peru", "PERU"]
    assert occurrences("Peruvians", ["Peru", " "], "answer") == []
    assert cut("C++ and C", occurrences("C++ and C", ["C++"], "answer")) == ["C++"]
    assert cut("東京都です", occurrences("東京都です", ["東京"], "answer")) == ["東京"]
    assert cut("a (b.*) c", occurrences("a (b.*) c", ["(b.*)"], "answer")) == ["(b.*)"]


def test_overlapping_marks_keep_all_their_names() -> None:
    spans = [Span(0, 5, "added"), Span(3, 8, "answer"), Span(4, 4, "added")]
    assert html("abcdefgh<", spans) == (
        '<mark class="added">abc</mark><mark class="added answer">de</mark><mark class="answer">fgh</mark>&lt;'
    )
    assert html("") == ""


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4))
def test_marks_lose_no_character_and_let_no_tag_through(text: str, places: list[tuple[int, int]]) -> None:
    spans = [Span(min(a, len(text)), min(b, len(text)), "added") for a, b in places]
    marked = html(text, spans)
    bare = re.sub(r'<mark class="added">|</mark>', "", marked)
    assert "<" not in bare and '"' not in bare
    assert stdlib.unescape(bare) == text


@given(st.text(max_size=60), st.text(max_size=60))
def test_spans_lie_in_their_texts(before: str, after: str) -> None:
    found = changes(before, after)
    assert 0 <= found.likeness <= 1
    assert all(0 <= s.start < s.end <= len(before) for s in found.removed)
    assert all(0 <= s.start < s.end <= len(after) for s in found.added)
