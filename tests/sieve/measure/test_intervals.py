"""Shares, Macro-F1 and areas by hand, and intervals that go by question."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.measure.intervals import NOTHING, Figure, auc, auc_figure, macro_f1, share
from sieve.measure.settings import Measure
from sieve.threshold import rates

DRAW = {"resamples": 200, "seed": 0}
rows = st.lists(st.tuples(st.integers(0, 4).map(lambda n: n / 4), st.booleans(), st.sampled_from("abcd")), min_size=1, max_size=25)


@pytest.mark.parametrize(
    ("scores", "positive", "expected"),
    [
        ([0.9, 0.8, 0.7, 0.1], [True, False, True, False], 3 / 4),
        ([0.5, 0.5], [True, False], 0.5),
        ([0.1, 0.9], [True, False], 0.0),
        ([0.1, 0.9], [True, True], None),
        ([], [], None),
    ],
)
def test_the_area_by_hand(scores: list[float], positive: list[bool], expected: float | None) -> None:
    assert auc(scores, positive) == expected
    assert auc_figure(scores, positive, ["q"] * len(scores), **DRAW).value == expected


@given(rows)
def test_the_area_counts_pairs(rows: list[tuple[float, bool, str]]) -> None:
    pairs = [(a > b) + (a == b) / 2 for a, y, _ in rows if y for b, z, _ in rows if not z]
    expected = pytest.approx(sum(pairs) / len(pairs)) if pairs else None
    assert auc([s for s, _, _ in rows], [y for _, y, _ in rows]) == expected


def test_constant_rows_have_a_point_for_an_interval_and_no_rows_have_none() -> None:
    """Pitfall F5."""
    assert share([True] * 50, [f"q{i}" for i in range(50)], **DRAW) == Figure(1.0, 1.0, 1.0)
    assert share([True], ["q"], **DRAW) == Figure(1.0, 1.0, 1.0)
    assert share([], [], **DRAW) == NOTHING


def test_variants_of_a_question_move_together() -> None:
    """Two questions, all of one hit and none of the other: a resample has 0, 1 or 2 of the first, however many rows each has."""
    hits, questions = [True] * 50 + [False] * 50, ["a"] * 50 + ["b"] * 50
    assert share(hits, questions, **DRAW) == Figure(0.5, 0.0, 1.0)
    figure = auc_figure([0.9, 0.1, 0.1, 0.9], [True, False, True, False], ["a", "a", "b", "b"], **DRAW)
    assert figure == Figure(0.5, 0.0, 1.0)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing_and_the_value_lies_where_it_is_measured(
    rows: list[tuple[float, bool, str]], random: Random
) -> None:
    def figures(part: list[tuple[float, bool, str]]) -> list[Figure]:
        scores, labels, questions = [s for s, _, _ in part], [y for _, y, _ in part], [q for _, _, q in part]
        flagged = [score >= 0.5 for score in scores]
        at = rates(scores, labels, 0.5)
        figure = macro_f1(flagged, labels, questions, **DRAW)
        assert figure.value == pytest.approx(at.macro_f1)
        return [figure, share(flagged, questions, **DRAW), auc_figure(scores, labels, questions, **DRAW)]

    for a, b in zip(figures(rows), figures(random.sample(rows, len(rows))), strict=True):
        assert a == (b if a.value is None else pytest.approx(b))


def test_a_measure_that_is_not_a_number_is_not_defined() -> None:
    assert Measure.of(Figure(float("nan"), 0.1, 0.2), 3) == Measure.of(NOTHING, 3) == Measure(value=None, low=None, high=None, n=3)
    measure = Measure.of(Figure(0.5, 0.25, 0.75), 8)
    assert (measure.cell, measure.figure, measure.n) == ("0.500 (0.250 to 0.750)", Figure(0.5, 0.25, 0.75), 8)
    assert Measure.of(NOTHING, 0).cell == ""
