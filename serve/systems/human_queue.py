"""Queries for people to answer: one JSON line for each, with all that a person needs to see."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from rag.jsonl import Journal, iter_records
from rag.records import Document, Id, Prediction, Query, Reason, Record, RetrievalState, Text


class Queued(Record):
    """One line of the queue."""

    id: Id
    """Of the query."""
    question_id: Id
    question: Text
    documents: tuple[Document, ...]
    """The set as it was last: without what filtering removed, with what a second retrieval added."""
    state: RetrievalState | None
    """Of the set as it was retrieved."""
    reason: Reason | None
    sieve_score: float | None = None
    threshold: float | None = None
    leave_one_out: dict[Text, float] = Field(default_factory=dict)
    """P(distracted) of the set without the named document."""
    blamed: tuple[Text, ...] = ()
    removed: tuple[Text, ...] = ()
    added: tuple[Text, ...] = ()
    """Ids that a second retrieval found."""
    recovery: tuple[Text, ...] = ()
    """What was tried before."""
    output: Text | None = None
    """What the Sage wrote, where it was asked."""


class HumanQueue:
    """A file that grows by whole lines. A query is queued once: a run that was stopped and goes on may bring it again."""

    def __init__(self, path: Path) -> None:
        """Open a queue, which may hold lines of earlier runs. Raises InputError where it holds anything else."""
        self._journal = Journal(path)
        self._known = {(line.id, line.question) for line in iter_records(path, Queued)} if path.is_file() else set()

    def append(self, cases: Sequence[tuple[Query, Prediction]]) -> None:
        """Append the queries that are not in the queue yet; known is one by its id and question, since callers reuse ids for other questions.

        Raises InputError when the disk refuses; nothing is lost then that was queued before.
        """
        new = {(query.id, query.question): _line(query, prediction) for query, prediction in cases}
        new = {key: line for key, line in new.items() if key not in self._known}
        if new:
            self._journal.append(new.values())
            self._known.update(new)


def _line(query: Query, prediction: Prediction) -> Queued:
    same = ("state", "reason", "sieve_score", "threshold", "leave_one_out", "blamed", "removed", "recovery", "output")
    return Queued(
        id=query.id,
        question_id=query.question_id,
        question=query.question,
        documents=query.documents,
        added=tuple(document.id for document in prediction.added),
        **{name: getattr(prediction, name) for name in same},
    )
