"""Metrics: hand-computed values, edge conventions, and the paper's own table recomputed."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import metrics
from eval.metrics import NO_CLASS, SIEVE_CLASSES, STATES, Judged, Tally, class_f1, macro_f1
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


@given(judged_rows)
def test_metrics_stay_between_zero_and_one(rows: list[Judged]) -> None:
    assert sum(metrics.response_counts(rows)) == len(rows)
    for metric in ALL_METRICS:
        tally = metric(rows)
        if tally.defined:
            assert 0 <= tally.value <= 1


class PaperRow(NamedTuple):
    """One printed row of paper 002, table 15, with the test set sizes of its table 1."""

    data: str
    system: str
    system_accuracy: float
    coverage: float
    selective: float
    answerable_f1: float
    unanswerable_f1: float
    distracted_f1: float
    correct_answers: int
    incorrect_answers: int
    correct_abstentions: int
    incorrect_abstentions: int


PAPER_SIZES = {
    "NQ-google": (51, 49, 126),
    "NQ-wiki": (889, 483, 1925),
    "WebQ": (545, 296, 1255),
    "RealtimeQA": (34, 66, 87),
    "RAG-Bench": (912, 419, 2721),
    "MedQA": (116, 159, 216),
    "BioASQ": (75, 397, 138),
    "AstroQA": (99, 86, 104),
}
"""Answerable, unanswerable and distracted test sets, printed in table 1."""

PAPER_ROWS = [
    PaperRow("NQ-google", "vanilla LLM", 0.102, 1.000, 0.353, 0.379, 0.143, 0.016, 18, 200, 8, 0),
    PaperRow("NQ-google", "Sage-only", 0.664, 0.471, 1.000, 0.545, 0.164, 0.752, 24, 13, 162, 27),
    PaperRow("NQ-google", "DTA-RAAT", 0.128, 1.000, 0.569, 0.368, 0.000, 0.000, 29, 197, 0, 0),
    PaperRow("NQ-google", "DTA-chatQA", 0.230, 0.961, 0.857, 0.377, 0.254, 0.031, 42, 167, 15, 2),
    PaperRow("NQ-google", "Sieve and Sage", 0.796, 0.863, 0.886, 0.672, 0.585, 0.937, 39, 41, 139, 7),
    PaperRow("NQ-wiki", "vanilla LLM", 0.154, 0.993, 0.465, 0.439, 0.277, 0.008, 411, 2721, 159, 6),
    PaperRow("NQ-wiki", "Sage-only", 0.792, 0.938, 0.772, 0.777, 0.454, 0.960, 644, 613, 1985, 55),
    PaperRow("NQ-wiki", "DTA-RAAT", 0.167, 1.000, 0.619, 0.425, 0.000, 0.000, 550, 2747, 0, 0),
    PaperRow("NQ-wiki", "DTA-chatQA", 0.226, 0.922, 0.713, 0.429, 0.355, 0.016, 585, 2348, 295, 69),
    PaperRow("NQ-wiki", "Sieve and Sage", 0.638, 0.810, 0.822, 0.603, 0.556, 0.737, 592, 909, 1627, 169),
    PaperRow("WebQ", "vanilla LLM", 0.110, 0.976, 0.365, 0.418, 0.171, 0.005, 194, 1805, 84, 13),
    PaperRow("WebQ", "Sage-only", 0.746, 0.927, 0.699, 0.737, 0.322, 0.943, 353, 473, 1230, 40),
    PaperRow("WebQ", "DTA-RAAT", 0.153, 1.000, 0.587, 0.413, 0.000, 0.000, 320, 1776, 0, 0),
    PaperRow("WebQ", "DTA-chatQA", 0.186, 0.798, 0.664, 0.403, 0.241, 0.014, 289, 1324, 373, 110),
    PaperRow("WebQ", "Sieve and Sage", 0.578, 0.758, 0.719, 0.555, 0.401, 0.730, 297, 645, 1022, 132),
    PaperRow("RealtimeQA", "vanilla LLM", 0.225, 1.000, 0.765, 0.337, 0.376, 0.000, 26, 142, 19, 0),
    PaperRow("RealtimeQA", "Sage-only", 0.535, 0.059, 1.000, 0.095, 0.189, 0.659, 2, 6, 147, 32),
    PaperRow("RealtimeQA", "DTA-RAAT", 0.134, 1.000, 0.735, 0.308, 0.000, 0.000, 25, 162, 0, 0),
    PaperRow("RealtimeQA", "DTA-chatQA", 0.262, 0.971, 0.909, 0.333, 0.427, 0.000, 30, 134, 22, 1),
    PaperRow("RealtimeQA", "Sieve and Sage", 0.802, 0.676, 1.000, 0.541, 0.763, 0.899, 23, 28, 125, 11),
    PaperRow("RAG-Bench", "vanilla LLM", 0.125, 0.980, 0.497, 0.370, 0.218, 0.002, 444, 3481, 109, 18),
    PaperRow("RAG-Bench", "Sage-only", 0.397, 0.928, 0.779, 0.446, 0.354, 0.446, 659, 2220, 1107, 66),
    PaperRow("RAG-Bench", "DTA-RAAT", 0.179, 1.000, 0.796, 0.367, 0.000, 0.000, 726, 3326, 0, 0),
    PaperRow("RAG-Bench", "DTA-chatQA", 0.191, 0.908, 0.775, 0.370, 0.265, 0.012, 642, 2922, 404, 84),
    PaperRow("RAG-Bench", "Sieve and Sage", 0.368, 0.773, 0.814, 0.405, 0.376, 0.344, 574, 1995, 1276, 207),
    PaperRow("MedQA", "vanilla LLM", 0.322, 0.931, 0.435, 0.444, 0.793, 0.000, 47, 323, 113, 8),
    PaperRow("MedQA", "Sage-only", 0.489, 0.914, 0.425, 0.613, 0.268, 0.765, 45, 185, 251, 10),
    PaperRow("MedQA", "DTA-RAAT", 0.041, 1.000, 0.172, 0.382, 0.000, 0.000, 20, 471, 0, 0),
    PaperRow("MedQA", "DTA-chatQA", 0.297, 0.914, 0.509, 0.434, 0.667, 0.000, 54, 319, 108, 10),
    PaperRow("MedQA", "Sieve and Sage", 0.682, 0.862, 0.460, 0.662, 0.677, 0.959, 46, 140, 289, 16),
    PaperRow("BioASQ", "vanilla LLM", 0.333, 0.973, 0.000, 0.308, 0.669, 0.000, 0, 399, 209, 2),
    PaperRow("BioASQ", "Sage-only", 0.428, 0.880, 0.000, 0.365, 0.604, 0.617, 0, 287, 314, 9),
    PaperRow("BioASQ", "DTA-RAAT", 0.002, 1.000, 0.013, 0.219, 0.000, 0.000, 1, 609, 0, 0),
    PaperRow("BioASQ", "DTA-chatQA", 0.456, 0.707, 0.038, 0.305, 0.754, 0.027, 2, 270, 316, 22),
    PaperRow("BioASQ", "Sieve and Sage", 0.428, 0.853, 0.000, 0.336, 0.551, 0.768, 0, 306, 293, 11),
    PaperRow("AstroQA", "vanilla LLM", 0.218, 0.828, 0.268, 0.516, 0.526, 0.000, 22, 197, 53, 17),
    PaperRow("AstroQA", "Sage-only", 0.550, 0.434, 0.465, 0.509, 0.608, 0.744, 20, 50, 163, 56),
    PaperRow("AstroQA", "DTA-RAAT", 0.093, 1.000, 0.273, 0.510, 0.000, 0.000, 27, 262, 0, 0),
    PaperRow("AstroQA", "DTA-chatQA", 0.208, 0.798, 0.392, 0.485, 0.384, 0.019, 31, 196, 42, 20),
    PaperRow("AstroQA", "Sieve and Sage", 0.630, 0.303, 0.433, 0.420, 0.634, 0.933, 13, 31, 176, 69),
]


def paper_judged(paper: PaperRow) -> list[Judged]:
    """Rows that have the printed response counts; every abstention names the gold state."""
    answerable, unanswerable, _ = PAPER_SIZES[paper.data]
    wrong_on_answerable = answerable - paper.correct_answers - paper.incorrect_abstentions
    abstained_unanswerable = min(paper.correct_abstentions, unanswerable)
    abstained_distracted = paper.correct_abstentions - abstained_unanswerable
    return [
        *[row(ANSWERABLE, Outcome.CORRECT, ANSWERABLE)] * paper.correct_answers,
        *[row(ANSWERABLE, Outcome.WRONG, ANSWERABLE)] * wrong_on_answerable,
        *[row(ANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE)] * paper.incorrect_abstentions,
        *[row(UNANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE)] * abstained_unanswerable,
        *[row(DISTRACTED, Outcome.ABSTAINED, DISTRACTED)] * abstained_distracted,
        *[row(DISTRACTED, Outcome.WRONG, ANSWERABLE)] * (paper.incorrect_answers - wrong_on_answerable),
    ]


PRINTED = 0.00051
"""Half a unit of the third decimal, which is all the paper prints."""


@pytest.mark.parametrize("paper", PAPER_ROWS, ids=lambda paper: f"{paper.data}-{paper.system}")
def test_coverage_selective_accuracy_answerable_f1_and_counts_are_those_of_the_paper(paper: PaperRow) -> None:
    judged = paper_judged(paper)
    assert len(judged) == sum(PAPER_SIZES[paper.data])
    assert metrics.coverage(judged).value == pytest.approx(paper.coverage, abs=PRINTED)
    assert metrics.selective_accuracy(judged).value == pytest.approx(paper.selective, abs=PRINTED)
    assert metrics.state_f1(judged, ANSWERABLE).value == pytest.approx(paper.answerable_f1, abs=PRINTED)
    printed = (paper.correct_answers, paper.incorrect_answers, paper.correct_abstentions, paper.incorrect_abstentions)
    assert metrics.response_counts(judged) == (*printed, 0, 0)


def test_printed_system_accuracy_agrees_with_any_abstention_in_nine_rows() -> None:
    agrees = {
        (paper.data, paper.system)
        for paper in PAPER_ROWS
        if metrics.system_accuracy(paper_judged(paper)).value == pytest.approx(paper.system_accuracy, abs=PRINTED)
    }
    assert agrees == {*((data, "DTA-RAAT") for data in PAPER_SIZES), ("MedQA", "Sieve and Sage")}


def hits(f1: float, gold: int, predicted: int) -> Iterator[int]:
    """Numbers of hits that print as this F1."""
    middle = round(f1 * (gold + predicted) / 2)
    slack = 2 + (gold + predicted) // 1000
    for count in range(max(0, middle - slack), min(gold, predicted, middle + slack) + 1):
        if abs(2 * count / (gold + predicted) - f1) < PRINTED:
            yield count


def strict_fits(paper: PaperRow) -> bool:
    """Whether some split of the abstentions into the two states gives both printed F1s and the printed System Accuracy."""
    _, unanswerable, distracted = PAPER_SIZES[paper.data]
    abstentions = paper.correct_abstentions + paper.incorrect_abstentions
    return any(
        unanswerable_hits + distracted_hits <= paper.correct_abstentions
        and abs((paper.correct_answers + unanswerable_hits + distracted_hits) / sum(PAPER_SIZES[paper.data]) - paper.system_accuracy)
        < PRINTED
        for said_unanswerable in range(abstentions + 1)
        for unanswerable_hits in hits(paper.unanswerable_f1, unanswerable, said_unanswerable)
        for distracted_hits in hits(paper.distracted_f1, distracted, abstentions - said_unanswerable)
    )


def test_printed_system_accuracy_can_be_the_strict_one_in_all_but_seven_rows() -> None:
    fails = {(paper.data, paper.system) for paper in PAPER_ROWS if not strict_fits(paper)}
    assert fails == {
        ("NQ-google", "Sage-only"),
        ("NQ-google", "Sieve and Sage"),
        ("NQ-wiki", "Sieve and Sage"),
        ("RealtimeQA", "Sage-only"),
        ("RealtimeQA", "Sieve and Sage"),
        ("RAG-Bench", "Sage-only"),
        ("RAG-Bench", "Sieve and Sage"),
    }


def test_two_printed_values_exceed_what_either_definition_allows() -> None:
    exceeds = {
        (paper.data, paper.system)
        for paper in PAPER_ROWS
        if metrics.system_accuracy(paper_judged(paper)).value < paper.system_accuracy - PRINTED
    }
    assert exceeds == {("NQ-google", "Sieve and Sage"), ("RealtimeQA", "Sieve and Sage")}


def test_the_fixed_class_lists_are_the_vocabulary() -> None:
    assert STATES == ("answerable", "unanswerable", "distracted")
    assert SIEVE_CLASSES == ("clean", "distracted")
