"""Look again for documents that a set does not hold yet (paper 002, section 6, for unanswerable sets)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rag.errors import InputError
from rag.records import Document, Query
from rag.render import ranked
from rag.retrieval.retriever import Retriever, search_all
from rag.text import near_identical
from serve.deadline import attempt
from serve.systems.stage import require_deadlines

Placement = Literal["add", "replace"]
"""Where newly found documents go: after those of the set, or in their place."""


class Search(NamedTuple):
    """What to look for."""

    query: Query
    """With the set as it is."""
    seen: Sequence[Document]
    """All documents that were ever in it, none of which is to be found again."""

    def __str__(self) -> str:
        """As logs name it."""
        return f"query {self.query.id}"


class Found(NamedTuple):
    """What one search brought."""

    query: Query
    """With the set that comes of it; as it was where nothing new was found."""
    new: tuple[Document, ...]
    """Best first, with the retriever's ranks and scores."""
    milliseconds: float


class SecondRetrieval:
    """A retriever that is asked for more."""

    def __init__(self, retriever: Retriever, k: int = 5, placement: Placement = "add", deadline: float | None = None) -> None:
        """Find at most `k` documents at a time that were not in the set before, neither by id nor by text.

        `deadline` is in seconds for each query, none means no limit. Raises InputError for less than one document and for a deadline that lets
        nothing pass.
        """
        if k < 1:
            raise InputError(f"k: expected at least 1, got {k}")
        require_deadlines(retrieve_deadline=deadline)
        self.retriever = retriever
        self.k = k
        self.placement = placement
        self.deadline = deadline

    def find(self, searches: Sequence[Search]) -> list[Found]:
        """Search for all at once; a search that fails finds nothing, is logged, and leaves the others alone."""
        if not searches:
            return []
        found = []
        for search, (hits, milliseconds) in zip(searches, attempt("re_retrieve", searches, self._hits, self.deadline), strict=True):
            new = self._unseen(search, hits or [])
            found.append(Found(self._with(search.query, new) if new else search.query, new, milliseconds))
        return found

    def _hits(self, searches: Sequence[Search]) -> list[list[Document]]:
        # Each document of a set may come up again.
        k = self.k + max(len(search.seen) for search in searches)
        questions = [search.query.question for search in searches]
        return [hits for batch in search_all(self.retriever, questions, k, len(searches)) for hits in batch]

    def _unseen(self, search: Search, hits: Sequence[Document]) -> tuple[Document, ...]:
        new: list[Document] = []
        # What others in the batch asked for must not decide what this one gets.
        for hit in hits[: self.k + len(search.seen)]:
            known = any(hit.id == document.id or near_identical(hit.text, document.text) for document in (*search.seen, *new))
            if len(new) < self.k and hit.text.strip() and not known:
                new.append(hit.model_copy(update={"label": None, "answer": None}))
        return tuple(new)

    def _with(self, query: Query, new: Sequence[Document]) -> Query:
        """The query on its new set, ranked from 1 without a gap: the ranks of two retrievals say nothing beside each other."""
        kept = ranked(query.documents) if self.placement == "add" else []
        documents = tuple(document.model_copy(update={"rank": rank}) for rank, document in enumerate([*kept, *new], start=1))
        return query.model_copy(update={"documents": documents})
