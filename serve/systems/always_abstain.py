"""The constant baseline: abstains on everything, whatever the documents say."""

from collections.abc import Sequence

from rag.errors import InputError
from rag.records import Prediction, Query, Reason, RetrievalState


class AlwaysAbstain:
    """Every set gets the same state and no answer; a policy that must not rank first in any report."""

    def __init__(self, state: RetrievalState = RetrievalState.DISTRACTED) -> None:
        """Assign `state` to every set. Raises InputError for `answerable`, which is no reason to abstain."""
        if state is RetrievalState.ANSWERABLE:
            raise InputError("state: expected unanswerable or distracted for a system that always abstains, got answerable")
        self.state = state

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Abstain on each query."""
        return [Prediction(id=q.id, question_id=q.question_id, state=self.state, reason=Reason.POLICY) for q in queries]
