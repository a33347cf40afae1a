"""Run a stage over a batch of queries so that whatever goes wrong ends in an abstention with a reason, and sinks no other query."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import ValidationError

from rag.citations import cite, strip_citations
from rag.errors import InputError
from rag.jsonl import describe
from rag.models.chat import ChatFailure, ChatModel, ChatRequest, Completion
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.render import as_documents, evidence
from sage import predict as sage_stage
from sage.predict import Kind, Reply, Sage, SageSettings
from serve.clock import now
from serve.deadline import within
from sieve.predict import Removal, Screening

logger = logging.getLogger(__name__)

Stage = Literal["sieve", "leave_one_out", "judge", "sage"]
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Timed(Generic[ResultT]):
    """A result from a stage that knows how long its model took, where that is not the time of the call: see `serve.systems.stored`."""

    result: ResultT | Exception
    milliseconds: float
    stored: bool
    """Whether it was made by an earlier call, or run, and kept."""


StageCall = Callable[[Sequence[str], Sequence[Sequence[Document]]], Sequence[ResultT | Timed[ResultT] | Exception]]


class StageUnusable(Exception):  # noqa: N818
    """A stage cannot work at all, as where its model does not load: no query's fault, so `run` raises the cause and fails no item."""

    def __init__(self, cause: Exception) -> None:
        """Carry what went wrong."""
        super().__init__(str(cause))
        self.cause = cause


class SieveStage(Protocol):
    """What the system asks of a Sieve, whatever its form."""

    @property
    def threshold(self) -> float:
        """The threshold that was chosen on validation data."""
        ...

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> Sequence[Screening | Timed[Screening]]:
        """Score each set."""
        ...

    def leave_one_out(
        self, questions: Sequence[str], documents: Sequence[Sequence[Document]]
    ) -> Sequence[list[Removal] | Timed[list[Removal]]]:
        """Score each set without each of its units."""
        ...


class SageStage(Protocol):
    """What a system asks of a Sage; `sage.predict.Sage` is one."""

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> Sequence[Reply | Timed[Reply] | Exception]:
        """Answer each question from its documents, in order; an error stands in the place of the question it is of."""
        ...


@dataclass
class Item:
    """One query on its way through the stages."""

    query: Query
    documents: list[Document]
    """What may still reach the Sage, in rank order."""
    known: dict[str, Any] = field(default_factory=dict)
    """Fields of the prediction known so far."""
    timings: dict[str, float] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage's deadline that are used up."""
    stored: dict[str, None] = field(default_factory=dict)
    """Stages whose result was kept by an earlier run, in order."""
    decided: bool = False

    def decide(self, **fields: Any) -> None:
        """Fix the outcome: later stages leave the item alone."""
        self.known.update(fields)
        self.decided = True

    def withdraw(self, reason: Reason, state: RetrievalState | None) -> None:
        """Abstain after all: an answer that is there already, with its citations, does not stand."""
        self.decide(reason=reason, state=state, answer=None, citations=(), rejected_citations=())

    def prediction(self) -> Prediction:
        """The finished record."""
        timings = {**self.timings, "total": sum(self.timings.values())}
        return Prediction(
            id=self.query.id,
            question_id=self.query.question_id,
            **self.known,
            timings=timings,
            tokens=self.tokens,
            stored=tuple(self.stored),
        )


def start(queries: Sequence[Query]) -> list[Item]:
    """One item for each query, in order. Those that no stage may see are decided: bad input, and sets without a document that has text."""
    items = [Item(query, evidence(query.documents)) for query in queries]
    for item in items:
        _check(item)
    return items


def open_items(items: Sequence[Item]) -> list[Item]:
    """Those that are not decided yet."""
    return [item for item in items if not item.decided]


def to_query(question: str, documents: Sequence[Document | str]) -> Query:
    """Make a query of one question and its documents, best first. Plain texts get the ids `d1`, `d2`, ... in the order given.

    Raises InputError for what is not text, and when one text stands where a list of them is expected.
    """
    records = as_documents(documents)
    try:
        return Query(id="ask", question_id="ask", question=question, documents=tuple(records))
    except ValidationError as error:
        raise InputError(f"expected a question and documents as text: {describe(error, Query)}") from error


