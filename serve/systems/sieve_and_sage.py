"""The two-stage system (paper 002, section 3.2): the Sieve screens the set, and only a set it finds clean reaches the Sage."""

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol, get_args

from pydantic import Field

from rag.errors import InputError, nearest
from rag.prompts import QaPrompt
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.settings import InputPath
from sage.predict import SageSettings
from serve.systems.stage import Item, SageStage, ask_sage, is_probability, load_sage, open_items, require_deadlines, run, start, to_query
from sieve import predict as sieve_stage
from sieve.predict import AnySettings, Removal, Screening

OnFlag = Literal["abstain", "blame", "filter"]
"""What follows a flag: abstain at once; abstain and name the document to blame; or remove that document and ask the Sage."""


class SieveStage(Protocol):
    """What the system asks of a Sieve, whatever its form."""

    @property
    def threshold(self) -> float:
        """The threshold that was chosen on validation data."""
        ...

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        """Score each set."""
        ...

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        """Score each set without each of its units."""
        ...


class SieveAndSage:
    """A Sieve in front of a Sage. `load` makes one from two checkpoint folders.

    Whatever goes wrong in a stage (a crash, a time-out, a score that is no probability, unreadable output) ends in an abstention
    with a reason of its own, never in an answer that was not screened.
    """

    def __init__(
        self,
        sieve: SieveStage,
        sage: SageStage,
        *,
        on_flag: OnFlag = "abstain",
        threshold: float | None = None,
        sieve_deadline: float | None = None,
        sage_deadline: float | None = None,
    ) -> None:
        """Compose two stages. `threshold` replaces the Sieve's own; deadlines are seconds for each query, none means no limit.

        Raises InputError for an unknown `on_flag`, and for a threshold or a deadline that would let everything or nothing pass.
        """
        if on_flag not in get_args(OnFlag):
            raise InputError(f"on_flag: expected {', '.join(get_args(OnFlag))}, got '{on_flag}'{nearest(on_flag, get_args(OnFlag))}")
        require_deadlines(sieve_deadline=sieve_deadline, sage_deadline=sage_deadline)
        self.sieve = sieve
        self.sage = sage
        self.on_flag = on_flag
        self.threshold = sieve.threshold if threshold is None else threshold
        if not is_probability(self.threshold):
            raise InputError(f"threshold: expected a number from 0 to 1, got {self.threshold}")
        self.sieve_deadline = sieve_deadline
        self.sage_deadline = sage_deadline

    def ask(self, question: str, documents: Sequence[Document | str]) -> Prediction:
        """Answer one question from its documents, best first. Plain texts get the ids `d1`, `d2`, ... in the order given.

        Raises InputError when one text stands where a list of them is expected; a blank question ends in the
        prediction's `error`.
        """
        return self.predict([to_query(question, documents)])[0]

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Give one prediction for each query, in order; stages run on the whole batch, and a bad query sinks no other."""
        items = start(queries)
        self._screen(open_items(items))
        flagged = [item for item in open_items(items) if item.known["sieve_score"] >= self.threshold]
        self._handle_flagged(flagged)
        ask_sage(open_items(items), self.sage, self.sage_deadline)
        return [item.prediction() for item in items]

    def _screen(self, items: Sequence[Item]) -> None:
        def read(item: Item, screening: Screening) -> None:
            if not is_probability(screening.score):
                raise ValueError(f"the Sieve's score {screening.score!r} is not a probability")
            item.tokens["sieve"] = screening.tokens
            item.known.update(
                sieve_score=screening.score, trimmed=screening.truncated, readings=dict(screening.readings), threshold=self.threshold
            )

        run("sieve", items, self.sieve.screen, read, self.sieve_deadline)

    def _handle_flagged(self, items: Sequence[Item]) -> None:
        for item in items:
            item.known["state"] = RetrievalState.DISTRACTED
            if self.on_flag == "abstain":
                item.decide(reason=Reason.DISTRACTED)
        run("leave_one_out", open_items(items), self.sieve.leave_one_out, self._remove, self.sieve_deadline)

    def _remove(self, item: Item, removals: Sequence[Removal]) -> None:
        ids = {document.id for document in item.documents}
        for removal in removals:
            if not is_probability(removal.score) or not removal.ids or not ids.issuperset(removal.ids):
                raise ValueError(f"{removal} is no removal from {sorted(ids)} with a probability")
        if not removals:
            item.decide(reason=Reason.DISTRACTED if self.on_flag == "blame" else Reason.ALL_REMOVED)
            return
        best = min(removals, key=lambda removal: (removal.score, -removal.rank, removal.ids))
        item.known.update(blamed=best.ids, leave_one_out={i: removal.score for removal in removals for i in removal.ids})
        if self.on_flag == "blame":
            item.decide(reason=Reason.DISTRACTED)
        elif best.score >= self.threshold:
            item.decide(reason=Reason.STILL_DISTRACTED)
        else:
            item.known["removed"] = best.ids
            item.documents = [document for document in item.documents if document.id not in best.ids]
            if not item.documents:
                item.decide(reason=Reason.ALL_REMOVED)


def load(
    sieve: InputPath,
    sage: InputPath | None,
    on_flag: OnFlag = "abstain",
    prompt: QaPrompt | None = None,
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None,
    sieve_deadline: Annotated[float, Field(gt=0)] | None = None,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
    sieve_settings: AnySettings | None = None,
    sage_settings: SageSettings | None = None,
) -> SieveAndSage:
    """Load both stages from their checkpoint folders; `threshold` none means the one stored with the Sieve.

    Without a folder for the Sage its untrained base is asked under `prompt`, or that of `sage_settings` (paper 002, table 9, "+ Sieve ft.").
    Raises InputError for a folder that is no checkpoint of its stage, that was not trained as the settings say, where they are given,
    whose base is missing or another one, and for a
    `prompt` that a trained Sage would not read.
    """
    if prompt is not None:
        if sage is not None or sage_settings is None:
            raise InputError(f"prompt={prompt}: a trained Sage reads the prompt it was trained with; set system.sage=null for its base")
        sage_settings = sage_settings.model_copy(update={"inputs": sage_settings.inputs.under(prompt)})
    return SieveAndSage(
        sieve_stage.load(sieve, device=device, expected=sieve_settings),
        load_sage(sage, sage_settings, device),
        on_flag=on_flag,
        threshold=threshold,
        sieve_deadline=sieve_deadline,
        sage_deadline=sage_deadline,
    )
