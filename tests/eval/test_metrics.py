"""Metrics: hand-computed values, edge conventions, and the paper's own table recomputed."""

import math
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import metrics
from eval.metrics import NO_CLASS, SIEVE_CLASSES, STATES, Judged, class_f1, macro_f1
from eval.tally import Tally
from rag.records import Condition, Outcome, Reason, RetrievalState

ANSWERABLE, UNANSWERABLE, DISTRACTED = RetrievalState.ANSWERABLE, RetrievalState.UNANSWERABLE, RetrievalState.DISTRACTED
ALL_METRICS = (
    metrics.system_accuracy,
    metrics.system_accuracy_strict,
    metrics.coverage,
    metrics.selective_accuracy,
    metrics.selective_f1,
    metrics.answered_when_it_should_not,
    metrics.abstained_when_it_could_answer,
    metrics.sage_calls_saved,
    metrics.sieve_true_positive_rate,
    metrics.sieve_false_positive_rate,
    metrics.blame_precision,
    metrics.recovery_rate,
    metrics.recovery_accuracy,
    metrics.state_macro_f1,
    metrics.sieve_macro_f1,
)


def row(
    gold: RetrievalState,
    outcome: Outcome,
    state: RetrievalState | None = None,
    *,
    question_id: str = "q",
    reason: Reason | None = None,
    matches_gold: bool | None = None,
    answer_f1: float | None = None,
    flagged: bool | None = None,
    sage_called: bool = True,
    filtered: bool = False,
    blamed_share: float | None = None,
) -> Judged:
    condition = Condition.CONFLICT if gold is DISTRACTED else Condition(gold.value)
    return Judged(
        question_id, gold, condition, outcome, state, reason, matches_gold, answer_f1, flagged, sage_called, filtered, blamed_share
    )


MIXED = [
    row(ANSWERABLE, Outcome.CORRECT, ANSWERABLE),
    row(ANSWERABLE, Outcome.WRONG, ANSWERABLE),
    row(ANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE),
    row(ANSWERABLE, Outcome.UNPARSED),
    row(ANSWERABLE, Outcome.ERROR),
    row(UNANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE),
    row(UNANSWERABLE, Outcome.WRONG, ANSWERABLE),
    row(DISTRACTED, Outcome.ABSTAINED, DISTRACTED),
    row(DISTRACTED, Outcome.ABSTAINED, UNANSWERABLE),
    row(DISTRACTED, Outcome.UNPARSED, ANSWERABLE),
]


@pytest.mark.parametrize(
    ("metric", "value", "n"),
    [
        (metrics.system_accuracy, 4 / 10, 10),
        (metrics.system_accuracy_strict, 3 / 10, 10),
        (metrics.coverage, 2 / 5, 5),
        (metrics.selective_accuracy, 1 / 2, 2),
        (metrics.answered_when_it_should_not, 1 / 5, 5),
        (metrics.abstained_when_it_could_answer, 1 / 5, 5),
    ],
)
def test_rates_of_a_mixed_list_by_hand(metric: Callable[[Sequence[Judged]], Tally], value: float, n: int) -> None:
    tally = metric(MIXED)
    assert tally.value == pytest.approx(value)
    assert tally.n == n


def test_unparsed_and_errors_are_neither_answers_nor_abstentions() -> None:
    """Pitfall E5: coverage and over-refusal do not add up to 1 when some outputs could not be read."""
    assert metrics.coverage(MIXED).value + metrics.abstained_when_it_could_answer(MIXED).value == pytest.approx(3 / 5)


def test_an_abstention_that_names_the_wrong_state_counts_only_in_the_lenient_definition() -> None:
    rows = [
        row(ANSWERABLE, Outcome.CORRECT, ANSWERABLE),
        row(DISTRACTED, Outcome.ABSTAINED, UNANSWERABLE),
        row(UNANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE),
        row(ANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE),
    ]
    assert metrics.system_accuracy(rows).value == 0.75
    assert metrics.system_accuracy_strict(rows).value == 0.5


