"""The vocabulary of the project as frozen records: what is read from JSONL, passed between stages and written back."""

import re
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr, model_validator

_SURROGATE = re.compile("[\ud800-\udfff]")


def _text(value: Any) -> Any:
    """Refuse by name what only looks like text: a YAML or JSON reader has already lost `no`, `007` or `12:30` by then."""
    if isinstance(value, (bool, int, float)):
        raise ValueError(f'expected text, got {type(value).__name__} {value!r}; write it in quotes, such as "{value}"')
    if isinstance(value, str) and _SURROGATE.search(value):
        raise ValueError("expected Unicode text, got half of a surrogate pair, which no tokenizer or file can hold")
    return value


def _present(value: str) -> str:
    if not value.strip():
        raise ValueError("expected text with at least one visible character, got blank text")
    return value


Text = Annotated[StrictStr, BeforeValidator(_text)]
"""Text as written; numbers and booleans are refused, not converted."""

Id = Annotated[Text, BeforeValidator(lambda v: _present(v) if isinstance(v, str) else v)]
"""A stable identifier. Always text, never blank, never a list position."""


class DocumentLabel(StrEnum):
    """What one document is to one question (paper 002, sections 3.1 and 4.1)."""

    ANSWERABLE = "answerable"
    UNANSWERABLE = "unanswerable"
    NEUTRAL = "neutral"
    CONFLICT = "conflict"
    NEGATED = "negated"
    ADVERSARIAL = "adversarial"


class RetrievalState(StrEnum):
    """What a set of retrieved documents is to one question (paper 002, section 3.1)."""

    ANSWERABLE = "answerable"
    UNANSWERABLE = "unanswerable"
    DISTRACTED = "distracted"


class Condition(StrEnum):
    """The finer cause behind a state: paper 002's kinds of documents, or a context condition of GRAB-RAG."""

    ANSWERABLE = "answerable"
    UNANSWERABLE = "unanswerable"
    CONFLICT = "conflict"
    NEGATED = "negated"
    ADVERSARIAL = "adversarial"
    Q100 = "q100"
    Q50 = "q50"
    Q0 = "q0"
    QC = "qc"
    CLOSED = "closed"


class Outcome(StrEnum):
    """How one prediction ended. The five are never folded into one another; a metric says which it counts as what."""

    CORRECT = "correct"
    WRONG = "wrong"
    ABSTAINED = "abstained"
    UNPARSED = "unparsed"
    ERROR = "error"


class Reason(StrEnum):
    """Why a system abstained, for machines."""

    DISTRACTED = "distracted"
    """The Sieve's score reached the threshold, or a Sage without a Sieve, or a judge of the input, said that the documents conflict."""
    STILL_DISTRACTED = "still_distracted"
    """No removal brought the Sieve's score under the threshold."""
    ALL_REMOVED = "all_removed"
    """Filtering left no document."""
    NO_DOCUMENTS = "no_documents"
    """Nothing was retrieved, or only blank documents."""
    UNANSWERABLE = "unanswerable"
    """The Sage found no answer in the documents."""
    SIEVE_FAILED = "sieve_failed"
    """The Sieve crashed or gave a score that is not a number from 0 to 1."""
    SIEVE_TIMEOUT = "sieve_timeout"
    """The Sieve did not finish before its deadline."""
    SAGE_FAILED = "sage_failed"
    """The Sage crashed."""
    SAGE_TIMEOUT = "sage_timeout"
    """The Sage did not finish before its deadline."""
    UNPARSED = "unparsed"
    """The Sage's output was neither an answer nor the abstention string."""
    UNSUPPORTED = "unsupported"
    """A judge of the output found no document that supports the answer."""
    CONTRADICTED = "contradicted"
    """A judge of the output found a document that contradicts the answer."""
    INSUFFICIENT = "insufficient"
    """A judge of the input found that the documents do not suffice for an answer."""
    JUDGE_FAILED = "judge_failed"
    """A judge crashed, or what it said could not be read."""
    JUDGE_TIMEOUT = "judge_timeout"
    """A judge did not finish before its deadline."""
    POLICY = "policy"
    """The system abstains by construction, whatever the documents say."""


GUARD_FAILURES: Final = frozenset(reason for reason in Reason if reason.value.endswith(("_failed", "_timeout")))
"""A stage crashed, hung or said what cannot be used: nothing was found out about the set."""


class Record(BaseModel):
    """Base of all records: frozen, unknown fields refused, numbers finite (JSON has no NaN, so a record with one would not read back)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Document(Record):
    """One retrieved document."""

    id: Id
    """Stable id; citations, removals and drops name it."""
    text: Text
    """The text a model reads; may be blank, in which case it counts as no evidence."""
    title: Text = ""
    """Title, shown to models beside the text."""
    rank: int | None = Field(default=None, ge=1)
    """Rank given by the retriever, 1 is best; where it is absent, the place in the list stands for it."""
    score: float | None = None
    """The retriever's score; comparable only within one retriever."""
    metadata: dict[Text, Text] = Field(default_factory=dict)
    """Shown to the model as attributes: `source`, `effective` (ISO date), `status` (such as `superseded`)."""
    label: DocumentLabel | None = None
    """What the document is to the question, when known. Never shown to a model."""
    answer: Text | None = None
    """The answer that the document alone gives, true or not, in its own words; `not X` where it denies X. None when it gives none or
    when that is not known (the label tells). Never shown to a model."""


