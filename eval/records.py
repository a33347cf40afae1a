"""What one evaluation says, as records: the content of `report` in report.json."""

from eval.outcomes import Match
from eval.recovery import RecoveryRow
from rag.records import Condition, Record, RetrievalState, Text


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