def test_a_correct_answer_after_needless_filtering_is_correct_by_both_definitions() -> None:
    rows = [row(ANSWERABLE, Outcome.CORRECT, DISTRACTED, filtered=True)]
    assert metrics.system_accuracy(rows).value == metrics.system_accuracy_strict(rows).value == 1.0


def test_response_counts_by_hand_and_closed_to_n() -> None:
    counts = metrics.response_counts(MIXED)
    assert counts == (1, 2, 3, 1, 2, 1)
    assert sum(counts) == len(MIXED)


def test_state_f1_by_hand() -> None:
    """Answerable: 2 hits, 5 gold, 4 predicted. Unanswerable: 1, 2, 3. Distracted: 1, 3, 1."""
    answerable, unanswerable, distracted = (metrics.state_f1(MIXED, state).value for state in (ANSWERABLE, UNANSWERABLE, DISTRACTED))
    assert answerable == pytest.approx(4 / 9)
    assert unanswerable == pytest.approx(2 / 5)
    assert distracted == pytest.approx(2 / 4)
    assert metrics.state_macro_f1(MIXED).value == pytest.approx((4 / 9 + 2 / 5 + 2 / 4) / 3)


def test_a_prediction_without_a_state_misses_its_gold_class_and_is_no_class() -> None:
    rows = [row(ANSWERABLE, Outcome.CORRECT, ANSWERABLE), row(ANSWERABLE, Outcome.ERROR, None)]
    tally = metrics.state_macro_f1(rows)
    assert tally.value == pytest.approx(2 / 3)
    assert tally.not_applicable == ("unanswerable", "distracted")


@pytest.mark.parametrize("metric", ALL_METRICS)
def test_a_metric_over_no_rows_raises(metric: Callable[[Sequence[Judged]], Tally]) -> None:
    tally = metric([])
    assert not tally.defined
    with pytest.raises(ValueError, match="expected at least one row that counts for this metric, got none"):
        _ = tally.value


def test_selective_accuracy_of_a_system_that_never_answers_is_not_applicable() -> None:
    tally = metrics.selective_accuracy([row(ANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE)])
    assert not tally.defined


def test_macro_f1_with_an_absent_class_is_flagged() -> None:
    """Pitfall F6: gold and predictions all clean are neither a bare 0.5 nor an unflagged 1.0."""
    labels = ["clean"] * 4
    assert not class_f1("abcd", labels, labels, SIEVE_CLASSES, "distracted").defined
    tally = macro_f1("abcd", labels, labels, SIEVE_CLASSES)
    assert tally.value == 1.0
    assert tally.not_applicable == ("distracted",)


def test_macro_f1_counts_a_class_that_was_only_predicted() -> None:
    tally = macro_f1("ab", ["clean", "clean"], ["clean", "distracted"], SIEVE_CLASSES)
    assert tally.value == pytest.approx((2 / 3 + 0) / 2)
    assert tally.not_applicable == ()


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        (["clean", "clean"], ["clean", None], "predicted labels: expected only clean, distracted, got None"),
        (["clean", "clean"], ["clean", "Clean"], "predicted labels: expected only clean, distracted, got 'Clean'"),
        (["clean", "junk"], ["clean", "clean"], "gold labels: expected only clean, distracted, got 'junk'"),
        (["clean", NO_CLASS], ["clean", "clean"], "gold labels: expected only clean, distracted, got 'no_class'"),
    ],
)
def test_a_label_outside_the_list_is_an_error_not_another_class(gold: list[str], predicted: list[str], message: str) -> None:
    """Pitfall F6."""
    with pytest.raises(ValueError, match=message):
        macro_f1("ab", gold, predicted, SIEVE_CLASSES)


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="predicted labels: expected one for each of 2 gold labels, got 1"):
        class_f1("ab", ["clean", "clean"], ["clean"], SIEVE_CLASSES, "clean")


