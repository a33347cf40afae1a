"""The metrics of paper 002, section 4.3 and table 15: pure functions from rows to a tally, which holds the value and what an interval needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from eval.tally import Tally
from rag.records import Condition, Outcome, Reason, RetrievalState

STATES: Final = tuple(state.value for state in RetrievalState)
"""The fixed class list of the state metrics."""
SIEVE_CLASSES: Final = ("clean", "distracted")
"""The fixed class list of the Sieve's own decision."""
NO_CLASS: Final = "no_class"
"""Stands for "the system assigned no class": a miss for the gold class, never a class of its own."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One example and what a system did with it, reduced to what the metrics read."""

    question_id: str
    gold: RetrievalState
    condition: Condition
    outcome: Outcome
    state: RetrievalState | None
    """The state that the system assigned; none when it assigned none."""
    reason: Reason | None
    matches_gold: bool | None
    """Whether the answer matches a gold answer, whatever the gold state; none without an answer or without a gold answer."""
    answer_f1: float | None
    """SQuAD F1 of the answer against the best gold answer; none where `matches_gold` is none."""
    flagged: bool | None
    """Whether the Sieve's score reached its threshold; none when there is no score."""
    sage_called: bool | None
    """None where the system does not tell."""
    filtered: bool
    """Whether documents were removed before the Sage read the rest."""
    blamed_share: float | None
    """Share of the blamed documents that carry a distracting label; none without blame or without a distracting label in the set."""
    labelled: bool = False
    """Whether any document of the set carries a label."""
    distractors: int = 0
    """Documents of the set with a distracting label."""
    removed: int = 0
    """Documents that filtering removed before the Sage read the rest."""
    removed_distractors: int = 0
    """Those of them with a distracting label."""
    answerable_without: bool = False
    """Whether a document labelled answerable remains once those with a distracting label are taken away."""
    has_gold: bool = False
    """Whether there is a gold answer, whatever the gold state."""
    recovery: tuple[str, ...] = ()
    """What was done after a first abstention, in order."""

    @property
    def recovered(self) -> bool:
        """Whether something followed a first abstention."""
        return self.filtered or bool(self.recovery)

    @property
    def answered(self) -> bool:
        """Whether the system gave an answer, right or wrong."""
        return self.outcome in (Outcome.CORRECT, Outcome.WRONG)

    @property
    def abstained(self) -> bool:
        """Whether the system abstained. Unparsed output and errors are not abstentions."""
        return self.outcome is Outcome.ABSTAINED


def _share(rows: Sequence[Judged], of: Callable[[Judged], bool], hit: Callable[[Judged], float]) -> Tally:
    counted = [of(row) for row in rows]
    counts = np.zeros((len(rows), 2))
    counts[counted, 0] = [hit(row) for row in compress(rows, counted)]
    counts[counted, 1] = 1
    return Tally([row.question_id for row in rows], counts)


def _is_answerable(row: Judged) -> bool:
    return row.gold is RetrievalState.ANSWERABLE


def _is_distracted(row: Judged) -> bool:
    return row.gold is RetrievalState.DISTRACTED


def system_accuracy(rows: Sequence[Judged]) -> Tally:
    """(Correct answers + abstentions on unanswerable and distracted sets, whatever state was named) / all examples.

    This is what table 15's response counts recompute to; the paper's printed System Accuracy agrees with it in 9 of 40 rows (those of systems
    that never abstain, and one more). Unparsed output, errors and any answer to a set that is not answerable count against the system.
    Three of four right: one correct answer, one abstention on a distracted set named `unanswerable`, one on an unanswerable set, one needless
    abstention = 0.75.
    """
    return _share(rows, lambda row: True, lambda row: row.outcome is Outcome.CORRECT or (row.abstained and not _is_answerable(row)))


def system_accuracy_strict(rows: Sequence[Judged]) -> Tally:
    """(Correct answers + abstentions that name the gold state) / all examples.

    The state of an answered example plays no part: a correct answer is correct also where filtering removed documents first. This is
    the definition that fits 33 of the 40 printed rows of table 15. The example of `system_accuracy` gives 0.5 here: the distracted set was
    called `unanswerable`.
    """
    return _share(
        rows,
        lambda row: True,
        lambda row: row.outcome is Outcome.CORRECT or (row.abstained and not _is_answerable(row) and row.state is row.gold),
    )


def coverage(rows: Sequence[Judged]) -> Tally:
    """Answerable examples that the system answered, rightly or not / answerable examples.

    Unparsed output and errors are not answers. Two answered, one abstained, one unparsed = 0.5.
    """
    return _share(rows, _is_answerable, lambda row: row.answered)


