"""Second step: the reference sentence of each question, which states its answer (paper 002, section 3.1)."""

from collections.abc import Sequence

from data_gen.label import stated
from data_gen.pipeline.cases import Case
from data_gen.pipeline.prompts import ANSWER_SENTENCE, fill
from data_gen.pipeline.replies import ask, seed_of, sentence
from rag.models.chat import ChatModel, ChatRequest

_LONGEST = 100
"""Words of a sentence; a longer reply would not fit an NLI model's window beside a part of the document."""


def refer(cases: Sequence[Case], chat: ChatModel | None, attempts: int, seed: int) -> list[Case]:
    """Each case with the sentence of its data set, else one written by the model from question and main answer.

    A sentence without the answer, or with nothing but it, is asked for again with another seed, `attempts` times in all, and then is a failure:
    as a hypothesis it would label by chance.
    """
    referred = {case.question.id: case if _needs(case) else _given(case) for case in cases}
    for attempt in range(attempts):
        open_cases = [case for case in cases if _needs(case) and (attempt == 0 or referred[case.question.id].failure)]
        replies = ask(chat, [_request(case, seed, attempt) for case in open_cases])
        referred |= {case.question.id: _referred(case, reply, chat) for case, reply in zip(open_cases, replies, strict=True)}
    return [referred[case.question.id] for case in cases]


def _needs(case: Case) -> bool:
    return case.failure is None and case.question.reference is None


def _given(case: Case) -> Case:
    if case.failure is not None:
        return case
    return case.model_copy(update={"reference": case.question.reference, "made_by": {**case.made_by, "reference": case.question.source}})


def _request(case: Case, seed: int, attempt: int) -> ChatRequest:
    values = {"QUESTION": case.question.question, "ANSWER": case.question.answers[0]}
    return ChatRequest(fill(ANSWER_SENTENCE, values), seed_of(seed, case.question.id, "reference", str(attempt)))


def _referred(case: Case, reply: str | None, chat: ChatModel | None) -> Case:
    text = "" if reply is None else sentence(reply)
    failure = None
    if reply is None:
        failure = "no reference sentence: the model gave no reply"
    elif stated(text, case.question.answers) is None:
        failure = "no reference sentence: the answer is not in it"
    elif len(text.split()) <= len(case.question.answers[0].split()):
        failure = "no reference sentence: it is no more than the answer"
    elif len(text.split()) > _LONGEST:
        failure = f"no reference sentence: more than {_LONGEST} words"
    name = chat.name if chat else ""
    return case.model_copy(update={"reference": text or None, "failure": failure, "made_by": {**case.made_by, "reference": name}})