SIEVE_ROWS = [
    row(DISTRACTED, Outcome.ABSTAINED, DISTRACTED, flagged=True, sage_called=False, blamed_share=1.0),
    row(DISTRACTED, Outcome.WRONG, DISTRACTED, flagged=True, filtered=True, matches_gold=True, blamed_share=0.0),
    row(DISTRACTED, Outcome.WRONG, DISTRACTED, flagged=True, filtered=True, matches_gold=False, blamed_share=0.5),
    row(DISTRACTED, Outcome.WRONG, ANSWERABLE, flagged=False, matches_gold=True),
    row(ANSWERABLE, Outcome.ABSTAINED, DISTRACTED, flagged=True, sage_called=False),
    row(UNANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE, flagged=False),
    row(UNANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE, flagged=None, sage_called=False),
    row(ANSWERABLE, Outcome.ERROR, None, flagged=None, sage_called=False),
]


@pytest.mark.parametrize(
    ("metric", "value", "n"),
    [
        (metrics.sieve_true_positive_rate, 3 / 4, 4),
        (metrics.sieve_false_positive_rate, 1 / 2, 2),
        (metrics.sieve_macro_f1, (2 * 3 / (4 + 4) + 2 * 1 / (2 + 2)) / 2, 6),
        (metrics.sage_calls_saved, 3 / 7, 7),
        (metrics.blame_precision, 1.5 / 3, 3),
        (metrics.recovery_rate, 2 / 3, 3),
        (metrics.recovery_accuracy, 1 / 2, 2),
    ],
)
def test_sieve_and_recovery_metrics_by_hand(metric: Callable[[Sequence[Judged]], Tally], value: float, n: int) -> None:
    tally = metric(SIEVE_ROWS)
    assert tally.value == pytest.approx(value)
    assert tally.n == n


def test_recovered_answers_count_as_wrong_in_system_accuracy() -> None:
    recovered = [row(DISTRACTED, Outcome.WRONG, DISTRACTED, flagged=True, filtered=True, matches_gold=True)]
    assert metrics.recovery_accuracy(recovered).value == 1.0
    assert metrics.system_accuracy(recovered).value == 0.0


def test_a_flagged_set_answered_without_filtering_is_no_recovery() -> None:
    rows = [row(DISTRACTED, Outcome.WRONG, DISTRACTED, flagged=True, filtered=False, matches_gold=True)]
    assert metrics.recovery_rate(rows).value == 0.0
    assert not metrics.recovery_accuracy(rows).defined


def test_selective_f1_averages_over_answers_to_answerable_sets() -> None:
    rows = [
        row(ANSWERABLE, Outcome.CORRECT, answer_f1=1.0),
        row(ANSWERABLE, Outcome.WRONG, answer_f1=0.5),
        row(ANSWERABLE, Outcome.ABSTAINED),
        row(DISTRACTED, Outcome.WRONG, answer_f1=0.0),
    ]
    assert metrics.selective_f1(rows).value == 0.75


def test_questions_are_counted_once_whatever_their_variants() -> None:
    rows = [row(ANSWERABLE, Outcome.CORRECT, question_id=question_id) for question_id in ("q1", "q1", "q2")]
    assert (metrics.coverage(rows).n, metrics.coverage(rows).questions) == (3, 2)


def policy(answers: bool, abstains_as: RetrievalState | None) -> list[Judged]:
    """Ten questions with an answerable, an unanswerable and two distracted sets, under a fixed policy."""
    rows = []
    for number in range(10):
        for gold in (ANSWERABLE, UNANSWERABLE, DISTRACTED, DISTRACTED):
            if answers and (gold is ANSWERABLE or abstains_as is None):
                outcome = Outcome.CORRECT if gold is ANSWERABLE and number < 7 else Outcome.WRONG
                rows.append(row(gold, outcome, ANSWERABLE))
            else:
                rows.append(row(gold, Outcome.ABSTAINED, abstains_as))
    return rows


