"""A question with its answers and what its data set knows of documents: where data generation begins."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from data_gen.documents import document, fingerprint, ranked
from rag.records import Document, DocumentLabel, Id, Record, Text
from rag.splits import normalise_question
from rag.text import normalize


class Question(Record):
    """One question of a data set."""

    id: Id
    """Becomes the `question_id` of its Examples; unique within a data set."""
    question: Id
    """As a user would ask it, without options to choose from."""
    answers: Annotated[tuple[Id, ...], Field(min_length=1)]
    """Gold answers, the main one first, aliases after it."""
    documents: tuple[Document, ...] = ()
    """Candidates that the data set ships with, in its order, without labels; empty where they are to be retrieved."""
    simulated: tuple[Document, ...] = ()
    """Distracting documents that the data set ships with, with `label`, and with `answer` where it is known."""
    gold: tuple[Id, ...] = ()
    """Ids of the documents of the data set's corpus that give the answer, where it says so: what recall is measured against."""
    reference: Text | None = None
    """A sentence that states the answer, where the data set has one."""
    split: Text = ""
    """The split it belongs to."""
    source: Text
    """The file or data set it was read from."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [one.id for one in (*self.documents, *self.simulated)]
        if repeated := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"documents, simulated: ids must be unique within a question, repeated: {', '.join(repeated)}")
        if any(one.label is not None for one in self.documents):
            raise ValueError("documents: candidates have no label yet")
        if any(one.label is None for one in self.simulated):
            raise ValueError("simulated: expected documents with a label")
        return self


class Simulated(NamedTuple):
    """A distracting document before it has an id."""

    text: str
    label: DocumentLabel
    answer: str | None = None
    title: str = ""


def named(name: str, question: str) -> str:
    """An id for a question without one of its own: it comes from the normalised text, so it depends on no list position."""
    return f"{name}-{fingerprint(normalise_question(question), 16)}"


def candidates(question_id: str, passages: Iterable[tuple[str, str]], reasons: Counter[str]) -> tuple[Document, ...]:
    """Documents of pairs of title and text, best first; blank texts and repetitions are left out and counted in `reasons`."""
    kept: dict[str, Document] = {}
    for title, text in passages:
        mark = fingerprint(text)
        if not text.strip():
            reasons["document without text"] += 1
        elif mark in kept:
            reasons["document repeats a better ranked one"] += 1
        else:
            kept[mark] = Document(id=f"{question_id}-{mark}", title=title, text=text)
    return ranked(kept.values())


def distracting(question_id: str, given: Iterable[Simulated], beside: Iterable[Document], reasons: Counter[str]) -> tuple[Document, ...]:
    """Labelled documents; blank ones and those that repeat another, or a candidate in `beside`, are left out and counted in `reasons`."""
    kept: dict[str, Document] = {}
    taken = {one.id for one in beside}
    for one in given:
        made = document(question_id, one.text, one.label, one.answer, one.title)
        if not one.text.strip():
            reasons["simulated document without text"] += 1
        elif made.id in taken or made.id in kept:
            reasons["simulated document repeats another document"] += 1
        else:
            kept[made.id] = made
    return tuple(kept.values())


def merge(first: Question, second: Question, reasons: Counter[str]) -> Question:
    """One question of two that ask the same.

    Where they share an answer, the answers and documents of both; else the first alone: nothing tells which of the two is right.
    """
    if not {normalize(a) for a in first.answers} & {normalize(a) for a in second.answers}:
        reasons["question repeats an earlier one with another answer"] += 1
        return first
    reasons["question repeats an earlier one, merged with it"] += 1
    answers: dict[str, str] = {}
    for answer in (*first.answers, *second.answers):
        answers.setdefault(normalize(answer), answer)
    documents = candidates(first.id, ((one.title, one.text) for q in (first, second) for one in q.documents), reasons)
    return first.model_copy(
        update={
            "answers": tuple(answers.values()),
            "documents": documents,
            "simulated": distracting(
                first.id,
                (Simulated(d.text, d.label, d.answer, d.title) for q in (first, second) for d in q.simulated if d.label is not None),
                documents,
                reasons,
            ),
            "gold": tuple(dict.fromkeys((*first.gold, *second.gold))),
            "reference": first.reference or second.reference,
        }
    )
