"""The two-stage system (paper 002, section 3.2): the Sieve screens the set, and only a set it finds clean reaches the Sage."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import Field

from rag.citations import cite
from rag.errors import InputError
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.render import evidence
from rag.settings import InputPath
from sage import predict as sage_stage
from sage.predict import Kind, Reply
from serve.deadline import within
from sieve import predict as sieve_stage
from sieve.predict import Removal, Screening

logger = logging.getLogger(__name__)

OnFlag = Literal["abstain", "blame", "filter"]
"""What follows a flag: abstain at once; abstain and name the document to blame; or remove that document and ask the Sage."""

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
        ids = {"id": self.query.id, "question_id": self.query.question_id}
        return Prediction(**ids, **self.known, timings=timings, tokens=self.tokens)


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
        """Compose two stages. `threshold` replaces the Sieve's own; deadlines are seconds for each query, none means no limit."""
        self.sieve = sieve
        self.sage = sage
        self.on_flag = on_flag
        self.threshold = sieve.threshold if threshold is None else threshold
        self.sieve_deadline = sieve_deadline
        self.sage_deadline = sage_deadline

    def ask(self, question: str, documents: Sequence[Document | str]) -> Prediction:
        """Answer one question from its documents, best first. Plain texts get the ids `d1`, `d2`, ... in the order given."""
        records = tuple(d if isinstance(d, Document) else Document(id=f"d{n}", text=d) for n, d in enumerate(documents, start=1))
        return self.predict([Query(id="ask", question_id="ask", question=question, documents=records)])[0]

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
        for item, screening in _run("sieve", items, self.sieve.screen, self.sieve_deadline):
            if isinstance(screening, Exception):
                _fail(item, screening, Reason.SIEVE_FAILED, Reason.SIEVE_TIMEOUT)
                continue
            item.tokens["sieve"] = screening.tokens
            item.known.update(trimmed=screening.truncated, threshold=self.threshold)
            if _is_probability(screening.score):
                item.known["sieve_score"] = screening.score
            else:
                logger.error("query %s: the Sieve's score %r is not a probability", item.query.id, screening.score)
                item.decide(reason=Reason.SIEVE_FAILED)

    def _handle_flagged(self, items: Sequence[_Item]) -> None:
        for item in items:
            item.known["state"] = RetrievalState.DISTRACTED
            if self.on_flag == "abstain":
                item.decide(reason=Reason.DISTRACTED)
        examined = [item for item in items if not item.decided]
        for item, removals in _run("leave_one_out", examined, self.sieve.leave_one_out, self.sieve_deadline):
            if isinstance(removals, Exception):
                _fail(item, removals, Reason.SIEVE_FAILED, Reason.SIEVE_TIMEOUT)
            elif not all(_is_probability(removal.score) for removal in removals):
                item.decide(reason=Reason.SIEVE_FAILED)
            else:
                self._remove(item, removals)

    def _remove(self, item: _Item, removals: Sequence[Removal]) -> None:
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

    def _answer(self, items: Sequence[_Item]) -> None:
        for item, reply in _run("sage", items, self.sage.answer, self.sage_deadline):
            if isinstance(reply, Exception):
                _fail(item, reply, Reason.SAGE_FAILED, Reason.SAGE_TIMEOUT)
            else:
                _read(item, reply)


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
    trimmed = tuple(dict.fromkeys((*item.known["trimmed"], *prompt.trimmed)))
    item.known.update(output=reply.output, confidence=reply.confidence, prompt=prompt.text, dropped=prompt.dropped, trimmed=trimmed)
    # A set that was flagged keeps the state it was retrieved in, whatever the Sage makes of the rest.
    was_flagged = item.known.get("state") is RetrievalState.DISTRACTED
    if reply.parsed.kind is Kind.ANSWER:
        answer = str(reply.parsed.answer)
        citations, rejected = cite(answer, reply.output, prompt.documents)
        state = RetrievalState.DISTRACTED if was_flagged else RetrievalState.ANSWERABLE
        item.decide(answer=answer, citations=citations, rejected_citations=rejected, state=state)
    elif reply.parsed.kind is Kind.ABSTENTION:
        state = RetrievalState.DISTRACTED if was_flagged else RetrievalState.UNANSWERABLE
        item.decide(reason=Reason.UNANSWERABLE, state=state)
    else:
        item.decide(reason=Reason.UNPARSED)


def _run(stage: str, items: Sequence[_Item], call: StageCall[ResultT], deadline: float | None) -> list[tuple[_Item, ResultT | Exception]]:
    """Run a stage on a batch. When the batch fails, run it one by one, so that only the item at fault has a failure."""
    if not items:
        return []
    started = time.perf_counter()
    results: Sequence[ResultT | Exception]
    try:
        results = _call(items, call, deadline)
    except Exception as error:  # A guard that fails must end in an abstention, whatever it failed of.
        results = [error] if len(items) == 1 else [_call_one(item, call, deadline) for item in items]
    milliseconds = 1000 * (time.perf_counter() - started) / len(items)
    for item in items:
        item.timings[stage] = milliseconds
    return list(zip(items, results, strict=True))


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


def _fail(item: _Item, error: Exception, failed: Reason, timed_out: Reason) -> None:
    if isinstance(error, InputError):
        item.decide(error=str(error))
    elif isinstance(error, TimeoutError):
        item.decide(reason=timed_out)
    else:
        logger.error("query %s: %s", item.query.id, failed, exc_info=error)
        item.decide(reason=failed)


def _is_probability(score: float) -> bool:
    return math.isfinite(score) and 0.0 <= score <= 1.0


def load(
    sieve: InputPath,
    sage: InputPath,
    on_flag: OnFlag = "abstain",
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None,
    sieve_deadline: Annotated[float, Field(gt=0)] | None = None,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
) -> SieveAndSage:
    """Load both stages from their checkpoint folders; `threshold` none means the one stored with the Sieve.

    Raises InputError for a folder that is no checkpoint of its stage, or whose base is missing or another one.
    """
    return SieveAndSage(
        sieve_stage.load(sieve, device=device),
        sage_stage.load(sage, device=device),
        on_flag=on_flag,
        threshold=threshold,
        sieve_deadline=sieve_deadline,
        sage_deadline=sage_deadline,
    )
