"""What every retriever offers."""

from typing import Protocol

from rag.records import Document


class Retriever(Protocol):
    """Finds documents for a question."""

    @property
    def name(self) -> str:
        """Kind and fingerprint of the index, for the lineage of what is found."""
        ...

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents, best first, with `rank` from 1 and the retriever's own `score`; equal scores go by document id."""
        ...
