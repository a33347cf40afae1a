"""What every retriever offers."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from rag.records import Document


class Retriever(Protocol):
    """Finds documents for a question."""

    @property
    def name(self) -> str:
        """Kind and fingerprint of the index: equal where the same question must find the same documents."""
        ...

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents, best first, with `rank` from 1 and the retriever's own `score`; equal scores go by document id."""
        ...


@runtime_checkable
class BatchRetriever(Protocol):
    """A retriever that reads its index once for many questions."""

    def search_many(self, questions: Sequence[str], k: int) -> list[list[Document]]:
        """As `search` for each question, with the very same results."""
        ...


def search_all(retriever: Retriever, questions: Sequence[str], k: int, batch_size: int) -> Iterator[list[list[Document]]]:
    """Search for all questions, `batch_size` at a time: one index sweep for each batch where the retriever can do so."""
    for start in range(0, len(questions), batch_size):
        batch = questions[start : start + batch_size]
        yield retriever.search_many(batch, k) if isinstance(retriever, BatchRetriever) else [retriever.search(q, k) for q in batch]
