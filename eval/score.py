"""Score predictions against examples: each metric with n and an interval, counts by outcome, condition and reason, latency by stage."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

import numpy as np

from eval import metrics, recovery
from eval.bootstrap import interval
from eval.metrics import Judged, Tally
from eval.recovery import RecoveryRow, by_distractors, recovery_rows
from rag import text
from rag.errors import InputError
from rag.records import Condition, DocumentLabel, Example, Outcome, Prediction, Reason, Record, RetrievalState, Text

Match = Literal["exact", "squad", "contains"]
"""When an answer counts as correct: strict exact match, plain SQuAD exact match, or a gold answer found in it at word boundaries."""

MATCHES: Final[tuple[Match, ...]] = ("exact", "squad", "contains")
DISTRACTING: Final = frozenset({DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL})
GUARD_FAILURES: Final = frozenset(reason for reason in Reason if reason.value.endswith(("_failed", "_timeout")))
STAGES: Final = ("sieve", "leave_one_out", "sage", "re_retrieve", "escalate", "total")


class MetricRow(Record):
    """One metric on one set of predictions."""

    name: str
    value: float | None
    """None where no example counts: shown as n/a, never as 0."""
    low: float | None
    """Lower end of the bootstrap interval."""
    high: float | None
    n: int
    """Examples that count for this metric: its denominator, or for an F1 those that have the class as gold or prediction."""
    questions: int
    """Distinct questions among them. The interval resamples all questions, those without such an example too."""
    undefined: int = 0
    """Resamples left out of the interval, because no drawn question had an example that counts."""
    note: str = ""


class ResponseCountsRow(Record):
    """How all examples ended; the six add up to the number of examples."""

    correct_answers: int
    incorrect_answers: int
    correct_abstentions: int
    incorrect_abstentions: int
    unparsed: int
    errors: int


class ConditionRow(Record):
    """How the examples of one condition and state ended."""

    condition: Condition
    state: RetrievalState
    n: int
    correct: int
    wrong: int
    abstained: int
    unparsed: int
    error: int
    scored: int
    """Examples that have a Sieve score."""
    flagged: int
    """Those of them that the Sieve flagged."""


class LatencyRow(Record):
    """Time of one stage in this run, in milliseconds; a batch's time is shared equally by its items."""

    stage: str
    n: int
    """Examples that went through the stage."""
    mean: float
    median: float
    p95: float
    """95th percentile, linear between the two nearest."""
    stored: int = 0
    """Those of the examples whose time is that of an earlier run, which kept the result."""


class DistractorsRow(Record):
    """Recovery on the distracted sets that have one number of distracting documents."""

    distractors: Text
    """`1`, `2` or `3 or more`."""
    n: int
    flagged: int
    metrics: tuple[MetricRow, ...]


class Report(Record):
    """Everything that one evaluation says."""

    n: int
    questions: int
    match: Match
    """The rule by which an answer counted as correct in everything but `alternatives`."""
    resamples: int
    seed: int
    level: float
    """Share of resamples inside each interval."""
    metrics: tuple[MetricRow, ...]
    alternatives: tuple[MetricRow, ...]
    """Accuracy by each matching rule, side by side."""
    counts: ResponseCountsRow
    conditions: tuple[ConditionRow, ...]
    reasons: dict[str, int]
    """Why the system gave no answer, most frequent first; errors are counted apart."""
    latency: tuple[LatencyRow, ...]
    notes: tuple[str, ...]
    recovery: tuple[RecoveryRow, ...] = ()
    """What was done after a first abstention; empty where nothing was."""
    distractors: tuple[DistractorsRow, ...] = ()
    """Recovery by the number of distracting documents; empty where nothing was done after any abstention, or no label is known."""


