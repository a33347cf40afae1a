"""The demo data set: questions on an invented world, five labelled document sets for each, the same bytes for the same seed.

Question `town-0000` may ask `Who is the mayor of Port Velarmere?`. Its documents in the set `town-0000-conflict` then say, among other things,
`the mayor of Port Velarmere is Ada Lundberg` (label `answerable`) and `Hugo Marlsen serves as mayor of Port Velarmere` (label `conflict`).
All documents are made by one function from one pool of wordings: only what they say tells their labels apart.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Literal

from data_gen.documents import ranked
from data_gen.label import stated
from data_gen.questions import Question
from data_gen.world.invent import Value, draw, stems
from data_gen.world.kinds import KINDS
from data_gen.world.passages import MIN_WORDS, Passage, Subject, about, invent_subject
from data_gen.world.vocabulary import Attribute, SubjectKind
from rag.errors import InputError
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState

Split = Literal["train", "validation", "test"]

_SPLIT_OF_TWENTY: tuple[Split, ...] = ("train",) * 12 + ("validation",) * 3 + ("test",) * 5
_STEMS_PER_QUESTION = 8
_RETRIEVED = 5
"""Documents for which a pool is written where sets are retrieved from all pools."""
_MOST = 10
"""Documents in a set."""
# Chances of 1, 2 or 3 documents that state the fact asked for, true or not.
_GOLDS = {1: 0.2, 2: 0.45, 3: 0.35}
_GOLDS_AND_DISTRACTING = {2: 0.55, 3: 0.45}
_DISTRACTING = {
    Condition.CONFLICT: DocumentLabel.CONFLICT,
    Condition.NEGATED: DocumentLabel.NEGATED,
    Condition.ADVERSARIAL: DocumentLabel.ADVERSARIAL,
}
_CONDITIONS = (Condition.ANSWERABLE, Condition.UNANSWERABLE, *_DISTRACTING)


def load(
    split: Split = "test",
    seed: int = 0,
    questions: int = 600,
    k: int = 5,
    words: int = MIN_WORDS,
    wordings: int | None = None,
    limit: int | None = None,
    k_max: int | None = None,
    neutral: int = 0,
    distractors: int = 1,
) -> list[Example]:
    """Five Examples for each question of `split`: answerable, unanswerable, conflict, negated, adversarial.

    Of `questions` in all splits together, 60 % are for training, 15 % for validation and 25 % for test. No subject occurs in two questions,
    and a question does not change when `questions` grows. `k` documents (2 to 10) make a set; with `k_max`, a number from `k` to that, drawn
    for each set. Each document has at least `words` words, with each fact in one of `wordings` clauses (all four where it is none): few
    documents of few words in one wording are what a Sieve can learn
    from first. `neutral` documents on subjects that no question is about are appended to each set (paper 002, appendix D). A
    distracted set holds `distractors` (1 to 3) distracting documents: the one of its condition, and of the other kinds, beside a gold
    document; sets of 5 have room for 2, of 7 for 3. `limit` keeps the first
    examples, question by question. Raises InputError for a number out of range.
    """
    _require("questions", questions, len(_SPLIT_OF_TWENTY), len(stems(seed)) // _STEMS_PER_QUESTION)
    _require("k", k, 2, _MOST)
    _require("k_max", k if k_max is None else k_max, k, _MOST)
    _require("words", words, 1, MIN_WORDS)
    _require("neutral", neutral, 0, _MOST)
    _require("distractors", distractors, 1, min(len(_DISTRACTING), _half(k) - 1))
    if wordings is not None:
        _require("wordings", wordings, 1, 4)
    if limit is not None:
        _require("limit", limit, 1, questions * len(_CONDITIONS))
    examples = [
        _with_neutral(example, i, seed, neutral)
        for i in range(questions)
        if _split_of(i, seed) == split
        for example in _variants(i, seed, k, k_max or k, words, wordings, distractors)
    ]
    return examples[:limit]


def questions(split: Split = "test", seed: int = 0, questions: int = 600, limit: int | None = None) -> Iterator[Question]:
    """The same questions before documents are chosen for them, for the steps of data generation (`data_gen.pipeline`).

    Their three distracting documents come with them, so that no model need write any; a sentence of a gold document is the reference.
    The corpus to retrieve from is `pool` of the same `seed` and `questions`. Raises InputError for a number out of range.
    """
    _require("questions", questions, len(_SPLIT_OF_TWENTY), len(stems(seed)) // _STEMS_PER_QUESTION)
    chosen = (i for i in range(questions) if _split_of(i, seed) == split)
    for i in islice(chosen, limit):
        rng = Random(f"{seed}:question:{i}")
        asked = _ask(rng, i, seed)
        pool = _write_pool(rng, asked, _RETRIEVED, MIN_WORDS, None)
        sentence = next(s for s in re.split(r"(?<=[.!?])\s+", pool.golds[0].text) if stated(s, asked.answer.forms))
        yield Question(
            id=asked.question_id,
            question=rng.choice(asked.key.questions).format(s=asked.name),
            answers=asked.answer.forms,
            simulated=tuple(pool.distracting.values()),
            gold=tuple(document.id for document in pool.golds),
            reference=sentence,
            split=split,
            source=f"demo seed={seed}",
        )


def pool(seed: int = 0, questions: int = 600, golds: float = 0.8) -> Iterator[Document]:
    """The corpus of `questions`: for each, documents on its subject and on others, and its three gold documents with the chance `golds`.

    Without gold documents a question is unanswerable, whatever is retrieved. Raises InputError for a number out of range.
    """
    _require("questions", questions, len(_SPLIT_OF_TWENTY), len(stems(seed)) // _STEMS_PER_QUESTION)
    for i in range(questions):
        rng = Random(f"{seed}:question:{i}")
        written = _write_pool(rng, _ask(rng, i, seed), _RETRIEVED, MIN_WORDS, None)
        kept = written.golds if Random(f"{seed}:gold:{i}").random() < golds else []
        for document in sorted((*kept, *written.same_subject, *written.same_attribute, *written.neither), key=lambda d: d.id):
            yield document.model_copy(update={"label": None, "answer": None})


def documents(count: int, seed: int = 0) -> Iterator[Document]:
    """A corpus of `count` passages on subjects of the invented world, at least 42 words each, to measure how retrieval and builds grow.

    A passage does not change when `count` grows. Its subjects are not kept apart by split. Raises InputError for a number below 1.
    """
    if count < 1:
        raise InputError(f"count: expected a number of at least 1, got {count}")
    names = stems(seed)
    for i in range(count):
        passage = _passage(Random(f"{seed}:passage:{i}"), names[i % len(names)])
        yield Document(id=f"passage-{i:08}", title=passage.title, text=passage.text)


def _passage(rng: Random, stem: str) -> Passage:
    """A passage that states one fact about a subject with this stem in its name."""
    kind = rng.choice(KINDS)
    attribute = rng.choice(kind.attributes)
    subject = invent_subject(rng, kind, rng.choice(kind.names).format(stem=stem), ())
    return about(rng, subject, attribute, (), (attribute, subject.values[attribute.name]))


def _with_neutral(example: Example, i: int, seed: int, neutral: int) -> Example:
    """The example with documents after its own that speak of the last stems, which no question has, and hold no gold answer."""
    rng = Random(f"{seed}:neutral:{example.id}")
    added: list[Document] = []
    while len(added) < neutral:
        passage = _passage(rng, rng.choice(stems(seed)[-_STEMS_PER_QUESTION:]))
        if stated(passage.text, example.answers) is None:
            name = f"{example.question_id}-n{len(added) + 1}"
            added.append(Document(id=name, title=passage.title, text=passage.text, label=DocumentLabel.NEUTRAL))
    return example.model_copy(update={"documents": ranked((*example.documents, *added))})


def _require(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"{name}: expected a number from {low} to {high}, got {value}")


def _split_of(i: int, seed: int) -> Split:
    """Every twenty questions in a row are dealt out anew, 12 to 3 to 5, so that each split sees every kind of subject."""
    block, place = divmod(i, len(_SPLIT_OF_TWENTY))
    order = list(_SPLIT_OF_TWENTY)
    Random(f"{seed}:split:{block}").shuffle(order)
    return order[place]


@dataclass(frozen=True)
class _Asked:
    """What one question is about."""

    question_id: str
    kind: SubjectKind
    key: Attribute
    name: str
    twin: str
    """Name of another subject that is easily taken for the one asked about."""
    other_stems: tuple[str, ...]
    answer: Value


@dataclass(frozen=True)
class _Pool:
    """All documents of one question, from which its five sets are put together."""

    golds: list[Document]
    distracting: dict[DocumentLabel, Document]
    same_subject: list[Document]
    """Other facts about the subject."""
    same_attribute: list[Document]
    """The fact asked for, about differently named subjects."""
    neither: list[Document]


def _variants(i: int, seed: int, k: int, k_max: int, words: int, wordings: int | None, distractors: int) -> Iterator[Example]:
    rng = Random(f"{seed}:question:{i}")
    asked = _ask(rng, i, seed)
    pool = _write_pool(rng, asked, k_max, words, wordings)
    question = rng.choice(asked.key.questions).format(s=asked.name)
    for condition in _CONDITIONS:
        size = k if k_max == k else Random(f"{seed}:size:{i}:{condition}").randint(k, k_max)
        yield Example(
            id=f"{asked.question_id}-{condition}",
            question_id=asked.question_id,
            question=question,
            documents=_choose(Random(f"{seed}:set:{i}:{condition}"), pool, condition, size, distractors),
            answers=asked.answer.forms,
            state=RetrievalState.DISTRACTED if condition in _DISTRACTING else RetrievalState(condition),
            condition=condition,
            source=f"demo seed={seed}",
        )


def _ask(rng: Random, i: int, seed: int) -> _Asked:
    kind = KINDS[i % len(KINDS)]
    key = rng.choice(kind.attributes)
    own, *others = stems(seed)[i * _STEMS_PER_QUESTION : (i + 1) * _STEMS_PER_QUESTION]
    name, twin = (pattern.format(stem=own) for pattern in rng.sample(kind.names, 2))
    return _Asked(f"{kind.name}-{i:04d}", kind, key, name, twin, tuple(others), answer=draw(rng, key.value))


def _write_pool(rng: Random, asked: _Asked, k: int, words: int, wordings: int | None) -> _Pool:
    """Write more documents than one set needs. The two untrue values are drawn as the answer is, so that either could be the answer."""
    other = draw(rng, asked.key.value, (asked.answer,))
    third = draw(rng, asked.key.value, (asked.answer, other))
    reserved = (asked.answer, other, third)
    half = _half(k)

    def invent(name: str) -> Subject:
        return invent_subject(rng, asked.kind, name, reserved)

    def write(subject: Subject, stated: Value | None, deny: bool = False) -> Passage:
        return about(rng, subject, asked.key, reserved, None if stated is None else (asked.key, stated), deny, words, wordings)

    subject = invent(asked.name)
    strangers = [invent(rng.choice(asked.kind.names).format(stem=stem)) for stem in asked.other_stems]
    golds = [write(subject, asked.answer) for _ in range(3)]
    conflict = write(subject, other)
    negated = write(subject, asked.answer, deny=True)
    adversarial = write(invent(asked.twin), third)
    same_subject = [write(subject, None) for _ in range(half)]
    same_attribute = [write(stranger, stranger.values[asked.key.name]) for stranger in strangers[:half]]
    # Large sets run out of strangers: the first ones then get a second document, without the fact asked for.
    neither = [write(stranger, None) for stranger in strangers[half:k] + strangers[: max(0, k - _STEMS_PER_QUESTION)]]

    numbers = list(range(1, 1 + len(golds) + 3 + len(same_subject) + len(same_attribute) + len(neither)))
    rng.shuffle(numbers)  # A number in order of writing would give the label away.

    def documents(label: DocumentLabel, passages: list[Passage], says: Value | None = None) -> list[Document]:
        return [
            Document(id=f"{asked.question_id}-d{numbers.pop()}", title=p.title, text=p.text, label=label, answer=_answer(p, says, label))
            for p in passages
        ]

    return _Pool(
        golds=documents(DocumentLabel.ANSWERABLE, golds, asked.answer),
        distracting={
            label: document
            for label, passage, says in (
                (DocumentLabel.CONFLICT, conflict, other),
                (DocumentLabel.NEGATED, negated, asked.answer),
                (DocumentLabel.ADVERSARIAL, adversarial, third),
            )
            for document in documents(label, [passage], says)
        },
        same_subject=documents(DocumentLabel.UNANSWERABLE, same_subject),
        same_attribute=documents(DocumentLabel.UNANSWERABLE, same_attribute),
        neither=documents(DocumentLabel.NEUTRAL, neither),
    )


def _answer(passage: Passage, says: Value | None, label: DocumentLabel) -> str | None:
    form = None if says is None else stated(passage.text, says.forms)
    return f"not {form}" if form is not None and label is DocumentLabel.NEGATED else form


def _half(k: int) -> int:
    """Documents of a set that speak of the subject, and as many of the attribute; two at least, so that two can disagree."""
    return max(2, (k + 1) // 2)


def _choose(rng: Random, pool: _Pool, condition: Condition, k: int, distractors: int) -> tuple[Document, ...]:
    """One set in random order.

    Whatever the condition, half of the documents (rounded up) speak of the subject and as many of the attribute asked for, and the number of
    documents that do both is drawn alike, so that counting words or documents does not give the condition away. Where a single document
    does both, the set is answerable: one document has nothing to disagree with.
    """
    half = _half(k)
    if condition is Condition.UNANSWERABLE:
        of_subject = rng.choice((half, k - half))
        chosen = rng.sample(pool.same_subject, of_subject) + rng.sample(pool.same_attribute, k - of_subject)
    else:
        chances = _GOLDS if condition is Condition.ANSWERABLE else _GOLDS_AND_DISTRACTING
        keyed = max(2 * half - k, min(half, rng.choices(list(chances), list(chances.values()))[0]))
        chosen = [] if condition is Condition.ANSWERABLE else _distracting(rng, pool, condition, distractors)
        # A gold document at least, so that there is an answer to recover.
        keyed = max(keyed, min(half, len(chosen) + 1))
        chosen += rng.sample(pool.golds, keyed - len(chosen))
        chosen += rng.sample(pool.same_subject, half - keyed) + rng.sample(pool.same_attribute, half - keyed)
        chosen += rng.sample(pool.neither, k - len(chosen))
    rng.shuffle(chosen)
    return ranked(chosen)


def _distracting(rng: Random, pool: _Pool, condition: Condition, count: int) -> list[Document]:
    """The condition's own document, and others of the other kinds."""
    own = _DISTRACTING[condition]
    others = [document for label, document in pool.distracting.items() if label is not own]
    return [pool.distracting[own], *(rng.sample(others, count - 1) if count > 1 else [])]
