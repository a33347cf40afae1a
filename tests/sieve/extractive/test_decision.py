import math

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from sieve.extractive.answers import Relation
from sieve.extractive.decision import Contest, DecisionSettings, Pair, disagreement, fit, logistic, set_score

CLEAR = Contest(0.99, 0.95, 0.9, 0.0, Relation.DIFFERENT, 0.0, False)
AGREED = Contest(0.99, 0.95, 0.0, 1.0, Relation.SAME, 0.01, False)
QUIET = Contest(0.06, 0.1, 0.5, 0.0, Relation.UNSURE, 0.0, False)


def test_a_set_is_as_distracted_as_its_worst_pair() -> None:
    settings = DecisionSettings(floor=0.01)
    assert set_score([], settings) == 0.01
    assert set_score([QUIET, CLEAR, AGREED], settings) == set_score([CLEAR], settings) > 0.9
    assert set_score([AGREED], settings) == 0.01


def test_many_pairs_can_be_made_to_weigh_less() -> None:
    settings = DecisionSettings(floor=0.0, crowd=-1.0)
    alone, among = (math.log(p / (1 - p)) for p in (set_score([CLEAR], settings), set_score([CLEAR, QUIET, QUIET], settings)))
    assert alone - among == pytest.approx(math.log(3))


@hypothesis_settings(deadline=None)
@given(st.integers(0, 5), st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(0, 2))
def test_a_comparison_that_is_no_number_never_makes_a_score(field: int, value: float, place: int) -> None:
    numbers = [f for f in Contest._fields if f not in ("relation", "confusable")]
    name = numbers[field % len(numbers)]
    contests = [CLEAR._replace(**{name: value}) if number == place else CLEAR for number in range(3)]
    # One that denies counts only where both name one answer.
    contests = [contest._replace(relation=Relation.SAME) if name == "denied" else contest for contest in contests]
    assert math.isnan(set_score(contests, DecisionSettings()))


def test_what_makes_a_disagreement_is_learnt_from_pairs() -> None:
    sets = [[Pair(CLEAR, True), Pair(AGREED, False)], [Pair(AGREED, False), Pair(QUIET, False)], [Pair(QUIET, False)]] * 10
    labels = [True, False, False] * 10
    settings = fit([*sets, *[[]] * 8], [*labels, *[False] * 8])
    assert disagreement(CLEAR, settings) > 0 > max(disagreement(AGREED, settings), disagreement(QUIET, settings))
    assert settings.floor == pytest.approx(1 / 10)
    assert set_score(sets_of(sets[0]), settings) > 0.5 > set_score(sets_of(sets[1]), settings)
    assert set_score([CLEAR], settings) > settings.floor


def sets_of(pairs: list[Pair]) -> list[Contest]:
    return [pair.contest for pair in pairs]


def test_a_fit_without_both_classes_keeps_the_defaults() -> None:
    settings = fit([[Pair(CLEAR, None)]], [True])
    assert settings == DecisionSettings(floor=0.5)


def test_logistic_regression_by_hand() -> None:
    # As many of either class at one point: the intercept alone says one half.
    weights = logistic([(0.0,)] * 4, [True, False, True, False])
    assert weights == pytest.approx([0.0, 0.0], abs=1e-6)
    assert logistic([(0.0,)], [True]) is None
