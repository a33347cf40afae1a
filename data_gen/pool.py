"""The documents that sets about one question are put together from, by what they say and how they were made.

A source reads its file into `Material`, one for each question; `pools` labels the passages, edits them and finds hard negatives among the
other questions' passages.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache, partial
from itertools import islice
from random import Random
from typing import NamedTuple

from data_gen import entities
from data_gen.label import document, fingerprint, names, stated
from data_gen.swap import Rejected, Swapped, swap, swap_irrelevant
from rag.records import Document, DocumentLabel
from rag.retrieval.bm25 import Bm25, tokenize

_SHORTEST = 8
"""Words that a passage is cut down to at most, beside the answer's own."""
_TRIES = 20
_EDITED_CUTS = 2
_COMMON = 0.01
"""A word in more of the passages than this gives no answer away."""
_SEARCHED = 40
_NEGATIVES = 12
_OFF_TOPIC = 6


class Edits(StrEnum):
    """Where the false answers of edited passages come from."""

    GIVEN = "given"
    """The file's own false answer; one of the same kind where it has none or the passage cannot hold it."""
    SAME_KIND = "same_kind"
    """Another question's answer of the same kind."""
    OTHER_KIND = "other_kind"
    """Another question's answer of another kind where the wording allows it: an easy set to learn from first."""
    CLOSE = "close"
    """A year, date or number nearby; one of the same kind for names."""


class Material(NamedTuple):
    """What a file holds on one question."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    """Gold answers, the main one first."""
    passages: tuple[str, ...]
    """True passages, with the answer or without."""
    wrong: str | None = None
    """A false answer of the same kind."""
    edited: tuple[tuple[str, str], ...] = ()
    """Pairs of a true passage and the same one edited to the false answer."""
    generated_false: tuple[str, ...] = ()
    """Passages that a language model wrote in support of the false answer."""
    generated_true: tuple[str, ...] = ()
    """Sentences that a language model wrote in support of the answer."""


class Piece(NamedTuple):
    """A document and the passage it was made from; two pieces of one origin are near-copies, apart from what was edited."""

    document: Document
    origin: str


@dataclass(frozen=True)
class Pool:
    """Labelled documents of one question. None occurs twice, and none names an answer that its label does not allow."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    golds: tuple[Piece, ...] = ()
    """True passages with the answer, one for each origin."""
    copies: tuple[Piece, ...] = ()
    """The golds cut differently, two for each at most, still with the answer."""
    edited: tuple[Piece, ...] = ()
    """Golds and copies in which a false answer stands for the true one."""
    irrelevant_swap: tuple[Piece, ...] = ()
    """Golds and copies in which an entity was replaced that the answer does not depend on."""
    generated_false: tuple[Piece, ...] = ()
    """Generated passages that state the false answer."""
    generated_true: tuple[Piece, ...] = ()
    """Generated passages that state the answer."""
    answer_free: tuple[Piece, ...] = ()
    """True passages on the question that give no answer."""
    hard_negatives: tuple[Piece, ...] = ()
    """True passages of other questions, nearest first, that give no answer here."""
    off_topic_generated: tuple[Piece, ...] = ()
    """Generated passages that state the false answer of another question."""
    off_topic_edited: tuple[Piece, ...] = ()
    """Edited passages of other questions."""


class PoolSettings(NamedTuple):
    """How pools are made."""

    words: int | None = None
    """Most words of a passage; longer ones are cut to a window, around the answer where there is one."""
    edits: Edits = Edits.GIVEN
    false_answers: int = 2
    """Most false answers of a question in its edited passages."""
    copies: bool = True
    """Whether passages with an answer are also there in a shorter cut."""
    seed: int = 0


def pools(materials: Sequence[Material], settings: PoolSettings, dropped: Counter[str]) -> list[Pool]:
    """One pool for each question, in order; every passage comes from these questions. What was left out is added to `dropped` by reason."""
    named = entities.make_pool((material.question, material.answers[0]) for material in materials)
    rare = _rare_words(materials)
    own = [_own(material, named, settings, rare, dropped) for material in materials]
    return _with_others(own, materials, settings, rare)


