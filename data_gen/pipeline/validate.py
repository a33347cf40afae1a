"""Fifth step: which simulated documents are what they are meant to be (paper 002, section 4.1)."""

from collections.abc import Iterator, Sequence

from data_gen.documents import fingerprint
from data_gen.pipeline.cases import Case, Judgement, Simulation
from data_gen.pipeline.judge import judge
from data_gen.pipeline.prompts import CONTRADICTS, fill
from data_gen.pipeline.replies import ask, seed_of
from data_gen.swaps.mentions import names_any
from rag.models.chat import ChatModel, ChatRequest
from rag.models.nli import Nli
from rag.records import DocumentLabel


def validate(cases: Sequence[Case], nli: Nli, judged_by: ChatModel | None, seed: int) -> list[Case]:
    """Each case with its simulations judged, and a reason with each that cannot be used; rejected ones stay.

    A conflicting document has no form of an answer and contradicts the reference; a negated one has the answer and contradicts it; an
    adversarial one has no form of an answer and does not contradict it. With `judged_by` the model's yes or no must agree on contradiction.
    What a data set ships is adopted as it is as far as contradiction goes, as in the paper; the rules on the answer hold for it too.
    """
    pairs = [(simulation.text, case.question.answers, case.reference or "") for case in cases for simulation in _open(case)]
    judgements = iter(judge(pairs, nli))
    second = iter(_opinions(cases, judged_by, seed))
    validated = []
    for case in cases:
        seen = {fingerprint(candidate.document.text) for candidate in case.candidates}
        simulations = [
            s if s.rejected is not None else _validated(case, s, judgements, second if judged_by else None, seen) for s in case.simulations
        ]
        made_by = {**case.made_by, **({"judge": judged_by.name} if judged_by and simulations else {})}
        validated.append(case.model_copy(update={"simulations": tuple(simulations), "made_by": made_by}))
    return validated


def _open(case: Case) -> list[Simulation]:
    return [simulation for simulation in case.simulations if simulation.rejected is None]


def _opinions(cases: Sequence[Case], judged_by: ChatModel | None, seed: int) -> list[bool | None]:
    """Whether the judge finds a contradiction; none where it says neither yes nor no."""
    if judged_by is None:
        return []
    requests = [
        ChatRequest(
            fill(CONTRADICTS, {"ANSWER_SENTENCE": case.reference or "", "PASSAGE": simulation.text}),
            seed_of(seed, case.question.id, "judge", str(simulation.seed)),
        )
        for case in cases
        for simulation in _open(case)
    ]
    words = [(reply or "").strip().strip("\"'*.").casefold().split(maxsplit=1) for reply in ask(judged_by, requests)]
    return [{"yes": True, "no": False}.get(word[0].strip(",.!:;")) if word else None for word in words]


def _validated(
    case: Case, simulation: Simulation, judgements: Iterator[Judgement], second: Iterator[bool | None] | None, seen: set[str]
) -> Simulation:
    judgement = next(judgements)
    update: dict[str, object] = {"judgement": judgement}
    shipped = simulation.maker == case.question.source
    reason = _by_answer(simulation, judgement, case.question.answers) or (None if shipped else _by_contradiction(simulation, judgement))
    if second is not None:
        contradicts = next(second)
        if reason is None and not shipped and contradicts is not (simulation.kind is not DocumentLabel.ADVERSARIAL):
            reason = "the judge gave no verdict" if contradicts is None else "the judge disagrees on contradiction"
    mark = fingerprint(simulation.text)
    if reason is None and mark in seen:
        reason = "the same as another document of the question"
    seen.add(mark)
    if simulation.kind is DocumentLabel.NEGATED and judgement.answer:
        update["answer"] = f"not {judgement.answer}"
    return simulation.model_copy(update={**update, "rejected": reason})


def _by_answer(simulation: Simulation, judgement: Judgement, answers: Sequence[str]) -> str | None:
    if simulation.kind is DocumentLabel.NEGATED:
        return None if judgement.answer is not None else "the answer is not in it"
    named = judgement.answer is not None or names_any(simulation.text, answers)
    return "the answer, or a form of it, is in it" if named else None


def _by_contradiction(simulation: Simulation, judgement: Judgement) -> str | None:
    if simulation.kind is DocumentLabel.ADVERSARIAL:
        return "it contradicts the reference" if judgement.contradicts else None
    return None if judgement.contradicts else "it does not contradict the reference"
