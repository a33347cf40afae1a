"""Temperature and calibration error by hand, and what no data may do to them."""

import itertools
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.calibration import (
    HIGHEST,
    LOWEST,
    Bin,
    equal_mass,
    expected_calibration_error,
    fit_temperature,
    logit,
    probability,
    reliability,
    rescale,
)

logits = st.floats(-25, 25, allow_nan=False)
labelled = st.lists(st.tuples(logits, st.booleans()), min_size=2, max_size=30).filter(lambda rows: len({y for _, y in rows}) == 2)


def test_a_temperature_by_hand() -> None:
    """One set of each class: the smoothed targets are 2/3 and 1/3, and sigmoid(3 / T) = 2/3 where T = 3 / log 2."""
    assert fit_temperature([3.0, -3.0], [True, False]) == pytest.approx(3 / math.log(2))


def test_logits_that_are_too_sure_are_softened_and_those_that_are_not_sure_enough_sharpened() -> None:
    """Right in 3 of 4: the best score is near 3/4, the logit near log 3, whatever size the logits have."""
    labels = [True, True, True, False] * 50 + [False, False, False, True] * 50
    for size in (10.0, 0.2):
        temperature = fit_temperature([size] * 200 + [-size] * 200, labels)
        assert probability(size, temperature) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(
    ("values", "labels", "expected"),
    [
        ([0.0, 0.0], [True, False], 1.0),
        ([2.0, -2.0] * 50, [False, True] * 50, HIGHEST),  # the wrong way round
        ([5.0, 5.0] * 50, [False, True] * 50, HIGHEST),  # the same for all
        ([1e-3, -1e-3] * 50, [True, False] * 50, LOWEST),
    ],
)
def test_data_that_tell_nothing_or_too_much_end_at_a_bound(values: list[float], labels: list[bool], expected: float) -> None:
    assert fit_temperature(values, labels) == pytest.approx(expected)


def test_separable_data_do_not_make_scores_certain() -> None:
    """Without smoothed targets the loss falls for ever as the temperature does."""
    temperature = fit_temperature([1.0] * 9 + [-1.0] * 9, [True] * 9 + [False] * 9)
    assert probability(1.0, temperature) == pytest.approx(10 / 11)


@given(labelled, st.randoms(use_true_random=False))
def test_the_temperature_is_bounded_the_best_nearby_and_independent_of_order(rows: list[tuple[float, bool]], random: Random) -> None:
    def fit(pairs: list[tuple[float, bool]]) -> float:
        return fit_temperature([z for z, _ in pairs], [y for _, y in pairs])

    temperature = fit(rows)
    assert LOWEST <= temperature <= HIGHEST
    assert fit(random.sample(rows, len(rows))) == temperature
    positive = sum(y for _, y in rows)
    targets = [(positive + 1) / (positive + 2) if y else 1 / (len(rows) - positive + 2) for _, y in rows]

    def loss(t: float) -> float:
        return sum(math.log1p(math.exp(-abs(z / t))) + max(z / t, 0) - target * z / t for (z, _), target in zip(rows, targets, strict=True))

    for other in (temperature * 1.05, temperature / 1.05):
        assert loss(temperature) <= loss(min(max(other, LOWEST), HIGHEST)) + 1e-6


@given(logits, st.floats(LOWEST, HIGHEST))
def test_a_score_gives_its_logit_back(value: float, temperature: float) -> None:
    assert logit(probability(value)) == pytest.approx(value, abs=1e-3)
    assert probability(value, temperature) == pytest.approx(1 - probability(-value, temperature))
    if abs(value / temperature) < 20:  # beyond, a float near 1 holds no more of it
        assert rescale(rescale([probability(value)], 1.0, temperature), temperature, 1.0) == pytest.approx([probability(value)], abs=1e-6)


def test_certain_scores_have_finite_logits_and_no_number_stays_none() -> None:
    assert logit(1.0) == -logit(0.0) == 30.0
    assert probability(-1e6) == 0.0 and probability(1e6) == 1.0
    assert math.isnan(probability(math.nan))


def test_the_calibration_error_by_hand_in_both_formulations() -> None:
    """Bins of a tenth: {0.05, 0.05} half right, {0.9} on its edge right, {1.0} in the last bin beside it and wrong."""
    scores, labels = [0.05, 0.05, 0.9, 1.0], [True, False, True, False]
    assert reliability(scores, labels) == [Bin(0.0, 0.1, 2, 0.05, 0.5), Bin(0.9, 1.0, 2, 0.95, 0.5)]
    assert expected_calibration_error(scores, labels) == pytest.approx(0.45)
    assert expected_calibration_error(scores, labels, centre="midpoint") == pytest.approx(0.45)
    # |0.5 - 0.98| by the mean, |0.5 - 0.95| by the midpoint; certain and right, which is 0 and half a bin.
    assert expected_calibration_error([0.97, 0.99], [True, False]) == pytest.approx(0.48)
    assert expected_calibration_error([0.97, 0.99], [True, False], centre="midpoint") == pytest.approx(0.45)
    assert expected_calibration_error([1.0, 1.0], [True, True]) == 0
    assert expected_calibration_error([1.0, 1.0], [True, True], centre="midpoint") == pytest.approx(0.05)
    with pytest.raises(ValueError, match="at least one row"):
        expected_calibration_error([], [])


def test_bins_of_equal_mass_by_hand() -> None:
    assert equal_mass([0.9, 0.5, 0.1, 0.5], [True, False, False, True], 2) == [
        Bin(0.1, 0.5, 3, pytest.approx(1.1 / 3), pytest.approx(1 / 3)),
        Bin(0.9, 0.9, 1, 0.9, 1.0),
    ]
    assert equal_mass([0.5] * 4, [True, True, False, False], 2) == [Bin(0.5, 0.5, 4, 0.5, 0.5)]
    assert equal_mass([], []) == []


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60), st.integers(1, 12))
def test_bins_of_equal_mass_part_no_equal_scores_and_hold_every_row(rows: list[tuple[int, bool]], bins: int) -> None:
    scores, labels = [value / 20 for value, _ in rows], [label for _, label in rows]
    parts = equal_mass(scores, labels, bins)
    assert sum(part.n for part in parts) == len(rows) and len(parts) <= bins
    assert all(before.high < after.low for before, after in itertools.pairwise(parts))
