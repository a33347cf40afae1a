"""The pools of all questions: label the passages, cut and edit them, and find hard negatives among the other questions' passages."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import islice
from random import Random

from data_gen.documents import fingerprint
from data_gen.label import names, stated
from data_gen.pools.cuts import cuts, window
from data_gen.pools.other_questions import Forbidden, RareWords, rare_words, with_others
from data_gen.pools.pool import Edits, Material, Piece, Pool, PoolSettings, distinct, make_piece
from data_gen.swaps import entities
from data_gen.swaps.swap import Rejected, Swapped, swap, swap_irrelevant
from rag.records import DocumentLabel

_TRIES = 20
_EDITED_CUTS = 2


def pools(materials: Sequence[Material], settings: PoolSettings, dropped: Counter[str]) -> list[Pool]:
    """One pool for each question, in order; every passage comes from these questions. What was left out is added to `dropped` by reason."""
    named = entities.make_pool((material.question, material.answers[0]) for material in materials)
    rare = rare_words(materials)
    own = [_own(material, named, settings, rare, dropped) for material in materials]
    return with_others(own, settings.seed)


# What decides on a false answer is then used as an edit.
_swap = lru_cache(maxsize=64)(swap)


def _own(
    material: Material, named: entities.Pool, settings: PoolSettings, rare: RareWords, dropped: Counter[str]
) -> tuple[Pool, Forbidden]:
    """The pool without what comes from other questions, and what those must not say."""
    rng = Random(f"{settings.seed}:pool:{material.question_id}")
    golds, others = _golds(material, dropped)
    cut = [(text, *cuts(rng, text, answer, settings.words, shorter=settings.copies)) for text, answer in golds]
    given = dict(material.edited) if settings.edits is Edits.GIVEN else {}
    false = _false_answers(material, [texts[0] for _, *texts in cut], named, settings, rng)
    known = (*material.answers, *((material.wrong,) if material.wrong else ()), *false)
    forbidden = Forbidden(known, rare(material, known))
    make = partial(make_piece, material.question_id)
    edited = []
    swapped = []
    for text, *texts in cut:
        if text in given:
            edited += _given(make, material, given[text], text, rng, settings, dropped)
        for one in texts[:_EDITED_CUTS]:
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
        golds=distinct(make(texts[0], DocumentLabel.ANSWERABLE, stated(texts[0], material.answers), text) for text, *texts in cut),
        copies=distinct(
            make(one, DocumentLabel.ANSWERABLE, stated(one, material.answers), text) for text, *texts in cut for one in texts[1:]
        ),
        edited=distinct(edited),
        irrelevant_swap=distinct(swapped),
        generated_false=distinct(make(text, DocumentLabel.CONFLICT, answer, text) for text, answer in false_texts),
        generated_true=distinct(make(text, DocumentLabel.ANSWERABLE, answer, text) for text, answer in true_texts),
        answer_free=distinct(
            make(text if settings.words is None else window(rng, text, settings.words), DocumentLabel.UNANSWERABLE, None, text)
            for text in free
        ),
    ), forbidden


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
    return [make(cut, DocumentLabel.CONFLICT, answer, origin) for cut in cuts(rng, text, answer, settings.words, shorter=settings.copies)]


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
