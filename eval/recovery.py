"""Metrics of what follows an abstention (paper 002, section 6 and table 2), and of which documents filtering removed."""

from collections.abc import Callable, Sequence
from typing import Final

from eval.metrics import Judged
from eval.tally import Tally
from rag.records import Record, RetrievalState, Text

STEPS: Final = ("filtered", "re_retrieved", "escalated", "queued")
"""What `Prediction.recovery` names, in the order of the report."""


class RecoveryRow(Record):
    """One kind of recovery over all examples."""

    step: Text
    n: int
    """Examples on which it was tried."""
    by_state: dict[Text, int]
    """Those of them by the state that the system gave the set."""
    answered: int
    """Examples answered by it: it was the last thing done."""
    with_gold: int
    """Answers of these to examples that have a gold answer, whatever their gold state."""
    matching: int
    """Those of them that match it."""


def removal_precision(rows: Sequence[Judged]) -> Tally:
    """Removed documents with a distracting label / removed documents, over all sets that carry labels; each document counts once.

    A document removed from a clean set that was flagged by mistake counts against it. Sets from which the Sage was asked nothing count as
    having nothing removed. One set of which two were removed, one of them planted, and one of which the planted one was: 2 / 3.
    """
    return _ratio(rows, lambda row: row.labelled, lambda row: (row.removed_distractors, row.removed))


def removal_recall(rows: Sequence[Judged]) -> Tally:
    """Documents with a distracting label that were removed / documents with a distracting label, over flagged distracted sets.

    A system that removes nothing has 0. Two sets with one and with two planted documents, of which one each was removed: 2 / 3.
    """
    return _ratio(rows, _is_detected, lambda row: (row.removed_distractors, row.distractors))


def recovered_answer_accuracy(rows: Sequence[Judged]) -> Tally:
    """Answers that match the gold answer / flagged distracted examples with a gold answer: the first reading of table 2.

    Paper 002 does not define its accuracy on distracted examples that the Sieve detected. This is the plain reading, and 0 for a system without
    recovery, of which the paper prints 0.247 (28 of 113) and 0.380 (27 of 71): it cannot be that. Whether the documents without the planted
    ones hold the answer plays no part. Four examples, one answered rightly, one wrongly, two abstained on = 0.25.
    """
    return _ratio(rows, lambda row: _is_detected(row) and row.has_gold, lambda row: (row.matches_gold is True, 1))


def right_after_recovery(rows: Sequence[Judged]) -> Tally:
    """What would be right without the planted documents / flagged distracted examples with labels: the second reading of table 2.

    Right is an answer that matches the gold answer where a document labelled answerable remains once those with a distracting label are
    taken away, and an abstention where none remains. A system without recovery then has the share of sets that planting made distracted
    though they were unanswerable, which can be what the paper prints as No Recovery. Unparsed output and errors are never right. Three
    examples: a gold answer where an answerable document remains, an abstention where one does, an abstention where none does = 2 / 3.
    """
    return _ratio(
        rows,
        lambda row: _is_detected(row) and row.labelled,
        lambda row: (row.matches_gold is True if row.answerable_without else row.abstained, 1),
    )


def _is_detected(row: Judged) -> bool:
    return row.gold is RetrievalState.DISTRACTED and row.flagged is True


def _ratio(rows: Sequence[Judged], of: Callable[[Judged], bool], counts: Callable[[Judged], tuple[float, float]]) -> Tally:
    pairs = tuple((float(top), float(bottom)) for top, bottom in (counts(row) if of(row) else (0, 0) for row in rows))
    return Tally(tuple(row.question_id for row in rows), pairs)


METRICS: Final[tuple[tuple[str, Callable[[Sequence[Judged]], Tally]], ...]] = (
    ("removal_precision", removal_precision),
    ("removal_recall", removal_recall),
    ("recovered_answer_accuracy", recovered_answer_accuracy),
    ("right_after_recovery", right_after_recovery),
)


def recovery_rows(rows: Sequence[Judged]) -> tuple[RecoveryRow, ...]:
    """What was tried after first abstentions, and how it ended; nothing where nothing was."""
    tried = {step: [row for row in rows if step in row.recovery] for step in STEPS}
    return tuple(_row(step, some) for step, some in tried.items() if some)


def _row(step: str, rows: Sequence[Judged]) -> RecoveryRow:
    answered = [row for row in rows if row.answered and row.recovery[-1] == step]
    states = [row.state.value for row in rows if row.state is not None]
    return RecoveryRow(
        step=step,
        n=len(rows),
        by_state={state.value: states.count(state.value) for state in RetrievalState if state.value in states},
        answered=len(answered),
        with_gold=sum(row.has_gold for row in answered),
        matching=sum(row.matches_gold is True for row in answered),
    )


def by_distractors(rows: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Distracted sets by the number of documents with a distracting label; sets without such a label are in none."""
    distracted = [row for row in rows if row.gold is RetrievalState.DISTRACTED]
    groups = {
        "1": [row for row in distracted if row.distractors == 1],
        "2": [row for row in distracted if row.distractors == 2],
        "3 or more": [row for row in distracted if row.distractors >= 3],
    }
    return {name: group for name, group in groups.items() if group}
