"""Splits go by question: the check that no question is in two of them."""

import unicodedata
from collections.abc import Mapping, Sequence

from rag.errors import InputError
from rag.records import Example


def normalise_question(question: str) -> str:
    """The question without case, punctuation and spacing, so that `Who won?` and `who won` are one question."""
    text = unicodedata.normalize("NFKC", question).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in text).split()) or text.strip()


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