def test_always_abstaining_has_no_coverage_and_is_not_first_on_macro_f1() -> None:
    """Pitfall E5. By System Accuracy it would be close: 0.75 here without a single answer, hence the note in every report."""
    always = policy(answers=False, abstains_as=UNANSWERABLE)
    others = [policy(answers=True, abstains_as=UNANSWERABLE), policy(answers=True, abstains_as=DISTRACTED)]
    assert metrics.coverage(always).value == 0.0
    assert metrics.abstained_when_it_could_answer(always).value == 1.0
    assert metrics.system_accuracy(always).value == 0.75
    assert all(metrics.state_macro_f1(always).value < metrics.state_macro_f1(other).value for other in others)


def test_always_answering_shows_in_the_other_rate() -> None:
    """Pitfall E5."""
    always = policy(answers=True, abstains_as=None)
    assert metrics.coverage(always).value == 1.0
    assert metrics.answered_when_it_should_not(always).value == 1.0
    assert metrics.abstained_when_it_could_answer(always).value == 0.0


judged_rows = st.lists(
    st.builds(
        row,
        st.sampled_from(RetrievalState),
        st.sampled_from(Outcome),
        st.sampled_from([None, *RetrievalState]),
        question_id=st.sampled_from(["q1", "q2", "q3"]),
        matches_gold=st.sampled_from([None, True, False]),
        answer_f1=st.sampled_from([None, 0.1, 0.2, 0.7]),
        flagged=st.sampled_from([None, True, False]),
        sage_called=st.booleans(),
        filtered=st.booleans(),
        blamed_share=st.sampled_from([None, 0.0, 1 / 3, 1.0]),
    ),
    max_size=12,
)


@given(judged_rows, st.randoms(use_true_random=False))
def test_metrics_do_not_depend_on_row_order(rows: list[Judged], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    for metric in ALL_METRICS:
        here, there = metric(rows), metric(shuffled)
        assert here.defined == there.defined
        if here.defined:
            assert here.value == there.value


counts_of_rows = st.integers(0, 3).flatmap(
    lambda ratios: st.lists(
        st.tuples(
            st.sampled_from(["q1", "q2", "q3"]),
            st.lists(
                st.sampled_from([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (2.0, 2.0), (0.1, 1.0), (0.7, 1.0)]), min_size=ratios, max_size=ratios
            ),
        ),
        max_size=12,
    )
)


@given(counts_of_rows)
def test_a_tally_says_what_plain_sums_say(rows: list[tuple[str, list[tuple[float, float]]]]) -> None:
    """A reference without arrays: sums by column, the mean of the ratios, rows and questions with a denominator."""
    tally = Tally([group for group, _ in rows], [[value for pair in ratios for value in pair] for _, ratios in rows])
    counted = [(group, ratios) for group, ratios in rows if any(denominator for _, denominator in ratios)]
    assert (tally.defined, tally.n, tally.questions) == (bool(counted), len(counted), len({group for group, _ in counted}))
    sums = [
        tuple(math.fsum(ratios[place][side] for _, ratios in rows) for side in (0, 1)) for place in range(len(rows[0][1]) if rows else 0)
    ]
    if counted and all(denominator for _, denominator in sums):
        assert tally.value == pytest.approx(sum(numerator / denominator for numerator, denominator in sums) / len(sums))


def test_counts_without_a_line_for_each_row_are_refused() -> None:
    with pytest.raises(ValueError, match=r"counts: expected one line for each of 2 rows, got the shape \(1, 2\)"):
        Tally(["a", "b"], [(1.0, 1.0)])


@given(judged_rows)
def test_metrics_stay_between_zero_and_one(rows: list[Judged]) -> None:
    assert sum(metrics.response_counts(rows)) == len(rows)
    for metric in ALL_METRICS:
        tally = metric(rows)
        if tally.defined:
            assert 0 <= tally.value <= 1


def test_the_fixed_class_lists_are_the_vocabulary() -> None:
    assert STATES == ("answerable", "unanswerable", "distracted")
    assert SIEVE_CLASSES == ("clean", "distracted")
