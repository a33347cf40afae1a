"""The two-stage system (paper 002, section 3.2): the Sieve screens the set, and only a set it finds clean reaches the Sage."""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from rag.errors import InputError, nearest
from rag.prompts import QaPrompt
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.rounding import same
from rag.settings import InputPath
from sage.predict import SageSettings
from serve.systems.stage import (
    Item,
    SageStage,
    SieveStage,
    ask_sage,
    is_probability,
    load_sage,
    open_items,
    require_deadlines,
    run,
    start,
    to_query,
)
from serve.systems.stored import stored_sage, stored_sieve
from sieve import predict as sieve_stage
from sieve.predict import AnySettings, Removal, Screening

OnFlag = Literal["abstain", "blame", "filter"]
"""What follows a flag: abstain at once; abstain and name the document to blame; or remove documents and ask the Sage."""


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
        max_removals: int | None = 1,
        threshold: float | None = None,
        sieve_deadline: float | None = None,
        sage_deadline: float | None = None,
    ) -> None:
        """Compose two stages. `threshold` replaces the Sieve's own; deadlines are seconds for each query, none means no limit.

        Filtering removes the unit (a document, or near-identical ones together) without which the Sieve scores the rest lowest. Where that is
        not below the threshold it goes on with the rest, one unit after the other, up to `max_removals` units; none means as many as it takes,
        down to a single one, which most Sieves find clean whatever it says. All rounds of one query share one deadline.

        Raises InputError for an unknown `on_flag`, for fewer than one removal, and for a threshold or a deadline that would let everything or
        nothing pass.
        """
        if on_flag not in get_args(OnFlag):
            raise InputError(f"on_flag: expected {', '.join(get_args(OnFlag))}, got '{on_flag}'{nearest(on_flag, get_args(OnFlag))}")
        if max_removals is not None and max_removals < 1:
            raise InputError(f"max_removals: expected at least 1, or none for as many as it takes, got {max_removals}")
        require_deadlines(sieve_deadline=sieve_deadline, sage_deadline=sage_deadline)
        self.sieve = sieve
        self.sage = sage
        self.on_flag = on_flag
        self.max_removals = max_removals
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
        for item in flagged:
            item.known["state"] = RetrievalState.DISTRACTED
            if self.on_flag == "abstain":
                item.decide(reason=Reason.DISTRACTED)
        if self.on_flag == "blame":
            run("leave_one_out", open_items(flagged), self.sieve.leave_one_out, self._blame, self.sieve_deadline)
        self._remove(open_items(flagged))
        ask_sage(open_items(items), self.sage, self.sage_deadline)
        return [item.prediction() for item in items]

    def filter(self, queries: Sequence[Query], flagged: Sequence[Prediction]) -> list[Prediction]:
        """Go on with queries on which `predict` abstained because the Sieve flagged them, as if `on_flag` were `filter`; nothing is screened twice.

        `flagged` holds what `predict` said of each. Raises InputError for a prediction that the Sieve did not flag, or that was filtered already.
        """
        items = start(queries)
        for item, prediction in zip(items, flagged, strict=True):
            if prediction.reason is not Reason.DISTRACTED or prediction.sieve_score is None or prediction.sieve_score < self.threshold:
                raise InputError(f"query {item.query.id}: expected an abstention on a set that the Sieve flagged, got {prediction.reason}")
            item.timings = {stage: ms for stage, ms in prediction.timings.items() if stage != "total"}
            item.tokens = dict(prediction.tokens)
            item.stored = dict.fromkeys(prediction.stored)
            item.known.update({name: getattr(prediction, name) for name in ("sieve_score", "threshold", "readings", "trimmed", "state")})
        self._remove(open_items(items))
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

    def _blame(self, item: Item, removals: Sequence[Removal]) -> None:
        self._best(item, removals)
        item.decide(reason=Reason.DISTRACTED)

    def _remove(self, items: Sequence[Item]) -> None:
        """Remove units from each set, the best one first, until the Sieve finds the rest clean; decide those that it never does.

        Greedy: a unit that is gone does not come back. Where several disagreements score the same no single removal lowers the score, and
        the rule for ties takes the lower-ranked documents first, misleading or not.
        """
        out: dict[int, tuple[Removal, ...]] = {}
        cleaned: set[int] = set()

        def read(item: Item, removals: Sequence[Removal]) -> None:
            best = self._best(item, removals)
            if best is None:
                item.decide(reason=Reason.ALL_REMOVED)
                return
            gone = out[id(item)] = (*out.get(id(item), ()), best)
            item.documents = [document for document in item.documents if document.id not in best.ids]
            if best.score < self.threshold:
                cleaned.add(id(item))
                item.known["removed"] = tuple(i for removal in gone for i in removal.ids)
                if item.documents:
                    item.known["recovery"] = ("filtered",)
                else:
                    item.decide(reason=Reason.ALL_REMOVED)
            elif len(gone) == self.max_removals:
                item.decide(reason=Reason.STILL_DISTRACTED)
            elif not item.documents:
                item.decide(reason=Reason.ALL_REMOVED)

        while items := [item for item in open_items(items) if id(item) not in cleaned]:
            run("leave_one_out", items, self.sieve.leave_one_out, read, self.sieve_deadline)

    def _best(self, item: Item, removals: Sequence[Removal]) -> Removal | None:
        """The removal that lowers the score most, of several that do so but for rounding that of the lowest rank; none where nothing would remain.

        The first of them on a set is the one to blame.
        """
        ids = {document.id for document in item.documents}
        for removal in removals:
            if not is_probability(removal.score) or not removal.ids or not ids.issuperset(removal.ids):
                raise ValueError(f"{removal} is no removal from {sorted(ids)} with a probability")
        if not removals:
            return None
        lowest = min(removal.score for removal in removals)
        best = min((r for r in removals if same(r.score, lowest)), key=lambda removal: (-removal.rank, removal.ids))
        if "blamed" not in item.known:
            item.known.update(blamed=best.ids, leave_one_out={i: removal.score for removal in removals for i in removal.ids})
        return best


