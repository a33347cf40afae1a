"""Metrics of removal and recovery: hand-computed, both readings of table 2, and how they show in a report."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from eval import recovery
from eval.metrics import Judged
from eval.outcomes import judge
from eval.recovery import by_distractors, recovery_rows
from eval.report import METRIC_TITLES, render_table
from eval.report.words import RECOVERY_TITLES
from eval.score import score
from eval.tally import Tally
from rag.records import Condition, Document, DocumentLabel, Example, Outcome, Prediction, Reason, RetrievalState

ANSWERABLE, UNANSWERABLE, DISTRACTED = RetrievalState.ANSWERABLE, RetrievalState.UNANSWERABLE, RetrievalState.DISTRACTED


def row(
    state: RetrievalState = DISTRACTED,
    outcome: Outcome = Outcome.ABSTAINED,
    *,
    question_id: str = "q",
    flagged: bool | None = True,
    matches_gold: bool | None = None,
    **fields: Any,
) -> Judged:
    return Judged(
        question_id=question_id,
        gold=state,
        condition=Condition.CONFLICT if state is DISTRACTED else Condition(state.value),
        outcome=outcome,
        state=DISTRACTED if flagged else None,
        reason=None,
        matches_gold=matches_gold,
        answer_f1=None,
        flagged=flagged,
        sage_called=True,
        filtered=bool(fields.get("removed")),
        blamed_share=None,
        **{"labelled": True, "has_gold": True, **fields},
    )


RIGHT: dict[str, Any] = {"outcome": Outcome.WRONG, "matches_gold": True}
WRONG: dict[str, Any] = {"outcome": Outcome.WRONG, "matches_gold": False}
FILTERED = ("filtered",)
ROWS = [
    row(**RIGHT, distractors=1, removed=1, removed_distractors=1, answerable_without=True, recovery=FILTERED),
    row(**WRONG, distractors=2, removed=2, removed_distractors=1, answerable_without=True, recovery=FILTERED),
    row(distractors=2, answerable_without=True),
    row(distractors=3),
    row(outcome=Outcome.UNPARSED, distractors=1),
    row(distractors=1, has_gold=False, labelled=False),
    row(distractors=1, flagged=False),
    row(ANSWERABLE, Outcome.CORRECT, matches_gold=True, removed=1, answerable_without=True, recovery=FILTERED),
    row(UNANSWERABLE, **WRONG, flagged=False, recovery=("re_retrieved", "escalated")),
    row(UNANSWERABLE, flagged=False, recovery=("escalated", "queued")),
]


@pytest.mark.parametrize(
    ("metric", "value", "n"),
    [
        (recovery.removal_precision, 2 / 4, 3),
        (recovery.removal_recall, 2 / 10, 6),
        (recovery.recovered_answer_accuracy, 1 / 5, 5),
        # Right: the gold answer where one remains, and the abstention where none does; not the abstention where one remains, nor unparsed output.
        (recovery.right_after_recovery, 2 / 5, 5),
    ],
)
def test_by_hand(metric: Callable[[Sequence[Judged]], Tally], value: float, n: int) -> None:
    tally = metric(ROWS)
    assert (tally.value, tally.n) == (pytest.approx(value), n)


@pytest.mark.parametrize(("unanswerable", "n", "printed"), [(28, 113, 0.247), (27, 71, 0.380)])
def test_no_recovery_of_table_2_can_be_the_share_that_was_unanswerable_and_is_no_accuracy_of_answers(
    unanswerable: int, n: int, printed: float
) -> None:
    """28 / 113 rounds to 0.248, so even by this reading the first row does not print as in the paper."""
    rows = [row(distractors=1, answerable_without=i >= unanswerable) for i in range(n)]
    assert recovery.recovered_answer_accuracy(rows).value == 0.0
    assert recovery.right_after_recovery(rows).value == pytest.approx(printed, abs=0.001)


@pytest.mark.parametrize("metric", [metric for _, metric in recovery.METRICS])
def test_nothing_that_counts_is_not_applicable(metric: Callable[[Sequence[Judged]], Tally]) -> None:
    assert not metric([row(ANSWERABLE, Outcome.CORRECT, flagged=False, labelled=False)]).defined


def test_a_step_s_answers_are_those_that_it_gave_itself() -> None:
    rows = {r.step: (r.n, r.by_state, r.answered, r.with_gold, r.matching) for r in recovery_rows(ROWS)}
    assert rows == {
        "filtered": (3, {"distracted": 3}, 3, 3, 2),
        "re_retrieved": (1, {}, 0, 0, 0),
        "escalated": (2, {}, 1, 1, 0),
        "queued": (1, {}, 0, 0, 0),
    }
    assert recovery_rows([row()]) == ()


def test_distracted_sets_are_told_apart_by_their_planted_documents() -> None:
    rows = [row(distractors=n) for n in (0, 1, 1, 2, 3, 7)] + [row(ANSWERABLE, distractors=1)]
    assert {name: len(group) for name, group in by_distractors(rows).items()} == {"1": 2, "2": 1, "3 or more": 2}


def document(name: str, label: DocumentLabel | None) -> Document:
    return Document(id=name, text=f"Text of {name}.", label=label)


def example(name: str, *labels: DocumentLabel | None, question: str = "q1") -> Example:
    documents = tuple(document(f"d{n}", label) for n, label in enumerate(labels, start=1))
    return Example(
        id=name,
        question_id=question,
        question="Who?",
        documents=documents,
        answers=("Ada",),
        state=DISTRACTED,
        condition=Condition.CONFLICT,
    )


TRUE, PLANTED, OTHER = DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT, DocumentLabel.NEUTRAL
EXAMPLES = [
    example("one", TRUE, PLANTED, OTHER, question="q1"),
    example("two", TRUE, PLANTED, PLANTED, question="q2"),
    example("three", PLANTED, PLANTED, PLANTED, question="q3"),
]


def made(name: str, question: str, **fields: Any) -> Prediction:
    ends: dict[str, Any] = {"reason": Reason.STILL_DISTRACTED} if "answer" not in fields else {}
    scores = {"sieve_score": 0.9, "threshold": 0.5, "state": DISTRACTED}
    return Prediction(id=name, question_id=question, **ends, **{**scores, **fields})


PREDICTIONS = [
    made("one", "q1", answer="Ada", removed=("d2",), recovery=FILTERED, timings={"sieve": 5.0, "total": 5.0}, stored=("sieve",)),
    made("two", "q2", answer="Bo", removed=("d2", "d1"), recovery=FILTERED, timings={"sieve": 7.0, "total": 7.0}),
    made("three", "q3", recovery=("queued",)),
]


def test_labels_decide_what_was_planted() -> None:
    judged = [judge(e, p) for e, p in zip(EXAMPLES, PREDICTIONS, strict=True)]
    assert [(j.distractors, j.removed, j.removed_distractors, j.answerable_without) for j in judged] == [
        (1, 1, 1, True),
        (2, 2, 1, True),
        (3, 0, 0, False),
    ]
    bare = judge(example("x", None, None), made("x", "q1", removed=("d1",), answer="Ada"))
    assert (bare.labelled, bare.has_gold, bare.recovered) == (False, True, True)


def shown(examples: Sequence[Example], predictions: Sequence[Prediction]) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_table(score(examples, predictions, resamples=20)))
    return console.export_text()


def test_the_report_has_what_was_done_and_a_table_by_number_of_distractors() -> None:
    report = score(EXAMPLES, PREDICTIONS, resamples=20)
    assert {row.name: row.value for row in report.metrics}["removal_precision"] == pytest.approx(2 / 3)
    by_number = {group.distractors: {row.name: row.value for row in group.metrics} for group in report.distractors}
    assert by_number["1"] == {
        "removal_precision": 1.0,
        "removal_recall": 1.0,
        "recovery_rate": 1.0,
        "recovered_answer_accuracy": 1.0,
        "right_after_recovery": 1.0,
    }
    assert [by_number[name]["removal_recall"] for name in ("2", "3 or more")] == [0.5, 0.0]
    assert by_number["3 or more"]["right_after_recovery"] == 1.0, "nothing true remains, and it was abstained on"
    text = shown(EXAMPLES, PREDICTIONS)
    assert "Recovery: what followed an abstention" in text and "Recovery by number of distractors" in text
    assert all(title in text for step, title in RECOVERY_TITLES.items() if step in ("filtered", "queued"))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
    assert text.count(METRIC_TITLES["removal_recall"]) == 4, "in one line each: once over all sets, once for each number"
    assert not any("…" in line for line in text.splitlines())


def test_without_any_recovery_the_report_has_neither() -> None:
    text = shown(EXAMPLES, [made(e.id, e.question_id) for e in EXAMPLES])
    assert "Recovery:" not in text and "by number of distractors" not in text
    assert METRIC_TITLES["right_after_recovery"] in text


def test_the_report_says_which_times_were_stored() -> None:
    report = score(EXAMPLES, PREDICTIONS, resamples=20)
    assert [(r.stage, r.n, r.stored) for r in report.latency] == [("sieve", 2, 1), ("total", 2, 1)]
    assert "sieve 1 of 2, total 1 of 2" in " ".join(shown(EXAMPLES, PREDICTIONS).split())
    assert "stored" not in shown(EXAMPLES[1:], PREDICTIONS[1:])


ANY_ROW = st.builds(
    row,
    st.sampled_from(list(RetrievalState)),
    st.sampled_from(list(Outcome)),
    question_id=st.sampled_from(["q1", "q2", "q3"]),
    flagged=st.sampled_from([True, False, None]),
    matches_gold=st.sampled_from([True, False, None]),
    labelled=st.booleans(),
    has_gold=st.booleans(),
    answerable_without=st.booleans(),
    distractors=st.integers(1, 4),
    removed=st.integers(1, 4),
    removed_distractors=st.integers(0, 1),
)


@given(rows=st.lists(ANY_ROW, min_size=1, max_size=12), seed=st.randoms())
def test_they_stay_between_0_and_1_in_any_order(rows: list[Judged], seed: Any) -> None:
    shuffled = list(rows)
    seed.shuffle(shuffled)
    for _, metric in recovery.METRICS:
        tally = metric(rows)
        assert not tally.defined or 0 <= tally.value <= 1
        assert not tally.defined or tally.value == metric(shuffled).value
