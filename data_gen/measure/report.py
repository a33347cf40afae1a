"""The audit of simulated documents as a record, in Markdown and for the terminal."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text as Styled

from data_gen.measure.effect import Effect, Row
from data_gen.measure.intervals import Figure
from data_gen.measure.ranking import Ranking
from data_gen.measure.relation import RELATIONS, UNREADABLE, Relation
from data_gen.pipeline.simulate import KINDS
from rag import card
from rag.records import Condition, Record, Text

SKIPPED = "Skipped: no model was given; set {keys}."


class Audit(Record):
    """The content of `audit.json`."""

    questions: int
    """Questions in the folder."""
    answerable: int
    """Those with a retrieved document that gives the answer; the models are asked about these, or about `asked` of them."""
    asked: int
    yields: dict[Text, dict[Text, int]]
    """Simulated documents by kind, and by `used` or the reason that they were rejected for."""
    ranking: Ranking | None
    """None where it was skipped, as the next two."""
    relation: Relation | None
    effect: Effect | None
    resamples: int
    seed: int
    data: dict[Text, Text]
    """Files that were read, with their SHA-256."""
    provenance: dict[Text, Text]


class Section(NamedTuple):
    """A heading, a sentence, and a table where there are figures."""

    title: str
    note: str
    header: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()


def sections(audit: Audit) -> list[Section]:
    """All figures as tables of text."""
    return [_yields(audit), _ranking(audit.ranking), *_relation(audit.relation), *_effect(audit.effect)]


def summary(audit: Audit) -> str:
    """What was audited, in one paragraph."""
    return (
        f"{audit.questions} questions, {audit.answerable} of them with a retrieved document that gives the answer; models were asked about "
        f"{audit.asked}. Intervals: 95 %, bootstrap by question, {audit.resamples} resamples, seed {audit.seed}."
    )


def markdown(audit: Audit) -> str:
    """The audit as a Markdown document."""
    blocks = ["# Audit of simulated documents", summary(audit)]
    for section in sections(audit):
        blocks += [f"## {section.title}", section.note, *([card.table(section.header, section.rows)] if section.rows else [])]
    blocks += ["## Where the numbers come from", card.table(("", ""), [*audit.provenance.items(), *audit.data.items()])]
    return "\n\n".join(block for block in blocks if block) + "\n"


def render(audit: Audit) -> RenderableType:
    """The audit for a terminal."""
    blocks: list[RenderableType] = [Styled(summary(audit))]
    for section in sections(audit):
        blocks += [Styled(), Styled(section.title, style="bold"), Styled(section.note)]
        if section.rows:
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
            for place, name in enumerate(section.header):
                table.add_column(name, justify="left" if place == 0 else "right")
            for row in section.rows:
                table.add_row(*map(Styled, row))
            blocks.append(table)
    return Group(*blocks)


def _yields(audit: Audit) -> Section:
    rows = [
        (kind, reason, str(count), f"{count / sum(counts.values()):.0%}")
        for kind, counts in audit.yields.items()
        for reason, count in sorted(counts.items(), key=lambda item: (item[0] != "used", -item[1], item[0]))
    ]
    note = "" if rows else "The folder has no simulated documents."
    return Section("Simulated documents", note, ("kind", "used, or why not", "documents", "share"), rows)


def _ranking(ranking: Ranking | None) -> Section:
    title = "Ranks among retrieved documents"
    if ranking is None:
        return Section(title, SKIPPED.format(keys="reranker=..."))
    if not ranking.questions:
        return Section(title, "No question has a simulated document that can be used.")
    size = ranking.fewest if ranking.fewest == ranking.most else f"{ranking.fewest}~{ranking.most}"
    note = (
        f"Simulated documents that can be used, ranked by {ranking.reranker} together with what was retrieved: {ranking.questions} questions, "
        f"{size} passages each. `gold` is the best retrieved document that gives the answer. Scaled: "
        "(rank - 1) / (passages - 1); equal scores share their mean rank."
    )
    rows = [(r.kind, str(r.documents), str(r.questions), _number(r.raw), _number(r.scaled)) for r in ranking.rows]
    return Section(title, note, ("kind", "documents", "questions", "mean rank", "mean scaled rank"), rows)


def _relation(relation: Relation | None) -> list[Section]:
    title = "Relation to the gold document"
    if relation is None:
        return [Section(title, SKIPPED.format(keys="chat@judge=..."))]
    if not relation.rows or not relation.pairs:
        return [Section(title, "No pair of documents was judged.")]
    note = (
        f"Pairs of the gold document and one other, in random order, judged by {relation.judge}: {_share(relation.overall)} of "
        f"{relation.pairs} right. The prompt is this project's. Unreadable replies count as wrong, failed requests are left out."
    )
    rows = [(str(r.kind), str(r.pairs), _share(r.accuracy), str(r.said.get(UNREADABLE, 0)), str(r.failed)) for r in relation.rows]
    said = [*map(str, RELATIONS), UNREADABLE]
    confusion = [(str(r.kind), *(str(r.said.get(name, 0)) for name in said)) for r in relation.rows]
    return [
        Section(title, note, ("kind", "pairs", "accuracy", "unreadable", "failed"), rows),
        Section("What the judge said", "Rows: what the other document is. Columns: the reply.", ("kind", *said), confusion),
    ]


def _effect(effect: Effect | None) -> list[Section]:
    title = "Effect on answers"
    if effect is None:
        return [Section(title, SKIPPED.format(keys="chat@answerer=..."))]
    if not any(row.questions for row in effect.rows):
        return [Section(title, "No question with an answerable set was answered.")]
    note = (
        f"Answers of {effect.answerer} under the prompt Normal QA of paper 002's table 14. Right: the reply equals a gold answer. Differences "
        f"are to `answerable` on the same questions, in points; failed requests are left out. {effect.cut} prompts were cut to fit."
    )
    contained = "The same replies. Right: the reply holds a gold answer, whatever is around it."
    header = ("condition", "questions", "failed", "right", "difference")
    return [
        Section(title, note, header, [_effect_row(row, row.exact, row.exact_difference) for row in effect.rows]),
        Section(f"{title}: contained", contained, header, [_effect_row(row, row.contains, row.contains_difference) for row in effect.rows]),
    ]


def _effect_row(row: Row, right: Figure, difference: Figure) -> tuple[str, ...]:
    less = "" if row.condition is Condition.ANSWERABLE else _points(difference)
    return str(row.condition), str(row.questions), str(row.failed), _share(right), less


def _number(figure: Figure) -> str:
    return _with_interval(figure, ".3f", 1)


def _share(figure: Figure) -> str:
    return _with_interval(figure, ".1f", 100, " %")


def _points(figure: Figure) -> str:
    return _with_interval(figure, "+.1f", 100)


def _with_interval(figure: Figure, form: str, scale: float, unit: str = "") -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "n/a"
    return f"{figure.value * scale:{form}}{unit} ({figure.low * scale:{form}} to {figure.high * scale:{form}})"


def yields_of(simulated: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Counts of pairs of kind and verdict, kinds in the paper's order and verdicts by name."""
    counts = Counter(simulated)
    return {
        str(kind): {verdict: count for (of, verdict), count in sorted(counts.items()) if of == kind}
        for kind in KINDS
        if any(of == kind for of, _ in counts)
    }