def selective_accuracy(rows: Sequence[Judged]) -> Tally:
    """Correct answers / answered examples, both on answerable examples only.

    Not applicable to a system that answers nothing. Two answered, one of them correct, five abstained = 0.5.
    """
    return _share(rows, lambda row: _is_answerable(row) and row.answered, lambda row: row.outcome is Outcome.CORRECT)


def selective_f1(rows: Sequence[Judged]) -> Tally:
    """Sum of the answers' SQuAD F1 / answered examples, both on answerable examples only. F1 of 1.0 and 0.5 = 0.75."""
    return _share(
        rows,
        lambda row: _is_answerable(row) and row.answered and row.answer_f1 is not None,
        lambda row: row.answer_f1 or 0.0,
    )


def gold_given(rows: Sequence[Judged], condition: Condition) -> Tally:
    """Answers that match a gold answer / examples of one condition, whatever their state (paper 002, table 4).

    Abstentions, and sets without a gold answer, do not match. Four conflict sets, one of them answered with the gold answer = 0.25.
    """
    return _share(rows, lambda row: row.condition is condition, lambda row: row.matches_gold is True)


def answered_when_it_should_not(rows: Sequence[Judged]) -> Tally:
    """Answers / unanswerable and distracted examples. One answer to four such sets = 0.25.

    An answer after a recovery, such as filtering, counts as an answer here; `recovery_accuracy` says how good those are.
    """
    return _share(rows, lambda row: not _is_answerable(row), lambda row: row.answered)


def abstained_when_it_could_answer(rows: Sequence[Judged]) -> Tally:
    """Over-refusal: abstentions / answerable examples. One abstention on four answerable sets = 0.25.

    It is not 1 - coverage: unparsed output and errors are in neither.
    """
    return _share(rows, _is_answerable, lambda row: row.abstained)


def sage_calls_saved(rows: Sequence[Judged]) -> Tally:
    """Examples for which the Sage was not called / examples without an input error. One of five gated = 0.2.

    Not applicable to a system that gives answers and does not tell how.
    """
    told = all(row.sage_called is not None for row in rows)
    return _share(rows, lambda row: told and row.outcome is not Outcome.ERROR, lambda row: row.sage_called is False)


def sieve_true_positive_rate(rows: Sequence[Judged]) -> Tally:
    """Flagged distracted sets / distracted sets that have a Sieve score. Three of four flagged = 0.75."""
    return _share(rows, lambda row: _is_distracted(row) and row.flagged is not None, lambda row: row.flagged is True)


def sieve_false_positive_rate(rows: Sequence[Judged]) -> Tally:
    """Flagged sets / sets that have a Sieve score, both among answerable and unanswerable sets. One of four flagged = 0.25."""
    return _share(rows, lambda row: not _is_distracted(row) and row.flagged is not None, lambda row: row.flagged is True)


def blame_precision(rows: Sequence[Judged]) -> Tally:
    """Blamed documents with a distracting label / blamed documents, averaged over flagged distracted sets whose labels are known.

    Near-identical documents are blamed together; such a set counts by the share of them that is distracting. Sets without blame or
    without a labelled distractor do not count. One set blamed rightly, one wrongly = 0.5.
    """
    return _share(
        rows,
        lambda row: _is_distracted(row) and row.flagged is True and row.blamed_share is not None,
        lambda row: row.blamed_share or 0.0,
    )


def recovery_rate(rows: Sequence[Judged]) -> Tally:
    """Flagged distracted sets that were answered after filtering or another recovery / flagged distracted sets. One of four = 0.25."""
    return _share(rows, lambda row: _is_distracted(row) and row.flagged is True, lambda row: row.answered and row.recovered)


def recovery_accuracy(rows: Sequence[Judged]) -> Tally:
    """Correct answers / answers, both on flagged distracted sets answered after a recovery that have a gold answer (paper 002, section 6).

    System Accuracy counts each such answer as wrong, because the set as retrieved was distracted. Two answers, one correct = 0.5.
    """
    return _share(
        rows,
        lambda row: _is_distracted(row) and row.flagged is True and row.answered and row.recovered and row.matches_gold is not None,
        lambda row: row.matches_gold is True,
    )


