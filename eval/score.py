"""Score predictions against examples: each metric with n and an interval, counts by outcome, condition and reason, latency by stage."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from eval import metrics, recovery
from eval.bootstrap import interval
from eval.certainty.confidence import Row, Rows, row_of
from eval.certainty.intervals import certainty
from eval.metrics import Judged
from eval.outcomes import MATCHES, Match, judge_by_each_rule
from eval.pairs import pairs
from eval.records import ConditionRow, DistractorsRow, LatencyRow, MetricRow, Report, ResponseCountsRow
from eval.recovery import by_distractors, recovery_rows
from eval.tally import Tally
from rag.records import GUARD_FAILURES, Condition, Example, Outcome, Prediction, RetrievalState

FEW: Final = 20
"""Questions below which a bootstrap interval says little."""
STAGES: Final = ("sieve", "leave_one_out", "judge", "sage", "re_retrieve", "escalate", "total")


class _StageTimes:
    """What one stage took."""

    def __init__(self) -> None:
        self.milliseconds = array("d")
        self.stored = 0
        """How many of them are those of an earlier run."""


_Times = dict[str, _StageTimes]


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
        by_rule = judge_by_each_rule(example, prediction)
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
    if (questions := len({row.question_id for row in rows})) < FEW:
        notes.append(f"Intervals of {questions} questions are too narrow: with so few, a rate seen as 0 or 1 is no sign that it is.")
    if failures := sum(row.reason in GUARD_FAILURES for row in rows):
        notes.append(f"Guard failures (a stage crashed or ran out of time): {failures}. The metrics count them as abstentions.")
    if unstated := sum(row.state is None for row in rows):
        notes.append(
            f"Predictions that name no state: {unstated}. In the F1s each is a miss for its gold state, and no prediction of another."
        )
    return tuple(notes)