def load(
    sieve: InputPath,
    sage: InputPath | None,
    on_flag: OnFlag = "abstain",
    prompt: QaPrompt | None = None,
    max_removals: Annotated[int, Field(ge=1)] | None = 1,
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None,
    sieve_deadline: Annotated[float, Field(gt=0)] | None = None,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
    sieve_settings: AnySettings | None = None,
    sage_settings: SageSettings | None = None,
    store: InputPath | None = None,
) -> SieveAndSage:
    """Load both stages from their checkpoint folders; `threshold` none means the one stored with the Sieve.

    Without a folder for the Sage its untrained base is asked under `prompt`, or that of `sage_settings` (paper 002, table 9, "+ Sieve ft.").
    `store` is a folder that keeps what the stages say (`serve.systems.stored`): a run that differs in `threshold`, `on_flag` or `max_removals`
    alone loads and calls no model for what is in it.
    Raises InputError for a folder that is no checkpoint of its stage, that was not trained as the settings say, where they are given,
    whose base is missing or another one, and for a
    `prompt` that a trained Sage would not read.
    """
    if prompt is not None:
        if sage is not None or sage_settings is None:
            raise InputError(f"prompt={prompt}: a trained Sage reads the prompt it was trained with; set system.sage=null for its base")
        sage_settings = sage_settings.model_copy(update={"inputs": sage_settings.inputs.under(prompt)})

    def load_sieve() -> SieveStage:
        return sieve_stage.load(sieve, device=device, expected=sieve_settings)

    def load_other() -> SageStage:
        return load_sage(sage, sage_settings, device)

    return SieveAndSage(
        stored_sieve(load_sieve, store, sieve, sieve_settings, device, lazy=sieve_deadline is None) if store else load_sieve(),
        stored_sage(load_other, store, sage, sage_settings, device, lazy=sage_deadline is None) if store else load_other(),
        on_flag=on_flag,
        max_removals=max_removals,
        threshold=threshold,
        sieve_deadline=sieve_deadline,
        sage_deadline=sage_deadline,
    )