METRICS: Final[tuple[tuple[str, Callable[[Sequence[Judged]], Tally]], ...]] = (
    ("system_accuracy", metrics.system_accuracy),
    ("system_accuracy_strict", metrics.system_accuracy_strict),
    ("coverage", metrics.coverage),
    ("selective_accuracy", metrics.selective_accuracy),
    ("macro_f1", metrics.state_macro_f1),
    ("answerable_f1", lambda rows: metrics.state_f1(rows, RetrievalState.ANSWERABLE)),
    ("unanswerable_f1", lambda rows: metrics.state_f1(rows, RetrievalState.UNANSWERABLE)),
    ("distracted_f1", lambda rows: metrics.state_f1(rows, RetrievalState.DISTRACTED)),
    ("answered_when_it_should_not", metrics.answered_when_it_should_not),
    ("abstained_when_it_could_answer", metrics.abstained_when_it_could_answer),
    ("sieve_true_positive_rate", metrics.sieve_true_positive_rate),
    ("sieve_false_positive_rate", metrics.sieve_false_positive_rate),
    ("sieve_macro_f1", metrics.sieve_macro_f1),
    ("sage_calls_saved", metrics.sage_calls_saved),
    ("blame_precision", metrics.blame_precision),
    ("recovery_rate", metrics.recovery_rate),
    ("recovery_accuracy", metrics.recovery_accuracy),
    *recovery.METRICS,
)
BY_DISTRACTORS: Final = (*recovery.METRICS[:2], ("recovery_rate", metrics.recovery_rate), *recovery.METRICS[2:])
"""Metrics that are also given by the number of distracting documents."""


def answer_matches(answer: str, golds: Sequence[str], match: Match) -> bool:
    """Whether the answer matches any gold answer by the rule; containment looks for the gold answer in the answer."""
    if match == "exact":
        return bool(text.exact_match(answer, golds))
    if match == "squad":
        return bool(text.squad_exact_match(answer, golds))
    return any(text.contains(answer, gold) for gold in golds)


def outcome(example: Example, prediction: Prediction, match: Match = "exact") -> Outcome:
    """How a prediction ended.

    An answer to a set that is not answerable is wrong whatever it says. Output that could not be read is UNPARSED and bad input is ERROR:
    never correct, and not abstentions. A guard failure (the Sieve or the Sage crashed or ran out of time) is an abstention.
    """
    if prediction.error is not None:
        return Outcome.ERROR
    if prediction.reason is Reason.UNPARSED:
        return Outcome.UNPARSED
    if prediction.answer is None:
        return Outcome.ABSTAINED
    right = example.state is RetrievalState.ANSWERABLE and answer_matches(prediction.answer, example.answers, match)
    return Outcome.CORRECT if right else Outcome.WRONG


def judge(example: Example, prediction: Prediction, match: Match = "exact") -> Judged:
    """Reduce one example and its prediction to what the metrics read."""
    answer = prediction.answer if example.answers else None
    distracting = distracting_ids(example)
    return Judged(
        question_id=example.question_id,
        gold=example.state,
        condition=example.condition,
        outcome=outcome(example, prediction, match),
        state=prediction.state,
        reason=prediction.reason,
        matches_gold=None if answer is None else answer_matches(answer, example.answers, match),
        answer_f1=None if answer is None else text.squad_f1(answer, example.answers),
        flagged=_flagged(prediction),
        sage_called=prediction.prompt is not None,
        filtered=bool(prediction.removed),
        blamed_share=_blamed_share(example, prediction),
        labelled=any(document.label is not None for document in example.documents),
        distractors=len(distracting),
        removed=len(prediction.removed),
        removed_distractors=len(distracting.intersection(prediction.removed)),
        answerable_without=any(document.label is DocumentLabel.ANSWERABLE for document in example.documents),
        has_gold=bool(example.answers),
        recovery=prediction.recovery,
    )


def _flagged(prediction: Prediction) -> bool | None:
    if prediction.sieve_score is None or prediction.threshold is None:
        return None
    return prediction.sieve_score >= prediction.threshold