class Query(Record):
    """What a system is asked: an Example without everything that a system must not see."""

    id: Id
    """Echoed in the Prediction."""
    question_id: Id
    """Echoed in the Prediction."""
    question: Text
    """May be blank here: a blank question ends that item in an error and leaves the rest of the batch alone."""
    documents: tuple[Document, ...]
    """Retrieved documents in the order of retrieval; may be empty."""


class Example(Record):
    """One question with its retrieved documents and what a system should do with them."""

    id: Id
    """Unique within a file."""
    question_id: Id
    """Shared by all variants of one question; splits, resampling and pairing go by it."""
    question: Annotated[Text, BeforeValidator(lambda v: _present(v) if isinstance(v, str) else v)]
    """The question as a user would ask it."""
    documents: tuple[Document, ...]
    """Retrieved documents in the order of retrieval; may be empty."""
    answers: tuple[Text, ...] = ()
    """Gold answers, the main one first, aliases after it. Required where the state is `answerable`."""
    state: RetrievalState
    """The state of the document set."""
    condition: Condition
    """The finer cause behind the state."""
    variant: Text = ""
    """How the set was put together, such as `lone_false_passage`; groups of an audit go by it."""
    source: Text = ""
    """Where the example comes from: data set, generator and version."""
    lineage: dict[Text, Text] = Field(default_factory=dict)
    """What made it: index, models, prompts, seed and code version, by role. Never shown to a model."""

    @model_validator(mode="before")
    @classmethod
    def _one_answer_is_a_list(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("answers"), (str, bool, int, float)):
            return {**data, "answers": (data["answers"],)}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [document.id for document in self.documents]
        if repeated := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"documents: ids must be unique within an example, repeated: {', '.join(repeated)}")
        if self.state is RetrievalState.ANSWERABLE and not any(a.strip() for a in self.answers):
            raise ValueError("answers: an example with state `answerable` needs at least one gold answer")
        return self

    def query(self) -> Query:
        """The part of this example that a system may see: the documents' labels and known answers are taken off too."""
        bare = tuple(document.model_copy(update={"label": None, "answer": None}) for document in self.documents)
        return Query(id=self.id, question_id=self.question_id, question=self.question, documents=bare)


class Citation(Record):
    """A document that the answer rests on."""

    document_id: Id
    """Id of a document that was in the prompt."""
    supported: bool
    """Whether the document's text contains the answer by the word-boundary rule."""


class Prediction(Record):
    """What a system did with one question and its documents."""

    id: Id
    """Id of the example, or of the request."""
    question_id: Id
    """Question id of the example; equals `id` outside an evaluation."""
    state: RetrievalState | None = None
    """The state the system assigned to the set as it was retrieved; none when the item ended in an error."""
    answer: Text | None = None
    """The answer, none when the system abstained."""
    output: Text | None = None
    """The text the Sage generated, as it came."""
    reason: Reason | None = None
    """Set on every abstention."""
    error: Text | None = None
    """What was wrong with the input; such an item has neither answer nor state."""
    citations: tuple[Citation, ...] = ()
    """Documents of the prompt that the answer rests on."""
    rejected_citations: tuple[Text, ...] = ()
    """Ids that the model cited and that were not in its prompt."""
    sieve_score: float | None = Field(default=None, ge=0, le=1)
    """P(distracted) of the whole set."""
    threshold: float | None = None
    """The threshold that the score was compared with; a score equal to it is flagged."""
    readings: dict[Text, Text] = Field(default_factory=dict)
    """By document id, what a Sieve that reads documents one by one found each to answer; blank where it answers nothing."""
    leave_one_out: dict[Text, float] = Field(default_factory=dict)
    """P(distracted) of the set as it was retrieved without the named document; present when a flagged set was examined."""
    blamed: tuple[Text, ...] = ()
    """Ids whose removal lowers the Sieve's score most (near-identical documents count as one)."""
    removed: tuple[Text, ...] = ()
    """Ids that filtering removed before the Sage read the rest, in the order of removal."""
    recovery: tuple[Text, ...] = ()
    """What was done after a first abstention, in order: `filtered`, `re_retrieved`, `escalated`, `queued`; an answer came of the last of them."""
    added: tuple[Document, ...] = ()
    """Documents that a second retrieval found, best first; none where there was none."""
    dropped: tuple[Text, ...] = ()
    """Ids that the prompt's budget dropped: a suffix of the ranking."""
    trimmed: tuple[Text, ...] = ()
    """Ids whose text was cut to fit a model."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """Probability that the Sage gave its output: the geometric mean over the generated tokens."""
    timings: dict[Text, float] = Field(default_factory=dict)
    """Milliseconds by stage (`sieve`, `leave_one_out`, `judge`, `sage`, `re_retrieve`, `escalate`, `total`); in a batch, the batch's time by
    item."""
    stored: tuple[Text, ...] = ()
    """Stages whose result was kept by an earlier run; their milliseconds are those that the model took then."""
    tokens: dict[Text, int] = Field(default_factory=dict)
    """Token counts: `sieve`, `prompt`, `completion`, of a second retrieval too; `judge_prompt` and `judge_completion` of a judge that tells; of
    a stronger system as `escalate_prompt` and so on."""
    prompt: Text | None = None
    """The rendered prompt; none when the Sage was not called."""

    @model_validator(mode="after")
    def _abstention_has_a_reason(self) -> Self:
        if self.error is None and self.answer is None and self.reason is None:
            raise ValueError("reason: a prediction without an answer needs a reason or an error")
        if self.answer is not None and (self.reason is not None or self.error is not None):
            raise ValueError("answer: a prediction has either an answer or a reason not to give one")
        return self
