"""What follows an abstention (paper 002, section 6): filter, retrieve again, ask a stronger system, or hand over to people, by the state.

The strategies for a state are tried in the order given until one of them answers. `none`, which is what the paper calls No Recovery, leaves the
abstention as it is.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, get_args, runtime_checkable

from pydantic import Field

from rag.errors import InputError, nearest
from rag.records import GUARD_FAILURES, Document, Prediction, Query, Reason, RetrievalState
from rag.settings import InputPath, Target
from serve.deadline import attempt
from serve.systems import System
from serve.systems.human_queue import HumanQueue
from serve.systems.second_retrieval import Found, Placement, Search, SecondRetrieval
from serve.systems.stage import require_deadlines, to_query

logger = logging.getLogger(__name__)

Strategy = Literal["none", "filter", "re_retrieve", "escalate", "queue"]

FOR_PEOPLE_ONLY: Final = GUARD_FAILURES | {Reason.UNPARSED}
"""A stage that crashed, hung or could not be read has said nothing about the set, so nothing but a person may answer in its place."""


@runtime_checkable
class Filtering(Protocol):
    """A system that can go on with a set that it flagged; `serve.systems.sieve_and_sage.SieveAndSage` is one."""

    def filter(self, queries: Sequence[Query], flagged: Sequence[Prediction]) -> list[Prediction]:
        """Remove documents from each set, and answer from the rest."""
        ...


@dataclass
class _Case:
    """One query on its way through the strategies."""

    query: Query
    """With the set that the next strategy works on."""
    prediction: Prediction
    left: list[Strategy]
    """Strategies that have not been tried."""
    seen: list[Document] = field(default_factory=list)
    """All documents that were ever in the set."""

    def __str__(self) -> str:
        """As logs name it."""
        return f"query {self.query.id}"

    def update(self, **fields: Any) -> None:
        """Change the prediction, checked as a new one."""
        self.prediction = Prediction(**{**dict(self.prediction), **fields})

    def spend(self, stage: str, milliseconds: float, tokens: dict[str, int]) -> None:
        """Add what a strategy cost."""
        timings = {name: ms for name, ms in self.prediction.timings.items() if name != "total"}
        timings[stage] = timings.get(stage, 0.0) + milliseconds
        together = dict(self.prediction.tokens)
        for name, count in tokens.items():
            together[name] = together.get(name, 0) + count
        self.update(timings={**timings, "total": sum(timings.values())}, tokens=together)


class Recovery:
    """A system with something to follow each of its abstentions; `load` makes one from a config.

    The state of a prediction stays that of the set as it was retrieved, and so do its Sieve's score, what it blames and its leave-one-out scores.
    `filter` is for sets that the Sieve flagged. `re_retrieve` sends the new set through the whole system again, so that nothing is answered
    that was not screened; where it abstains again, the first reason stands. `escalate` asks another system about the set as it is by then; its
    abstention or failure changes nothing, and it is not asked about a set without a document. `queue` writes to a file for people and
    remains an abstention.

    A guard's failure, in the first run or while recovering, becomes the reason of the prediction, and `queue` alone may follow it.
    """

    def __init__(
        self,
        system: System,
        *,
        on_distracted: Sequence[Strategy] = (),
        on_unanswerable: Sequence[Strategy] = (),
        again: SecondRetrieval | None = None,
        rounds: int = 1,
        stronger: System | None = None,
        queue: HumanQueue | None = None,
        escalate_deadline: float | None = None,
    ) -> None:
        """Follow each abstention of `system` by the strategies for its state; what these need must be given.

        Retrieval is repeated up to `rounds` times, until a set is answered. The deadline is in seconds for each query, none means no limit. Raises
        InputError for strategies that do not go together or lack what they need.
        """
        self._strategies: dict[RetrievalState, tuple[Strategy, ...]] = {
            RetrievalState.DISTRACTED: _checked("on_distracted", on_distracted),
            RetrievalState.UNANSWERABLE: _checked("on_unanswerable", on_unanswerable),
        }
        self._used = {name for names in self._strategies.values() for name in names}
        if "filter" in self._strategies[RetrievalState.UNANSWERABLE]:
            raise InputError("on_unanswerable: `filter` is for distracted sets; there is nothing to remove from a set without an answer")
        needed = {
            "re_retrieve": (again, "system.retriever"),
            "escalate": (stronger, "system@system.escalate=NAME, a file of conf/system"),
            "queue": (queue, "system.queue=FILE, where queries are kept for people"),
        }
        for name, (given, key) in needed.items():
            if name in self._used and given is None:
                raise InputError(f"the strategy `{name}` needs something to do it with, got none; set {key}")
        if "filter" in self._used and not isinstance(system, Filtering):
            raise InputError(f"on_distracted: `filter` needs a system with a Sieve, got a {type(system).__name__}")
        if rounds < 1:
            raise InputError(f"rounds: expected at least 1, got {rounds}")
        require_deadlines(escalate_deadline=escalate_deadline)
        self.system = system
        self.again = again
        self.rounds = rounds
        self.stronger = stronger
        self.queue = queue
        self.escalate_deadline = escalate_deadline

    def ask(self, question: str, documents: Sequence[Document | str]) -> Prediction:
        """Answer one question from its documents, best first; see `serve.systems.stage.to_query`."""
        return self.predict([to_query(question, documents)])[0]

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Give one prediction for each query, in order; a strategy runs on all queries that come to it together."""
        made = self.system.predict(queries)
        cases = [
            _Case(query, prediction, self._after(prediction), list(query.documents))
            for query, prediction in zip(queries, made, strict=True)
        ]
        attempts: dict[Strategy, Callable[[Sequence[_Case]], None]] = {
            "filter": self._filter,
            "re_retrieve": self._retrieve_again,
            "escalate": self._escalate,
            "queue": self._queue,
        }
        while any(case.left for case in cases):
            for name, follow in attempts.items():
                batch = [case for case in cases if case.left[:1] == [name]]
                for case in batch:
                    case.left.pop(0)
                follow(batch)
                for case in batch:
                    if case.prediction.answer is not None:
                        case.left.clear()
                    elif case.prediction.reason in FOR_PEOPLE_ONLY:
                        case.left = self._after(case.prediction) if name != "queue" else []
        return [case.prediction for case in cases]

    def _after(self, prediction: Prediction) -> list[Strategy]:
        if prediction.answer is not None or prediction.error is not None:
            return []
        if prediction.reason in FOR_PEOPLE_ONLY:
            return ["queue"] if "queue" in self._used else []
        return list(self._strategies.get(prediction.state, ())) if prediction.state else []

    def _filter(self, cases: Sequence[_Case]) -> None:
        flagged = [case for case in cases if _is_flagged(case.prediction)]
        if not flagged or not isinstance(self.system, Filtering):
            return
        made = self.system.filter([case.query for case in flagged], [case.prediction for case in flagged])
        for case, prediction in zip(flagged, made, strict=True):
            before, case.prediction = case.prediction, prediction
            case.update(recovery=(*before.recovery, *prediction.recovery))
            rest = tuple(document for document in case.query.documents if document.id not in prediction.removed)
            case.query = case.query.model_copy(update={"documents": rest})

    def _retrieve_again(self, cases: Sequence[_Case]) -> None:
        waiting = list(cases)
        for _ in range(self.rounds):
            if self.again is None or not waiting:
                return
            found = []
            for case, brought in zip(waiting, self.again.find([Search(case.query, case.seen) for case in waiting]), strict=True):
                if brought.new:
                    found.append((case, brought))
                else:
                    case.spend("re_retrieve", brought.milliseconds, {})
            if not found:
                return
            made = self.system.predict([brought.query for _, brought in found])
            for (case, brought), prediction in zip(found, made, strict=True):
                self._take_in(case, brought, prediction)
            waiting = [c for c, _ in found if c.prediction.answer is None and c.prediction.reason not in FOR_PEOPLE_ONLY]

    def _take_in(self, case: _Case, brought: Found, made: Prediction) -> None:
        case.query = brought.query
        case.seen += brought.new
        case.spend("re_retrieve", brought.milliseconds + made.timings.get("total", 0.0), made.tokens)
        before = case.prediction
        case.update(
            added=(*before.added, *brought.new),
            recovery=(*before.recovery, "re_retrieved", *made.recovery),
            stored=tuple(dict.fromkeys((*before.stored, *(("re_retrieve",) if made.stored else ())))),
        )
        if before.prompt is None and made.prompt is not None:
            case.update(prompt=made.prompt, output=made.output)
        if made.answer is not None:
            case.update(reason=None, removed=(*before.removed, *made.removed), **_answer_of(made))
        elif made.reason in FOR_PEOPLE_ONLY:
            case.update(reason=made.reason)
        if made.error is not None:
            logger.error("query %s: the set after re-retrieval could not be used: %s", case.query.id, made.error)

    def _escalate(self, cases: Sequence[_Case]) -> None:
        stronger = self.stronger
        asked = [case for case in cases if any(document.text.strip() for document in case.query.documents)]
        if stronger is None or not asked:
            return

        def ask(some: Sequence[_Case]) -> list[Prediction]:
            return stronger.predict([case.query for case in some])

        for case, (made, milliseconds) in zip(asked, attempt("escalate", asked, ask, self.escalate_deadline), strict=True):
            tokens = {} if made is None else {f"escalate_{name}": count for name, count in made.tokens.items()}
            case.spend("escalate", milliseconds if made is None else made.timings.get("total", milliseconds), tokens)
            case.update(recovery=(*case.prediction.recovery, "escalated"))
            if made is not None and made.answer is not None:
                case.update(reason=None, **_answer_of(made))

    def _queue(self, cases: Sequence[_Case]) -> None:
        if self.queue is not None and cases:
            self.queue.append([(case.query, case.prediction) for case in cases])
        for case in cases:
            case.update(recovery=(*case.prediction.recovery, "queued"))


