"""Which rows enter calibration and with what confidence, the Brier score by hand, and a temperature that is judged on other questions."""

import math
from random import Random

import pytest

from eval.certainty.confidence import Row, brier, confidence_of, readable, row_of, temper
from rag.calibration import expected_calibration_error, logit, probability
from rag.records import Outcome, Prediction, Reason


def prediction(confidence: float | None = 0.8, score: float | None = 0.25, answered: bool = True) -> Prediction:
    said = {"answer": "Lima"} if answered else {"reason": Reason.UNANSWERABLE}
    return Prediction(id="e", question_id="q", confidence=confidence, sieve_score=score, **said)


def test_the_confidence_of_a_prediction_by_hand() -> None:
    assert confidence_of(prediction()) == 0.8
    assert confidence_of(prediction(), "sieve") == 0.75
    assert confidence_of(prediction(), "product") == pytest.approx(0.6)
    assert confidence_of(prediction(score=None), "sieve") is None
    assert confidence_of(prediction(confidence=None), "product") is None


def test_abstentions_have_a_place_among_all_examples_only() -> None:
    silent = prediction(answered=False)
    gated = prediction(confidence=None, answered=False)
    assert row_of(prediction(), Outcome.CORRECT, True) == Row("q", 0.8, True)
    assert row_of(prediction(), Outcome.WRONG, False) == Row("q", 0.8, False)
    assert row_of(silent, Outcome.ABSTAINED, False) is None
    assert row_of(silent, Outcome.ABSTAINED, False, rows="all") == Row("q", 0.8, True)
    assert row_of(silent, Outcome.ABSTAINED, True, rows="all") == Row("q", 0.8, False)
    assert row_of(gated, Outcome.ABSTAINED, False, rows="all") == Row("q", 0.0, True)


def test_unparsed_output_and_errors_are_wrong_among_all_examples_and_no_answers() -> None:
    unparsed = prediction(answered=False)
    broken = prediction(confidence=None, answered=False)
    assert row_of(unparsed, Outcome.UNPARSED, True) is None
    assert row_of(unparsed, Outcome.UNPARSED, False, rows="all") == Row("q", 0.8, False)
    assert row_of(broken, Outcome.ERROR, False, rows="all") == Row("q", None, False)


def test_what_is_no_number_from_0_to_1_is_counted_and_left_out_whatever_the_order() -> None:
    """A model's 85 of 100 that nobody divided is unreadable, not very sure."""
    rows = [Row("b", value, True) for value in (0.0, 1.0, None, math.nan, math.inf, 85.0, -0.1)] + [Row("a", 0.5, False)]
    kept = readable(rows)
    assert kept.rows == [Row("a", 0.5, False), Row("b", 0.0, True), Row("b", 1.0, True)]
    assert (kept.confidence, kept.correct, kept.unreadable) == ([0.5, 0.0, 1.0], [False, True, True], 5)
    assert readable(rows[::-1]) == kept
    assert readable([]) == ([], 0)


def test_the_brier_score_by_hand() -> None:
    assert brier([0.8, 0.6], [True, False]) == pytest.approx(0.2)
    assert brier([1.0, 0.0], [True, False]) == 0 and brier([1.0, 0.0], [False, True]) == 1
    with pytest.raises(ValueError, match="at least one row"):
        brier([], [])


def too_sure(questions: int, seed: int = 0) -> list[Row]:
    """Two rows of each question, sure at 0.99 and right in 3 of 4."""
    random = Random(seed)
    return [Row(f"q{n}", 0.99, random.random() < 0.75) for n in range(questions) for _ in range(2)]


def test_a_temperature_softens_what_is_too_sure_on_questions_that_it_has_not_seen() -> None:
    rows = too_sure(4000)
    half = temper(rows)
    assert half is not None and half.temperature > 3
    assert (half.fitted_on, half.reported_on, half.n) == (2000, 2000, 4000)
    assert half.ece_before > 0.2 and half.ece_after < 0.04 and half.brier_after < half.brier_before
    assert temper(rows[::-1]) == half and temper(rows, seed=1) != half


def test_what_is_reported_was_not_fitted_on() -> None:
    """Wrong answers put on the reported half leave the temperature as it was, and are what the error there is computed from."""
    rows = too_sure(40)
    half = temper(rows)
    reported = {q for q in {row.question_id for row in rows} if temper([row for row in rows if row.question_id != q]) is not None}
    assert half is not None and reported

    def spoilt(question: str) -> list[Row]:
        return [row._replace(correct=False) if row.question_id == question else row for row in rows]

    same = [q for q in sorted(reported) if (other := temper(spoilt(q))) is not None and other.temperature == half.temperature]
    assert len(same) >= half.reported_on
    everything = temper([row._replace(correct=False) if row.question_id in same else row for row in rows])
    assert everything is not None
    assert everything.ece_before == pytest.approx(0.99)
    assert everything.ece_after == pytest.approx(expected_calibration_error([probability(logit(0.99), half.temperature)], [False]))


def test_a_single_question_has_no_other_half() -> None:
    assert temper([Row("q", 0.9, True), Row("q", 0.8, False)]) is None
    assert temper([Row("q", None, True), Row("p", 0.8, False)]) is None
    assert temper([]) is None
