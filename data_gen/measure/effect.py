"""What one simulated document in a set does to the answers of a model that was not told of such documents (paper 002, appendix A.3, table 4)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from data_gen.documents import fingerprint
from data_gen.measure.asking import texts
from data_gen.measure.intervals import Figure, mean
from data_gen.pipeline.cases import Case
from rag.models.chat import ChatModel, ChatRequest, Message
from rag.prompts import QA_PROMPTS
from rag.records import Condition, Document, DocumentLabel, Example, Record, Text
from rag.render import Prompt, ranked, render
from rag.text import contains, exact_match

CONDITIONS = (Condition.ANSWERABLE, Condition.UNANSWERABLE, Condition.CONFLICT, Condition.NEGATED, Condition.ADVERSARIAL)


class Row(Record):
    """Answers under one condition."""

    condition: Condition
    questions: int
    """Questions with a reply under this condition and under `answerable`."""
    failed: int
    """Questions beside these for which one of the two requests failed for good."""
    exact: Figure
    """Share of answers that equal a gold answer (`rag.text.exact_match`)."""
    contains: Figure
    """Share of answers that hold a gold answer as whole words (`rag.text.contains`): models that were told to be short are not always."""
    exact_difference: Figure
    """Less that share under `answerable` on the same questions, paired."""
    contains_difference: Figure


class Effect(Record):
    """Table 4 for one data set."""

    answerer: Text
    cut: int
    """Prompts that not all documents fitted into whole."""
    rows: tuple[Row, ...]


class _Asked(NamedTuple):
    case: Case
    condition: Condition
    prompt: Prompt


class _Judged(NamedTuple):
    exact: float
    contains: float


def affect(
    cases: Sequence[Case],
    examples: Mapping[str, Mapping[Condition, Example]],
    answerer: ChatModel,
    *,
    budget: int,
    resamples: int,
    seed: int,
) -> Effect:
    """Ask each question with its answerable set under table 14's Normal QA prompt, and with the sets that are made of it.

    `budget` is the longest prompt in characters. Raises InputError when a question alone exceeds it.
    """
    asked = [
        _Asked(case, condition, _prompt(case, documents, budget))
        for case in cases
        for condition, documents in sets(case, examples.get(case.question.id, {})).items()
    ]
    replies = texts(answerer, [ChatRequest((Message("user", one.prompt.text),), seed) for one in asked], "effect")
    judged = {
        (one.condition, one.case.question.id): None if reply is None else _judge(reply, one.case.question.answers)
        for one, reply in zip(asked, replies, strict=True)
    }
    return Effect(
        answerer=answerer.name,
        cut=sum(bool(one.prompt.dropped or one.prompt.trimmed) for one in asked),
        rows=tuple(_row(condition, judged, resamples, seed) for condition in CONDITIONS),
    )


def sets(case: Case, examples: Mapping[Condition, Example]) -> dict[Condition, list[Document]]:
    """The documents of each condition that the question has, best first; nothing for a question without an answerable set.

    Sets with a simulated document are the Examples that were built. The unanswerable one is made here of the answerable one, for the
    built ones are of other questions: each document that is not `unanswerable` gives its place to the question's next candidate that is,
    or is left out where there is no more.
    """
    base = examples.get(Condition.ANSWERABLE)
    if base is None:
        return {}
    unanswerable = _unanswerable(case, ranked(base.documents))
    made = {condition: ranked(examples[condition].documents) for condition in CONDITIONS if condition in examples}
    return {**made, **({Condition.UNANSWERABLE: unanswerable} if unanswerable else {})}


def _unanswerable(case: Case, documents: Sequence[Document]) -> list[Document]:
    used = {fingerprint(document.text) for document in documents}
    others = (
        c.document for c in case.candidates if c.document.label is DocumentLabel.UNANSWERABLE and fingerprint(c.document.text) not in used
    )
    kept = [d if d.label is DocumentLabel.UNANSWERABLE else next(others, None) for d in documents]
    # What a replaced document was ranked by says nothing of the place that it takes here.
    return [document.model_copy(update={"rank": rank}) for rank, document in enumerate(filter(None, kept), start=1)]


def _prompt(case: Case, documents: Sequence[Document], budget: int) -> Prompt:
    return render(case.question.question, documents, QA_PROMPTS["normal"], budget=budget, count=len)


def _judge(reply: str, answers: Sequence[str]) -> _Judged:
    return _Judged(float(exact_match(reply.strip(), answers)), float(any(contains(reply, answer) for answer in answers)))


def _row(condition: Condition, judged: Mapping[tuple[Condition, str], _Judged | None], resamples: int, seed: int) -> Row:
    asked = [name for of, name in judged if of is condition]
    pairs = {name: (judged[condition, name], judged[Condition.ANSWERABLE, name]) for name in asked}
    both = {name: (here, base) for name, (here, base) in pairs.items() if here is not None and base is not None}

    def figure(values: Sequence[float]) -> Figure:
        return mean(values, list(both), resamples=resamples, seed=seed)

    return Row(
        condition=condition,
        questions=len(both),
        failed=len(asked) - len(both),
        exact=figure([here.exact for here, _ in both.values()]),
        contains=figure([here.contains for here, _ in both.values()]),
        exact_difference=figure([here.exact - base.exact for here, base in both.values()]),
        contains_difference=figure([here.contains - base.contains for here, base in both.values()]),
    )