def distracting_ids(example: Example) -> frozenset[str]:
    """Ids of the documents whose label says that they mislead."""
    return frozenset(document.id for document in example.documents if document.label in DISTRACTING)


def _blamed_share(example: Example, prediction: Prediction) -> float | None:
    distracting = distracting_ids(example)
    if not distracting or not prediction.blamed:
        return None
    return sum(blamed in distracting for blamed in prediction.blamed) / len(prediction.blamed)


def pair(examples: Sequence[Example], predictions: Sequence[Prediction]) -> list[tuple[Example, Prediction]]:
    """Examples with their predictions, sorted by id.

    Raises InputError that names the ids when the two do not match one to one, or when a pair disagrees about its question id.
    """
    if not examples:
        raise InputError("examples: expected at least one to score, got none")
    problems = [
        *_named("more than one example with id", _repeated(example.id for example in examples)),
        *_named("more than one prediction for", _repeated(prediction.id for prediction in predictions)),
    ]
    by_id = {prediction.id: prediction for prediction in predictions}
    known = {example.id for example in examples}
    problems += _named("no prediction for", [example.id for example in examples if example.id not in by_id])
    problems += _named("predictions without an example", [id_ for id_ in by_id if id_ not in known])
    pairs = [(example, by_id[example.id]) for example in examples if example.id in by_id]
    problems += _named("another question_id than the example's in", [e.id for e, p in pairs if e.question_id != p.question_id])
    if problems:
        raise InputError(
            f"predictions: expected exactly one for each of the {len(examples)} examples, got {len(predictions)}: {'; '.join(problems)}; "
            "were they made from another data file?"
        )
    return sorted(pairs, key=lambda both: both[0].id)


def _repeated(ids: Iterable[str]) -> list[str]:
    return sorted(id_ for id_, count in Counter(ids).items() if count > 1)


def _named(problem: str, ids: Sequence[str], limit: int = 5) -> list[str]:
    if not ids:
        return []
    rest = f" and {len(ids) - limit} more" if len(ids) > limit else ""
    return [f"{problem} {', '.join(ids[:limit])}{rest}"]


