"""Documents of a set: made from a text, told apart by it, and ranked."""

import hashlib
from collections.abc import Iterable, Mapping

from rag.records import Document, DocumentLabel


def fingerprint(text: str, digits: int = 8) -> str:
    """Equal for texts that differ in case and spacing only; 8 digits tell the documents of a question apart, 16 those of a corpus."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:digits]


def document(
    question_id: str,
    text: str,
    label: DocumentLabel | None,
    answer: str | None = None,
    title: str = "",
    metadata: Mapping[str, str] | None = None,
) -> Document:
    """A document whose id comes from its text, so that it says nothing about the label and is the same in all sets of the question."""
    return Document(
        id=f"{question_id}-{fingerprint(text)}", title=title, text=text, label=label, answer=answer, metadata=dict(metadata or {})
    )


def ranked(documents: Iterable[Document]) -> tuple[Document, ...]:
    """The documents with the ranks 1 to K, in the order given."""
    return tuple(document.model_copy(update={"rank": rank}) for rank, document in enumerate(documents, start=1))
