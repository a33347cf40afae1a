"""Rates by hand, and the threshold that validation data choose."""

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sieve.threshold import Rates, ThresholdSettings, choose, rates


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


def slow_best(scores: list[float], labels: list[bool], value: Any) -> Any:
    """The best value over every cut, by the definition."""
    return max(value(rates(scores, labels, t)) for t in [0.0, 0.5, *sorted(set(scores)), min(1.0, max(scores) + 1e-9)])


@given(scored, st.integers(0, 20).map(lambda n: n / 20))
def test_a_target_for_false_positives_is_kept_to_with_the_largest_recall(rows: list[tuple[float, bool]], target: float) -> None:
    scores, labels = [score for score, _ in rows], [label for _, label in rows]
    at = rates(scores, labels, choose(scores, labels, ThresholdSettings(rule="target_fpr", target_fpr=target)))
    reachable = [r for t in [0.0, *sorted(set(scores)), 1.0] if (r := rates(scores, labels, t)).fpr is not None and r.fpr <= target]
    if reachable:
        assert at.fpr is not None and at.fpr <= target
        assert at.tpr == max(r.tpr or 0.0 for r in reachable)


def test_a_target_for_false_positives_by_hand() -> None:
    """At most a quarter of four clean sets: one may be flagged, and then two distracted sets are."""
    scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.2]
    labels = [True, False, True, False, False, False]
    assert choose(scores, labels, ThresholdSettings(rule="target_fpr", target_fpr=0.25)) == pytest.approx(0.65)
    assert choose(scores, labels, ThresholdSettings(rule="target_fpr", target_fpr=0.0)) == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("highest", "threshold", "flags"),
    [(0.9, 0.95, "flags 0 of them and 0 of the 2 clean ones"), (1.0, 0.5, "flags 1 of them and 1 of the 2 clean ones")],
)
def test_a_target_that_cannot_be_kept_to_gives_the_lowest_rate_there_is_and_says_so(
    highest: float, threshold: float, flags: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The highest score is a clean set's: flagging any distracted set flags it too. A score of 1 is flagged at any threshold."""
    labels = [False, True, False]
    with caplog.at_level("WARNING"):
        chosen = choose([highest, 0.8, 0.1], labels, ThresholdSettings(rule="target_fpr", target_fpr=0.1))
    assert chosen == pytest.approx(threshold)
    assert "sieve.threshold.target_fpr=0.1 cannot be kept to" in caplog.text
    assert "any of the 1 distracted validation sets is flagged is 0.5" in caplog.text
    assert flags in caplog.text


def test_costs_by_hand() -> None:
    """Of the clean sets 0, 1/2 or all are flagged with 1/2 or all of the distracted ones."""
    scores, labels = [0.9, 0.7, 0.5, 0.2], [True, False, True, False]

    def with_costs(wrong: float, abstain: float, prior: float | None = None) -> float:
        return choose(scores, labels, ThresholdSettings(rule="costs", cost_wrong=wrong, cost_abstain=abstain, prior=prior))

    assert with_costs(10, 1) == pytest.approx(0.5)  # misses nothing, and flags one clean set: 0.5 is as good as 0.35 and nearer
    assert with_costs(1, 10) == pytest.approx(0.8)
    assert with_costs(1, 1000, prior=0.001) == pytest.approx(0.8)
    assert with_costs(1, 10, prior=0.999) == pytest.approx(0.5)


def test_costs_may_flag_everything_or_nothing() -> None:
    """Scores the wrong way round, and one of the errors dear."""
    scores, labels = [0.8, 0.2], [False, True]
    assert choose(scores, labels, ThresholdSettings(rule="costs", cost_wrong=9, cost_abstain=1)) == 0.0
    assert choose(scores, labels, ThresholdSettings(rule="costs", cost_wrong=1, cost_abstain=9)) == pytest.approx(0.9)


@given(scored, st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.05, 0.95))
def test_no_other_threshold_costs_less(rows: list[tuple[float, bool]], wrong: float, abstain: float, prior: float) -> None:
    scores, labels = [score for score, _ in rows], [label for _, label in rows]
    settings = ThresholdSettings(rule="costs", cost_wrong=wrong, cost_abstain=abstain, prior=prior)

    def saved(at: Rates) -> float:
        return -(prior * wrong * (1 - (at.tpr or 0)) + (1 - prior) * abstain * (at.fpr or 0))

    assert saved(rates(scores, labels, choose(scores, labels, settings))) == pytest.approx(slow_best(scores, labels, saved), abs=1e-9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rule": "target_fpr"}, "rule=target_fpr needs sieve.threshold.target_fpr"),
        ({"rule": "costs", "cost_wrong": 1}, "rule=costs needs sieve.threshold.cost_abstain"),
        ({"target_fpr": 0.1}, "rule=best_macro_f1 does not use sieve.threshold.target_fpr; set sieve.threshold.rule"),
        ({"rule": "target_fpr", "target_fpr": 0.1, "prior": 0.5}, "does not use sieve.threshold.prior"),
    ],
)
def test_a_rule_has_its_own_keys_and_no_others(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ThresholdSettings(**values)


def test_ten_thousand_sets_take_no_time() -> None:
    """One pass over sorted scores: with a pass for each candidate this would take minutes."""
    random = Random(0)
    scores = [random.random() for _ in range(20_000)]
    labels = [random.random() < score for score in scores]
    assert choose(scores, labels) == pytest.approx(0.5, abs=0.05)


def test_neighbouring_floats_are_still_cut_between() -> None:
    low, high = 0.7, math.nextafter(0.7, 1)
    assert rates([low, high], [False, True], choose([low, high], [False, True])) == Rates(1.0, 0.0, 1.0)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="expected scores from 0 to 1, got 1.5"):
        choose([0.5, 1.5], [True, False])
