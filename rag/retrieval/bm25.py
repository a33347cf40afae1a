"""BM25 over documents in memory, by the bm25s library (Lucene's variant): the baseline retriever, and a finder of hard negatives."""

import hashlib
import logging
import re
import unicodedata
from collections.abc import Sequence

import bm25s
import numpy as np

from rag.errors import InputError
from rag.records import Document

_TOKEN = re.compile(r"\w+")


def tokenize(text: str) -> list[str]:
    """Case-folded runs of letters and digits; no stemmer and no stop words, so a rare word counts by its rarity alone."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


class Bm25:
    """An index over documents; title and text are searched as one."""

    def __init__(self, documents: Sequence[Document], k1: float = 1.5, b: float = 0.75) -> None:
        """Build the index.

        `k1` (0 and up) bounds what repetition of a term adds, `b` (0 to 1) is how much a document's length counts against it. Raises
        InputError where two documents share an id.
        """
        self._documents = sorted(documents, key=lambda document: document.id)
        self._settings = f"k1={float(k1)} b={float(b)}"
        for left, right in zip(self._documents, self._documents[1:], strict=False):
            if left.id == right.id:
                raise InputError(f"expected documents with distinct ids, got '{left.id}' twice")
        # The library sets its own logger to DEBUG, so a job would log every step of it.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        tokens = [tokenize(f"{document.title} {document.text}") for document in self._documents]
        # The library cannot index a corpus without a single token.
        self._index = bm25s.BM25(method="lucene", k1=k1, b=b) if any(tokens) else None
        if self._index is not None:
            self._index.index(tokens, show_progress=False)

    @property
    def name(self) -> str:
        """Kind and fingerprint of documents and settings."""
        digest = hashlib.sha256(self._settings.encode())
        for document in self._documents:
            digest.update(f"\n{document.id!r} {document.title!r} {document.text!r}".encode())
        return f"bm25-memory-{digest.hexdigest()[:16]}"

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents that share a term with the question, best first, with `rank` and `score`; equal scores go by document id."""
        if k < 1:
            raise InputError(f"k: expected at least 1, got {k}")
        terms = tokenize(question)
        if self._index is None or not terms:
            return []
        scores = self._index.get_scores(terms)
        matching = np.flatnonzero(scores)
        if k < len(matching):
            # Sorting all that share a word with the question would take longer than finding them.
            least = np.partition(scores[matching], len(matching) - k)[len(matching) - k]
            matching = matching[scores[matching] >= least]
        # The documents are sorted by id, so a stable sort settles ties by id.
        best = matching[np.argsort(-scores[matching], kind="stable")][:k]
        return [
            self._documents[place].model_copy(update={"rank": rank, "score": float(scores[place])})
            for rank, place in enumerate(best.tolist(), start=1)
        ]
