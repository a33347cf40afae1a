"""Third step: what each candidate is to its question, by words and by inference (paper 002, section 3.1)."""

from collections.abc import Iterator, Sequence

from data_gen.label import stated
from data_gen.pipeline.cases import Candidate, Case, Judgement
from rag.models.nli import Nli
from rag.records import DocumentLabel


def judge(pairs: Sequence[tuple[str, Sequence[str], str]], nli: Nli) -> list[Judgement]:
    """Judge texts, each given with its question's answers and reference sentence, in order."""
    verdicts = nli.judge([(text, reference) for text, _, reference in pairs])
    return [
        Judgement(answer=stated(text, answers), entailment=v.entailment, neutral=v.neutral, contradiction=v.contradiction)
        for (text, answers, _), v in zip(pairs, verdicts, strict=True)
    ]


def label_candidates(cases: Sequence[Case], nli: Nli) -> list[Case]:
    """Each case with its candidates judged and labelled; see `label`."""
    pairs = [
        (f"{c.document.title}\n{c.document.text}".strip(), case.question.answers, case.reference)
        for case in cases
        if case.failure is None and case.reference is not None
        for c in case.candidates
    ]
    judgements = iter(judge(pairs, nli))
    return [_labelled(case, judgements, nli.name) if case.failure is None else case for case in cases]


def _labelled(case: Case, judgements: Iterator[Judgement], name: str) -> Case:
    candidates = []
    for candidate in case.candidates:
        judgement = next(judgements)
        update = {"label": label(judgement), "answer": judgement.answer if judgement.entails else None}
        candidates.append(Candidate(document=candidate.document.model_copy(update=update), judgement=judgement))
    return case.model_copy(update={"candidates": tuple(candidates), "made_by": {**case.made_by, "nli": name}})


def label(judgement: Judgement) -> DocumentLabel | None:
    """`answerable` with answer and entailment, `unanswerable` with neither, else `neutral`; none for a document that contradicts the reference.

    The paper knows no retrieved document of the last kind. It may be a true conflict or a mistake of the model, so it takes no part in a set
    and is kept aside for a person to look at.
    """
    if judgement.contradicts:
        return None
    if judgement.answer is not None and judgement.entails:
        return DocumentLabel.ANSWERABLE
    if judgement.answer is None and not judgement.entails:
        return DocumentLabel.UNANSWERABLE
    return DocumentLabel.NEUTRAL