def class_f1(groups: Sequence[str], gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str], label: str) -> Tally:
    """F1 of one class: 2 x (gold and predicted) / (gold + predicted).

    Not applicable when the class has neither a gold row nor a prediction; 0 when it has one of them and no hit. A label outside
    `classes` raises ValueError; `NO_CLASS` is allowed as a prediction and only adds a miss. Gold a, a, b and predicted a, b, b: F1 of a
    is 2 x 1 / (2 + 1) = 0.667.
    """
    _check_labels(gold, predicted, classes)
    in_gold, in_predicted = (np.array([label == each for each in labels], dtype=np.float64) for labels in (gold, predicted))
    return Tally(groups, np.column_stack([2 * in_gold * in_predicted, in_gold + in_predicted]))


def macro_f1(groups: Sequence[str], gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str]) -> Tally:
    """Unweighted mean of the F1 of each class in `classes`.

    Classes with neither a gold row nor a prediction are left out of the mean and named in `not_applicable`; a value with such a flag is
    not comparable with one without. Labels as in `class_f1`. Gold a, a, b and predicted a, b, b: (0.667 + 0.667) / 2.
    """
    tallies = {label: class_f1(groups, gold, predicted, classes, label) for label in classes}
    applicable = [tally.counts for tally in tallies.values() if tally.defined]
    return Tally(
        groups, np.hstack([np.zeros((len(groups), 0)), *applicable]), [label for label, tally in tallies.items() if not tally.defined]
    )


def _check_labels(gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str]) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"predicted labels: expected one for each of {len(gold)} gold labels, got {len(predicted)}")
    for name, labels, allowed in (("gold", gold, set(classes)), ("predicted", predicted, {*classes, NO_CLASS})):
        if unknown := sorted(repr(label) for label in set(labels) - allowed):
            raise ValueError(f"{name} labels: expected only {', '.join(classes)}, got {', '.join(unknown)}")


class _Labels(NamedTuple):
    groups: list[str]
    gold: list[str]
    predicted: list[str]


def _states(rows: Sequence[Judged]) -> _Labels:
    return _Labels(
        [row.question_id for row in rows], [row.gold for row in rows], [NO_CLASS if row.state is None else row.state for row in rows]
    )


def _sieve_decisions(rows: Sequence[Judged]) -> _Labels:
    scored = [row for row in rows if row.flagged is not None]
    gold = [SIEVE_CLASSES[_is_distracted(row)] for row in scored]
    return _Labels([row.question_id for row in scored], gold, [SIEVE_CLASSES[row.flagged is True] for row in scored])


def state_f1(rows: Sequence[Judged], state: RetrievalState) -> Tally:
    """`class_f1` of one retrieval state over all examples, by the state that the system named.

    A system that named no state (an input error, a crash before any decision) misses the gold state of that example and is no
    prediction of another one.
    """
    return class_f1(*_states(rows), STATES, state.value)


def state_macro_f1(rows: Sequence[Judged]) -> Tally:
    """`macro_f1` over the three retrieval states."""
    return macro_f1(*_states(rows), STATES)


def sieve_macro_f1(rows: Sequence[Judged]) -> Tally:
    """`macro_f1` of the Sieve's own decision over clean (answerable or unanswerable) and distracted, on examples that have a Sieve score."""
    return macro_f1(*_sieve_decisions(rows), SIEVE_CLASSES)


class ResponseCounts(NamedTuple):
    """How all examples ended; the six add up to the number of examples. The first four are the columns of table 15."""

    correct_answers: int
    incorrect_answers: int
    """Every other answer, including any answer to an unanswerable or distracted set."""
    correct_abstentions: int
    """Abstentions on unanswerable and distracted sets, whatever state was named."""
    incorrect_abstentions: int
    """Abstentions on answerable sets."""
    unparsed: int
    """Output that was neither an answer nor an abstention; the paper has no such column."""
    errors: int
    """Input that no system could use; the paper has no such column."""


def response_counts(rows: Sequence[Judged]) -> ResponseCounts:
    """Count how the examples ended. A correct answer, and an abstention on a distracted set: (1, 0, 1, 0, 0, 0)."""
    return ResponseCounts(
        correct_answers=sum(row.outcome is Outcome.CORRECT for row in rows),
        incorrect_answers=sum(row.outcome is Outcome.WRONG for row in rows),
        correct_abstentions=sum(row.abstained and not _is_answerable(row) for row in rows),
        incorrect_abstentions=sum(row.abstained and _is_answerable(row) for row in rows),
        unparsed=sum(row.outcome is Outcome.UNPARSED for row in rows),
        errors=sum(row.outcome is Outcome.ERROR for row in rows),
    )