def score(
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    *,
    match: Match = "exact",
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Report:
    """Score predictions against their examples; the order of either does not matter.

    `match` decides which answers count as correct: the paper does not state its rule, so `alternatives` gives the accuracies by each.
    Raises InputError when examples and predictions do not match one to one by id.
    """
    pairs = pair(examples, predictions)

    def measure(name: str, tally: Tally) -> MetricRow:
        return _measure(name, tally, resamples=resamples, seed=seed, level=level)

    judged = {rule: [judge(example, prediction, rule) for example, prediction in pairs] for rule in MATCHES}
    rows = judged[match]
    alternatives = [
        row
        for rule in MATCHES
        for row in (
            measure(f"system_accuracy_{rule}", metrics.system_accuracy(judged[rule])),
            measure(f"selective_accuracy_{rule}", metrics.selective_accuracy(judged[rule])),
        )
    ]
    return Report(
        n=len(rows),
        questions=len({row.question_id for row in rows}),
        match=match,
        resamples=resamples,
        seed=seed,
        level=level,
        metrics=tuple(measure(name, metric(rows)) for name, metric in METRICS),
        alternatives=(*alternatives, measure("selective_squad_f1", metrics.selective_f1(rows))),
        counts=ResponseCountsRow(**metrics.response_counts(rows)._asdict()),
        conditions=condition_rows(rows),
        reasons=_reasons(rows),
        latency=latency_rows([prediction for _, prediction in pairs]),
        notes=_notes(rows),
        recovery=recovery_rows(rows),
        distractors=_distractors_rows(rows, measure) if any(row.recovered for row in rows) else (),
    )


def _distractors_rows(rows: Sequence[Judged], measure: Callable[[str, Tally], MetricRow]) -> tuple[DistractorsRow, ...]:
    return tuple(
        DistractorsRow(
            distractors=number,
            n=len(group),
            flagged=sum(row.flagged is True for row in group),
            metrics=tuple(measure(name, metric(group)) for name, metric in BY_DISTRACTORS),
        )
        for number, group in by_distractors(rows).items()
    )


def _measure(name: str, tally: Tally, *, resamples: int, seed: int, level: float) -> MetricRow:
    if not tally.defined:
        return MetricRow(name=name, value=None, low=None, high=None, n=0, questions=0, note="no example counts for it")
    low, high, undefined = interval(tally, resamples=resamples, seed=seed, level=level)
    absent = f"no example and no prediction of {', '.join(tally.not_applicable)}: mean of the rest" if tally.not_applicable else ""
    return MetricRow(
        name=name, value=tally.value, low=low, high=high, n=tally.n, questions=tally.questions, undefined=undefined, note=absent
    )


def condition_rows(rows: Sequence[Judged]) -> tuple[ConditionRow, ...]:
    """Outcomes by condition and state, in the order of the vocabulary."""
    keys = [(condition, state) for condition in Condition for state in RetrievalState]
    groups = {key: [row for row in rows if (row.condition, row.gold) == key] for key in keys}
    return tuple(_condition_row(*key, group) for key, group in groups.items() if group)


def _condition_row(condition: Condition, state: RetrievalState, rows: Sequence[Judged]) -> ConditionRow:
    ended = Counter(row.outcome for row in rows)
    return ConditionRow(
        condition=condition,
        state=state,
        n=len(rows),
        correct=ended[Outcome.CORRECT],
        wrong=ended[Outcome.WRONG],
        abstained=ended[Outcome.ABSTAINED],
        unparsed=ended[Outcome.UNPARSED],
        error=ended[Outcome.ERROR],
        scored=sum(row.flagged is not None for row in rows),
        flagged=sum(row.flagged is True for row in rows),
    )


def _reasons(rows: Sequence[Judged]) -> dict[str, int]:
    counted = Counter(row.reason.value for row in rows if row.reason is not None)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def latency_rows(predictions: Sequence[Prediction]) -> tuple[LatencyRow, ...]:
    """Time by stage over the predictions that went through it; known stages in their order, others after them by name."""
    names = {stage for prediction in predictions for stage in prediction.timings}
    ordered = [stage for stage in STAGES if stage in names] + sorted(names.difference(STAGES))
    return tuple(_latency_row(stage, [p for p in predictions if stage in p.timings]) for stage in ordered)


def _latency_row(stage: str, predictions: Sequence[Prediction]) -> LatencyRow:
    milliseconds = [prediction.timings[stage] for prediction in predictions]
    stored = sum(bool(prediction.stored) if stage == "total" else stage in prediction.stored for prediction in predictions)
    ordered = np.sort(np.array(milliseconds, dtype=np.float64))
    median, p95 = np.percentile(ordered, [50, 95])
    return LatencyRow(stage=stage, n=len(ordered), mean=float(ordered.mean()), median=float(median), p95=float(p95), stored=stored)


def _notes(rows: Sequence[Judged]) -> tuple[str, ...]:
    states = Counter(row.gold for row in rows)
    unanswerable, distracted = states[RetrievalState.UNANSWERABLE], states[RetrievalState.DISTRACTED]
    always, strict = (unanswerable + distracted) / len(rows), max(unanswerable, distracted) / len(rows)
    notes = [f"Always abstaining would have System Accuracy {always:.3f} on this data ({strict:.3f} by right state), and coverage 0."]
    if failures := sum(row.reason in GUARD_FAILURES for row in rows):
        notes.append(f"Guard failures (a stage crashed or ran out of time): {failures}. The metrics count them as abstentions.")
    if unstated := sum(row.state is None for row in rows):
        notes.append(
            f"Predictions that name no state: {unstated}. In the F1s each is a miss for its gold state, and no prediction of another."
        )
    return tuple(notes)