def window(rng: Random, text: str, words: int, around: str = "") -> str:
    """At most `words` words in a row of the text, marked `...` where it was cut; a random stretch of them, or one that holds `around`."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    if len(spans) <= words:
        return text
    start = text.find(around) if around else rng.choice(spans)[0]
    end = start + max(len(around), 1)
    inside = [place for place, span in enumerate(spans) if span[0] < end and span[1] > start]
    first, last = (inside[0], inside[-1]) if inside else (0, 0)
    room = max(0, words - (last - first + 1))
    after = min(len(spans) - 1 - last, rng.randint(0, room))
    before = min(first, room - after)
    after = min(len(spans) - 1 - last, room - before)
    low, high = first - before, last + after
    piece = text[spans[low][0] : spans[high][1]]
    before_it = "... " if low and not piece.startswith("...") else ""
    after_it = " ..." if high < len(spans) - 1 and not piece.endswith("...") else ""
    return before_it + piece + after_it


def _rare_words(materials: Sequence[Material]) -> Callable[[Material, Iterable[str]], frozenset[str]]:
    """A function from a question and some answers to their words that few passages have and the question does not."""
    texts = [text for material in materials for text in material.passages]
    counts = Counter(word for text in texts for word in set(tokenize(text)))
    most = max(3, _COMMON * len(texts))

    def rare(material: Material, answers: Iterable[str]) -> frozenset[str]:
        asked = set(tokenize(material.question))
        words = {word for answer in answers for word in tokenize(answer)}
        return frozenset(word for word in words if len(word) > 1 and counts[word] <= most and word not in asked)

    return rare


@dataclass(frozen=True)
class _Forbidden:
    """What a passage that gives no answer must not name: an answer, true or false, or a rare word of one."""

    answers: tuple[str, ...]
    words: frozenset[str]

    def by(self, text: str) -> bool:
        return not self.words.isdisjoint(_words(text)) or any(names(text, answer) for answer in self.answers)


# What decides on a false answer is then used as an edit.
_swap = lru_cache(maxsize=64)(swap)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


def _own(
    material: Material,
    named: entities.Pool,
    settings: PoolSettings,
    rare: Callable[[Material, Iterable[str]], frozenset[str]],
    dropped: Counter[str],
) -> tuple[Pool, _Forbidden]:
    """The pool without what comes from other questions, and what those must not say."""
    rng = Random(f"{settings.seed}:pool:{material.question_id}")
    golds, others = _golds(material, dropped)
    cut = [(text, *_cuts(rng, text, answer, settings)) for text, answer in golds]
    given = dict(material.edited) if settings.edits is Edits.GIVEN else {}
    false = _false_answers(material, [cuts[0] for _, *cuts in cut], named, settings, rng)
    known = (*material.answers, *((material.wrong,) if material.wrong else ()), *false)
    forbidden = _Forbidden(known, rare(material, known))
    make = partial(_piece, material.question_id)
    edited = []
    swapped = []
    for text, *cuts in cut:
        if text in given:
            edited += _given(make, material, given[text], text, rng, settings, dropped)
        for one in cuts[:_EDITED_CUTS]:
            for value in false if text not in given else false[1:]:
                result = _swap(one, material.answers, value, material.question)
                edited += _swapped(make, result, DocumentLabel.CONFLICT, value, text, "edit", dropped)
            unrelated = swap_irrelevant(one, forbidden.answers, material.question, rng, named)
            answer = stated(unrelated.text, material.answers) if isinstance(unrelated, Swapped) else None
            swapped += _swapped(make, unrelated, DocumentLabel.ANSWERABLE, answer, text, "irrelevant swap", dropped)
    free = [text for text in others if not forbidden.by(text)]
    dropped["passage has a word of an answer"] += len(others) - len(free)
    false_texts = _generated(material, (material.wrong,) if material.wrong else (), material.generated_false, dropped)
    true_texts = _generated(material, material.answers, _true_texts(material), dropped)
    return Pool(
        question_id=material.question_id,
        question=material.question,
        answers=material.answers,
        golds=_distinct(make(cuts[0], DocumentLabel.ANSWERABLE, stated(cuts[0], material.answers), text) for text, *cuts in cut),
        copies=_distinct(
            make(one, DocumentLabel.ANSWERABLE, stated(one, material.answers), text) for text, *cuts in cut for one in cuts[1:]
        ),
        edited=_distinct(edited),
        irrelevant_swap=_distinct(swapped),
        generated_false=_distinct(make(text, DocumentLabel.CONFLICT, answer, text) for text, answer in false_texts),
        generated_true=_distinct(make(text, DocumentLabel.ANSWERABLE, answer, text) for text, answer in true_texts),
        answer_free=_distinct(
            make(text if settings.words is None else window(rng, text, settings.words), DocumentLabel.UNANSWERABLE, None, text)
            for text in free
        ),
    ), forbidden


def _piece(question_id: str, text: str, label: DocumentLabel, answer: str | None, origin: str) -> Piece:
    return Piece(document(question_id, text, label, answer), fingerprint(origin))


def _distinct(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    return tuple({piece.document.id: piece for piece in pieces}.values())


def _golds(material: Material, dropped: Counter[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Passages with the answer, beside the form they have it in, and passages without any."""
    golds, others = [], []
    seen: set[str] = set()
    for text in (*material.passages, *(original for original, _ in material.edited)):
        if not text.strip() or fingerprint(text) in seen:
            continue
        seen.add(fingerprint(text))
        answer = stated(text, material.answers)
        if material.wrong and names(text, material.wrong):
            dropped["passage names the false answer" if answer is None else "passage names the answer and the false one"] += 1
        elif answer is None:
            others.append(text)
        else:
            golds.append((text, answer))
    return golds, others


