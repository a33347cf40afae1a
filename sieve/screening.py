"""What all forms of Sieve share: what they say of a set, how its documents become text, groups and batches."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rag.records import Document
from rag.render import neutralise
from rag.text import near_identical

CHARACTERS_PER_TOKEN = 20
"""A document is cut to this many characters for each token of the budget before it is tokenized: far more than any language
needs, and it keeps a document of a million characters from costing seconds."""


class Screening(NamedTuple):
    """What the Sieve says of one set."""

    score: float
    """P(distracted), from 0 to 1."""
    truncated: tuple[str, ...]
    """Ids of documents that were cut to fit the model."""
    tokens: int
    """Tokens that the model read."""
    readings: Mapping[str, str] = MappingProxyType({})
    """By document id, what a Sieve that reads documents one by one found each to answer, blank where it answers nothing."""


class Removal(NamedTuple):
    """A set without one document, or without one group of near-identical documents."""

    ids: tuple[str, ...]
    """What was left out, in rank order."""
    rank: int
    """Place of the best-ranked document among `ids`, counted from 1."""
    score: float
    """P(distracted) of what remains."""


def document_text(document: Document, max_length: int, reserved: Sequence[str]) -> tuple[str, bool]:
    """Title and text as a model reads them, without control tokens, and whether they were far too long for `max_length` tokens and cut."""
    text = " ".join(f"{document.title}. {document.text}".split()) if document.title else " ".join(document.text.split())
    limit = max_length * CHARACTERS_PER_TOKEN
    return neutralise(text[:limit], reserved), len(text) > limit


def groups(documents: Sequence[Document]) -> list[list[Document]]:
    """Group near-identical documents, in the order given."""
    found: list[list[Document]] = []
    for document in documents:
        home = next((group for group in found if any(near_identical(document.text, other.text) for other in group)), None)
        if home is None:
            found.append([document])
        else:
            home.append(document)
    return found


def units(documents: Sequence[Document]) -> list[tuple[str, ...]]:
    """Group near-identical documents; each group is a tuple of ids in the order given."""
    return [tuple(document.id for document in group) for group in groups(documents)]


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Split indices into as few batches as fit `budget` tokens each, padding included; an item over the budget goes alone."""
    result: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if result and lengths[i] * (len(result[-1]) + 1) <= budget:
            result[-1].append(i)
        else:
            result.append([i])
    return result
