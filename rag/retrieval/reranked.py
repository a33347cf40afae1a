"""A first stage's candidates, put in a new order by a model that reads question and document."""

import hashlib
from collections.abc import Sequence

from rag.models.rerank import Reranker
from rag.records import Document
from rag.retrieval.encoders import document_text
from rag.retrieval.retriever import Retriever, search_all
from rag.retrieval.selection import require_k
from rag.settings import Target


class Reranked:
    """A retriever of two stages."""

    def __init__(self, first: Retriever, reranker: Reranker, candidates: int = 100, title_separator: str = " ") -> None:
        """Re-rank `candidates` documents of `first`, or `k` where that is more; a title stands before its text."""
        require_k(candidates)
        self._first = first
        self._reranker = reranker
        self._candidates = candidates
        self._separator = title_separator

    @property
    def name(self) -> str:
        """Kind and fingerprint of both stages."""
        content = f"{self._first.name} {self._reranker.name} {self._candidates} {self._separator!r}"
        return f"reranked-{hashlib.sha256(content.encode()).hexdigest()[:16]}"

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents, best first, with `rank` and the re-ranker's `score`; equal scores go by document id."""
        return self.search_many([question], k)[0]

    def search_many(self, questions: Sequence[str], k: int) -> list[list[Document]]:
        """As `search` for each question."""
        require_k(k)
        if not questions:
            return []
        found = next(search_all(self._first, questions, max(k, self._candidates), len(questions)))
        return [self._rerank(question, documents, k) for question, documents in zip(questions, found, strict=True)]

    def _rerank(self, question: str, documents: Sequence[Document], k: int) -> list[Document]:
        if not documents:
            return []
        scores = self._reranker.score(question, [document_text(document, self._separator) for document in documents])
        order = sorted(zip(documents, scores, strict=True), key=lambda pair: (-pair[1], pair[0].id))[:k]
        return [document.model_copy(update={"rank": rank, "score": score}) for rank, (document, score) in enumerate(order, start=1)]


def reranked(first: Target, reranker: Target, candidates: int = 100, title_separator: str = " ") -> Reranked:
    """Build both stages as a config names them."""
    return Reranked(first.build(), reranker.build(), candidates, title_separator)
