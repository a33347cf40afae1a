"""Records of what a file holds on one question, and of the labelled documents that are made of it.

A source reads its file into `Material`, one for each question; `data_gen.pools.pooling` makes a `Pool` of each.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from data_gen.documents import document, fingerprint
from rag.records import Document, DocumentLabel


class Edits(StrEnum):
    """Where the false answers of edited passages come from."""

    GIVEN = "given"
    """The file's own false answer; one of the same kind where it has none or the passage cannot hold it."""
    SAME_KIND = "same_kind"
    """Another question's answer of the same kind."""
    OTHER_KIND = "other_kind"
    """Another question's answer of another kind where the wording allows it: an easy set to learn from first."""
    CLOSE = "close"
    """A year, date or number nearby; one of the same kind for names."""


class Material(NamedTuple):
    """What a file holds on one question."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    """Gold answers, the main one first."""
    passages: tuple[str, ...]
    """True passages, with the answer or without."""
    wrong: str | None = None
    """A false answer of the same kind."""
    edited: tuple[tuple[str, str], ...] = ()
    """Pairs of a true passage and the same one edited to the false answer."""
    generated_false: tuple[str, ...] = ()
    """Passages that a language model wrote in support of the false answer."""
    generated_true: tuple[str, ...] = ()
    """Sentences that a language model wrote in support of the answer."""


class Piece(NamedTuple):
    """A document and the passage it was made from; two pieces of one origin are near-copies, apart from what was edited."""

    document: Document
    origin: str


@dataclass(frozen=True)
class Pool:
    """Labelled documents of one question. None occurs twice, and none names an answer that its label does not allow."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    golds: tuple[Piece, ...] = ()
    """True passages with the answer, one for each origin."""
    copies: tuple[Piece, ...] = ()
    """The golds cut differently, two for each at most, still with the answer."""
    edited: tuple[Piece, ...] = ()
    """Golds and copies in which a false answer stands for the true one."""
    irrelevant_swap: tuple[Piece, ...] = ()
    """Golds and copies in which an entity was replaced that the answer does not depend on."""
    generated_false: tuple[Piece, ...] = ()
    """Generated passages that state the false answer."""
    generated_true: tuple[Piece, ...] = ()
    """Generated passages that state the answer."""
    answer_free: tuple[Piece, ...] = ()
    """True passages on the question that give no answer."""
    hard_negatives: tuple[Piece, ...] = ()
    """True passages of other questions, nearest first, that give no answer here."""
    off_topic_generated: tuple[Piece, ...] = ()
    """Generated passages that state the false answer of another question."""
    off_topic_edited: tuple[Piece, ...] = ()
    """Edited passages of other questions."""


class PoolSettings(NamedTuple):
    """How pools are made."""

    words: int | None = None
    """Most words of a passage; longer ones are cut to a window, around the answer where there is one."""
    edits: Edits = Edits.GIVEN
    false_answers: int = 2
    """Most false answers of a question in its edited passages."""
    copies: bool = True
    """Whether passages with an answer are also there in a shorter cut."""
    seed: int = 0


def make_piece(question_id: str, text: str, label: DocumentLabel, answer: str | None, origin: str) -> Piece:
    """The document of one text, made from the passage `origin`."""
    return Piece(document(question_id, text, label, answer), fingerprint(origin))


def distinct(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """One piece for each document."""
    return tuple({one.document.id: one for one in pieces}.values())
