"""The two-stage system (paper 002, section 3.2): the Sieve screens the set, and only a set it finds clean reaches the Sage."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args

from pydantic import Field, ValidationError

from rag.citations import cite, strip_citations
from rag.errors import InputError, nearest
from rag.jsonl import describe
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.render import evidence
from rag.settings import InputPath
from sage import predict as sage_stage
from sage.predict import Kind, Reply, SageSettings
from serve.deadline import within
from sieve import predict as sieve_stage
from sieve.predict import Removal, Screening, SieveSettings

logger = logging.getLogger(__name__)

OnFlag = Literal["abstain", "blame", "filter"]
"""What follows a flag: abstain at once; abstain and name the document to blame; or remove that document and ask the Sage."""

Stage = Literal["sieve", "leave_one_out", "sage"]
ResultT = TypeVar("ResultT")
StageCall = Callable[[Sequence[str], Sequence[Sequence[Document]]], Sequence[ResultT | Exception]]


class SieveStage(Protocol):
    """What the system asks of a Sieve; `sieve.predict.Sieve` is one."""

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


class SageStage(Protocol):
    """What the system asks of a Sage; `sage.predict.Sage` is one."""

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply | InputError]:
        """Answer each question from its documents."""
        ...


@dataclass
class _Item:
    """One query on its way through the stages."""

    query: Query
    documents: list[Document]
    """What may still reach the Sage, in rank order."""
    known: dict[str, Any] = field(default_factory=dict)
    """Fields of the prediction known so far."""
    timings: dict[str, float] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    decided: bool = False

    def decide(self, **fields: Any) -> None:
        """Fix the outcome: later stages leave the item alone."""
        self.known.update(fields)
        self.decided = True

    def prediction(self) -> Prediction:
        """The finished record."""
        timings = {**self.timings, "total": sum(self.timings.values())}
        return Prediction(id=self.query.id, question_id=self.query.question_id, **self.known, timings=timings, tokens=self.tokens)


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
        for name, seconds in (("sieve_deadline", sieve_deadline), ("sage_deadline", sage_deadline)):
            if seconds is not None and not seconds > 0:
                raise InputError(f"{name}: expected a number of seconds above 0, got {seconds}")
        self.sieve = sieve
        self.sage = sage
        self.on_flag = on_flag
        self.threshold = sieve.threshold if threshold is None else threshold
        if not _is_probability(self.threshold):
            raise InputError(f"threshold: expected a number from 0 to 1, got {self.threshold}")
        self.sieve_deadline = sieve_deadline
        self.sage_deadline = sage_deadline

    def ask(self, question: str, documents: Sequence[Document | str]) -> Prediction:
        """Answer one question from its documents, best first. Plain texts get the ids `d1`, `d2`, ... in the order given.

        Raises InputError when one text stands where a list of them is expected; a blank question ends in the
        prediction's `error`.
        """
        if isinstance(documents, str):
            raise InputError("documents: expected a list of documents, got one text; write [text]")
        try:
            records = tuple(d if isinstance(d, Document) else Document(id=f"d{n}", text=d) for n, d in enumerate(documents, start=1))
            query = Query(id="ask", question_id="ask", question=question, documents=records)
        except ValidationError as error:
            raise InputError(f"expected a question and documents as text: {describe(error, Query)}") from error
        return self.predict([query])[0]

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Give one prediction for each query, in order; stages run on the whole batch, and a bad query sinks no other."""
        items = [_Item(query, evidence(query.documents)) for query in queries]
        for item in items:
            _check(item)
        self._screen([item for item in items if not item.decided])
        flagged = [item for item in items if not item.decided and item.known["sieve_score"] >= self.threshold]
        self._handle_flagged(flagged)
        self._answer([item for item in items if not item.decided])
        return [item.prediction() for item in items]

    def _screen(self, items: Sequence[_Item]) -> None:
        def read(item: _Item, screening: Screening) -> None:
            if not _is_probability(screening.score):
                raise ValueError(f"the Sieve's score {screening.score!r} is not a probability")
            item.tokens["sieve"] = screening.tokens
            item.known.update(sieve_score=screening.score, trimmed=screening.truncated, threshold=self.threshold)

        _run("sieve", items, self.sieve.screen, read, self.sieve_deadline)

    def _handle_flagged(self, items: Sequence[_Item]) -> None:
        for item in items:
            item.known["state"] = RetrievalState.DISTRACTED
            if self.on_flag == "abstain":
                item.decide(reason=Reason.DISTRACTED)
        examined = [item for item in items if not item.decided]
        _run("leave_one_out", examined, self.sieve.leave_one_out, self._remove, self.sieve_deadline)

    def _remove(self, item: _Item, removals: Sequence[Removal]) -> None:
        ids = {document.id for document in item.documents}
        for removal in removals:
            if not _is_probability(removal.score) or not removal.ids or not ids.issuperset(removal.ids):
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

    def _answer(self, items: Sequence[_Item]) -> None:
        _run("sage", items, self.sage.answer, _read, self.sage_deadline)


