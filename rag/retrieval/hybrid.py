"""Several retrievers as one: their scores brought to one scale and added."""

import hashlib
from collections.abc import Mapping, Sequence

from rag.errors import InputError
from rag.records import Document
from rag.retrieval.retriever import Retriever, search_all
from rag.retrieval.selection import require_k
from rag.settings import Target


class Hybrid:
    """A retriever that asks several retrievers over one corpus and fuses what they find."""

    def __init__(self, retrievers: Mapping[str, Retriever], weights: Mapping[str, float] | None = None, candidates: int = 100) -> None:
        """Take retrievers by name; `weights` by the same names are equal where there are none.

        Each retriever is asked for `candidates` documents, or for `k` where that is more. Raises InputError for weights that do not match
        the retrievers, are negative or all zero.
        """
        if len(retrievers) < 2:
            raise InputError(f"retrievers: expected two or more, got {len(retrievers)}")
        if weights is None:
            weights = dict.fromkeys(retrievers, 1.0)
        if set(weights) != set(retrievers):
            raise InputError(f"weights: expected one for each of {', '.join(retrievers)}, got {', '.join(weights) or 'none'}")
        if min(weights.values()) < 0 or not 0 < sum(weights.values()) < float("inf"):
            raise InputError(f"weights: expected numbers of 0 and up, not all 0, got {dict(weights)}")
        require_k(candidates)
        self._retrievers = dict(retrievers)
        self._weights = [float(weights[name]) for name in retrievers]
        self._candidates = candidates

    @property
    def name(self) -> str:
        """Kind and fingerprint of retrievers, weights and number of candidates."""
        content = [*(r.name for r in self._retrievers.values()), *map(str, self._weights), str(self._candidates)]
        return f"hybrid-{hashlib.sha256(' '.join(content).encode()).hexdigest()[:16]}"

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents, best first, with `rank` and the fused `score` from 0 to 1; equal scores go by document id."""
        return self.search_many([question], k)[0]

    def search_many(self, questions: Sequence[str], k: int) -> list[list[Document]]:
        """As `search` for each question; each retriever is asked for all of them at once."""
        require_k(k)
        if not questions:
            return []
        asked = max(k, self._candidates)
        found = [next(search_all(retriever, questions, asked, len(questions))) for retriever in self._retrievers.values()]
        return [fuse(lists, self._weights, k) for lists in zip(*found, strict=True)]


def fuse(lists: Sequence[Sequence[Document]], weights: Sequence[float], k: int) -> list[Document]:
    """Add the scores of several lists, each min-max normalised over its own candidates, by weights that are scaled to sum to 1.

    The best candidate of a list gets 1 from it and the worst 0; where all have one score, each gets 1. A document that is missing from a
    list gets 0 from it. Raises InputError where two lists have different texts under one id.
    """
    documents: dict[str, Document] = {}
    totals: dict[str, float] = {}
    whole = sum(weights)
    for found, weight in zip(lists, weights, strict=True):
        for document, share in zip(found, normalised([document.score or 0.0 for document in found]), strict=True):
            known = documents.setdefault(document.id, document)
            if (known.title, known.text) != (document.title, document.text):
                raise InputError(f"document '{document.id}' has two different texts: the retrievers of a hybrid must search one corpus")
            totals[document.id] = totals.get(document.id, 0.0) + weight / whole * share
    best = sorted(totals, key=lambda name: (-totals[name], name))[:k]
    return [documents[name].model_copy(update={"rank": rank, "score": totals[name]}) for rank, name in enumerate(best, start=1)]


def normalised(scores: Sequence[float]) -> list[float]:
    """Scores moved and scaled to run from 0 to 1; all 1 where they are equal."""
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if low == high:
        return [1.0] * len(scores)
    # Halves, since the difference of two large numbers may be too large for a float.
    return [(score / 2 - low / 2) / (high / 2 - low / 2) for score in scores]


def hybrid(retrievers: dict[str, Target], weights: dict[str, float] | None = None, candidates: int = 100) -> Hybrid:
    """Build the retrievers that a config names, and a `Hybrid` of them."""
    return Hybrid({name: retriever.build() for name, retriever in retrievers.items()}, weights, candidates)
