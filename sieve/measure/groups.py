"""Sets by source and the way they were put together: how many of them are flagged, and the limits that are set on it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from rag.records import Example, Record, RetrievalState, Text
from rag.settings import Settings
from sieve.data import group_of
from sieve.measure.intervals import Draw, auc, share


class Limit(Settings):
    """A pass criterion: the flagged share of one group, in each source that has it."""

    group: str
    """The group's name: `Example.variant`, or the condition where that is blank."""
    source: str = ""
    """Only the group's sets of this `Example.source`, where it is not blank."""
    at_most: float | None = Field(default=None, ge=0, le=1)
    at_least: float | None = Field(default=None, ge=0, le=1)

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(f"group '{self.group}': set one of at_most and at_least")
        return self


class Group(Record):
    """Sets of one source that were put together in one way."""

    group: Text
    source: Text = ""
    should_flag: bool
    """Whether the sets are distracted."""
    sets: int
    questions: int
    flagged: float
    low: float
    high: float
    auc: float | None
    """Of this group's scores against those of all sets of the other kind, the distracted ones expected above; none without such sets."""


class Check(Record):
    """A limit and what was measured in one source."""

    group: Text
    source: Text = ""
    bound: Literal["at_most", "at_least"]
    limit: float
    flagged: float | None
    """None where the audit's files hold no such group."""
    passed: bool | None


def should_flag(example: Example) -> bool:
    """Whether the set is distracted."""
    return example.state is RetrievalState.DISTRACTED


def group_rows(examples: Sequence[Example], scores: Sequence[float], threshold: float, draw: Draw) -> tuple[Group, ...]:
    """One row for each group of each source, in order of appearance; one with sets of both kinds gives two."""
    members: dict[tuple[str, str, bool], list[int]] = defaultdict(list)
    for i, example in enumerate(examples):
        members[group_of(example), example.source, should_flag(example)].append(i)
    rows = []
    for (name, source, positive), inside in members.items():
        questions = [examples[i].question_id for i in inside]
        flagged = share([scores[i] >= threshold for i in inside], questions, resamples=draw.resamples, seed=draw.seed)
        both = inside + [i for i, example in enumerate(examples) if should_flag(example) is not positive]
        rank = auc([scores[i] for i in both], [should_flag(examples[i]) for i in both])
        counts = {"group": name, "source": source, "should_flag": positive, "sets": len(inside), "questions": len(set(questions))}
        rows.append(Group.model_validate({**counts, "flagged": flagged.value, "low": flagged.low, "high": flagged.high, "auc": rank}))
    return tuple(rows)


def check_all(limits: Sequence[Limit], groups: Sequence[Group]) -> tuple[Check, ...]:
    """Judge each limit in each source that has its group, or once as not measured.

    Of a group with sets of both kinds, `at_least` is for the distracted ones and `at_most` for the others.
    """
    return tuple(check for limit in limits for check in _check(limit, groups))


def _check(limit: Limit, groups: Sequence[Group]) -> list[Check]:
    bound: Literal["at_most", "at_least"] = "at_most" if limit.at_least is None else "at_least"
    value = limit.at_most if limit.at_most is not None else limit.at_least or 0.0
    rows = [row for row in groups if row.group == limit.group and limit.source in ("", row.source)]
    kind = [row for row in rows if row.should_flag is (bound == "at_least")] or rows
    if not kind:
        return [Check(group=limit.group, source=limit.source, bound=bound, limit=value, flagged=None, passed=None)]
    return [
        Check(
            group=row.group,
            source=row.source,
            bound=bound,
            limit=value,
            flagged=row.flagged,
            passed=row.flagged <= value if bound == "at_most" else row.flagged >= value,
        )
        for row in kind
    ]


def verdict(checks: Sequence[Check]) -> Literal["passed", "failed", "incomplete"]:
    """`failed` when any limit is broken; `passed` when there are limits and all were measured and kept to."""
    if any(check.passed is False for check in checks):
        return "failed"
    return "passed" if checks and all(check.passed for check in checks) else "incomplete"
