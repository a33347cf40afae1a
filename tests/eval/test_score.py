"""Scoring: outcomes, pairing by id, and a small report computed by hand."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.outcomes import answer_matches, judge, outcome
from eval.records import MetricRow, Report
from eval.score import METRICS, score
from rag.errors import InputError
from rag.records import Citation, Condition, Document, DocumentLabel, Example, Outcome, Prediction, Reason, RetrievalState

ANSWERABLE, UNANSWERABLE, DISTRACTED = RetrievalState.ANSWERABLE, RetrievalState.UNANSWERABLE, RetrievalState.DISTRACTED
GOLD = Document(id="d1", text="The mayor of Ostvale is Ada Lind.", label=DocumentLabel.ANSWERABLE)
PLANTED = Document(id="d2", text="The mayor of Ostvale is Bo Falk.", label=DocumentLabel.CONFLICT)
OTHER = Document(id="d3", text="Ostvale has a harbour.", label=DocumentLabel.NEUTRAL)
SETS = {
    Condition.ANSWERABLE: (ANSWERABLE, (GOLD, OTHER)),
    Condition.UNANSWERABLE: (UNANSWERABLE, (OTHER,)),
    Condition.CONFLICT: (DISTRACTED, (GOLD, PLANTED, OTHER)),
}


def example(
    id_: str, condition: Condition = Condition.ANSWERABLE, question_id: str = "q1", answers: tuple[str, ...] = ("Ada Lind",)
) -> Example:
    state, documents = SETS[condition]
    return Example(
        id=id_,
        question_id=question_id,
        question="Who is the mayor of Ostvale?",
        documents=documents,
        answers=answers,
        state=state,
        condition=condition,
    )


def prediction(id_: str, question_id: str = "q1", **fields: Any) -> Prediction:
    return Prediction(id=id_, question_id=question_id, **fields)


def answered(id_: str, answer: str = "Ada Lind", *, state: RetrievalState = ANSWERABLE, **fields: Any) -> Prediction:
    return prediction(id_, answer=answer, state=state, prompt="...", **fields)


def abstained(id_: str, reason: Reason = Reason.UNANSWERABLE, state: RetrievalState | None = UNANSWERABLE, **fields: Any) -> Prediction:
    return prediction(id_, reason=reason, state=state, **fields)


def metric(report: Report, name: str) -> MetricRow:
    return next(row for row in (*report.metrics, *report.alternatives) if row.name == name)


@pytest.mark.parametrize(
    ("condition", "given", "ended"),
    [
        (Condition.ANSWERABLE, answered("e"), Outcome.CORRECT),
        (Condition.ANSWERABLE, answered("e", "ada lind."), Outcome.CORRECT),
        (Condition.ANSWERABLE, answered("e", "Bo Falk"), Outcome.WRONG),
        (Condition.ANSWERABLE, answered("e", ""), Outcome.WRONG),
        (Condition.UNANSWERABLE, answered("e"), Outcome.WRONG),
        (Condition.CONFLICT, answered("e"), Outcome.WRONG),
        (Condition.CONFLICT, abstained("e", Reason.DISTRACTED), Outcome.ABSTAINED),
        (Condition.ANSWERABLE, abstained("e", Reason.SIEVE_TIMEOUT), Outcome.ABSTAINED),
        (Condition.ANSWERABLE, abstained("e", Reason.UNPARSED), Outcome.UNPARSED),
        (Condition.UNANSWERABLE, abstained("e", Reason.UNPARSED), Outcome.UNPARSED),
        (Condition.UNANSWERABLE, prediction("e", error="question: blank"), Outcome.ERROR),
    ],
)
def test_outcomes(condition: Condition, given: Prediction, ended: Outcome) -> None:
    assert outcome(example("e", condition), given) is ended


@pytest.mark.parametrize(
    ("answer", "exact", "squad", "contains"),
    [
        ("NYC", True, True, True),
        ("the New York City", True, True, True),
        ("New York CityNYC", False, False, False),
        ("not NYC", False, False, True),
        ("Boston", False, False, False),
    ],
)
def test_the_matching_rule_is_a_parameter(answer: str, exact: bool, squad: bool, contains: bool) -> None:
    """Pitfall F2: the best over all gold answers; only the containment rule, which says so, accepts `not NYC`."""
    golds = ("New York City", "NYC")
    assert (answer_matches(answer, golds, "exact"), answer_matches(answer, golds, "squad"), answer_matches(answer, golds, "contains")) == (
        exact,
        squad,
        contains,
    )


def test_the_strict_rule_keeps_decimals_apart_and_the_squad_rule_does_not() -> None:
    """Pitfall F1."""
    assert not answer_matches("35", ("3.5",), "exact")
    assert answer_matches("35", ("3.5",), "squad")


def test_a_score_equal_to_the_threshold_is_flagged() -> None:
    at, below = (judge(example("e"), answered("e", sieve_score=value, threshold=0.5)) for value in (0.5, 0.4999))
    assert (at.flagged, below.flagged) == (True, False)
    assert judge(example("e"), answered("e")).flagged is None


def test_blame_is_judged_by_the_labels_of_the_documents() -> None:
    def share(condition: Condition, *blamed: str) -> float | None:
        return judge(example("e", condition), abstained("e", Reason.DISTRACTED, blamed=blamed)).blamed_share

    assert share(Condition.CONFLICT, "d2") == 1.0
    assert share(Condition.CONFLICT, "d1") == 0.0
    assert share(Condition.CONFLICT, "d1", "d2") == 0.5
    assert share(Condition.CONFLICT) is None
    assert share(Condition.ANSWERABLE, "d1") is None


EXAMPLES = [
    example("a1", question_id="q1"),
    example("a2", question_id="q2"),
    example("u1", Condition.UNANSWERABLE, "q1"),
    example("u2", Condition.UNANSWERABLE, "q2"),
    example("c1", Condition.CONFLICT, "q1"),
    example("c2", Condition.CONFLICT, "q2"),
    example("c3", Condition.CONFLICT, "q3"),
    example("a3", question_id="q3"),
]
PREDICTIONS = [
    answered("a1", sieve_score=0.1, threshold=0.5, timings={"sieve": 10.0, "sage": 100.0, "total": 110.0}),
    answered("a2", "the mayor is Ada Lind", question_id="q2", sieve_score=0.2, threshold=0.5, timings={"sieve": 20.0, "sage": 300.0}),
    abstained("u1", prompt="...", sieve_score=0.3, threshold=0.5, timings={"sieve": 30.0}),
    answered("u2", "Ada Lind", question_id="q2", sieve_score=0.1, threshold=0.5),
    abstained("c1", Reason.DISTRACTED, DISTRACTED, sieve_score=0.9, threshold=0.5, blamed=("d2",)),
    answered(
        "c2",
        question_id="q2",
        state=DISTRACTED,
        sieve_score=0.8,
        threshold=0.5,
        blamed=("d1",),
        removed=("d1",),
        citations=(Citation(document_id="d2", supported=False),),
    ),
    abstained("c3", Reason.SIEVE_FAILED, None, question_id="q3"),
    abstained("a3", Reason.UNPARSED, ANSWERABLE, question_id="q3", prompt="..."),
]


@pytest.fixture(scope="module")
def report() -> Report:
    return score(EXAMPLES, PREDICTIONS, resamples=200)


@pytest.mark.parametrize(
    ("name", "value", "n"),
    [
        ("system_accuracy", 4 / 8, 8),
        ("system_accuracy_strict", 3 / 8, 8),
        ("coverage", 2 / 3, 3),
        ("selective_accuracy", 1 / 2, 2),
        ("answerable_f1", 2 * 3 / (3 + 4), 4),
        ("unanswerable_f1", 2 * 1 / (2 + 1), 2),
        ("distracted_f1", 2 * 2 / (3 + 2), 3),
        ("macro_f1", (6 / 7 + 2 / 3 + 4 / 5) / 3, 8),
        ("answered_when_it_should_not", 2 / 5, 5),
        ("abstained_when_it_could_answer", 0.0, 3),
        ("sieve_true_positive_rate", 1.0, 2),
        ("sieve_false_positive_rate", 0.0, 4),
        ("sage_calls_saved", 2 / 8, 8),
        ("blame_precision", 1 / 2, 2),
        ("recovery_rate", 1 / 2, 2),
        ("recovery_accuracy", 1.0, 1),
        ("system_accuracy_contains", 5 / 8, 8),
        ("selective_accuracy_contains", 1.0, 2),
        ("selective_accuracy_squad", 1 / 2, 2),
    ],
)
def test_a_small_report_by_hand(report: Report, name: str, value: float, n: int) -> None:
    row = metric(report, name)
    assert row.value == pytest.approx(value)
    assert row.n == n
    assert row.low is not None and row.high is not None and row.value is not None
    assert row.low <= row.value <= row.high


def test_the_counts_close_and_reasons_conditions_and_latency_are_listed(report: Report) -> None:
    assert (report.n, report.questions) == (8, 3)
    assert list(report.counts.model_dump().values()) == [1, 3, 3, 0, 1, 0]
    assert report.reasons == {"distracted": 1, "sieve_failed": 1, "unanswerable": 1, "unparsed": 1}
    conflict = next(row for row in report.conditions if row.condition is Condition.CONFLICT)
    assert (conflict.n, conflict.correct, conflict.wrong, conflict.abstained, conflict.scored, conflict.flagged) == (3, 0, 1, 2, 2, 2)
    assert sum(row.n for row in report.conditions) == report.n
    assert [(row.stage, row.n) for row in report.latency] == [("sieve", 3), ("sage", 2), ("total", 1)]
    sieve = report.latency[0]
    assert (sieve.mean, sieve.median, sieve.p95) == pytest.approx((20.0, 20.0, 29.0))


def test_the_report_says_what_abstaining_from_everything_would_score(report: Report) -> None:
    """Pitfall E5."""
    assert report.notes[0] == "Always abstaining would have System Accuracy 0.625 on this data (0.375 by right state), and coverage 0."
    assert report.notes[1].startswith("Intervals of 3 questions are too narrow")
    assert report.notes[2].startswith("Guard failures (a stage crashed or ran out of time): 1.")
    assert report.notes[3].startswith("Predictions that name no state: 1.")


@given(st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_the_order_of_examples_and_predictions_does_not_matter(random: Random) -> None:
    examples, predictions = random.sample(EXAMPLES, len(EXAMPLES)), random.sample(PREDICTIONS, len(PREDICTIONS))
    assert score(examples, predictions, resamples=50) == score(EXAMPLES, PREDICTIONS, resamples=50)


def test_a_metric_that_nothing_counts_for_is_none_not_zero() -> None:
    report = score([example("u", Condition.UNANSWERABLE)], [abstained("u", Reason.POLICY)], resamples=10)
    row = metric(report, "coverage")
    assert (row.value, row.low, row.high, row.n, row.note) == (None, None, None, 0, "no example counts for it")


def test_macro_f1_on_one_class_only_is_flagged_in_the_report() -> None:
    """Pitfall F6."""
    report = score([example("a")], [answered("a")], resamples=10)
    assert metric(report, "macro_f1").note == "no example and no prediction of unanswerable, distracted: mean of the rest"
    assert metric(report, "distracted_f1").value is None


def test_another_match_changes_the_outcome_but_not_the_alternatives() -> None:
    exact, contains = (score(EXAMPLES, PREDICTIONS, match=match, resamples=50) for match in ("exact", "contains"))
    assert (exact.counts.correct_answers, contains.counts.correct_answers) == (1, 2)
    assert exact.alternatives == contains.alternatives


@pytest.mark.parametrize(
    ("examples", "predictions", "message"),
    [
        ([], [], "examples: expected at least one to score, got none"),
        ([example("a"), example("b")], [answered("a")], "exactly one for each of the 2 examples, got 1: no prediction for b"),
        ([example("a")], [answered("a"), answered("b"), answered("c")], "predictions without an example b, c"),
        ([example("a")], [answered("a"), answered("a")], "more than one prediction for a"),
        ([example("a"), example("a")], [answered("a")], "more than one example with id a"),
        ([example("a", question_id="q2")], [answered("a")], "another question_id than the example's in a"),
        ([example("a")], [], "no prediction for a; were they made from another data file"),
        ([example(f"e{index}") for index in range(8)], [], "no prediction for e0, e1, e2, e3, e4 and 3 more"),
    ],
)
def test_predictions_that_do_not_match_the_examples_are_refused_by_name(
    examples: list[Example], predictions: list[Prediction], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        score(examples, predictions)


def test_metric_names_are_unique() -> None:
    names = [name for name, _ in METRICS]
    assert len(set(names)) == len(names)
