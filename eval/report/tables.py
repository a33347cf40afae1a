"""A report as tables: for the terminal, and as report.md."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eval.records import ConditionRow, MetricRow, Report
from eval.report.words import GROUP_ENDS, HEADLINES, MAIN, MATCH_TITLES, METRIC_TITLES, REASON_TITLES, RECOVERY_TITLES, one_line
from rag import card
from rag.records import Reason, RetrievalState


class Section(NamedTuple):
    """One table with its title, and notes below it."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: frozenset[int] = frozenset({0})
    """Columns of words; the others hold numbers."""
    gaps: frozenset[int] = frozenset()
    """Rows with a gap after them."""
    notes: tuple[str, ...] = ()


def render_table(report: Report) -> RenderableType:
    """The report as tables for a terminal of 100 columns."""
    return Group(Text(summary(report)), render_sections(sections(report)))


def render_sections(sections: Sequence[Section]) -> RenderableType:
    """Tables for a terminal, each with its title above and its notes below."""
    blocks: list[RenderableType] = []
    for section in sections:
        notes = [Padding(Text(note, style="dim"), (0, 0, 0, 2)) for note in section.notes]
        blocks += [Text(), Text(section.title, style="bold"), _rich_table(section), *notes]
    return Group(*blocks)


def summary(report: Report) -> str:
    """What was scored, by which rule, and how the intervals were made."""
    return (
        f"{report.n} examples of {report.questions} questions. An answer is correct by {MATCH_TITLES[report.match]}. "
        f"Intervals: {report.level:.0%}, bootstrap by question, {report.resamples} resamples, seed {report.seed}."
    )


def sections(report: Report) -> list[Section]:
    """All tables, in order: metrics, how the examples ended, conditions, then the rest."""
    sections = [
        _metric_section("Metrics", report.metrics, report.resamples, report.notes),
        _response_section(report),
        _condition_section(report.conditions),
    ]
    if report.reasons:
        reasons = [(reason, REASON_TITLES[Reason(reason)], str(count)) for reason, count in report.reasons.items()]
        sections.append(Section("Why no answer was given", ("reason", "meaning", "n"), reasons, frozenset({0, 1})))
    if report.recovery:
        sections.append(_recovery_section(report))
    if report.distractors:
        sections.append(_distractors_section(report))
    sections.append(_metric_section("The same answers by each matching rule", report.alternatives, report.resamples))
    if report.latency:
        times = [(row.stage, f"{row.mean:.1f}", f"{row.median:.1f}", f"{row.p95:.1f}", str(row.n)) for row in report.latency]
        kept = [f"{row.stage} {row.stored} of {row.n}" for row in report.latency if row.stored]
        notes = (
            (f"stored, so the times are those that the models took in the run which kept the results: {', '.join(kept)}.",) if kept else ()
        )
        sections.append(
            Section("Milliseconds per example, measured in this run", ("stage", "mean", "median", "p95", "n"), times, notes=notes)
        )
    return sections


def _recovery_section(report: Report) -> Section:
    header = ("what", "by state of the set", "n", "answered", "with a gold answer", "matching it")
    rows = [
        (
            RECOVERY_TITLES[row.step],
            ", ".join(f"{state} {n}" for state, n in row.by_state.items()) or "none",
            *map(str, (row.n, row.answered, row.with_gold, row.matching)),
        )
        for row in report.recovery
    ]
    note = (
        "answered: by this step, whatever the state of the set; the metrics above count an answer to a set that is not answerable as wrong."
    )
    return Section("Recovery: what followed an abstention", header, rows, frozenset({0, 1}), notes=(note,))


def _distractors_section(report: Report) -> Section:
    header = ("planted", "sets", "flagged", "metric", "value", "interval", "n")
    rows: list[tuple[str, ...]] = []
    ends = []
    for group in report.distractors:
        for place, row in enumerate(group.metrics):
            shown = (group.distractors, str(group.n), str(group.flagged)) if place == 0 else ("", "", "")
            rows.append((*shown, METRIC_TITLES[row.name], _number(row.value), _interval(row), str(row.n)))
        ends.append(len(rows) - 1)
    return Section("Recovery by number of distractors", header, rows, frozenset({0, 3}), frozenset(ends))


