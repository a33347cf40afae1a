"""Score predictions against examples: each metric with n and an interval, counts by outcome, condition and reason, latency by stage."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import numpy as np

from eval import metrics, recovery
from eval.bootstrap import interval
from eval.certainty.confidence import Row, Rows, row_of
from eval.certainty.intervals import certainty
from eval.metrics import Judged, Tally
from eval.pairs import pairs
from eval.recovery import RecoveryRow, by_distractors, recovery_rows
from rag import text
from rag.records import Condition, DocumentLabel, Example, Outcome, Prediction, Reason, Record, RetrievalState, Text

Match = Literal["exact", "squad", "contains"]
"""When an answer counts as correct: strict exact match, plain SQuAD exact match, or a gold answer found in it at word boundaries."""

MATCHES: Final[tuple[Match, ...]] = ("exact", "squad", "contains")
DISTRACTING: Final = frozenset({DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL})
GUARD_FAILURES: Final = frozenset(reason for reason in Reason if reason.value.endswith(("_failed", "_timeout")))
STAGES: Final = ("sieve", "leave_one_out", "judge", "sage", "re_retrieve", "escalate", "total")


class _StageTimes:
    """What one stage took."""

    def __init__(self) -> None:
        self.milliseconds = array("d")
        self.stored = 0
        """How many of them are those of an earlier run."""


_Times = dict[str, _StageTimes]


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


BY_DOCUMENT: Final = (Condition.ANSWERABLE, Condition.UNANSWERABLE, Condition.CONFLICT, Condition.NEGATED, Condition.ADVERSARIAL)
"""The conditions that a document decides (paper 002, table 4)."""
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
    matches = None if answer is None else answer_matches(answer, example.answers, match)
    return _judged(example, prediction, outcome(example, prediction, match), matches, _answer_f1(example, prediction))


def _judge_by_each_rule(example: Example, prediction: Prediction) -> dict[Match, Judged]:
    """As `judge` by each rule; rules that agree share one row."""
    if prediction.answer is None or not example.answers:
        return dict.fromkeys(MATCHES, judge(example, prediction))
    found: dict[Match, bool] = {rule: answer_matches(prediction.answer, example.answers, rule) for rule in MATCHES}
    f1 = _answer_f1(example, prediction)
    ended = {True: Outcome.CORRECT if example.state is RetrievalState.ANSWERABLE else Outcome.WRONG, False: Outcome.WRONG}
    rows = {matches: _judged(example, prediction, ended[matches], matches, f1) for matches in set(found.values())}
    return {rule: rows[matches] for rule, matches in found.items()}


def _answer_f1(example: Example, prediction: Prediction) -> float | None:
    return None if prediction.answer is None or not example.answers else text.squad_f1(prediction.answer, example.answers)


def _judged(example: Example, prediction: Prediction, ended: Outcome, matches_gold: bool | None, answer_f1: float | None) -> Judged:
    distracting = distracting_ids(example)
    return Judged(
        question_id=example.question_id,
        gold=example.state,
        condition=example.condition,
        outcome=ended,
        state=prediction.state,
        reason=prediction.reason,
        matches_gold=matches_gold,
        answer_f1=answer_f1,
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


def pair(examples: Iterable[Example], predictions: Iterable[Prediction]) -> list[tuple[Example, Prediction]]:
    """Examples with their predictions, sorted by id.

    Raises InputError that names the ids when the two do not match one to one, or when a pair disagrees about its question id.
    """
    return sorted(pairs(examples, predictions), key=lambda both: both[0].id)


def score(
    examples: Iterable[Example],
    predictions: Iterable[Prediction],
    *,
    match: Match = "exact",
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Report:
    """Score predictions against their examples; the order of either does not matter.

    Each is read once and not held: files may be read while they are scored (`rag.jsonl.iter_records`).
    `match` decides which answers count as correct: the paper does not state its rule, so `alternatives` gives the accuracies by each.
    Raises InputError when examples and predictions do not match one to one by id.
    """

    def measure(name: str, tally: Tally) -> MetricRow:
        return _measure(name, tally, resamples=resamples, seed=seed, level=level)

    judged, times, trust = _collect(pairs(examples, predictions), match)
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
        metrics=(
            *(measure(name, metric(rows)) for name, metric in METRICS),
            *(
                measure(f"gold_given_{condition}", metrics.gold_given(rows, condition))
                for condition in BY_DOCUMENT
                if any(row.condition is condition for row in rows)
            ),
            *_certainty(trust, rows, resamples=resamples, seed=seed, level=level),
        ),
        alternatives=(
            *alternatives,
            measure("selective_squad_f1", metrics.selective_f1(rows)),
        ),
        counts=ResponseCountsRow(**metrics.response_counts(rows)._asdict()),
        conditions=condition_rows(rows),
        reasons=_reasons(rows),
        latency=_latency(times),
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


_KINDS: Final[tuple[tuple[Rows, str], ...]] = (("answers", ""), ("all", "_all"))
"""Which rows the calibration is of, and how the names of its figures end."""


def _collect(both: Iterable[tuple[Example, Prediction]], match: Match) -> tuple[dict[Match, list[Judged]], _Times, dict[Rows, list[Row]]]:
    """What the metrics read, by each rule, the times, and the confidences, if any; neither documents nor prompts are kept."""
    judged: dict[Match, list[Judged]] = {rule: [] for rule in MATCHES}
    times: _Times = {}
    trust: dict[Rows, list[Row]] = {kind: [] for kind, _ in _KINDS}
    stated = False
    for example, prediction in both:
        by_rule = _judge_by_each_rule(example, prediction)
        for rule, row in by_rule.items():
            judged[rule].append(row)
        stated = stated or prediction.confidence is not None
        for kind, rows in trust.items():
            seen = row_of(prediction, by_rule[match].outcome, example.state is RetrievalState.ANSWERABLE, rows=kind)
            rows += [] if seen is None else [seen]
        _add_times(times, prediction)
    return judged, times, trust if stated else {}


def _measure(name: str, tally: Tally, *, resamples: int, seed: int, level: float) -> MetricRow:
    if not tally.defined:
        return MetricRow(name=name, value=None, low=None, high=None, n=0, questions=0, note="no example counts for it")
    low, high, undefined = interval(tally, resamples=resamples, seed=seed, level=level)
    absent = f"no example and no prediction of {', '.join(tally.not_applicable)}: mean of the rest" if tally.not_applicable else ""
    return MetricRow(
        name=name, value=tally.value, low=low, high=high, n=tally.n, questions=tally.questions, undefined=undefined, note=absent
    )


def _certainty(trust: Mapping[Rows, Sequence[Row]], rows: Sequence[Judged], *, resamples: int, seed: int, level: float) -> list[MetricRow]:
    """How far the Sage's confidence can be trusted, on the answers and then on all examples; nothing where no output has one."""
    asked = [row.question_id for row in rows]
    return [
        MetricRow(**figure._asdict())
        for kind, suffix in _KINDS
        if kind in trust
        for figure in certainty(trust[kind], asked, suffix=suffix, resamples=resamples, seed=seed, level=level)
    ]


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


def latency_rows(predictions: Iterable[Prediction]) -> tuple[LatencyRow, ...]:
    """Time by stage over the predictions that went through it; known stages in their order, others after them by name."""
    times: _Times = {}
    for prediction in predictions:
        _add_times(times, prediction)
    return _latency(times)


def _add_times(times: _Times, prediction: Prediction) -> None:
    for stage, milliseconds in prediction.timings.items():
        of_stage = times.setdefault(stage, _StageTimes())
        of_stage.milliseconds.append(milliseconds)
        of_stage.stored += bool(prediction.stored) if stage == "total" else stage in prediction.stored


def _latency(times: _Times) -> tuple[LatencyRow, ...]:
    ordered = [stage for stage in STAGES if stage in times] + sorted(set(times).difference(STAGES))
    return tuple(_latency_row(stage, times[stage]) for stage in ordered)


def _latency_row(stage: str, times: _StageTimes) -> LatencyRow:
    ordered = np.sort(np.array(times.milliseconds, dtype=np.float64))
    median, p95 = np.percentile(ordered, [50, 95])
    return LatencyRow(stage=stage, n=len(ordered), mean=float(ordered.mean()), median=float(median), p95=float(p95), stored=times.stored)


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
