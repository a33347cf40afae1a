"""What became of each example in two runs: columns that close to the total, the examples that moved between them, and paired differences."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import product
from typing import Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from eval.bootstrap import difference
from eval.metrics import Judged
from eval.score import METRICS
from eval.tally import Tally
from rag.records import GUARD_FAILURES, Outcome, Record, RetrievalState, Text
from rag.rounding import same


class Place(StrEnum):
    """Where an example can end: the outcomes, abstentions by what the system said that it found."""

    CORRECT = "correct"
    WRONG = "wrong"
    ABSTAINED_DISTRACTED = "abstained: distracted"
    ABSTAINED_UNANSWERABLE = "abstained: unanswerable"
    ABSTAINED_OTHER = "abstained: other"
    """No state, or the state `answerable`: a guard failed, or a judge of the output refused the answer."""
    UNPARSED = "unparsed"
    ERROR = "error"


EXACT: Final = 16
"""Questions up to which all signs are tried."""
ABSTAINED: Final = frozenset({Place.ABSTAINED_DISTRACTED, Place.ABSTAINED_UNANSWERABLE, Place.ABSTAINED_OTHER})
Effect = Literal["gain", "loss", "neither"]
"""What a move did to what the system should have done: a correct answer where the set is answerable, an abstention on any other."""


class Ended(NamedTuple):
    """One example in one run."""

    question_id: str
    question: str
    judged: Judged
    sieve_score: float | None = None
    threshold: float | None = None

    @property
    def place(self) -> Place:
        """Where it ended."""
        if self.judged.outcome is not Outcome.ABSTAINED:
            return Place(self.judged.outcome.value)
        if self.judged.reason in GUARD_FAILURES:
            return Place.ABSTAINED_OTHER
        said = {
            RetrievalState.DISTRACTED: Place.ABSTAINED_DISTRACTED,
            RetrievalState.UNANSWERABLE: Place.ABSTAINED_UNANSWERABLE,
        }
        return Place.ABSTAINED_OTHER if self.judged.state is None else said.get(self.judged.state, Place.ABSTAINED_OTHER)

    @property
    def is_flagged(self) -> bool:
        """Whether the Sieve's score reaches the threshold."""
        return self.sieve_score is not None and self.threshold is not None and self.sieve_score >= self.threshold

    @property
    def right(self) -> bool:
        """Whether the system did what it should, as in `metrics.system_accuracy`."""
        if self.judged.gold is RetrievalState.ANSWERABLE:
            return self.judged.outcome is Outcome.CORRECT
        return self.judged.outcome is Outcome.ABSTAINED


class Counts(Record):
    """One run's row. `correct`, `wrong`, `abstained`, `unparsed` and `error` add up to `total`, and so do the places of abstention to `abstained`."""

    correct: int
    """Correct answers."""
    wrong: int
    """All other answers, any answer to an unanswerable or distracted set among them."""
    abstained: int
    distracted: int
    """Abstentions that said so."""
    unanswerable: int
    other: int
    rightly: int
    """Abstentions on unanswerable and distracted sets, whatever was said."""
    unparsed: int
    error: int
    total: int


class Moved(Record):
    """One example that ended in another place."""

    id: Text
    question_id: Text
    question: Text
    effect: Effect


class Transfer(Record):
    """All examples that moved from one place to another."""

    origin: Place = Field(serialization_alias="from")
    target: Place = Field(serialization_alias="to")
    moved: tuple[Moved, ...]


class MetricDifference(Record):
    """One metric of both runs, and the second minus the first with an interval from the same resamples of the same questions."""

    name: str
    before: float | None
    after: float | None
    difference: float | None
    """None where a run has no example that counts, or where the two count different questions or classes."""
    low: float | None
    high: float | None
    note: str = ""


class Comparison(Record):
    """One run against an earlier one, on the same examples."""

    before: Text
    after: Text
    moved: int
    """Examples that ended in another place."""
    between_columns: int
    """Those of them that did more than change what an abstention said."""
    gains: int
    """Examples that the second run got right and the first did not."""
    losses: int
    p_value: float
    """Of gains against losses, two-sided, by question: `sign_flips`."""
    transfers: tuple[Transfer, ...]
    metrics: tuple[MetricDifference, ...]


def counts(ended: Sequence[Ended]) -> Counts:
    """Count where the examples ended. Two correct, one abstention that says `unanswerable`: 2, 0, 1 of 3."""
    places = Counter(each.place for each in ended)
    return Counts(
        correct=places[Place.CORRECT],
        wrong=places[Place.WRONG],
        abstained=sum(places[place] for place in ABSTAINED),
        distracted=places[Place.ABSTAINED_DISTRACTED],
        unanswerable=places[Place.ABSTAINED_UNANSWERABLE],
        other=places[Place.ABSTAINED_OTHER],
        rightly=sum(each.right and each.place in ABSTAINED for each in ended),
        unparsed=places[Place.UNPARSED],
        error=places[Place.ERROR],
        total=len(ended),
    )


def require_closed(before: Counts, after: Counts, transfers: Sequence[Transfer]) -> None:
    """Raise RuntimeError unless each row adds up to its total, and each column changed by what came less what went."""
    for row in (before, after):
        if row.correct + row.wrong + row.abstained + row.unparsed + row.error != row.total:
            raise RuntimeError(f"the columns do not add up to the total: {row}")
        if row.distracted + row.unanswerable + row.other != row.abstained:
            raise RuntimeError(f"the abstentions do not add up: {row}")
    net: Counter[Place] = Counter()
    for transfer in transfers:
        net[transfer.target] += len(transfer.moved)
        net[transfer.origin] -= len(transfer.moved)
    for place, column in _COLUMNS.items():
        if getattr(after, column) - getattr(before, column) != net[place]:
            raise RuntimeError(
                f"{column} changed from {getattr(before, column)} to {getattr(after, column)}, the moves say {net[place]:+d}"
            )


