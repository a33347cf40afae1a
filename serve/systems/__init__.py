"""Systems: anything that maps queries to predictions, one file each."""

from collections.abc import Sequence
from typing import Protocol

from rag.records import Prediction, Query


class System(Protocol):
    """What the evaluation and an application ask of a system."""

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Give one prediction for each query, in order. A query that cannot be used gets an error of its own and sinks no other."""
        ...
