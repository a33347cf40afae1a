import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.reader.agreement import AgreementSettings, Contest, compatible, disagreement, fit, set_score

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
    settings = AgreementSettings(preference=0.5, slope=2.0, offset=1.0)
    # Log-odds 2 * (0 + 0.5 * 4 - 1) and 2 * (log 0.5 + 0.5 * 2 - 1).
    assert disagreement(Contest(1.0, 4.0), settings) == pytest.approx(1 / (1 + math.exp(-2)))
    assert disagreement(Contest(0.5, 2.0), settings) == pytest.approx(1 / (1 + 4))


@given(st.floats(0, 1), st.floats(-500, 500), st.floats(0, 50))
def test_disagreement_is_a_probability_and_grows_with_preference(both: float, preference: float, more: float) -> None:
    settings = AgreementSettings(slope=4.0)
    low, high = (disagreement(Contest(both, value), settings) for value in (preference, preference + more))
    assert 0 <= low <= high <= 1


def test_a_set_scores_its_worst_disagreement_and_never_less_than_the_floor() -> None:
    settings = AgreementSettings(preference=1.0, slope=1.0, offset=0.0, floor=0.1)
    weak, even = Contest(1.0, -9.0), Contest(1.0, 0.0)
    assert set_score([], settings) == set_score([weak], settings) == 0.1
    assert set_score([weak, even], settings) == pytest.approx(0.5)


def test_the_fit_finds_the_offset_that_parts_the_sets_and_counts_the_quiet_ones() -> None:
    contests = [[Contest(1.0, 9.0)], [Contest(1.0, 8.0), Contest(0.2, 20.0)], [Contest(1.0, 2.0)], [], [Contest(1.0, 1.0)], [], []]
    fitted = fit(contests, [True, True, False, False, False, True, False])
    assert fitted.floor == pytest.approx(2 / 5)
    assert set_score(contests[0], fitted) > 0.9
    assert set_score(contests[2], fitted) == fitted.floor


def test_the_fit_learns_whether_preference_or_speaking_tells_more() -> None:
    by_preference = [[Contest(0.5, float(value))] for value in range(8)]
    by_speaking = [[Contest((value + 1) / 10, 4.0)] for value in range(8)]
    labels = [value >= 4 for value in range(8)]
    assert fit(by_preference, labels).preference > fit(by_speaking, labels).preference
