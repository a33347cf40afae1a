"""What a Sieve flags and why: groups of sets, rotations of their documents, and probes of style. The audit is made of these."""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from rag.records import Document, Example, Record, RetrievalState, Text
from rag.settings import Settings
from rag.splits import require_disjoint
from sieve.data import group_of
from sieve.measure.intervals import auc, auc_figure, share
from sieve.measure.scores import Request, Scored, Screener, readable, request, score_all
from sieve.measure.style import Passage, bag_of_words, passages

AUDIT = "audit.json"
Score = Callable[[Sequence[Request], str], dict[str, Scored]]


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


class AuditSettings(Settings):
    """What an audit measures, and what a checkpoint must reach to pass it."""

    limits: tuple[Limit, ...]
    """Judged on the flagged share as measured; its interval is shown beside it."""
    rotated_sets: int = Field(default=100, ge=0)
    """Sets whose documents are rotated, drawn by the seed, as many of each group as there are; each costs K scores, and K * K more
    where it is flagged."""
    bag_of_words: bool = True
    """Train the classifier of style as well; needs scikit-learn."""
    resamples: int = Field(default=1000, ge=1)
    """Bootstrap resamples, drawn by question."""
    batch_size: int = Field(default=32, ge=1)
    """Sets scored, and written to disk, at a time."""


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


class Flips(Record):
    """What changes when a set's documents are rotated. A set counts once, however many of its rotations differ."""

    sets: int
    rotations: int
    """Rotations scored, the retrieved order not counted."""
    decision: float | None
    """Share of sets with a rotation that is decided otherwise than the retrieved order."""
    decision_low: float | None
    decision_high: float | None
    each: float | None
    """Share of rotations decided otherwise."""
    flagged_sets: int
    blamed: float | None
    """Of the flagged sets, the share with a rotation in which other documents are blamed than in the retrieved order."""
    blamed_low: float | None
    blamed_high: float | None


class Probe(Record):
    """A question put to style: an area under the ROC curve that should be about 0.5."""

    name: Literal["other_question", "single_document", "bag_of_words", "bag_of_words_training"]
    source: Text = ""
    """Examples of this source only; all of them where it is blank."""
    positive: int
    """Distracted sets, or false documents."""
    negative: int
    """Other sets, or documents that give a true answer."""
    auc: float | None
    low: float | None
    high: float | None


class Check(Record):
    """A limit and what was measured in one source."""

    group: Text
    source: Text = ""
    bound: Literal["at_most", "at_least"]
    limit: float
    flagged: float | None
    """None where the audit's files hold no such group."""
    passed: bool | None


class Audit(Record):
    """The figures of one audit: the content of `audit.json`."""

    threshold: float
    sets: int
    questions: int
    without_documents: int
    """Examples left out because no document of theirs holds text."""
    auc: float | None
    """Of all distracted sets against all others."""
    groups: tuple[Group, ...]
    flips: Flips
    probes: tuple[Probe, ...]
    checks: tuple[Check, ...]
    verdict: Literal["passed", "failed", "incomplete"]
    """`failed` when a limit is broken, `incomplete` when none is but a group was not measured, or there are no limits."""
    resamples: int
    seed: int
    data: dict[str, Text] = Field(default_factory=dict)
    """SHA-256 of each file, by its name."""
    provenance: dict[str, Text] = Field(default_factory=dict)
    """Command, commit, package versions and machine."""


class Draw(NamedTuple):
    """How intervals are drawn."""

    resamples: int
    seed: int


def should_flag(example: Example) -> bool:
    """Whether the set is distracted."""
    return example.state is RetrievalState.DISTRACTED


