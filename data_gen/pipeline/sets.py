"""Last step: sets of K documents by state and condition (paper 002, sections 3.1 and 4.1, appendix D)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from data_gen.documents import document, fingerprint, ranked
from data_gen.pipeline.cases import Case
from data_gen.pipeline.simulate import KINDS
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState


class SetSettings(NamedTuple):
    """How sets are put together."""

    k: int = 5
    """Documents in a set: the best K candidates."""
    k_min: int = 2
    """Sets of fewer documents, where a question has no more, are left out."""
    distractors: int = 1
    """Simulated documents in a distracted set, all of one kind."""
    neutral: int = 0
    """Neutral documents added to each set beside its K (appendix D has 1 to 3)."""
    shuffle: bool = True
    """Whether documents stand in random order, the same for all sets of a question, or in the order of retrieval."""
    seed: int = 0


def sets(
    case: Case, settings: SetSettings, belongs: Mapping[str, str], split: str, lineage: Mapping[str, str], dropped: Counter[str]
) -> list[Example]:
    """The sets of one question: answerable or unanswerable as it was retrieved, and one distracted set for each kind that there are documents for.

    All documents get ids of one form, made from their text, and no score, so that only what they say tells simulated ones from retrieved ones.

    A set is answerable with an answerable document, unanswerable where all are. Others fit no state. `belongs` names the split whose
    sets hold a passage, by its fingerprint. What is left out is added to `dropped` by reason.
    """
    if case.failure is not None:
        dropped[f"question: {case.failure}"] += 1
        return []
    usable = [c.document for c in case.candidates if c.document.label is not None]
    dropped["document contradicts the reference: kept aside"] += len(case.candidates) - len(usable)
    top, extra, others = chosen(case, settings, belongs, split)
    dropped["document is used in another split"] += others
    if len(top) < settings.k_min:
        dropped["question: fewer documents than k_min"] += 1
        return []
    labels = Counter(d.label for d in top)
    if labels[DocumentLabel.ANSWERABLE]:
        state = RetrievalState.ANSWERABLE
    elif labels[DocumentLabel.UNANSWERABLE] == len(top):
        state = RetrievalState.UNANSWERABLE
    else:
        dropped["question: no state, as a document is neutral and none is answerable"] += 1
        return []
    if len(extra) < settings.neutral:
        dropped["neutral document to add: the question has no more"] += settings.neutral - len(extra)
    made = [_example(case, state, Condition(state), top, extra, settings, lineage)]
    if state is RetrievalState.ANSWERABLE:
        for kind in KINDS:
            distracted = _distracted(case, kind, top, settings, dropped)
            if distracted is not None:
                made.append(_example(case, RetrievalState.DISTRACTED, Condition(kind), distracted, extra, settings, lineage))
    return made


def chosen(case: Case, settings: SetSettings, belongs: Mapping[str, str], split: str) -> tuple[list[Document], list[Document], int]:
    """The best K labelled candidates, neutral ones to add, and how many better ones than the last of the K belong to another split."""
    own: list[Document] = []
    passed = 0
    for candidate in (c.document for c in case.candidates if c.document.label is not None):
        if belongs.get(fingerprint(candidate.text), split) == split:
            own.append(candidate)
        elif len(own) < settings.k:
            passed += 1
    extra = [d for d in own[settings.k :] if d.label is DocumentLabel.NEUTRAL][: settings.neutral]
    return own[: settings.k], extra, passed


def _distracted(
    case: Case, kind: DocumentLabel, top: Sequence[Document], settings: SetSettings, dropped: Counter[str]
) -> list[Document] | None:
    """The set with simulated documents in place of others; an answerable one always stays."""
    usable = [s for s in case.simulations if s.kind is kind and s.rejected is None][: settings.distractors]
    if len(usable) < settings.distractors:
        dropped[f"{kind} set: fewer documents of this kind than distractors"] += 1
        return None
    rng = Random(f"{settings.seed}:{case.question.id}:{kind}")
    kept = rng.choice([d for d in top if d.label is DocumentLabel.ANSWERABLE])
    replaceable = [d for d in top if d is not kept]
    if len(replaceable) < settings.distractors:
        dropped[f"{kind} set: no document to replace beside an answerable one"] += 1
        return None
    replaced = rng.sample(replaceable, settings.distractors)
    # Title and metadata are those of the document which it distracts from, as a passage of the same article would have: without them a glance would
    # tell it.
    new = iter(document(case.question.id, s.text, s.kind, s.answer, kept.title, kept.metadata) for s in usable)
    return [next(new) if any(d is r for r in replaced) else d for d in top]


def _example(
    case: Case,
    state: RetrievalState,
    condition: Condition,
    documents: Sequence[Document],
    extra: Sequence[Document],
    settings: SetSettings,
    lineage: Mapping[str, str],
) -> Example:
    ordered = [*documents, *extra]
    if settings.shuffle:
        # The places are drawn from the question alone, so that a simulated document stands where the one stood that it replaces.
        places = Random(f"{settings.seed}:{case.question.id}:order").sample(range(len(ordered)), len(ordered))
        ordered = [ordered[place] for place in places]
    return Example(
        id=f"{case.question.id}-{condition}",
        question_id=case.question.id,
        question=case.question.question,
        documents=ranked(document(case.question.id, d.text, d.label, d.answer, d.title, d.metadata) for d in ordered),
        answers=case.question.answers,
        state=state,
        condition=condition,
        source=case.question.source,
        lineage={**lineage, **case.made_by},
    )
