"""What every form of Sieve says of a set, and how sets are taken apart and batched."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rag.records import Document
from rag.text import near_identical


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
