"""Show an audit: tables for the terminal, audit.md, audit.json, and the sentences that a model card quotes."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from rich import box
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rag import card
from rag.errors import InputError
from rag.jsonl import describe
from sieve.measure.audit import AUDIT, Audit
from sieve.measure.groups import Check, Group
from sieve.measure.probes import Probe

PROBES = {
    "other_question": "the Sieve, each set under the question of another",
    "single_document": "the Sieve, single documents: false against true",
    "bag_of_words": "words of single documents without question, this data",
    "bag_of_words_training": "words of single documents without question, training data",
}


class Section(NamedTuple):
    """A table."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def sections(audit: Audit) -> list[Section]:
    """All figures as tables of text."""
    groups = [
        (
            named(g),
            "yes" if g.should_flag else "no",
            str(g.sets),
            str(g.questions),
            percent(g.flagged),
            between(g.low, g.high),
            number(g.auc),
        )
        for g in audit.groups
    ]
    flips = audit.flips
    turned = [
        ("decision", f"{flips.sets} sets", percent(flips.decision), between(flips.decision_low, flips.decision_high)),
        ("decision, by rotation", f"{flips.rotations} rotations", percent(flips.each), ""),
        ("blamed document", f"{flips.flagged_sets} flagged sets", percent(flips.blamed), between(flips.blamed_low, flips.blamed_high)),
    ]
    probes = [(probe_title(p), str(p.positive), str(p.negative), number(p.auc), numbers(p.low, p.high)) for p in audit.probes]
    checks = [
        (named(c), bound(c), percent(c.flagged), {True: "kept", False: "BROKEN", None: "not measured"}[c.passed]) for c in audit.checks
    ]
    return [
        Section("Flagged by group", ("group", "should flag", "sets", "questions", "flagged", "interval", "AUC"), groups),
        Section("What changes when the documents are rotated", ("", "of", "changed", "interval"), turned),
        Section("Probes of style: AUC, 0.5 where style tells nothing", ("probe", "distracted", "other", "AUC", "interval"), probes),
        Section("Limits", ("group", "limit", "flagged", "verdict"), checks),
    ]


def summary(audit: Audit) -> str:
    """What was audited, in one paragraph."""
    left_out = f" {audit.without_documents} examples without text were left out." if audit.without_documents else ""
    return (
        f"{audit.sets} sets of {audit.questions} questions at threshold {audit.threshold:.4f}; AUC of all distracted sets against all others "
        f"{number(audit.auc)}. Intervals: 95 %, bootstrap by question, {audit.resamples} resamples, seed {audit.seed}. A group's AUC is "
        f"against all sets of the other kind.{left_out}"
    )


def verdict_line(audit: Audit) -> str:
    """The verdict, and the limits behind it."""
    broken = [f"{named(c)} flagged {percent(c.flagged)}, limit {bound(c)}" for c in audit.checks if c.passed is False]
    missing = [named(c) for c in audit.checks if c.passed is None]
    parts = [f"Audit {audit.verdict}."]
    parts += [f"Broken: {'; '.join(broken)}."] if broken else []
    parts += [f"Not measured, no such group in the files: {', '.join(missing)}."] if missing else []
    parts += [] if audit.checks else ["No limits were set."]
    return " ".join(parts)


def probe_title(probe: Probe) -> str:
    """A probe in words, with its source."""
    return PROBES[probe.name] + (f" ({probe.source})" if probe.source else "")


def named(row: Group | Check) -> str:
    """A group with its source."""
    return row.group + (f" ({row.source})" if row.source else "")


def bound(check: Check) -> str:
    """A limit in words."""
    return f"{check.bound.replace('_', ' ')} {check.limit:.0%}"


def percent(value: float | None) -> str:
    """A share with one decimal."""
    return "n/a" if value is None else f"{value:.1%}"


def between(low: float | None, high: float | None) -> str:
    """An interval of shares."""
    return "" if low is None or high is None else f"{low:.1%} to {high:.1%}"


def number(value: float | None) -> str:
    """A number with three decimals."""
    return "n/a" if value is None else f"{value:.3f}"


def numbers(low: float | None, high: float | None) -> str:
    """An interval of numbers."""
    return "" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def render(audit: Audit) -> RenderableType:
    """The audit for a terminal."""
    blocks: list[RenderableType] = [Text(summary(audit))]
    for section in sections(audit):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for place, name in enumerate(section.header):
            table.add_column(name, justify="left" if place == 0 else "right")
        for row in section.rows:
            table.add_row(*map(Text, row))
        blocks += [Text(), Text(section.title, style="bold"), table]
    colour = {"passed": "green", "failed": "red", "incomplete": "yellow"}[audit.verdict]
    return Lines(*blocks, Text(), Text(verdict_line(audit), style=f"bold {colour}"))


def markdown(audit: Audit) -> str:
    """The audit as a Markdown document."""
    blocks = ["# Audit of a Sieve", verdict_line(audit), summary(audit)]
    blocks += [part for s in sections(audit) if s.rows for part in (f"## {s.title}", card.table(s.header, s.rows))]
    blocks += ["## Where the numbers come from", card.table(("", ""), [*audit.provenance.items(), *audit.data.items()])]
    return "\n\n".join(blocks) + "\n"


def read_audit(folder: Path) -> Audit | None:
    """The audit that is stored with a checkpoint; none where it has none. Raises InputError for one that does not fit."""
    path = folder / AUDIT
    if not path.is_file():
        return None
    try:
        return Audit.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Audit)}; run the audit again") from error


def write_json(folder: Path, audit: Audit) -> None:
    """Write `audit.json`."""
    (folder / AUDIT).write_text(audit.model_dump_json(indent=2) + "\n", encoding="utf-8")
