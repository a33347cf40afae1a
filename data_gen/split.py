"""Deal questions out to splits, and count the documents that splits share."""

import hashlib
from collections.abc import Mapping, Sequence

from rag.errors import InputError
from rag.records import Example
from rag.splits import normalise_question


def assign(question: str, shares: Mapping[str, float], seed: int) -> str:
    """The split of a question, by a hash of its normalised text: it depends neither on other questions nor on their order.

    `shares` maps splits to positive weights. Raises InputError for shares that cannot be used.
    """
    if not shares or any(share < 0 for share in shares.values()) or sum(shares.values()) == 0:
        raise InputError(f"shares: expected a positive share for at least one split and none below zero, got {dict(shares)}")
    digest = hashlib.sha256(f"{seed}:{normalise_question(question)}".encode()).digest()
    point = int.from_bytes(digest[:8]) / 2**64 * sum(shares.values())
    names = [name for name, share in shares.items() if share > 0]
    for name in names[:-1]:
        point -= shares[name]
        if point < 0:
            return name
    return names[-1]


def shared_documents(splits: Mapping[str, Sequence[Example]]) -> int:
    """How many document texts occur in more than one split."""
    texts = [{document.text for example in examples for document in example.documents} for examples in splits.values()]
    return len({text for i, left in enumerate(texts) for right in texts[i + 1 :] for text in left & right})