def _cuts(rng: Random, text: str, answer: str, settings: PoolSettings) -> list[str]:
    """The passage, cut to the limit, and two shorter cuts of it, all with the answer."""
    most = len(text.split()) if settings.words is None else min(settings.words, len(text.split()))
    sizes = [most]
    if settings.copies:
        sizes += [max(_SHORTEST + len(answer.split()), int(most * rng.uniform(0.5, 0.9))) for _ in range(2)]
    cuts = dict.fromkeys(window(rng, text, size, answer) for size in sizes)
    return [cut for cut in cuts if names(cut, answer)] or [text]


def _false_answers(material: Material, golds: Sequence[str], named: entities.Pool, settings: PoolSettings, rng: Random) -> tuple[str, ...]:
    """False answers, of which the first is the file's own under `given`; several, so that false documents can agree with each other or not."""
    if not golds:
        return ()
    chosen = [material.wrong] if settings.edits is Edits.GIVEN and material.wrong else []
    kind = entities.entity_kind(material.question, stated(golds[0], material.answers) or material.answers[0])
    if settings.edits is Edits.CLOSE and (close := entities.near(stated(golds[0], material.answers) or "", rng)):
        chosen.append(close)
    kinds = [kind]
    if settings.edits is Edits.OTHER_KIND:
        kinds = [*rng.sample([other for other in named.by_kind if other != kind], min(_TRIES, len(named.by_kind) - 1)), kind]
    known = (*material.answers, *chosen)
    proposed = (value for one in kinds for value in islice(entities.replacements(known, one, named, rng), 1 if len(kinds) > 1 else _TRIES))
    for value in islice(proposed, _TRIES):
        if len(chosen) >= settings.false_answers:
            break
        if isinstance(_swap(golds[0], material.answers, value, material.question), Swapped) and not entities.overlaps(value, known):
            chosen.append(value)
            known = (*known, value)
    return tuple(chosen)


def _given(
    make: Callable[..., Piece], material: Material, text: str, origin: str, rng: Random, settings: PoolSettings, dropped: Counter[str]
) -> list[Piece]:
    """The file's own edit of a passage, whole and cut."""
    answer = stated(text, (material.wrong,) if material.wrong else ())
    if answer is None or stated(text, material.answers) is not None:
        dropped["edit: the file's own does not replace the answer"] += 1
        return []
    return [make(cut, DocumentLabel.CONFLICT, answer, origin) for cut in _cuts(rng, text, answer, settings)]