def audit(
    sieve: Screener, examples: Sequence[Example], settings: AuditSettings, journal: Path, *, seed: int, training: Sequence[Example] = ()
) -> Audit:
    """Audit a Sieve at its own threshold. Scores are kept in `journal`, so that a rerun goes on where the last one stopped.

    `training` are the examples it was trained on, where they are at hand: style is looked for in them too.
    Raises InputError when they share a question with the audit's, or for examples that cannot be audited.
    """
    require_disjoint({"data.train": training, "data.audit": examples})
    kept, blank = readable(examples)
    whole = [request(f"set:{example.id}", example.question, example.documents) for example in kept]

    def scored(requests: Sequence[Request], title: str) -> dict[str, Scored]:
        return score_all(sieve, requests, journal, batch_size=settings.batch_size, title=title)

    draw = Draw(settings.resamples, seed)
    by_key = scored(whole, "sets")
    scores = [by_key[asked.key].score for asked in whole]
    groups = group_rows(kept, scores, sieve.threshold, draw)
    sample = rotated_sample(kept, settings.rotated_sets, seed)
    turned = rotations(sample, by_key, sieve.threshold)
    flips = flip_rates(sample, {**by_key, **scored(turned, "rotations")}, sieve.threshold, draw)
    probes = [
        *_other_question(kept, scored, draw),
        *_single_documents(passages(kept), scored, draw),
        *(_bag_of_words(passages(kept), "bag_of_words", draw) if settings.bag_of_words else ()),
        *(_bag_of_words(passages(training), "bag_of_words_training", draw) if settings.bag_of_words and training else ()),
    ]
    checks = check_all(settings.limits, groups)
    return Audit(
        threshold=sieve.threshold,
        sets=len(kept),
        questions=len({example.question_id for example in kept}),
        without_documents=blank,
        auc=auc(scores, [should_flag(example) for example in kept]),
        groups=groups,
        flips=flips,
        probes=tuple(probes),
        checks=checks,
        verdict=verdict(checks),
        resamples=settings.resamples,
        seed=seed,
    )


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


def rotated_sample(examples: Sequence[Example], limit: int, seed: int) -> list[Example]:
    """Draw sets of two documents or more; the groups take turns, so that none is lost in a large one."""
    by_group: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        if len(example.documents) > 1:
            by_group[f"{group_of(example)}:{example.source}"].append(example)
    for name, members in by_group.items():
        random.Random(f"{seed}:rotations:{name}").shuffle(members)
    turns = [members[i] for i in range(max(map(len, by_group.values()), default=0)) for members in by_group.values() if i < len(members)]
    return turns[:limit]


def rotations(sample: Sequence[Example], by_key: dict[str, Scored], threshold: float) -> list[Request]:
    """All rotations of the sets, the retrieved order among them where the set is flagged and so has documents to blame."""
    requests = []
    for example in sample:
        flagged = by_key[f"set:{example.id}"].score >= threshold
        for turn in range(0 if flagged else 1, len(example.documents)):
            documents = example.documents[turn:] + example.documents[:turn]
            requests.append(request(f"rotation:{turn}:{example.id}", example.question, documents, blame=flagged))
    return requests


def flip_rates(sample: Sequence[Example], by_key: dict[str, Scored], threshold: float, draw: Draw) -> Flips:
    """Compare each rotation of a set with its retrieved order."""
    decided: list[list[bool]] = []
    blamed: list[bool] = []
    questions_of_blamed = []
    for example in sample:
        flagged = by_key[f"set:{example.id}"].score >= threshold
        turned = [by_key[f"rotation:{turn}:{example.id}"] for turn in range(1, len(example.documents))]
        decided.append([(other.score >= threshold) is not flagged for other in turned])
        if flagged:
            first = set(by_key[f"rotation:0:{example.id}"].blamed)
            blamed.append(any(set(other.blamed) != first for other in turned))
            questions_of_blamed.append(example.question_id)
    decision = share(list(map(any, decided)), [e.question_id for e in sample], resamples=draw.resamples, seed=draw.seed)
    blame = share(blamed, questions_of_blamed, resamples=draw.resamples, seed=draw.seed)
    count = sum(map(len, decided))
    return Flips(
        sets=len(sample),
        rotations=count,
        decision=decision.value,
        decision_low=decision.low,
        decision_high=decision.high,
        each=sum(map(sum, decided)) / count if count else None,
        flagged_sets=len(blamed),
        blamed=blame.value,
        blamed_low=blame.low,
        blamed_high=blame.high,
    )