def load_sage(path: Path | str | None, settings: SageSettings | None, device: str) -> Sage:
    """Load a Sage from its checkpoint folder, checked against `settings` where they are given; without a folder, the base they name.

    Raises InputError as `sage.predict.load` does, and when neither is given.
    """
    if path is not None:
        return sage_stage.load(Path(path), device=device, expected=settings)
    if settings is None:
        raise InputError("sage: expected a checkpoint folder, got none, and no sage_settings that name an untrained base")
    return sage_stage.load_untrained(settings.model.model_copy(update={"device": device}), settings.inputs)


def require_deadlines(**deadlines: float | None) -> None:
    """Refuse a deadline that would let nothing pass. Raises InputError with its name."""
    for name, seconds in deadlines.items():
        if seconds is not None and not seconds > 0:
            raise InputError(f"{name}: expected a number of seconds above 0, got {seconds}")


def is_probability(score: float) -> bool:
    """Whether a stage's score is a number from 0 to 1."""
    return 0.0 <= score <= 1.0


def ask_sage(items: Sequence[Item], sage: SageStage, deadline: float | None) -> None:
    """Let the Sage answer the items and decide each by what it says; `deadline` is in seconds for each query."""
    run("sage", items, sage.answer, _read_reply, deadline)


def ask_chat(chat: ChatModel, requests: Sequence[ChatRequest]) -> list[Completion | Exception]:
    """What a chat model says to each request, in order; in place of a reply that did not come, why.

    Raises RuntimeError where the model answers nothing at all, such as a server that refuses the key: no fault of a query's own.
    """
    try:
        replies = chat.complete(requests)
    except InputError as error:
        raise RuntimeError(f"{chat.name}: {error}") from error
    return [RuntimeError(f"{chat.name}: {reply.reason}") if isinstance(reply, ChatFailure) else reply for reply in replies]


def question_of(item: Item) -> str:
    """What most stages ask about a set of documents."""
    return item.query.question


def run(
    stage: Stage,
    items: Sequence[Item],
    call: StageCall[ResultT],
    read: Callable[[Item, ResultT], None],
    deadline: float | None,
    about: Callable[[Item], str] = question_of,
) -> None:
    """Run a stage on a batch and read each result. When the batch fails, run it one by one, so that only the item at fault fails.

    `call` gets a text for each item, by `about`, and its documents; `deadline` is in seconds for each item, none means no limit.
    An item that comes to a stage again has what it left of its deadline, and its times add up. Raises the cause of a stage that cannot
    work at all.
    """
    if not items:
        return
    started = now()
    try:
        results = _results(stage, items, call, deadline, about)
    except StageUnusable as error:
        raise error.cause from None
    share = 1000 * (now() - started) / len(items)
    for item, result in zip(items, results, strict=True):
        milliseconds = share
        if isinstance(result, Timed):
            milliseconds = result.milliseconds
            if result.stored:
                item.stored[stage] = None
            result = result.result
        item.timings[stage] = item.timings.get(stage, 0.0) + milliseconds
        if isinstance(result, Exception):
            _fail(item, result, stage)
            continue
        try:
            read(item, result)
        except Exception as error:  # As in _results: a result that cannot be read is a failure of the stage.
            _fail(item, error, stage)


def _check(item: Item) -> None:
    ids = [document.id for document in item.query.documents]
    if not item.query.question.strip():
        item.decide(error="question: expected text with at least one visible character, got blank text")
    elif repeated := sorted({i for i in ids if ids.count(i) > 1}):
        item.decide(error=f"documents: ids must be unique, repeated: {', '.join(repeated)}")
    elif not item.documents:
        item.decide(reason=Reason.NO_DOCUMENTS, state=RetrievalState.UNANSWERABLE)


