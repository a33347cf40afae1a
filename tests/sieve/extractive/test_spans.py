import math

import pytest
import torch

from sieve.extractive.inputs import Encoding, Window
from sieve.extractive.spans import read, window_scores

TEXT = "aa bb cc"
WINDOW = Window(ids=[0, 5, 2, 6, 7, 8, 2], segments=[0, 0, 0, 1, 1, 1, 1], first=3, offsets=[(0, 2), (3, 5), (6, 8)])


def logits(start: dict[int, float], end: dict[int, float]) -> torch.Tensor:
    """Logits of one window, 0 but where they are given."""
    found = torch.zeros(len(WINDOW.ids), 2)
    for column, given in enumerate((start, end)):
        for place, value in given.items():
            found[place, column] = value
    return found


def test_the_chance_of_no_answer_by_hand() -> None:
    # All logits zero: one null span beside six spans of at most three tokens.
    reading = read(Encoding(TEXT, [WINDOW], False), [logits({}, {})], 3)
    assert reading.silent == pytest.approx(1 / 7)
    assert read(Encoding(TEXT, [WINDOW], False), [logits({}, {})], 1).silent == pytest.approx(1 / 4)


def test_the_best_span_by_hand() -> None:
    reading = read(Encoding(TEXT, [WINDOW], False), [logits({4: 3.0}, {5: 2.0})], 3)
    best = reading.spans[0]
    assert TEXT[best.start : best.end] == "bb cc"
    # exp(5) of exp(5) + bb alone exp(3) + aa..cc and cc with exp(2) + aa and aa bb with 1.
    total = math.exp(5) + math.exp(3) + 2 * math.exp(2) + 2
    assert best.probability == pytest.approx(math.exp(5) / total, rel=1e-5)
    assert all(a.end <= b.start or b.end <= a.start for a in reading.spans for b in reading.spans if a is not b)


def test_a_span_never_ends_before_it_begins() -> None:
    none, spans = window_scores(logits({5: 9.0}, {3: 9.0}), WINDOW, 3)
    assert none == 0 and spans.shape == (3, 3)
    assert spans[2].tolist() == [9.0, -math.inf, -math.inf]


def test_a_document_is_silent_as_far_as_all_of_its_windows_are() -> None:
    one = read(Encoding(TEXT, [WINDOW], False), [logits({}, {})], 3).silent
    two = read(Encoding(TEXT, [WINDOW, WINDOW], False), [logits({}, {})] * 2, 3).silent
    assert two == pytest.approx(one * one)


def test_a_window_that_is_silent_has_no_say_in_the_answer() -> None:
    quiet = logits({0: 20.0, 3: 5.0}, {0: 20.0, 3: 5.0})
    spoken = logits({5: 2.0}, {5: 2.0})
    reading = read(Encoding(TEXT, [WINDOW, WINDOW], False), [quiet, spoken], 3)
    assert TEXT[reading.spans[0].start : reading.spans[0].end] == "cc"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_reading(value: float) -> None:
    for place in range(len(WINDOW.ids)):
        with pytest.raises(RuntimeError, match="not numbers"):
            read(Encoding(TEXT, [WINDOW], False), [logits({place: value}, {})], 3)


def test_a_document_without_text_is_silent() -> None:
    empty = Window(ids=[0, 5, 2, 2], segments=[0, 0, 0, 1], first=0, offsets=[])
    assert read(Encoding("", [empty], False), [torch.zeros(4, 2)], 3) == (1.0, ())