def _metric_section(title: str, rows: Sequence[MetricRow], resamples: int, notes: tuple[str, ...] = ()) -> Section:
    header = ("metric", "value", "interval", "n", "questions")
    cells = [(METRIC_TITLES[row.name], _number(row.value), _interval(row), str(row.n), str(row.questions)) for row in rows]
    gaps = frozenset(index for index, row in enumerate(rows) if row.name in GROUP_ENDS)
    own = tuple(f"{METRIC_TITLES[row.name]}: {row.note}." for row in rows if row.note)
    if undefined := [f"{METRIC_TITLES[row.name]} ({row.undefined})" for row in rows if row.undefined]:
        own += (f"Resamples without an example that counts, left out of the interval (of {resamples}): {', '.join(undefined)}.",)
    return Section(title, header, cells, gaps=gaps, notes=own + notes)


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _interval(row: MetricRow) -> str:
    return "" if row.low is None else f"{_number(row.low)} to {_number(row.high)}"


def _response_section(report: Report) -> Section:
    counts = report.counts
    rows = [
        ("Correct answers", str(counts.correct_answers)),
        ("Incorrect answers, all answers to unanswerable and distracted sets among them", str(counts.incorrect_answers)),
        ("Correct abstentions, on unanswerable and distracted sets", str(counts.correct_abstentions)),
        ("Incorrect abstentions, on answerable sets", str(counts.incorrect_abstentions)),
        ("Unparsed output", str(counts.unparsed)),
        ("Input errors", str(counts.errors)),
    ]
    return Section(f"How all {report.n} examples ended", ("outcome", "n"), rows)


def _condition_section(rows: Sequence[ConditionRow]) -> Section:
    header = ("condition", "state", "n", "right", "correct", "wrong", "abstained", "unparsed", "error", "flagged")
    cells = []
    for row in rows:
        right = row.correct if row.state is RetrievalState.ANSWERABLE else row.abstained
        flagged = f"{row.flagged / row.scored:.0%}" if row.scored else "n/a"
        ended = (row.correct, row.wrong, row.abstained, row.unparsed, row.error)
        cells.append((row.condition.value, row.state.value, str(row.n), f"{right / row.n:.0%}", *map(str, ended), flagged))
    note = "right: a correct answer to an answerable set, an abstention on any other. flagged: by the Sieve, of those with a score."
    return Section("By condition", header, cells, frozenset({0, 1}), notes=(note,))


def _rich_table(section: Section) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(section.header):
        table.add_column(name, justify="left" if index in section.left else "right", no_wrap=index not in section.left)
    for index, row in enumerate(section.rows):
        table.add_row(*map(Text, row), end_section=index in section.gaps)
    return table


def markdown(report: Report, provenance: Mapping[str, str], title: str = "") -> str:
    """The report for a pull request: what counts first, the rest folded."""
    first = [row for row in report.metrics if row.name in MAIN]
    rest = [row for row in report.metrics if row.name not in MAIN]
    _, ended, conditions, *others = sections(report)
    main = [_metric_section("Metrics", first, report.resamples, report.notes), ended, conditions]
    folded = [*([_metric_section("Further metrics", rest, report.resamples)] if rest else []), *others]
    origin = "\n".join(f"- {name}: `{one_line(value)}`" for name, value in provenance.items())
    blocks = [f"# Evaluation report{title and ': '}{one_line(title)}", headline(report), summary(report)]
    blocks += [f"## {section.title}\n\n{markdown_table(section)}" for section in main]
    blocks += [_folded(section.title, markdown_table(section)) for section in folded]
    blocks.append(_folded("Where the numbers come from", origin))
    return "\n\n".join(blocks) + "\n"


def headline(report: Report) -> str:
    """The three figures to read first, in one line of Markdown."""
    rows = {row.name: row for row in report.metrics}
    said = [
        f"**{METRIC_TITLES[name]} {_number(rows[name].value)}** ({_interval(rows[name]) or 'no example counts'})"
        for name in HEADLINES
        if name in rows
    ]
    return ", ".join(said) + "."


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def markdown_table(section: Section) -> str:
    """The table with its notes, in Markdown."""
    right = set(range(len(section.header))) - section.left
    return "\n\n".join([card.table(section.header, section.rows, right), *section.notes])
