"""The examples of a page as data: a row for each, and for as many as fit their documents, what was read, removed and written."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from eval.metrics import Judged
from eval.outcomes import distracting_ids
from eval.report.curves import NONE, Row
from eval.report.words import verdict
from rag.records import Document, Outcome, RetrievalState

ENDINGS: Final[Mapping[str, str]] = {
    "correct_answers": "correct answer",
    "correct_abstentions": "correct abstention",
    "incorrect_abstentions": "incorrect abstention",
    "incorrect_answers": "incorrect answer",
    "unparsed": "unparsed output",
    "errors": "input error",
}
"""How an example ends, by the fields of `eval.records.ResponseCountsRow`: each ends in one of the six. First what is right, then what is wrong."""


def ending(judged: Judged) -> str:
    """Which of the six it is."""
    if judged.outcome is Outcome.ABSTAINED:
        return "incorrect_abstentions" if judged.gold is RetrievalState.ANSWERABLE else "correct_abstentions"
    return {
        Outcome.CORRECT: "correct_answers",
        Outcome.WRONG: "incorrect_answers",
        Outcome.UNPARSED: "unparsed",
        Outcome.ERROR: "errors",
    }[judged.outcome]


def explorer(rows: Sequence[Row], limit: int) -> dict[str, Any]:
    """What the page's script reads: `rows` of all examples, and `texts` by id of at most `limit`, as many of each condition and ending."""
    chosen = {row.example.id for row in sample(rows, limit)}
    return {"rows": [_row(row) for row in rows], "texts": {row.example.id: _texts(row) for row in rows if row.example.id in chosen}}


def sample(rows: Sequence[Row], limit: int) -> list[Row]:
    """At most `limit` rows, one of each condition and ending in turn, in the order given."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.example.condition.value, ending(row.judged)), []).append(row)
    turns = sorted((turn, group) for group, members in groups.items() for turn in range(len(members)))
    return [groups[group][turn] for turn, group in turns[:limit]]


def _row(row: Row) -> dict[str, Any]:
    example, prediction, judged = row
    return {
        "id": example.id,
        "question": example.question,
        "condition": example.condition.value,
        "state": example.state.value,
        "named": NONE if prediction.state is None else prediction.state.value,
        "ending": ending(judged),
        "reason": NONE if prediction.reason is None else prediction.reason.value,
        "verdict": verdict(example, prediction, judged)[0],
        "answer": prediction.answer,
        "answers": list(example.answers),
        "marks": _marks(row),
    }


def _marks(row: Row) -> list[str]:
    """What was done to documents, for the filter."""
    prediction, planted = row.prediction, distracting_ids(row.example)
    found = {
        "planted": bool(planted),
        "blamed": bool(prediction.blamed),
        "blamed what was planted": bool(planted) and bool(planted.intersection(prediction.blamed)),
        "blamed another": not planted.issuperset(prediction.blamed),
        "removed": bool(prediction.removed),
        "removed what was planted": bool(planted) and bool(planted.intersection(prediction.removed)),
        "removed another": not planted.issuperset(prediction.removed),
        "retrieved again": bool(prediction.added),
        "dropped": bool(prediction.dropped),
        "trimmed": bool(prediction.trimmed),
        "cited": bool(prediction.citations),
        "cited without support": any(not citation.supported for citation in prediction.citations),
        "citation rejected": bool(prediction.rejected_citations),
    }
    return [mark for mark, is_so in found.items() if is_so]


def _texts(row: Row) -> dict[str, Any]:
    example, prediction, _ = row
    planted = distracting_ids(example)
    said = prediction.model_dump(
        mode="json",
        include={"output", "error", "sieve_score", "threshold", "confidence", "prompt", "timings", "tokens", "recovery", "stored"},
    )
    return {
        **said,
        "leave_one_out": prediction.leave_one_out,
        "rejected_citations": list(prediction.rejected_citations),
        "documents": [_document(row, place, document, document.id in planted) for place, document in enumerate(example.documents, start=1)],
        "added": [_document(row, place, document, False) for place, document in enumerate(prediction.added, start=1)],
    }


def _document(row: Row, place: int, document: Document, planted: bool) -> dict[str, Any]:
    prediction = row.prediction
    supported = {citation.document_id: citation.supported for citation in prediction.citations}
    marks = {
        "planted": planted,
        "blamed": document.id in prediction.blamed,
        "removed": document.id in prediction.removed,
        "cited": supported.get(document.id, False),
        "cited without support": not supported.get(document.id, True),
        "dropped": document.id in prediction.dropped,
        "trimmed": document.id in prediction.trimmed,
    }
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "rank": document.rank or place,
        "label": None if document.label is None else document.label.value,
        "metadata": document.metadata,
        "reading": prediction.readings.get(document.id),
        "without": prediction.leave_one_out.get(document.id),
        "marks": [mark for mark, is_so in marks.items() if is_so],
    }