def _checked(key: str, names: Sequence[Strategy]) -> tuple[Strategy, ...]:
    allowed = get_args(Strategy)
    for name in names:
        if name not in allowed:
            raise InputError(f"{key}: expected a list of {', '.join(allowed)}, got '{name}'{nearest(name, allowed)}")
    if len(set(names)) < len(names) or ("none" in names and len(names) > 1):
        raise InputError(f"{key}: expected each strategy once, or [none] alone, got [{', '.join(names)}]")
    if "re_retrieve" in names and "filter" in names[names.index("re_retrieve") :]:
        raise InputError(f"{key}: expected `filter` before `re_retrieve`, since the Sieve has scored the set that was retrieved first")
    return tuple(name for name in names if name != "none")


def _is_flagged(prediction: Prediction) -> bool:
    """Whether the Sieve flagged a set and nothing was removed from it yet; a conflict that the Sage reported is not of that kind."""
    score, threshold = prediction.sieve_score, prediction.threshold
    return prediction.reason is Reason.DISTRACTED and score is not None and threshold is not None and score >= threshold


def _answer_of(made: Prediction) -> dict[str, Any]:
    names = ("answer", "output", "citations", "rejected_citations", "dropped", "trimmed", "confidence", "prompt")
    return {name: getattr(made, name) for name in names}


