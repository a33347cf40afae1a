"""Show what runs say against one another: tables for the terminal and for `compare.md`."""

from collections.abc import Sequence
from html import escape
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text as Shown

from eval.comparison.comparable import Difference
from eval.comparison.transfers import Comparison, Counts, MetricDifference, Transfer
from eval.report import METRIC_TITLES
from eval.report.words import one_line
from rag import card
from rag.records import Record, Text

COLUMNS: Final = ("correct", "wrong", "abstained", "distracted", "unanswerable", "other", "rightly", "unparsed", "error", "total")
LEGEND: Final = (
    "correct, wrong, abstained, unparsed and error add up to the total. wrong: every other answer, any answer to an unanswerable or distracted set "
    "among them. Of the abstentions, by what the system said: distracted, unanswerable, other; rightly: those on sets that had no right answer."
)
NOTED: Final = 6
"""Moves that are named beside the counts."""
QUESTION: Final = 70
"""Characters of a question that are shown."""


class Row(Record):
    """One run."""

    name: Text
    folder: Text
    commit: Text
    counts: Counts
    left_out: int = 0
    """Examples that not all runs have."""


def counts_header() -> tuple[str, ...]:
    """Columns of `counts_rows`."""
    return ("run", *COLUMNS, "moved since the run before")


def counts_rows(rows: Sequence[Row], steps: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """One row for each run, with what moved since the run before: by id where that is little, else the number of each kind."""
    notes = ["", *map(_moves, steps)]
    return [(row.name, *(str(getattr(row.counts, column)) for column in COLUMNS), note) for row, note in zip(rows, notes, strict=True)]


def _moves(step: Comparison) -> str:
    few = step.moved <= NOTED
    kinds = [(f"{', '.join(m.id for m in t.moved)}" if few else str(len(t.moved)), t) for t in step.transfers]
    return "; ".join(f"{which} {t.origin} to {t.target}" for which, t in kinds) or "none"


def headline(step: Comparison) -> str:
    """The comparison in one sentence."""
    said = f", {step.moved - step.between_columns} of them only in what an abstention said" if step.moved > step.between_columns else ""
    return (
        f"{step.moved} examples moved{said}: {step.gains} became right, {step.losses} ceased to be right "
        f"(sign test by question, p = {step.p_value:.3g})."
    )


def transfer_rows(transfers: Sequence[Transfer], show: int | None = None) -> list[tuple[str, ...]]:
    """One row for each moved example: from, to, id, question, effect; where some are not shown, a row says how many."""
    rows: list[tuple[str, ...]] = []
    for transfer in transfers:
        shown = transfer.moved if show is None else transfer.moved[:show]
        rows += [(transfer.origin.value, transfer.target.value, m.id, one_line(m.question, QUESTION), m.effect) for m in shown]
        if len(transfer.moved) > len(shown):
            rows.append((transfer.origin.value, transfer.target.value, f"and {len(transfer.moved) - len(shown)} more", "", ""))
    return rows


def metric_rows(metrics: Sequence[MetricDifference]) -> list[tuple[str, ...]]:
    """One row for each metric that a run has."""
    had = [row for row in metrics if row.before is not None or row.after is not None]
    return [(METRIC_TITLES[row.name], _number(row.before), _number(row.after), _signed(row), _interval(row), row.note) for row in had]


METRIC_HEADER: Final = ("metric", "before", "after", "difference", "interval", "")
TRANSFER_HEADER: Final = ("from", "to", "id", "question", "effect")


def markdown(
    rows: Sequence[Row],
    steps: Sequence[Comparison],
    others: Sequence[Comparison],
    differences: Sequence[tuple[str, str, Sequence[Difference]]],
    notes: Sequence[str],
    origin: Sequence[tuple[str, str]],
) -> str:
    """The whole comparison for a pull request; `others` are the comparisons with the first run."""
    sections = {
        "": "\n\n".join([f"{rows[0].counts.total} examples. {LEGEND}", *notes]),
        "How the examples ended": card.table(counts_header(), counts_rows(rows, steps)),
    }
    for step in (*steps, *others):
        # Markdown lets HTML through, and a question is anybody's text.
        cells = [tuple(escape(cell, quote=False) for cell in row) for row in transfer_rows(step.transfers)]
        moved = card.table(TRANSFER_HEADER, cells) if cells else ""
        metrics = card.table(METRIC_HEADER, metric_rows(step.metrics))
        sections[f"{step.after} against {step.before}"] = "\n\n".join(filter(None, [headline(step), moved, metrics]))
    for before, after, found in differences:
        table = card.table(("key", before, after), [(f"`{d.key}`", d.before or "no such key", d.after or "no such key") for d in found])
        sections[f"What differs in the settings of {after} and {before}"] = table if found else "Nothing."
    runs = [(row.name, f"`{row.folder}`, commit `{row.commit}`") for row in rows]
    sections["Where the numbers come from"] = card.table(("", ""), [*origin, *runs])
    return card.render("Runs compared", sections)


def terminal(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> Table:
    """A table for the terminal; columns are right-aligned but for those of `left`."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Shown, row))
    return table


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _signed(row: MetricDifference) -> str:
    return "n/a" if row.difference is None else f"{row.difference:+.3f}"


def _interval(row: MetricDifference) -> str:
    return "" if row.low is None or row.high is None else f"{row.low:+.3f} to {row.high:+.3f}"
