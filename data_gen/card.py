"""The card of a data folder: what was written, from what and how much of each kind, for programs (`card.json`) and for readers (`README.md`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rag.card import render, table
from rag.records import Condition, Document, Example, Record

CARD = "card.json"
DATA_CARD = "README.md"


class BuildReport(Record):
    """What was written: the content of `card.json`."""

    source: str
    """The function that made the examples."""
    arguments: dict[str, Any]
    """Its arguments, without the split."""
    questions: dict[str, int]
    """Questions by split."""
    examples: dict[str, dict[str, int]]
    """Examples by split and condition."""
    variants: dict[str, dict[str, int]]
    """Examples by split and variant, where the source names variants."""
    dropped: dict[str, dict[str, int]]
    """What the source left out, by split and reason."""
    yields: dict[str, dict[str, int]]
    """Simulated documents of all splits by kind, and by `used` or the reason that they were rejected for."""
    words: dict[str, float]
    """Mean words of a document, by split."""
    shared_documents: int
    """Document texts that occur in more than one split; questions never do."""
    sha256: dict[str, str]
    """Hash of each file."""


def by_condition(examples: Sequence[Example]) -> dict[str, int]:
    """Examples by condition, sorted by its name."""
    return dict(sorted(Counter(str(example.condition) for example in examples).items()))


def by_variant(examples: Sequence[Example]) -> dict[str, int]:
    """Examples by variant, sorted by its name; those without one are not counted."""
    return dict(sorted(Counter(example.variant for example in examples if example.variant).items()))


def mean_words(examples: Sequence[Example]) -> float:
    """Mean words of the distinct documents, 0 without any."""
    documents: dict[str, Document] = {document.text: document for example in examples for document in example.documents}
    return sum(len(text.split()) for text in documents) / max(1, len(documents))


def data_card(report: BuildReport, splits: Mapping[str, Sequence[Example]]) -> str:
    """The card in Markdown, with a table of the kind of paper 002's table 1. Equal inputs give equal text."""
    conditions = [c for c in Condition if any(str(c) in counts for counts in report.examples.values())]
    rows = [["questions", *(str(report.questions[split]) for split in splits)]]
    rows += [["document length (words)", *(f"{report.words[split]:.1f}" for split in splits)]]
    rows += [["total sets", *(str(sum(report.examples[split].values())) for split in splits)]]
    rows += [[str(condition), *(str(report.examples[split].get(str(condition), 0)) for split in splits)] for condition in conditions]
    reasons = sorted({reason for counts in report.dropped.values() for reason in counts})
    left_out = [[reason, *(str(report.dropped[split].get(reason, 0)) for split in splits)] for reason in reasons]
    simulated = [
        [kind, reason, str(count), f"{count / sum(counts.values()):.0%}"]
        for kind, counts in report.yields.items()
        for reason, count in sorted(counts.items(), key=lambda item: (item[0] != "used", -item[1], item[0]))
    ]
    lineage = sorted({(role, name) for examples in splits.values() for e in examples for role, name in e.lineage.items()})
    settings = [[key, _cell(value)] for key, value in sorted(report.arguments.items())]
    return render(
        "Data card",
        {
            "": f"Written by `python -m data_gen.build` from the source `{report.source}`. Questions in more than one split: none; "
            f"document texts in more than one split: {report.shared_documents}.",
            "Content": table(["", *splits], rows),
            "Left out": table(["reason", *splits], left_out) if left_out else "",
            "Simulated documents": table(["kind", "usable, or why not", "documents", "share"], simulated) if simulated else "",
            "Made by": table(["role", "what"], lineage) if lineage else "",
            "Settings": table(["key", "value"], settings),
            "Files": table(["file", "SHA-256"], sorted(report.sha256.items())),
        },
    )


def _cell(value: Any) -> str:
    return ", ".join(f"{key}={_cell(item)}" for key, item in value.items()) if isinstance(value, dict) else str(value)