def _check(item: _Item) -> None:
    ids = [document.id for document in item.query.documents]
    if not item.query.question.strip():
        item.decide(error="question: expected text with at least one visible character, got blank text")
    elif repeated := sorted({i for i in ids if ids.count(i) > 1}):
        item.decide(error=f"documents: ids must be unique, repeated: {', '.join(repeated)}")
    elif not item.documents:
        item.decide(reason=Reason.NO_DOCUMENTS, state=RetrievalState.UNANSWERABLE)


def _read(item: _Item, reply: Reply) -> None:
    prompt = reply.prompt
    item.tokens.update(prompt=reply.prompt_tokens, completion=reply.completion_tokens)
    confidence = reply.confidence if _is_probability(reply.confidence) else None
    trimmed = tuple(dict.fromkeys((*item.known["trimmed"], *prompt.trimmed)))
    item.known.update(output=reply.output, confidence=confidence, prompt=prompt.text, dropped=prompt.dropped, trimmed=trimmed)
    # A set that was flagged keeps the state it was retrieved in, whatever the Sage makes of the rest.
    was_flagged = item.known.get("state") is RetrievalState.DISTRACTED
    if reply.parsed.kind is Kind.ANSWER and reply.parsed.answer:
        answer = strip_citations(reply.parsed.answer)
        citations, rejected = cite(answer, reply.output, prompt.documents)
        state = RetrievalState.DISTRACTED if was_flagged else RetrievalState.ANSWERABLE
        item.decide(answer=answer, citations=citations, rejected_citations=rejected, state=state)
    elif reply.parsed.kind is Kind.ABSTENTION:
        state = RetrievalState.DISTRACTED if was_flagged else RetrievalState.UNANSWERABLE
        item.decide(reason=Reason.UNANSWERABLE, state=state)
    else:
        item.decide(reason=Reason.UNPARSED)


def _run(
    stage: Stage, items: Sequence[_Item], call: StageCall[ResultT], read: Callable[[_Item, ResultT], None], deadline: float | None
) -> None:
    """Run a stage on a batch and read each result. When the batch fails, run it one by one, so that only the item at fault fails."""
    if not items:
        return
    started = time.perf_counter()
    results: Sequence[ResultT | Exception]
    try:
        results = _call(items, call, deadline)
    except Exception as error:  # A guard that fails must end in an abstention, whatever it failed of.
        results = [error] if len(items) == 1 else [_call_one(item, call, deadline) for item in items]
    milliseconds = 1000 * (time.perf_counter() - started) / len(items)
    for item, result in zip(items, results, strict=True):
        item.timings[stage] = milliseconds
        if isinstance(result, Exception):
            _fail(item, result, stage)
            continue
        try:
            read(item, result)
        except Exception as error:  # As above: a result that cannot be read is a failure of the stage.
            _fail(item, error, stage)


def _call_one(item: _Item, call: StageCall[ResultT], deadline: float | None) -> ResultT | Exception:
    try:
        return _call([item], call, deadline)[0]
    except Exception as error:  # As in _run.
        return error


def _call(items: Sequence[_Item], call: StageCall[ResultT], deadline: float | None) -> Sequence[ResultT | Exception]:
    questions, documents = [item.query.question for item in items], [item.documents for item in items]
    results = within(None if deadline is None else deadline * len(items), lambda: call(questions, documents))
    if len(results) != len(items):
        raise RuntimeError(f"expected {len(items)} results from the stage, got {len(results)}")
    return results


def _fail(item: _Item, error: Exception, stage: Stage) -> None:
    if isinstance(error, InputError):
        item.decide(error=str(error), state=None)
        return
    failed, timed_out = (Reason.SAGE_FAILED, Reason.SAGE_TIMEOUT) if stage == "sage" else (Reason.SIEVE_FAILED, Reason.SIEVE_TIMEOUT)
    reason = timed_out if isinstance(error, TimeoutError) else failed
    logger.error("query %s: %s: %r", item.query.id, reason, error, exc_info=None if isinstance(error, TimeoutError) else error)
    item.decide(reason=reason)


def _is_probability(score: float) -> bool:
    return 0.0 <= score <= 1.0


def load(
    sieve: InputPath,
    sage: InputPath,
    on_flag: OnFlag = "abstain",
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None,
    sieve_deadline: Annotated[float, Field(gt=0)] | None = None,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
    sieve_settings: SieveSettings | None = None,
    sage_settings: SageSettings | None = None,
) -> SieveAndSage:
    """Load both stages from their checkpoint folders; `threshold` none means the one stored with the Sieve.

    Raises InputError for a folder that is no checkpoint of its stage, that was not trained as the settings say, where they are given,
    or whose base is missing or another one.
    """
    return SieveAndSage(
        sieve_stage.load(sieve, device=device, expected=sieve_settings),
        sage_stage.load(Path(sage), device=device, expected=sage_settings),
        on_flag=on_flag,
        threshold=threshold,
        sieve_deadline=sieve_deadline,
        sage_deadline=sage_deadline,
    )
