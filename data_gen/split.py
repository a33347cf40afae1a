"""Splits go by question: which split a question belongs to, and the check that none is in two."""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence

from rag.errors import InputError
from rag.records import Example


def normalise_question(question: str) -> str:
    """The question without case, punctuation and spacing, so that `Who won?` and `who won` are one question."""
    text = unicodedata.normalize("NFKC", question).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in text).split()) or text.strip()


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


def require_disjoint(splits: Mapping[str, Sequence[Example]]) -> None:
    """Refuse splits that share a question, by its id or by its normalised text. Raises InputError that names both places."""
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for split, examples in splits.items():
        for example in examples:
            for key in (("question_id", example.question_id), ("question", normalise_question(example.question))):
                first_split, first_id = seen.setdefault(key, (split, example.id))
                if first_split != split:
                    raise InputError(
                        f"expected each question in one split, found {key[0]} '{key[1]}' in {first_split} (example {first_id}) "
                        f"and in {split} (example {example.id})"
                    )


def shared_documents(splits: Mapping[str, Sequence[Example]]) -> int:
    """How many document texts occur in more than one split."""
    texts = [{document.text for example in examples for document in example.documents} for examples in splits.values()]
    return len({text for i, left in enumerate(texts) for right in texts[i + 1 :] for text in left & right})
