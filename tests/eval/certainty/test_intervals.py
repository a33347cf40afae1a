"""Intervals of calibration: by question, seeded, exact where nothing is grouped, and quick where there is much."""

import time
from random import Random

import numpy as np
import pytest

from eval.certainty.confidence import Row
from eval.certainty.intervals import Certain, certainty
from eval.certainty.risk import aurc, risk_coverage
from eval.score import score
from rag.records import Condition, Document, Example, Prediction, Reason, RetrievalState


def figures(rows: list[Row], resamples: int = 400, seed: int = 0, questions: list[str] | None = None) -> dict[str, Certain]:
    asked = [row.question_id for row in rows] if questions is None else questions
    return {figure.name: figure for figure in certainty(rows, asked, resamples=resamples, seed=seed, level=0.95)}


def invented(count: int, seed: int = 0, per_question: int = 1, distinct: int = 10**9) -> list[Row]:
    random = Random(seed)
    rows = []
    for n in range(count):
        confidence = round(random.random() * distinct) / distinct
        rows.append(Row(f"q{n // per_question:06d}", confidence, random.random() < confidence**2))
    return rows


def test_values_by_hand() -> None:
    """0.97 right and 0.99 wrong: errors 0.48 and 0.45, Brier (0.03^2 + 0.99^2) / 2, area (1 + 1/2) / 2."""
    found = figures([Row("a", 0.97, True), Row("b", 0.99, False), Row("c", None, True)])
    assert {name: figure.value for name, figure in found.items()} == pytest.approx(
        {"ece_midpoint": 0.45, "ece_mean": 0.48, "brier": (0.03**2 + 0.99**2) / 2, "aurc": 0.75}
    )
    assert {(figure.n, figure.questions) for figure in found.values()} == {(2, 2)}
    assert found["aurc"].note == "1 without a readable confidence are left out"
    assert found["aurc"].undefined > 0, "a resample may hold the unreadable one alone"


def test_nothing_readable_has_no_figures() -> None:
    assert figures([]) == {} and figures([Row("a", None, True)]) == {}


def test_constant_data_give_a_point_and_one_row_does_not_crash() -> None:
    """Pitfall F5."""
    for rows in ([Row(f"q{n}", 1.0, True) for n in range(50)], [Row("q", 1.0, True)]):
        found = figures(rows)
        assert (found["aurc"].low, found["aurc"].high) == (0, 0)
        assert (found["ece_midpoint"].low, found["ece_midpoint"].high) == pytest.approx((0.05, 0.05))


def test_same_seed_same_numbers_whatever_the_order() -> None:
    """Pitfall F5."""
    rows = invented(120, per_question=3)
    shuffled = Random(1).sample(rows, len(rows))
    assert figures(rows, seed=5) == figures(shuffled, seed=5)
    assert figures(rows, seed=5)["aurc"].low != figures(rows, seed=6)["aurc"].low


def plain(rows: list[Row], resamples: int) -> list[float]:
    """The area of resamples that are drawn and computed one by one."""
    generator = np.random.default_rng(3)
    by_question: dict[str, list[Row]] = {}
    for row in rows:
        by_question.setdefault(row.question_id, []).append(row)
    names = sorted(by_question)
    drawn = ([row for n in generator.integers(len(names), size=len(names)) for row in by_question[names[n]]] for _ in range(resamples))
    return [aurc(risk_coverage([row.confidence or 0.0 for row in sample], [row.correct for row in sample])) for sample in drawn]


@pytest.mark.parametrize("count", [90, 1500])
def test_the_interval_is_that_of_plain_resampling_by_question(count: int) -> None:
    """Also where neighbouring confidences are grouped, which 1,500 distinct ones are."""
    rows = invented(count, per_question=3)
    low, high = np.quantile(plain(rows, 1500), [0.025, 0.975])
    found = figures(rows, resamples=4000)["aurc"]
    assert found.low == pytest.approx(low, abs=0.07 * (high - low))
    assert found.high == pytest.approx(high, abs=0.07 * (high - low))


def test_variants_of_a_question_move_together() -> None:
    """Five copies of each row under one question leave the interval as wide as it was."""
    rows = invented(60, distinct=50)
    copies = [row for row in rows for _ in range(5)]
    one, five = figures(rows, resamples=3000)["brier"], figures(copies, resamples=3000)["brier"]
    assert (five.low, five.high) == pytest.approx((one.low, one.high), abs=1e-9)


def test_a_hundred_thousand_predictions_take_seconds() -> None:
    started = time.process_time()
    found = figures(invented(100_000), resamples=10_000)
    assert found["aurc"].low is not None and found["aurc"].low < found["aurc"].value < (found["aurc"].high or 0)
    assert time.process_time() - started < 8


def test_many_variants_are_drawn_question_by_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no two questions are alike, counting kinds of questions would cost more than it saves; the interval is the same."""
    rows = invented(3000, per_question=5)
    by_kind = figures(rows, resamples=1500)["aurc"]
    monkeypatch.setattr("eval.certainty.intervals._PATTERNS", 10)
    one_by_one = figures(rows, resamples=1500)["aurc"]
    width = (by_kind.high or 0) - (by_kind.low or 0)
    assert one_by_one != by_kind
    assert (one_by_one.low, one_by_one.high) == pytest.approx((by_kind.low, by_kind.high), abs=0.1 * width)


def test_the_report_has_rows_for_answers_and_for_all_examples() -> None:
    """Answers: 0.95 right. All: with it an abstention of the Sage, right at 0.95, and one of the gate, needless at 0."""
    states = (RetrievalState.ANSWERABLE, RetrievalState.UNANSWERABLE, RetrievalState.ANSWERABLE)
    examples = [
        Example(
            id=f"e{n}",
            question_id=f"q{n}",
            question="Who?",
            documents=(Document(id="d", text="Ada."),),
            answers=("Ada",),
            state=state,
            condition=Condition(state.value),
        )
        for n, state in enumerate(states)
    ]
    predictions = [
        Prediction(id="e0", question_id="q0", answer="Ada", confidence=0.95),
        Prediction(id="e1", question_id="q1", reason=Reason.UNANSWERABLE, confidence=0.95),
        Prediction(id="e2", question_id="q2", reason=Reason.DISTRACTED),
    ]
    found = {row.name: row for row in score(examples, predictions, resamples=20).metrics}
    assert (found["aurc"].value, found["aurc"].n) == (0, 1)
    assert found["ece_midpoint"].value == pytest.approx(0.05)
    assert (found["aurc_all"].value, found["aurc_all"].n) == (pytest.approx(1 / 9), 3)
    assert found["ece_midpoint_all"].value == pytest.approx(0.05)
    silent = [p.model_copy(update={"confidence": None}) for p in predictions]
    assert not {"aurc", "aurc_all"} & {row.name for row in score(examples, silent, resamples=20).metrics}
