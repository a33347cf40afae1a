"""Fourth step: distracting documents for each question, written by a model or shipped with the data set (paper 002, section 4.1)."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from data_gen.pipeline.cases import Case, Simulation
from data_gen.pipeline.prompts import (
    ADVERSARIAL_PASSAGE,
    ADVERSARIAL_SENTENCE,
    CONFLICT_PASSAGE,
    NEGATED_PASSAGE,
    NEGATED_SENTENCE,
    fill,
)
from data_gen.pipeline.replies import ask, passage, seed_of, sentence
from rag.models.chat import ChatModel, ChatRequest
from rag.records import DocumentLabel

KINDS = (DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL)
_MARGIN = 0.1
_SHORT = 0.5
"""A text of less than this share of the shortest length asked for is a sentence, not a passage, and would be told by its length."""
_SENTENCES = {DocumentLabel.NEGATED: NEGATED_SENTENCE, DocumentLabel.ADVERSARIAL: ADVERSARIAL_SENTENCE}
_PASSAGES = {
    DocumentLabel.CONFLICT: (CONFLICT_PASSAGE, "ANSWER_SENTENCE"),
    DocumentLabel.NEGATED: (NEGATED_PASSAGE, "NEGATED_SENTENCE"),
    DocumentLabel.ADVERSARIAL: (ADVERSARIAL_PASSAGE, "ADVERSARIAL_SENTENCE"),
}


class _Draft(NamedTuple):
    """One document to write."""

    case: Case
    kind: DocumentLabel
    attempt: int
    sentence: str | None = None

    def seed(self, seed: int, part: str) -> int:
        return seed_of(seed, self.case.question.id, self.kind, part, str(self.attempt))


def simulate(
    cases: Sequence[Case], chat: ChatModel | None, kinds: Iterable[DocumentLabel], attempts: int, lengths: Sequence[int], seed: int
) -> list[Case]:
    """Each case that has an answerable candidate with `attempts` documents of each kind, beside those that its data set ships with.

    Of a kind that the data set ships, none is written. `lengths` are those of the corpus' passages in characters; one is drawn for each
    document, and 10 % less to 10 % more is asked for. A document that could not be written, or is less than half as long, is there
    with the reason.
    """
    drafts = [
        _Draft(case, kind, attempt)
        for case in cases
        if wants(case)
        for kind in kinds
        if not any(document.label is kind for document in case.question.simulated)
        for attempt in range(attempts)
    ]
    drafts = _with_sentences(drafts, chat, seed)
    asked = [draft for draft in drafts if draft.sentence]
    texts = iter(ask(chat, [_request(draft, lengths, seed) for draft in asked]))
    made: dict[str, list[Simulation]] = {case.question.id: [] for case in cases}
    name = chat.name if chat else ""
    for draft in drafts:
        reply = next(texts) if draft.sentence else None
        made[draft.case.question.id].append(_simulation(draft, reply, name, lengths, seed))
    return [_added(case, made[case.question.id], name) for case in cases]


def wants(case: Case) -> bool:
    """Whether distracting documents are of use: only beside an answerable one can they distract."""
    return case.failure is None and any(c.document.label is DocumentLabel.ANSWERABLE for c in case.candidates)


def _with_sentences(drafts: Sequence[_Draft], chat: ChatModel | None, seed: int) -> list[_Draft]:
    """The drafts with the sentence that their passage is to support: the reference, or one that the model makes of it."""
    rewritten = [draft for draft in drafts if draft.kind in _SENTENCES]
    requests = [
        ChatRequest(
            fill(_SENTENCES[draft.kind], {"QUESTION": draft.case.question.question, "ANSWER_SENTENCE": draft.case.reference or ""}),
            draft.seed(seed, "sentence"),
        )
        for draft in rewritten
    ]
    replies = iter(ask(chat, requests))
    return [
        draft._replace(sentence=sentence(next(replies) or "") if draft.kind in _SENTENCES else draft.case.reference) for draft in drafts
    ]


def _limits(draft: _Draft, lengths: Sequence[int], seed: int) -> tuple[int, int]:
    length = Random(draft.seed(seed, "length")).choice(lengths)
    return max(1, round(length * (1 - _MARGIN))), max(1, round(length * (1 + _MARGIN)))


def _request(draft: _Draft, lengths: Sequence[int], seed: int) -> ChatRequest:
    prompt, name = _PASSAGES[draft.kind]
    low, high = _limits(draft, lengths, seed)
    values = {"MIN_LENGTH": str(low), "MAX_LENGTH": str(high), name: draft.sentence or ""}
    return ChatRequest(fill(prompt, values), draft.seed(seed, "passage"))


def _simulation(draft: _Draft, reply: str | None, maker: str, lengths: Sequence[int], seed: int) -> Simulation:
    low, high = _limits(draft, lengths, seed)
    text = "" if reply is None else passage(reply)
    rejected = None
    if not draft.sentence:
        rejected = "no sentence: the model gave no reply"
    elif reply is None:
        rejected = "no passage: the model gave no reply, or did not end it"
    elif not text:
        rejected = "no passage: the reply is blank"
    elif len(text) < low * _SHORT:
        rejected = "no passage: less than half of the length asked for"
    return Simulation(
        kind=draft.kind,
        maker=maker,
        sentence=None if draft.kind is DocumentLabel.CONFLICT else draft.sentence or None,
        text=text,
        seed=draft.seed(seed, "passage"),
        shortest=low,
        longest=high,
        rejected=rejected,
    )


def _added(case: Case, written: list[Simulation], name: str) -> Case:
    if not wants(case):
        return case
    shipped = [
        Simulation(kind=document.label, maker=case.question.source, text=document.text, answer=document.answer)
        for document in case.question.simulated
        if document.label is not None
    ]
    made_by = {**case.made_by, **({"simulation": name} if written else {})}
    return case.model_copy(update={"simulations": (*shipped, *written), "made_by": made_by})