STATES = {
    Kind.ANSWER: RetrievalState.ANSWERABLE,
    Kind.ABSTENTION: RetrievalState.UNANSWERABLE,
    Kind.CONFLICT: RetrievalState.DISTRACTED,
}
"""The state that the Sage finds a set in, by what it says."""


def _read_reply(item: Item, reply: Reply) -> None:
    prompt, kind = reply.prompt, reply.parsed.kind
    # A server that does not tell says 0.
    told = {"prompt": reply.prompt_tokens, "completion": reply.completion_tokens}
    item.tokens.update({name: count for name, count in told.items() if count})
    confidence = reply.confidence if reply.confidence is not None and is_probability(reply.confidence) else None
    trimmed = tuple(dict.fromkeys((*item.known.get("trimmed", ()), *prompt.trimmed)))
    item.known.update(output=reply.output, confidence=confidence, prompt=prompt.text, dropped=prompt.dropped, trimmed=trimmed)
    if kind not in STATES or (kind is Kind.ANSWER and not reply.parsed.answer):
        item.decide(reason=Reason.UNPARSED)
        return
    # A set that was flagged keeps the state it was retrieved in, whatever the Sage makes of the rest.
    state = item.known.get("state") or STATES[kind]
    if kind is Kind.ANSWER:
        answer = strip_citations(str(reply.parsed.answer))
        citations, rejected = cite(answer, reply.output, prompt.documents)
        item.decide(answer=answer, citations=citations, rejected_citations=rejected, state=state)
    else:
        item.decide(reason=Reason.DISTRACTED if kind is Kind.CONFLICT else Reason.UNANSWERABLE, state=state)


def _results(
    stage: Stage, items: Sequence[Item], call: StageCall[ResultT], deadline: float | None, about: Callable[[Item], str]
) -> Sequence[ResultT | Timed[ResultT] | Exception]:
    started = now()
    results: Sequence[ResultT | Timed[ResultT] | Exception]
    try:
        results = _call(stage, items, call, deadline, about)
    except StageUnusable:
        raise
    except Exception as error:  # A guard that fails must end in an abstention, whatever it failed of.
        if len(items) > 1:
            return [result for item in items for result in _results(stage, [item], call, deadline, about)]
        results = [error]
    seconds = (now() - started) / len(items)
    for item in items:
        item.spent[stage] = item.spent.get(stage, 0.0) + seconds
    return results


def _call(
    stage: Stage, items: Sequence[Item], call: StageCall[ResultT], deadline: float | None, about: Callable[[Item], str]
) -> Sequence[ResultT | Timed[ResultT] | Exception]:
    texts, documents = [about(item) for item in items], [item.documents for item in items]
    left = None if deadline is None else sum(max(0.0, deadline - item.spent.get(stage, 0.0)) for item in items)
    results = within(left, lambda: call(texts, documents))
    if len(results) != len(items):
        raise RuntimeError(f"expected {len(items)} results from the stage, got {len(results)}")
    return results


FAILURES: Mapping[Stage, tuple[Reason, Reason]] = MappingProxyType(
    {
        "sieve": (Reason.SIEVE_FAILED, Reason.SIEVE_TIMEOUT),
        "leave_one_out": (Reason.SIEVE_FAILED, Reason.SIEVE_TIMEOUT),
        "judge": (Reason.JUDGE_FAILED, Reason.JUDGE_TIMEOUT),
        "sage": (Reason.SAGE_FAILED, Reason.SAGE_TIMEOUT),
    }
)
"""Why the system abstains where a stage crashed, and where it ran out of time."""


def _fail(item: Item, error: Exception, stage: Stage) -> None:
    # What a judge cannot take is not always what the user asked: it may be an answer too long to judge.
    if isinstance(error, InputError) and stage != "judge":
        item.decide(error=str(error), state=None)
        return
    failed, timed_out = FAILURES[stage]
    reason = timed_out if isinstance(error, TimeoutError) else failed
    logger.error("query %s: %s: %r", item.query.id, reason, error, exc_info=None if isinstance(error, TimeoutError) else error)
    if stage == "judge":
        item.withdraw(reason, state=None)
    else:
        item.decide(reason=reason)
