"""Sets of documents from a pool, by named variant: a label goes with what the documents say, not with how they were made.

A round draws a size, an order, golds, false documents and fillers once, and all of its variants use them: `gold_and_edited`, `golds` and
`lone_edited` of one round differ in the edited and the gold documents alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import NamedTuple

from data_gen.documents import ranked
from data_gen.pools.pool import Piece, Pool
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState
from rag.text import normalize


class Variant(StrEnum):
    """How a set is put together; the rest of it is documents that give no answer."""

    GOLD_AND_EDITED = "gold_and_edited"
    """Distracted: golds, and one or two with a false answer edited in."""
    GOLD_AND_GENERATED = "gold_and_generated"
    """Distracted: golds, and one or two generated passages with the false answer."""
    GOLDS = "golds"
    """Answerable: golds alone, the originals of what `gold_and_edited` edits; other cuts of the same where a question has one passage."""
    NEAR_DUPLICATES = "near_duplicates"
    """Answerable: golds, and copies of them cut differently."""
    GOLD_AND_GENERATED_TRUE = "gold_and_generated_true"
    """Answerable: golds, and one or two generated passages with the true answer."""
    GOLD_AND_OFF_TOPIC_GENERATED = "gold_and_off_topic_generated"
    """Answerable: golds, and one or two generated passages about other questions."""
    GOLD_AND_OFF_TOPIC_EDITED = "gold_and_off_topic_edited"
    """Answerable: golds, and one or two edited passages about other questions."""
    GOLD_AND_IRRELEVANT_SWAP = "gold_and_irrelevant_swap"
    """Answerable: golds, and one or two in which an entity was swapped that does not matter: they disagree, but not on the question."""
    GOLD_WITH_NEUTRAL = "gold_with_neutral"
    """Answerable: golds, and one to three passages of other questions."""
    ANSWER_FREE = "answer_free"
    """Unanswerable: no document gives an answer."""
    LONE_FALSE_GENERATED = "lone_false_generated"
    """Unanswerable: one generated passage with the false answer, and nothing that contradicts it."""
    LONE_EDITED = "lone_edited"
    """Unanswerable: one passage with a false answer edited in, and nothing that contradicts it."""
    AGREEING_FALSE = "agreeing_false"
    """Unanswerable: two or three edited or generated passages with the same false answer, and nothing that contradicts it."""


DISTRACTED = frozenset((Variant.GOLD_AND_EDITED, Variant.GOLD_AND_GENERATED))
UNANSWERABLE = frozenset((Variant.ANSWER_FREE, Variant.LONE_FALSE_GENERATED, Variant.LONE_EDITED, Variant.AGREEING_FALSE))

ROUNDS: tuple[tuple[Variant, ...], ...] = (
    (Variant.GOLD_AND_EDITED, Variant.GOLDS, Variant.GOLD_AND_GENERATED, Variant.GOLD_AND_GENERATED_TRUE),
    (Variant.GOLD_AND_EDITED, Variant.NEAR_DUPLICATES, Variant.LONE_EDITED),
    (Variant.GOLD_AND_EDITED, Variant.GOLDS, Variant.GOLD_AND_GENERATED, Variant.LONE_FALSE_GENERATED),
    (Variant.GOLD_AND_EDITED, Variant.GOLDS, Variant.GOLD_AND_IRRELEVANT_SWAP, Variant.ANSWER_FREE),
    (Variant.GOLD_AND_EDITED, Variant.GOLDS, Variant.GOLD_AND_GENERATED, Variant.GOLD_AND_OFF_TOPIC_GENERATED),
    (Variant.GOLD_AND_EDITED, Variant.GOLD_WITH_NEUTRAL, Variant.GOLD_AND_OFF_TOPIC_EDITED, Variant.AGREEING_FALSE),
)
"""Which variants each round makes, over and over: each `gold_and_edited` has a clean twin beside it, and edited and generated documents are in
distracted and clean sets at similar rates."""


class SetSettings(NamedTuple):
    """How many sets, of what size and kind."""

    k_min: int = 2
    k_max: int = 10
    golds: int = 3
    """Most golds beside a false document."""
    distractors: int = 2
    """Most false documents."""
    min_golds: int = 0
    """Questions with fewer golds, of different origins, are left out."""
    rounds: int = len(ROUNDS)
    variants: tuple[Variant, ...] | None = None
    """Variants of every round; dealt out as in `ROUNDS` where it is none."""
    neutral: bool = True
    """Whether passages of other questions fill places, and not only answer-free ones on this question."""
    off_topic: float = 0.3
    """Chance that a generated document about another question is among the fillers of a round; the same for an edited one."""
    seed: int = 0


def assemble(pool: Pool, settings: SetSettings, source: str, dropped: Counter[str]) -> list[Example]:
    """All sets of one question; ids end in variant and round. Variants that the pool has no documents for are added to `dropped`.

    A set is distracted when documents in it contradict each other on the question. A false answer that nothing contradicts makes a set
    `unanswerable`: it is clean for the Sieve, its gold answer stands in no document, and whoever repeats the false one is wrong. As a training
    target for the Sage it would be unfair: leave out unanswerable sets in which a document has an `answer`.
    """
    if len(pool.golds) < settings.min_golds:
        dropped["question with fewer passages that have the answer than min_golds"] += 1
        return []
    examples = []
    seen: set[tuple[Variant, tuple[str, ...]]] = set()
    for number in range(settings.rounds):
        draw = _draw(pool, settings, number)
        for variant in settings.variants or ROUNDS[number % len(ROUNDS)]:
            documents = _documents(variant, draw)
            if documents is None:
                dropped[f"{variant}: the question has no documents for it"] += 1
                continue
            key = (variant, tuple(sorted(document.id for document in documents)))
            if key in seen:
                dropped[f"{variant}: the same set once more"] += 1
                continue
            seen.add(key)
            examples.append(_example(pool, variant, number, documents, source))
    return examples


def _example(pool: Pool, variant: Variant, number: int, documents: tuple[Document, ...], source: str) -> Example:
    state, condition = RetrievalState.ANSWERABLE, Condition.ANSWERABLE
    if variant in DISTRACTED:
        state, condition = RetrievalState.DISTRACTED, Condition.CONFLICT
    elif variant in UNANSWERABLE:
        state, condition = RetrievalState.UNANSWERABLE, Condition.UNANSWERABLE
    return Example(
        id=f"{pool.question_id}-{variant}-{number}",
        question_id=pool.question_id,
        question=pool.question,
        documents=documents,
        answers=pool.answers,
        state=state,
        condition=condition,
        variant=variant,
        source=source,
    )


@dataclass(frozen=True)
class _Draw:
    """What the variants of one round share."""

    k: int
    golds: tuple[Piece, ...]
    others: tuple[Piece, ...]
    """Golds of other origins than `golds`, as many as there are to be false documents, where there are any left."""
    copies: tuple[Piece, ...]
    edited: tuple[Piece, ...]
    irrelevant_swap: tuple[Piece, ...]
    agreeing: tuple[Piece, ...]
    generated_false: tuple[Piece, ...]
    generated_true: tuple[Piece, ...]
    off_topic_generated: tuple[Piece, ...]
    off_topic_edited: tuple[Piece, ...]
    neutral: tuple[Piece, ...]
    fillers: tuple[Piece, ...]
    false: int
    places: tuple[int, ...]


def _draw(pool: Pool, settings: SetSettings, number: int) -> _Draw:
    rng = Random(f"{settings.seed}:set:{pool.question_id}:{number}")
    k = rng.randint(settings.k_min, settings.k_max)
    # Golds are cut as often as what is edited, so that a cut says nothing.
    golds = tuple({piece.origin: piece for piece in _shuffled(rng, (*pool.golds, *pool.copies))}.values())
    of_golds = min(rng.randint(1, settings.golds), k - 1)
    false = min(rng.randint(1, settings.distractors), k - of_golds)
    of_golds = min(of_golds, max(1, len(golds) - 1))
    chosen, others = golds[:of_golds], golds[of_golds : of_golds + false]
    of_chosen = {piece.origin for piece in chosen}
    # What is edited comes from the golds that are not in the set: the pair of a passage and its own edit is left to those with one gold.
    origins = {piece.origin for piece in others} or of_chosen
    fillers = _fillers(rng, pool, settings)
    places = list(range(k))
    rng.shuffle(places)
    return _Draw(
        k=k,
        golds=chosen,
        others=others,
        copies=tuple(p for p in _shuffled(rng, (*pool.golds, *pool.copies)) if p.origin in of_chosen and p not in chosen),
        edited=_of_origins(origins, _shuffled(rng, pool.edited)),
        irrelevant_swap=_of_origins(origins, _shuffled(rng, pool.irrelevant_swap)),
        agreeing=_agreeing(rng, pool),
        generated_false=_shuffled(rng, pool.generated_false),
        generated_true=_shuffled(rng, pool.generated_true),
        off_topic_generated=_shuffled(rng, pool.off_topic_generated),
        off_topic_edited=_shuffled(rng, pool.off_topic_edited),
        neutral=_shuffled(rng, pool.hard_negatives),
        fillers=fillers,
        false=false,
        places=tuple(places),
    )


def _shuffled(rng: Random, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    return tuple(rng.sample(pieces, len(pieces)))


def _of_origins(origins: set[str], pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """One piece of each of the origins; all of them where the origin is one."""
    kept = [piece for piece in pieces if piece.origin in origins]
    return tuple({piece.origin: piece for piece in kept}.values()) if len(origins) > 1 else tuple(kept)


def _agreeing(rng: Random, pool: Pool) -> tuple[Piece, ...]:
    """All false documents with one and the same false answer."""
    pieces = _shuffled(rng, (*pool.edited, *pool.generated_false))
    answers = Counter(_answer(piece) for piece in pieces)
    shared = [answer for answer, count in sorted(answers.items()) if count > 1]
    if not shared:
        return ()
    answer = rng.choice(shared)
    return tuple(piece for piece in pieces if _answer(piece) == answer)


def _answer(piece: Piece) -> str:
    return normalize(piece.document.answer or "")


def _fillers(rng: Random, pool: Pool, settings: SetSettings) -> tuple[Piece, ...]:
    """Documents without an answer in the order in which they fill places: mostly on the question first, strangers now and then."""
    free = list(_shuffled(rng, pool.answer_free))
    strangers = list(_shuffled(rng, pool.hard_negatives)) if settings.neutral else []
    fillers: list[Piece] = []
    for pieces in (pool.off_topic_generated, pool.off_topic_edited):
        if settings.neutral and pieces and rng.random() < settings.off_topic:
            fillers.append(rng.choice(pieces))
    while free or strangers:
        from_strangers = not free or (strangers and rng.random() < 0.3)
        fillers.append((strangers if from_strangers else free).pop())
    if settings.neutral:
        head = fillers[:4]
        rng.shuffle(head)
        fillers[:4] = head
    return tuple(fillers)


def _documents(variant: Variant, draw: _Draw) -> tuple[Document, ...] | None:
    """The set in its order, or none where the pool has not what the variant needs."""
    leads = _leads(variant, draw)
    if leads is None:
        return None
    fillers: Iterator[Piece] = iter(draw.fillers)
    if variant is Variant.GOLD_WITH_NEUTRAL:
        fillers = (piece for piece in draw.fillers if piece.document.label is DocumentLabel.UNANSWERABLE)
    documents = {piece.document.id: piece.document for piece in leads[: draw.k]}
    for piece in fillers:
        if len(documents) == draw.k:
            break
        documents.setdefault(piece.document.id, piece.document)
    if len(documents) < 2:
        return None
    ordered = [document for _, document in sorted(zip(draw.places, documents.values(), strict=False), key=lambda pair: pair[0])]
    return ranked(ordered)


def _leads(variant: Variant, draw: _Draw) -> tuple[Piece, ...] | None:
    """The documents that make the variant, without fillers."""
    n = draw.false
    match variant:
        case Variant.GOLDS:
            return (*draw.golds, *draw.others, *draw.copies)[: len(draw.golds) + n] or None
        case Variant.ANSWER_FREE:
            return ()
        case Variant.LONE_FALSE_GENERATED:
            return draw.generated_false[:1] or None
        case Variant.LONE_EDITED:
            return draw.edited[:1] or None
        case Variant.AGREEING_FALSE:
            return draw.agreeing[: n + 1] or None
    more = {
        Variant.GOLD_AND_EDITED: draw.edited,
        Variant.GOLD_AND_GENERATED: draw.generated_false,
        Variant.NEAR_DUPLICATES: draw.copies,
        Variant.GOLD_AND_GENERATED_TRUE: draw.generated_true,
        Variant.GOLD_AND_OFF_TOPIC_GENERATED: draw.off_topic_generated,
        Variant.GOLD_AND_OFF_TOPIC_EDITED: draw.off_topic_edited,
        Variant.GOLD_AND_IRRELEVANT_SWAP: draw.irrelevant_swap,
        Variant.GOLD_WITH_NEUTRAL: draw.neutral[:3],
    }[variant]
    return (*draw.golds, *more[:n]) if draw.golds and more else None
