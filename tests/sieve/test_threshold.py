"""Rates by hand, and the threshold that validation data choose."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.threshold import Rates, choose, rates


@pytest.mark.parametrize(
    ("scores", "distracted", "threshold", "expected"),
    [
        # One of each: hit, false alarm, miss, pass.
        ([0.9, 0.8, 0.4, 0.2], [True, False, True, False], 0.5, Rates(0.5, 0.5, 0.5)),
        ([0.9, 0.8, 0.4, 0.2], [True, True, False, False], 0.5, Rates(1.0, 0.0, 1.0)),
        # 2 hits, 1 false alarm, 1 pass: F1 is 4/5 for distracted and 2/3 for clean.
        ([0.9, 0.8, 0.7, 0.2], [True, True, False, False], 0.5, Rates(1.0, 0.5, (4 / 5 + 2 / 3) / 2)),
        ([0.1, 0.2], [True, False], 0.0, Rates(1.0, 1.0, 1 / 3)),
    ],
)
def test_rates_by_hand(scores: list[float], distracted: list[bool], threshold: float, expected: Rates) -> None:
    assert rates(scores, distracted, threshold) == pytest.approx(expected)


def test_a_score_equal_to_the_threshold_is_flagged() -> None:
    """Promise 4."""
    assert rates([0.5, 0.4999], [True, False], 0.5) == Rates(1.0, 0.0, 1.0)


def test_a_rate_without_its_class_is_none_and_not_zero() -> None:
    assert rates([0.9, 0.8], [True, True], 0.5) == Rates(1.0, None, 0.5)
    tpr, fpr, _ = rates([0.1, 0.8], [False, False], 0.5)
    assert (tpr, fpr) == (None, 0.5)


@pytest.mark.parametrize(
    ("scores", "distracted", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.35], [False, False, True, True], 0.25),
        ([0.7, 0.9], [False, True], 0.8),
        # 0.5 separates as well as any midpoint, and is preferred.
        ([0.1, 0.2, 0.9], [False, False, True], 0.5),
        # 0.15, 0.5 and 0.6 reach the same macro-F1 of 11/15: the one nearest to 0.5.
        ([0.1, 0.2, 0.3, 0.9], [False, True, False, True], 0.5),
        # 0.65 and 0.85 tie at 11/15, 0.5 flags everything: the nearer one.
        ([0.6, 0.7, 0.8, 0.9], [False, True, False, True], 0.65),
        # All scores equal: there is nothing between them.
        ([0.3, 0.3], [False, True], 0.5),
    ],
)
def test_the_chosen_threshold_by_hand(scores: list[float], distracted: list[bool], expected: float) -> None:
    assert choose(scores, distracted) == pytest.approx(expected)


@pytest.mark.parametrize("label", [True, False])
def test_one_class_chooses_nothing(label: bool) -> None:
    with pytest.raises(ValueError, match="needs both clean and distracted validation sets"):
        choose([0.2, 0.8], [label, label])


hundredths = st.integers(0, 100).map(lambda n: n / 100)
scored = st.lists(st.tuples(hundredths, st.booleans()), min_size=2, max_size=20).filter(lambda rows: len({label for _, label in rows}) == 2)


@given(scored)
def test_no_cut_between_two_scores_does_better(rows: list[tuple[float, bool]]) -> None:
    scores, labels = [score for score, _ in rows], [label for _, label in rows]
    best = rates(scores, labels, choose(scores, labels)).macro_f1
    # To flag all from the second lowest score on is to cut below it.
    cuts = sorted(set(scores))[1:]
    assert best == pytest.approx(max(rates(scores, labels, cut).macro_f1 for cut in [0.5, *cuts]))


@given(scored, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[float, bool]], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    expected = choose([score for score, _ in rows], [label for _, label in rows])
    assert choose([score for score, _ in shuffled], [label for _, label in shuffled]) == expected
