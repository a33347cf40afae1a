"""Risk over coverage by hand and against the definition, ties together, whatever the order, and quick."""

import time
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.certainty.risk import aurc, best_aurc, excess_aurc, risk_at, risk_coverage

rows = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=40)


def test_a_curve_by_hand() -> None:
    """0.9 right, 0.9 wrong, 0.5 wrong: the first two enter together."""
    curve = risk_coverage([0.5, 0.9, 0.9], [False, True, False])
    assert curve.confidence.tolist() == [0.9, 0.5] and curve.sizes.tolist() == [2, 1]
    assert curve.coverage == pytest.approx([2 / 3, 1]) and curve.risk == pytest.approx([1 / 2, 2 / 3])
    assert aurc(curve) == pytest.approx((2 * 1 / 2 + 2 / 3) / 3)
    assert best_aurc(3, 2) == pytest.approx((0 + 1 / 2 + 2 / 3) / 3)
    assert excess_aurc(curve) == pytest.approx((2 * 1 / 2 + 2 / 3) / 3 - (0 + 1 / 2 + 2 / 3) / 3)


def test_appendix_a_without_ties() -> None:
    """Right, wrong, right, wrong in falling confidence: (0 + 1/2 + 1/3 + 2/4) / 4."""
    curve = risk_coverage([0.9, 0.8, 0.7, 0.6], [True, False, True, False])
    assert aurc(curve) == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)


@pytest.mark.parametrize(("right", "expected"), [([True] * 5, 0.0), ([False] * 5, 1.0), ([True, False, False, False, False], 0.8)])
def test_a_constant_confidence_has_the_error_rate(right: list[bool], expected: float) -> None:
    curve = risk_coverage([0.0] * 5, right)
    assert (aurc(curve), len(curve.risk)) == (pytest.approx(expected), 1)


def test_risk_at_given_coverages_keeps_ties_whole() -> None:
    curve = risk_coverage([0.9, 0.9, 0.5, 0.4], [True, False, False, True])
    assert [coverage for coverage, _ in risk_at(curve, [0.25, 0.5, 0.6, 1])] == [0.5, 0.5, 0.75, 1]
    assert [risk for _, risk in risk_at(curve, [0.25, 0.5, 0.6, 1])] == pytest.approx([0.5, 0.5, 2 / 3, 0.5])
    assert risk_at(risk_coverage([i / 10 for i in range(10)], [True] * 10), [0.1 + 0.2])[0][0] == pytest.approx(0.3)
    with pytest.raises(ValueError, match="coverages"):
        risk_at(curve, [0.0])


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_plays_no_part_and_the_area_has_its_bounds(given_rows: list[tuple[int, bool]], random: Random) -> None:
    def area(pairs: list[tuple[int, bool]]) -> float:
        return aurc(risk_coverage([value / 12 for value, _ in pairs], [right for _, right in pairs]))

    value = area(given_rows)
    assert area(random.sample(given_rows, len(given_rows))) == value
    assert -1e-12 <= best_aurc(len(given_rows), sum(not right for _, right in given_rows)) <= value + 1e-12
    assert value <= 1


@given(rows)
def test_every_row_counts_with_the_risk_of_all_that_are_at_least_as_confident(pairs: list[tuple[int, bool]]) -> None:
    def risk(floor: int) -> float:
        kept = [right for value, right in pairs if value >= floor]
        return 1 - sum(kept) / len(kept)

    expected = sum(risk(value) for value, _ in pairs) / len(pairs)
    assert aurc(risk_coverage([value / 12 for value, _ in pairs], [right for _, right in pairs])) == pytest.approx(expected)


def test_it_refuses_what_it_cannot_rank() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        risk_coverage([], [])
    for value in (85.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            risk_coverage([0.5, value], [True, True])
    with pytest.raises(ValueError, match="as many"):
        risk_coverage([0.5], [True, True])


def test_a_hundred_thousand_rows_take_well_under_a_second() -> None:
    generator = np.random.default_rng(0)
    confidence = generator.random(100_000)
    right = generator.random(100_000) < confidence
    started = time.process_time()
    curve = risk_coverage(confidence, right)
    # Sure and calibrated: the share of wrong ones above c is (1 - c) / 2, whose mean over c is 1/4.
    assert aurc(curve) == pytest.approx(0.25, abs=0.01)
    assert excess_aurc(curve) < 0.15
    assert time.process_time() - started < 1
