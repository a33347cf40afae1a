import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.reader.agreement import AgreementSettings, Contest, Pair, compatible, disagreement, fit, set_score

ANSWERS = st.sampled_from(
    ["Lima", "Quito", "the city of Lima", "12 March 1999", "5,679", "5679", "not Lima", "not Quito", "Not Lima", "notable"]
)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Lima", "lima.", True),
        ("Lima", "Lima, Peru", True),
        ("Lima", "Quito", False),
        ("5,679", "5679", True),
        ("5,679", "6,879", False),
        ("Peru", "Peruvian", False),
        ("John F. Kennedy", "John Kennedy", True),
        ("12 March 1999", "12 March 1998", False),
        ("12 March 1999", "March 1999", True),
        ("not Lima", "Lima", False),
        ("not Lima", "Quito", True),
        ("not Lima", "not Lima", True),
        ("not Lima", "not Quito", True),
        ("notable", "Lima", False),
    ],
)
def test_answers_are_compared_as_text(first: str, second: str, expected: bool) -> None:
    assert compatible(first, second) is expected


@given(ANSWERS, ANSWERS)
def test_comparison_is_symmetric_and_nothing_contradicts_itself(first: str, second: str) -> None:
    assert compatible(first, second) == compatible(second, first)
    assert compatible(first, first)


def test_disagreement_by_hand() -> None:
    settings = AgreementSettings(quieter=2.0, louder=1.0, preference=0.5, intercept=-1.0)
    assert disagreement(Contest(0.5, 0.5, 4.0), settings) == pytest.approx(0.5 * 4 - 1)
    assert disagreement(Contest(0.25, 0.8, 0.0), settings) == pytest.approx(2 * math.log(1 / 3) + math.log(4) - 1)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-500, 500), st.floats(0, 50))
def test_a_score_is_a_probability_and_grows_with_preference(quieter: float, louder: float, preference: float, more: float) -> None:
    settings = AgreementSettings(slope=4.0)
    low, high = (set_score([Contest(quieter, louder, value)], settings) for value in (preference, preference + more))
    assert settings.floor <= low <= high <= 1


def test_a_set_scores_its_worst_disagreement_and_never_less_than_the_floor() -> None:
    settings = AgreementSettings(preference=1.0, slope=2.0, offset=1.0, floor=0.1)
    weak, even = Contest(0.5, 0.5, -9.0), Contest(0.5, 0.5, 0.5)
    assert set_score([], settings) == set_score([weak], settings) == 0.1
    assert set_score([weak, even], settings) == pytest.approx(1 / (1 + math.exp(-2)))


def pairs(values: Sequence[tuple[float, float, bool | None]]) -> list[list[Pair]]:
    """Sets of one pair: how likely the quieter document speaks, preference, truth."""
    return [[Pair(Contest(quieter, 0.9, preference), truth)] for quieter, preference, truth in values]


def test_the_fit_learns_whether_preference_or_speaking_tells_more() -> None:
    by_preference = pairs([(0.5, float(value), value >= 4) for value in range(8)])
    by_speaking = pairs([((value + 1) / 10, 4.0, value >= 4) for value in range(8)])
    labels = [value >= 4 for value in range(8)]
    first, second = fit(by_preference, labels), fit(by_speaking, labels)
    assert first.preference > second.preference
    assert second.quieter > first.quieter
    for fitted, sets in ((first, by_preference), (second, by_speaking)):
        scores = [set_score([pair.contest for pair in of_set], fitted) for of_set in sets]
        assert min(scores[4:]) > max(scores[:4])


def test_the_fit_is_of_pairs_whose_truth_is_known_and_counts_the_sets_without_one() -> None:
    known = pairs([(0.9, 9.0, True), (0.8, 8.0, True), (0.2, 2.0, False), (0.1, 1.0, False)])
    unknown = pairs([(0.1, 1.0, None)])
    quiet: list[list[Pair]] = [[], [], []]
    labels = [True, True, False, False]
    fitted = fit([*known, *unknown, *quiet], [*labels, True, True, False, False])
    assert fitted.floor == pytest.approx(2 / 5)
    same = fit([*known, *quiet], [*labels, True, False, False])
    assert [getattr(fitted, name) for name in ("quieter", "louder", "preference", "intercept")] == pytest.approx(
        [getattr(same, name) for name in ("quieter", "louder", "preference", "intercept")]
    )


def test_what_has_one_class_only_keeps_its_default() -> None:
    default = AgreementSettings()
    fitted = fit(pairs([(0.9, 9.0, True), (0.8, 8.0, True)]), [True, True])
    assert fitted == default.model_copy(update={"floor": 0.5})


def test_a_fit_that_is_upside_down_on_the_sets_leaves_the_pairs_scale() -> None:
    fitted = fit(pairs([(0.9, 9.0, True), (0.1, 1.0, False)]), [False, True])
    assert (fitted.slope, fitted.offset) == (1.0, 0.0)
