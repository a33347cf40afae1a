"""The best rows of an index that is read block by block: exact, ties by id, whatever the blocks and the other questions are."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rag.errors import InputError
from rag.records import Document
from rag.retrieval.corpus import Corpus, Rows

Scores = npt.NDArray[np.floating]


def require_k(k: int) -> None:
    """Raise InputError for a `k` below 1."""
    if k < 1:
        raise InputError(f"k: expected at least 1, got {k}")


def best(rows: Rows, scores: Scores, places: Rows, k: int) -> tuple[Rows, Scores]:
    """The `k` best of `rows`, best first, equal scores in the order of `places` (the corpus' table of ids)."""
    if len(rows) > k:
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((places[rows], -scores))[:k]
    return rows[order], scores[order]


def ranked(corpus: Corpus, rows: Rows, scores: Scores) -> list[Document]:
    """Documents of rows, with rank and score."""
    return [
        corpus[row].model_copy(update={"rank": rank, "score": score})
        for rank, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True), start=1)
    ]


class Candidates:
    """Rows that may be among the `k` best of one question, by scores that are off by less than half of `margin`."""

    def __init__(self, k: int, margin: float) -> None:
        """Start empty."""
        self._k = k
        self._margin = margin
        self._floor = -np.inf
        self.rows: Rows = np.empty(0, dtype=np.int64)
        self._scores: Scores = np.empty(0, dtype=np.float32)

    def add(self, start: int, scores: Scores) -> None:
        """Take in the scores of the rows from `start` on."""
        near = np.flatnonzero(scores >= self._floor)
        self.rows = np.concatenate([self.rows, near + start])
        self._scores = np.concatenate([self._scores, scores[near]])
        if len(self.rows) >= self._k:
            place = len(self.rows) - self._k
            self._floor = float(np.partition(self._scores, place)[place]) - self._margin
            kept = self._scores >= self._floor
            self.rows, self._scores = self.rows[kept], self._scores[kept]

    def settle(self, exact: Callable[[int], float], places: Rows) -> tuple[Rows, Scores]:
        """The `k` best by `exact`, which scores one row alone: rounding in a block's product of matrices then decides nothing."""
        return best(self.rows, np.array([exact(row) for row in self.rows.tolist()], dtype=np.float64), places, self._k)