def other_questions(examples: Sequence[Example], seed: int) -> dict[str, str]:
    """For each question id the text of another question: the next one in an order drawn by the seed. Empty for a single question."""
    texts = {example.question_id: example.question for example in examples}
    order = sorted(texts)
    random.Random(f"{seed}:questions").shuffle(order)
    return {name: texts[following] for name, following in zip(order, order[1:] + order[:1], strict=True)} if len(order) > 1 else {}


def _other_question(examples: Sequence[Example], score: Score, draw: Draw) -> list[Probe]:
    """The Sieve on each set under the question of another: the documents and their style stay, the conflict about the question goes."""
    others = other_questions(examples, draw.seed)
    asked = [request(f"other_question:{e.id}", others[e.question_id], e.documents) for e in examples if others]
    by_key = score(asked, "other questions")
    rows = [(by_key[a.key].score, should_flag(e), e.question_id, e.source) for a, e in zip(asked, examples, strict=False)]
    return _probes("other_question", rows, draw)


def _single_documents(found: Sequence[Passage], score: Score, draw: Draw) -> list[Probe]:
    """The Sieve on single documents under their own question: one document contradicts nothing, whatever it is written like."""
    asked = [
        request(f"single:{place}:{passage.question_id}", passage.question, (Document(id="d", text=passage.text),))
        for place, passage in enumerate(found)
    ]
    by_key = score(asked, "single documents")
    rows = [(by_key[a.key].score, p.false, p.question_id, p.source) for a, p in zip(asked, found, strict=True)]
    return _probes("single_document", rows, draw)


def _bag_of_words(found: Sequence[Passage], name: Literal["bag_of_words", "bag_of_words_training"], draw: Draw) -> list[Probe]:
    """Words alone on single documents, without the question: whether the data let style carry the label."""
    sources = sorted({passage.source for passage in found})
    probes = []
    for source in ["", *(sources if len(sources) > 1 else ())]:
        part = [passage for passage in found if source in ("", passage.source)]
        scores = bag_of_words(part, draw.seed)
        rows = [(s, p.false, p.question_id, source) for s, p in zip(scores, part, strict=True)] if scores is not None else []
        probes.append(_probe(name, source, rows, draw) if rows else _not_run(name, source, part))
    return probes


Row = tuple[float, bool, str, str]
"""Score, positive, question id, source."""


def _probes(name: Literal["other_question", "single_document"], rows: Sequence[Row], draw: Draw) -> list[Probe]:
    """The probe over all rows, then by source where there are several."""
    sources = sorted({source for *_, source in rows})
    by_source = [_probe(name, source, [row for row in rows if row[3] == source], draw) for source in sources if len(sources) > 1 and source]
    return [_probe(name, "", rows, draw), *by_source]


def _probe(name: str, source: str, rows: Sequence[Row], draw: Draw) -> Probe:
    positive = [row[1] for row in rows]
    figure = auc_figure([row[0] for row in rows], positive, [row[2] for row in rows], resamples=draw.resamples, seed=draw.seed)
    counts = {"positive": sum(positive), "negative": len(positive) - sum(positive)}
    return Probe.model_validate({"name": name, "source": source, **counts, "auc": figure.value, "low": figure.low, "high": figure.high})


def _not_run(name: str, source: str, found: Sequence[Passage]) -> Probe:
    false = sum(passage.false for passage in found)
    values = {"positive": false, "negative": len(found) - false, "auc": None, "low": None, "high": None}
    return Probe.model_validate({"name": name, "source": source, **values})


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
