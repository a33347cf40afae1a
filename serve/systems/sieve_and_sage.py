"""The two-stage system (paper 002, section 3.2): the Sieve screens the set, and only a clean set reaches the Sage."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar

from rag.citations import cite
from rag.errors import InputError
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.render import evidence
from sage import predict as sage_stage
from sage.predict import Reply
from serve.deadline import within
from sieve import predict as sieve_stage
from sieve.predict import Removal, Screening

logger = logging.getLogger(__name__)

OnFlag = Literal["abstain", "blame", "filter"]
ItemT = TypeVar("ItemT")


class SieveStage(Protocol):
    """What the system asks of a Sieve; `sieve.predict.Sieve` is one."""

    threshold: float

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        """Score each set."""
        ...

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        """Score each set without each of its units."""
        ...


class SageStage(Protocol):
    """What the system asks of a Sage; `sage.predict.Sage` is one."""

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply | InputError]:
        """Answer each question from its documents."""
        ...


class Draft(NamedTuple):
    """A prediction in the making."""

    query: Query
    documents: tuple[Document, ...]
    """Documents that may still reach the Sage, in rank order."""
    prediction: Prediction | None = None
    """Set as soon as the item is decided."""
    fields: dict[str, object] = {}
    """Fields of the prediction known so far."""
    timings: dict[str, float] = {}
    """Milliseconds by stage."""