def _swapped(
    make: Callable[..., Piece],
    result: Swapped | Rejected,
    label: DocumentLabel,
    answer: str | None,
    origin: str,
    what: str,
    dropped: Counter[str],
) -> list[Piece]:
    if not isinstance(result, Swapped):
        dropped[f"{what}: {result}"] += 1
        return []
    if answer is None:
        dropped[f"{what}: the answer is lost"] += 1
        return []
    return [make(result.text, label, stated(result.text, (answer,)) or answer, origin)]


def _true_texts(material: Material) -> tuple[str, ...]:
    """Generated sentences for the answer, and the texts for the false answer with the true one in its place: the same style, another content."""
    if not material.wrong:
        return material.generated_true
    put_right = (swap(text, (material.wrong,), material.answers[0]) for text in material.generated_false)
    return (*material.generated_true, *(result.text for result in put_right if isinstance(result, Swapped)))


def _generated(material: Material, states: tuple[str, ...], texts: Iterable[str], dropped: Counter[str]) -> list[tuple[str, str]]:
    """The generated texts that state one of two answers and not the other, beside the form they have it in."""
    others = (material.wrong,) if states == material.answers else material.answers
    usable = []
    for text in texts:
        answer = stated(text, states)
        if answer is None:
            dropped["generated passage without its answer"] += 1
        elif stated(text, [other for other in others if other]) is not None:
            dropped["generated passage with both answers"] += 1
        else:
            usable.append((text, answer))
    return usable


def _with_others(
    own: Sequence[tuple[Pool, _Forbidden]],
    materials: Sequence[Material],
    settings: PoolSettings,
    rare: Callable[[Material, Iterable[str]], frozenset[str]],
) -> list[Pool]:
    """Add hard negatives and off-topic documents, none of which names an answer."""
    true = _Corpus((pool.question_id, piece) for pool, _ in own for piece in (*pool.golds, *pool.answer_free))
    generated = _Corpus((pool.question_id, piece) for pool, _ in own for piece in pool.generated_false)
    edited = _Corpus((pool.question_id, piece) for pool, _ in own for piece in pool.edited)
    complete = []
    for pool, forbidden in own:
        rng = Random(f"{settings.seed}:others:{pool.question_id}")
        complete.append(
            replace(
                pool,
                hard_negatives=true.nearest(pool, forbidden, _NEGATIVES),
                off_topic_generated=generated.mixed(rng, pool, forbidden, _OFF_TOPIC),
                off_topic_edited=edited.mixed(rng, pool, forbidden, _OFF_TOPIC),
            )
        )
    return complete


class _Corpus:
    """Pieces of all questions, to find some of other questions."""

    def __init__(self, pieces: Iterable[tuple[str, Piece]]) -> None:
        self.owners: dict[str, set[str]] = {}
        self.pieces: dict[str, Piece] = {}
        for question_id, piece in pieces:
            mark = fingerprint(piece.document.text)
            self.owners.setdefault(mark, set()).add(question_id)
            self.pieces.setdefault(mark, piece)
        self.marks = sorted(self.pieces)
        self.index = Bm25([self.pieces[mark].document.model_copy(update={"id": mark}) for mark in self.marks])

    def nearest(self, pool: Pool, forbidden: _Forbidden, most: int) -> tuple[Piece, ...]:
        found = (hit.id for hit in self.index.search(pool.question, _SEARCHED))
        return self._usable(pool, forbidden, found, most)

    def mixed(self, rng: Random, pool: Pool, forbidden: _Forbidden, most: int) -> tuple[Piece, ...]:
        """Half of them near the question, half from anywhere."""
        near = self.nearest(pool, forbidden, most // 2)
        anywhere = rng.sample(self.marks, min(len(self.marks), 4 * most))
        return _distinct((*near, *self._usable(pool, forbidden, anywhere, most - len(near))))

    def _usable(self, pool: Pool, forbidden: _Forbidden, marks: Iterable[str], most: int) -> tuple[Piece, ...]:
        usable = (
            _piece(pool.question_id, self.pieces[mark].document.text, DocumentLabel.NEUTRAL, None, self.pieces[mark].document.text)
            for mark in marks
            if pool.question_id not in self.owners[mark] and not forbidden.by(self.pieces[mark].document.text)
        )
        return tuple(islice(usable, most))
