"""Run a stage over a batch of queries so that whatever goes wrong ends in an abstention with a reason, and sinks no other query."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from pydantic import ValidationError

from rag.citations import cite, strip_citations
from rag.errors import InputError
from rag.jsonl import describe
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.render import as_documents, evidence
from sage import predict as sage_stage
from sage.predict import Kind, Reply, Sage, SageSettings
from serve.clock import now
from serve.deadline import within

logger = logging.getLogger(__name__)

Stage = Literal["sieve", "leave_one_out", "sage"]
ResultT = TypeVar("ResultT")
StageCall = Callable[[Sequence[str], Sequence[Sequence[Document]]], Sequence[ResultT | Exception]]


class SageStage(Protocol):
    """What a system asks of a Sage; `sage.predict.Sage` is one."""

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply | InputError]:
        """Answer each question from its documents."""
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
    decided: bool = False

    def decide(self, **fields: Any) -> None:
        """Fix the outcome: later stages leave the item alone."""
        self.known.update(fields)
        self.decided = True

    def prediction(self) -> Prediction:
        """The finished record."""
        timings = {**self.timings, "total": sum(self.timings.values())}
        return Prediction(id=self.query.id, question_id=self.query.question_id, **self.known, timings=timings, tokens=self.tokens)


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


def run(
    stage: Stage, items: Sequence[Item], call: StageCall[ResultT], read: Callable[[Item, ResultT], None], deadline: float | None
) -> None:
    """Run a stage on a batch and read each result. When the batch fails, run it one by one, so that only the item at fault fails."""
    if not items:
        return
    started = now()
    results: Sequence[ResultT | Exception]
    try:
        results = _call(items, call, deadline)
    except Exception as error:  # A guard that fails must end in an abstention, whatever it failed of.
        results = [error] if len(items) == 1 else [_call_one(item, call, deadline) for item in items]
    milliseconds = 1000 * (now() - started) / len(items)
    for item, result in zip(items, results, strict=True):
        item.timings[stage] = milliseconds
        if isinstance(result, Exception):
            _fail(item, result, stage)
            continue
        try:
            read(item, result)
        except Exception as error:  # As above: a result that cannot be read is a failure of the stage.
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
    item.tokens.update(prompt=reply.prompt_tokens, completion=reply.completion_tokens)
    confidence = reply.confidence if is_probability(reply.confidence) else None
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


def _call_one(item: Item, call: StageCall[ResultT], deadline: float | None) -> ResultT | Exception:
    try:
        return _call([item], call, deadline)[0]
    except Exception as error:  # As in run.
        return error


def _call(items: Sequence[Item], call: StageCall[ResultT], deadline: float | None) -> Sequence[ResultT | Exception]:
    questions, documents = [item.query.question for item in items], [item.documents for item in items]
    results = within(None if deadline is None else deadline * len(items), lambda: call(questions, documents))
    if len(results) != len(items):
        raise RuntimeError(f"expected {len(items)} results from the stage, got {len(results)}")
    return results


def _fail(item: Item, error: Exception, stage: Stage) -> None:
    if isinstance(error, InputError):
        item.decide(error=str(error), state=None)
        return
    failed, timed_out = (Reason.SAGE_FAILED, Reason.SAGE_TIMEOUT) if stage == "sage" else (Reason.SIEVE_FAILED, Reason.SIEVE_TIMEOUT)
    reason = timed_out if isinstance(error, TimeoutError) else failed
    logger.error("query %s: %s: %r", item.query.id, reason, error, exc_info=None if isinstance(error, TimeoutError) else error)
    item.decide(reason=reason)