def load(
    system: Target,
    on_distracted: tuple[Strategy, ...] = (),
    on_unanswerable: tuple[Strategy, ...] = (),
    retriever: Target | None = None,
    k: Annotated[int, Field(ge=1)] = 5,
    placement: Placement = "add",
    rounds: Annotated[int, Field(ge=1)] = 1,
    escalate: Target | None = None,
    queue: InputPath | None = None,
    retrieve_deadline: Annotated[float, Field(gt=0)] | None = None,
    escalate_deadline: Annotated[float, Field(gt=0)] | None = None,
) -> Recovery:
    """Load the systems that the config names, and of the retriever, the stronger system and the queue what the strategies need.

    Raises InputError as `Recovery` does, and as their own loading does.
    """
    used = {*on_distracted, *on_unanswerable}
    return Recovery(
        system.build(),
        on_distracted=on_distracted,
        on_unanswerable=on_unanswerable,
        again=SecondRetrieval(retriever.build(), k, placement, retrieve_deadline) if retriever and "re_retrieve" in used else None,
        rounds=rounds,
        stronger=escalate.build() if escalate is not None and "escalate" in used else None,
        queue=HumanQueue(Path(queue)) if queue is not None and "queue" in used else None,
        escalate_deadline=escalate_deadline,
    )
