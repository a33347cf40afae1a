"""One model without a Sieve: the Sage tells the state of the set in its own words (paper 002, section 4.4, Sage-only)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from rag.records import Document, Prediction, Query
from rag.settings import InputPath
from sage.predict import SageSettings
from serve.systems.stage import SageStage, ask_sage, load_sage, open_items, require_deadlines, start, to_query


class SageOnly:
    """A Sage asked directly. `load` makes one from a checkpoint folder, `serve.systems.prompted.load` from an untrained base.

    An answer means answerable, the abstention string unanswerable, and the conflict string, which only a Sage that was taught or
    prompted to say it has, distracted. Whatever goes wrong ends in an abstention with a reason of its own.
    """

    def __init__(self, sage: SageStage, *, sage_deadline: float | None = None) -> None:
        """Keep a Sage; the deadline is in seconds for each query, none means no limit. Raises InputError for one that lets nothing pass."""
        require_deadlines(sage_deadline=sage_deadline)
        self.sage = sage
        self.sage_deadline = sage_deadline

    def ask(self, question: str, documents: Sequence[Document | str]) -> Prediction:
        """Answer one question from its documents, best first; see `serve.systems.stage.to_query`."""
        return self.predict([to_query(question, documents)])[0]

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Give one prediction for each query, in order; the Sage runs on the whole batch, and a bad query sinks no other."""
        items = start(queries)
        ask_sage(open_items(items), self.sage, self.sage_deadline)
        return [item.prediction() for item in items]


def load(
    sage: InputPath,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
    sage_settings: SageSettings | None = None,
) -> SageOnly:
    """Load a Sage, two-way or one that says `conflict` too, from its checkpoint folder.

    Raises InputError for a folder that is no Sage's checkpoint, that was not trained as the settings say, where they are given, or whose
    base is missing or another one.
    """
    return SageOnly(load_sage(sage, sage_settings, device), sage_deadline=sage_deadline)
