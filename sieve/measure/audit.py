"""An audit: what a Sieve flags and why, by groups of sets, rotations of their documents and probes of style."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from rag.records import Example, Record, Text
from rag.settings import Settings
from rag.splits import require_disjoint
from sieve.measure.groups import Check, Group, Limit, check_all, group_rows, should_flag, verdict
from sieve.measure.intervals import Draw, auc
from sieve.measure.probes import Probe, single_documents, under_other_questions, words_alone
from sieve.measure.rotations import Flips, flip_rates, rotated_sample, rotations
from sieve.measure.scores import Request, Scored, Screener, readable, request, score_all
from sieve.measure.style import passages

AUDIT = "audit.json"


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
        *under_other_questions(kept, scored, draw),
        *single_documents(passages(kept), scored, draw),
        *(words_alone(passages(kept), "bag_of_words", draw) if settings.bag_of_words else ()),
        *(words_alone(passages(training), "bag_of_words_training", draw) if settings.bag_of_words and training else ()),
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