_COLUMNS: Final = {
    Place.CORRECT: "correct",
    Place.WRONG: "wrong",
    Place.ABSTAINED_DISTRACTED: "distracted",
    Place.ABSTAINED_UNANSWERABLE: "unanswerable",
    Place.ABSTAINED_OTHER: "other",
    Place.UNPARSED: "unparsed",
    Place.ERROR: "error",
}


def transfers(before: Mapping[str, Ended], after: Mapping[str, Ended]) -> tuple[Transfer, ...]:
    """The examples that ended in another place, by where from and where to, each kind in the order of `Place`, examples by id.

    Raises ValueError when the two do not hold the same examples.
    """
    if before.keys() != after.keys():
        raise ValueError("expected the same examples in both runs")
    moves: dict[tuple[Place, Place], list[Moved]] = {(origin, target): [] for origin in Place for target in Place if origin is not target}
    for name in sorted(before):
        first, second = before[name], after[name]
        if first.place is not second.place:
            moves[first.place, second.place].append(
                Moved(id=name, question_id=second.question_id, question=second.question, effect=_effect(first, second))
            )
    return tuple(Transfer(origin=origin, target=target, moved=tuple(moved)) for (origin, target), moved in moves.items() if moved)


def on_the_edge(before: Mapping[str, Ended], after: Mapping[str, Ended]) -> tuple[str, ...]:
    """The examples that ended in another place with the same Sieve score and threshold but for rounding, on either side of the threshold."""
    return tuple(
        name
        for name, first, second in ((name, before[name], after[name]) for name in sorted(before))
        if first.place is not second.place
        and first.is_flagged != second.is_flagged
        and same(first.sieve_score, second.sieve_score)
        and same(first.threshold, second.threshold)
    )


def _effect(before: Ended, after: Ended) -> Effect:
    if before.right == after.right:
        return "neither"
    return "gain" if after.right else "loss"


def compare_runs(
    before: tuple[str, Mapping[str, Ended]], after: tuple[str, Mapping[str, Ended]], *, resamples: int, seed: int, level: float = 0.95
) -> Comparison:
    """Everything that one run says against another on the same examples. Raises RuntimeError when a count does not close."""
    (first_name, first), (second_name, second) = before, after
    found = transfers(first, second)
    require_closed(counts(list(first.values())), counts(list(second.values())), found)
    effects = Counter(moved.effect for transfer in found for moved in transfer.moved)
    return Comparison(
        before=first_name,
        after=second_name,
        moved=effects.total(),
        between_columns=sum(len(t.moved) for t in found if not ABSTAINED.issuperset({t.origin, t.target})),
        gains=effects["gain"],
        losses=effects["loss"],
        p_value=sign_flips(_net_gains(found), seed=seed),
        transfers=found,
        metrics=metric_differences(
            [each.judged for each in first.values()],
            [each.judged for each in second.values()],
            resamples=resamples,
            seed=seed,
            level=level,
        ),
    )


def _net_gains(found: Sequence[Transfer]) -> list[int]:
    """Gains less losses of each question that has any."""
    net: Counter[str] = Counter()
    for transfer in found:
        for moved in transfer.moved:
            net[moved.question_id] += {"gain": 1, "loss": -1, "neither": 0}[moved.effect]
    return [value for _, value in sorted(net.items()) if value]


def sign_flips(net: Sequence[int], *, seed: int = 0, flips: int = 100_000) -> float:
    """Two-sided p-value that the net gains of questions have no preferred sign: how often random signs give so large a sum, or larger.

    All signs are tried for up to 16 questions, else `flips` drawn by the seed, with the observed one among them. Questions with one example
    each make it McNemar's exact test. Nothing moved gives 1. Six questions that gain one each: 2 / 64 = 0.031.
    """
    values = np.array(net, dtype=np.int64)
    observed = abs(int(values.sum()))
    if len(values) <= EXACT:
        signs = np.array(list(product((-1, 1), repeat=len(values))), dtype=np.int64).reshape(2 ** len(values), len(values))
        return float(np.mean(np.abs(signs @ values) >= observed))
    rng = np.random.default_rng(seed)
    extreme = sum(int(np.sum(np.abs(rng.choice((-1, 1), (1000, len(values))) @ values) >= observed)) for _ in range(flips // 1000))
    return (extreme + 1) / (flips + 1)


def metric_differences(
    before: Sequence[Judged], after: Sequence[Judged], *, resamples: int, seed: int, level: float = 0.95
) -> tuple[MetricDifference, ...]:
    """Each metric of a report in both runs, and the paired difference, the second minus the first."""
    return tuple(_difference(name, metric(before), metric(after), resamples, seed, level) for name, metric in METRICS)


def _difference(name: str, before: Tally, after: Tally, resamples: int, seed: int, level: float) -> MetricDifference:
    values = [tally.value if tally.defined else None for tally in (before, after)]
    row = MetricDifference(name=name, before=values[0], after=values[1], difference=None, low=None, high=None)
    if values[0] is None or values[1] is None:
        return row
    if before.not_applicable != after.not_applicable:
        return row.model_copy(update={"note": "the runs have different classes"})
    if set(before.groups) != set(after.groups):
        return row.model_copy(update={"note": "the runs have it on different questions"})
    low, high, undefined = difference(after, before, resamples=resamples, seed=seed, level=level)
    note = f"{undefined} resamples had no example that counts" if undefined else ""
    return row.model_copy(update={"difference": values[1] - values[0], "low": low, "high": high, "note": note})
