"""What the passages of other questions add to a pool: documents that name no answer of this one."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from random import Random

from data_gen.documents import fingerprint
from data_gen.label import names
from data_gen.pools.pool import Material, Piece, Pool, distinct, make_piece
from rag.records import DocumentLabel
from rag.retrieval.bm25 import Bm25, tokenize

_COMMON = 0.01
"""A word in more of the passages than this gives no answer away."""
_SEARCHED = 40
_NEGATIVES = 12
_OFF_TOPIC = 6

RareWords = Callable[[Material, Iterable[str]], frozenset[str]]
"""From a question and some answers to those of their words that few passages have and the question does not."""


def rare_words(materials: Sequence[Material]) -> RareWords:
    """The function for these passages."""
    texts = [text for material in materials for text in material.passages]
    counts = Counter(word for text in texts for word in set(tokenize(text)))
    most = max(3, _COMMON * len(texts))

    def rare(material: Material, answers: Iterable[str]) -> frozenset[str]:
        asked = set(tokenize(material.question))
        words = {word for answer in answers for word in tokenize(answer)}
        return frozenset(word for word in words if len(word) > 1 and counts[word] <= most and word not in asked)

    return rare


@dataclass(frozen=True)
class Forbidden:
    """What a passage that gives no answer must not name: an answer, true or false, or a rare word of one."""

    answers: tuple[str, ...]
    words: frozenset[str]

    def by(self, text: str) -> bool:
        """Whether the text names any of it."""
        return not self.words.isdisjoint(_words(text)) or any(names(text, answer) for answer in self.answers)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


def with_others(own: Sequence[tuple[Pool, Forbidden]], seed: int) -> list[Pool]:
    """Add to each pool hard negatives and off-topic documents, none of which names what is forbidden there."""
    true = _Corpus((pool.question_id, piece) for pool, _ in own for piece in (*pool.golds, *pool.answer_free))
    generated = _Corpus((pool.question_id, piece) for pool, _ in own for piece in pool.generated_false)
    edited = _Corpus((pool.question_id, piece) for pool, _ in own for piece in pool.edited)
    complete = []
    for pool, forbidden in own:
        rng = Random(f"{seed}:others:{pool.question_id}")
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

    def nearest(self, pool: Pool, forbidden: Forbidden, most: int) -> tuple[Piece, ...]:
        found = (hit.id for hit in self.index.search(pool.question, _SEARCHED))
        return self._usable(pool, forbidden, found, most)

    def mixed(self, rng: Random, pool: Pool, forbidden: Forbidden, most: int) -> tuple[Piece, ...]:
        """Half of them near the question, half from anywhere."""
        near = self.nearest(pool, forbidden, most // 2)
        anywhere = rng.sample(self.marks, min(len(self.marks), 4 * most))
        return distinct((*near, *self._usable(pool, forbidden, anywhere, most - len(near))))

    def _usable(self, pool: Pool, forbidden: Forbidden, marks: Iterable[str], most: int) -> tuple[Piece, ...]:
        usable = (
            make_piece(pool.question_id, self.pieces[mark].document.text, DocumentLabel.NEUTRAL, None, self.pieces[mark].document.text)
            for mark in marks
            if pool.question_id not in self.owners[mark] and not forbidden.by(self.pieces[mark].document.text)
        )
        return tuple(islice(usable, most))
