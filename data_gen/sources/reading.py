"""Reading comprehension: questions with the passage that answers them, and passages that only look as if they did.

python -m data_gen.build dataset=reading dataset.path=train.jsonl.gz 'splits=[train]' out=data/reading
"""

import gzip
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import NamedTuple

from pydantic import ValidationError

from data_gen.documents import document, fingerprint, ranked
from data_gen.label import names, stated
from data_gen.pools.cuts import window
from data_gen.sources.left_out import report
from data_gen.sources.origin import Origin, absent
from data_gen.swaps.entities import Pool, entity_kind, make_pool, replacements
from data_gen.swaps.swap import Swapped, swap
from rag.errors import InputError
from rag.jsonl import describe
from rag.records import Condition, Document, DocumentLabel, Example, Record, RetrievalState, Text
from rag.retrieval.bm25 import Bm25, tokenize
from rag.settings import InputPath
from rag.text import SENTENCE_BREAK

logger = logging.getLogger(__name__)

ORIGIN = Origin(
    what="reading comprehension",
    where="the sets that docs/data.md names under `reading`",
    how="JSON lines with `question`, `passage`, `answers` and `source`, gzipped or not",
)


class Near(StrEnum):
    """How a document that holds no answer comes to look as if it did."""

    CUT = "cut"
    """The passage without the sentences that hold an answer."""
    ELSEWHERE = "elsewhere"
    """Another window of a long passage."""
    SUBJECT = "subject"
    """A passage of another question that BM25 finds for this one."""
    EXCHANGED = "exchanged"
    """The passage, under the question with one of its names or years exchanged for another of the same passage."""


class _Row(Record):
    """One line of the file."""

    question: Text
    passage: Text
    answers: tuple[Text, ...] = ()
    """Spellings of the answer as they stand in the passage; none where it gives none."""
    source: Text = ""
    """Which set the question is from."""

    def id(self) -> str:
        """From what is read, so that a question keeps it wherever it stands."""
        return f"reading-{fingerprint(self.question + self.passage, 12)}"


def load(
    path: InputPath,
    split: str = "train",
    seed: int = 0,
    words: int | None = 90,
    near: dict[Near, float] | None = None,
    edited: float = 0.0,
    denied: float = 0.0,
    lost: float = 0.0,
    fillers: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Example]:
    """A set of documents for each question of the file: its passage, and documents made from it or found for it.

    `words` is the most words of a document; a longer passage is cut to a window around its answer, and left whole where it is none.
    `near` gives for each kind of document that holds no answer the share of the questions that get one; `edited` is the share that get a set
    with the passage and a copy that states another answer of the same kind, `denied` with one that denies the answer, `lost` the share whose
    passage is left out. Up to `fillers` more passages that BM25 finds, without an answer, are added to each set. `limit` draws so many
    lines at random. What was left out is logged, and added to `dropped` by reason. Raises InputError for a file that is not there, holds a
    line that does not fit, or nothing, and for shares that are not from 0 to 1.
    """
    shares = {kind: (near or {}).get(kind, 0.0) for kind in Near}
    for name, share in {
        **{f"near.{kind}": share for kind, share in shares.items()},
        "edited": edited,
        "denied": denied,
        "lost": lost,
    }.items():
        if not 0 <= share <= 1:
            raise InputError(f"dataset.{name}: expected a share of the questions from 0 to 1, got {share}")
    reasons: Counter[str] = Counter()
    rows = list(_usable(_read(path), reasons))
    if limit is not None and limit < len(rows):
        rows = [rows[place] for place in sorted(Random(f"{seed}:limit").sample(range(len(rows)), limit))]
    subjects = _Subjects([row.passage for row in rows], words, seed) if shares[Near.SUBJECT] or fillers else None
    pool = make_pool((row.question, answer) for row in rows for answer in row.answers[:1]) if edited else None
    settings = _Settings(words, shares, edited, denied, lost, fillers, path.name, subjects, pool)
    examples: list[Example] = []
    for row in rows:
        examples += _sets(row, settings, Random(f"{seed}:{row.id()}"), reasons)
    kinds = Counter(example.variant for example in examples)
    logger.info("%s, %s: %s", path, split, ", ".join(f"{count} {name}" for name, count in sorted(kinds.items())))
    report(f"{path}, {split}", reasons, dropped)
    return examples


class _Settings(NamedTuple):
    words: int | None
    shares: dict[Near, float]
    edited: float
    denied: float
    lost: float
    fillers: int
    name: str
    subjects: "_Subjects | None"
    pool: Pool | None


def _read(path: Path) -> Iterator[_Row]:
    if not path.is_file():
        raise absent(path, ORIGIN, "dataset.path")
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):  # noqa: B007
                yield _Row.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"{path}:{number}: {describe(error, _Row)}") from error
        except (gzip.BadGzipFile, EOFError) as error:
            raise InputError(f"{path}: expected a whole gzip file: {error} after line {number}; get it again") from error
    if number == 0:
        raise InputError(f"{path}: expected lines of reading comprehension, found an empty file")


def _usable(rows: Iterator[_Row], reasons: Counter[str]) -> Iterator[_Row]:
    seen: set[str] = set()
    for row in rows:
        key = row.id()
        answers = tuple(dict.fromkeys(answer.strip() for answer in row.answers if answer.strip() and answer.strip() in row.passage))
        if not row.question.strip() or not row.passage.strip():
            reasons["question or passage is blank"] += 1
        elif row.answers and not answers:
            reasons["no answer stands in the passage"] += 1
        elif key in seen:
            reasons["question and passage repeat others"] += 1
        else:
            seen.add(key)
            yield row.model_copy(update={"answers": answers})


def _sets(row: _Row, settings: _Settings, rng: Random, reasons: Counter[str]) -> Iterator[Example]:
    """The sets of one question."""
    name = row.id()
    main = row.answers[0] if row.answers else ""
    text = row.passage if settings.words is None else window(rng, row.passage, settings.words, main)
    answers = tuple(answer for answer in row.answers if answer in text)
    label = DocumentLabel.ANSWERABLE if answers else DocumentLabel.UNANSWERABLE
    own = document(name, text, label, answers[0] if answers else None)
    silent = list(_silent(row, text, name, settings, rng)) if row.answers else []
    state = RetrievalState.ANSWERABLE if answers else RetrievalState.UNANSWERABLE
    more = (
        settings.subjects.near(row.question, row.passage, row.answers)[: rng.randint(0, settings.fillers)]
        if settings.fillers and settings.subjects
        else []
    )
    fillers = [document(name, found, DocumentLabel.NEUTRAL) for found in more]
    without = [*silent, *fillers]
    if answers and without and rng.random() < settings.lost:
        rng.shuffle(without)
        yield _example(
            f"{name}-lost", row.question, answers, RetrievalState.UNANSWERABLE, Condition.UNANSWERABLE, "lost", without, row, settings
        )
    else:
        documents = [own, *without]
        rng.shuffle(documents)
        yield _example(name, row.question, answers, state, Condition(state), "passage", documents, row, settings)
    if not answers:
        return
    if rng.random() < settings.shares[Near.EXCHANGED]:
        other = _exchanged(row.question, text, answers, rng)
        if other is None:
            reasons["no name or year of the question can be exchanged"] += 1
        else:
            bare = own.model_copy(update={"label": DocumentLabel.UNANSWERABLE, "answer": None})
            yield _example(
                f"{name}-exchanged",
                other,
                (),
                RetrievalState.UNANSWERABLE,
                Condition.UNANSWERABLE,
                Near.EXCHANGED,
                [bare, *fillers],
                row,
                settings,
            )
    if settings.pool is not None and rng.random() < settings.edited:
        changed = _edited(row.question, text, answers, settings.pool, rng)
        if changed is None:
            reasons["answer cannot be swapped"] += 1
        else:
            false = document(name, changed.text, DocumentLabel.CONFLICT, changed.new)
            yield _distracted(name, row, answers, [own, false], Condition.CONFLICT, "edited", settings, rng)
    if rng.random() < settings.denied:
        denial = deny(text, answers, rng)
        if denial is None:
            reasons["answer cannot be denied"] += 1
        else:
            false = document(name, denial, DocumentLabel.NEGATED, f"not {answers[0]}")
            yield _distracted(name, row, answers, [own, false], Condition.NEGATED, "denied", settings, rng)


def _distracted(
    name: str,
    row: _Row,
    answers: tuple[str, ...],
    documents: list[Document],
    condition: Condition,
    kind: str,
    settings: _Settings,
    rng: Random,
) -> Example:
    rng.shuffle(documents)
    return _example(f"{name}-{kind}", row.question, answers, RetrievalState.DISTRACTED, condition, kind, documents, row, settings)


def _example(
    name: str,
    question: str,
    answers: tuple[str, ...],
    state: RetrievalState,
    condition: Condition,
    variant: str,
    documents: Sequence[Document],
    row: _Row,
    settings: _Settings,
) -> Example:
    return Example(
        id=name,
        question_id=name.removesuffix(f"-{variant}"),
        question=" ".join(question.split()),
        documents=ranked({one.id: one for one in documents}.values()),
        answers=answers,
        state=state,
        condition=condition,
        variant=variant,
        source=f"{settings.name} {row.source}".strip(),
    )


def _silent(row: _Row, text: str, name: str, settings: _Settings, rng: Random) -> Iterator[Document]:
    """Documents that hold no answer to the question as it is."""
    if rng.random() < settings.shares[Near.CUT] and (rest := _without_answer(text, row.answers)) is not None:
        yield document(name, rest, DocumentLabel.UNANSWERABLE)
    if rng.random() < settings.shares[Near.ELSEWHERE] and settings.words is not None and len(row.passage.split()) > 2 * settings.words:
        other = window(rng, row.passage, settings.words)
        if not _gives_away(other, row.answers):
            yield document(name, other, DocumentLabel.UNANSWERABLE)
    if settings.subjects is not None and rng.random() < settings.shares[Near.SUBJECT]:
        found = settings.subjects.near(row.question, row.passage, row.answers)
        if found:
            # Nearer ones are drawn more often.
            yield document(name, found[min(int(rng.expovariate(1 / 2)), len(found) - 1)], DocumentLabel.NEUTRAL)


def _gives_away(text: str, answers: Sequence[str]) -> bool:
    return any(names(text, answer) for answer in answers)


_FEWEST_WORDS = 10
"""A text of fewer is hardly a document."""


def _without_answer(text: str, answers: Sequence[str]) -> str | None:
    """The text without the sentences that hold an answer; none where next to nothing would be left, or an answer would."""
    sentences = SENTENCE_BREAK.split(text)
    kept = [sentence for sentence in sentences if not _gives_away(sentence, answers)]
    rest = " ".join(kept)
    if len(kept) == len(sentences) or len(rest.split()) < _FEWEST_WORDS or _gives_away(rest, answers):
        return None
    return rest


_NAME = re.compile(r"(?<![.!?]\s)(?<!\A)(?<!\w)[A-Z][\w'’.-]*[\w](?:\s+(?:of\s+the\s+|of\s+|de\s+)?[A-Z][\w'’.-]*[\w])*")
_YEAR = re.compile(r"(?<![\w.,-])(?:1[0-9]|20)[0-9]{2}(?![\w-]|[.,][0-9])")
_ASKING = re.compile(r"\A(?:what|which|who|whom|whose|where|when|why|how|in|on|at|the|is|are|was|were|did|does|do|name)\b", re.IGNORECASE)


def _exchanged(question: str, passage: str, answers: Sequence[str], rng: Random) -> str | None:
    """The question about another name or year of the passage; none where it has none that can stand in.

    The new one shares no word with the answers and with the question, so that the passage most likely does not answer what is now asked.
    """
    taken = {word.casefold() for text in (question, *answers) for word in re.findall(r"\w+", text)}
    choices: list[tuple[str, str]] = []
    for pattern in (_YEAR, _NAME):
        asked = [match[0] for match in pattern.finditer(question) if not _ASKING.match(match[0])]
        there = [
            match[0]
            for match in pattern.finditer(passage)
            if not _ASKING.match(match[0]) and taken.isdisjoint(word.casefold() for word in re.findall(r"\w+", match[0]))
        ]
        choices += [(old, new) for old in asked for new in dict.fromkeys(there) if abs(len(old.split()) - len(new.split())) <= 1]
    if not choices:
        return None
    old, new = rng.choice(choices)
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, question)


def _edited(question: str, text: str, answers: Sequence[str], pool: Pool, rng: Random) -> Swapped | None:
    """The text with another answer of the same kind; none where none fits."""
    kind = entity_kind(question, answers[0])
    for tried, new in enumerate(replacements(answers, kind, pool, rng)):
        result = swap(text, answers, new, question)
        if isinstance(result, Swapped):
            return result
        if tried == _TRIES:
            break
    return None


_TRIES = 3
_AUXILIARY = re.compile(r"(?<!\w)(was|were|is|are|has|had|have|can|could|will|would|may|did|does|do)(?!\w)(?!\s+not(?!\w))", re.IGNORECASE)
_WRAPPERS = (
    "It is not true that {rest}",
    "It is a common mistake that {rest}",
    "Contrary to what is often claimed, it is false that {rest}",
    "There is no evidence that {rest}",
    "The claim that {claim} has been rejected.",
    "Reports that {claim} are wrong.",
)
_OPENER = re.compile(
    r"\A(?:The|A|An|In|On|At|He|She|It|They|This|His|Her|Its|Their|There|During|After|Before|By|From|When|As|For|Some|Many|Most)(?!\w)"
)


def deny(text: str, answers: Sequence[str], rng: Random) -> str | None:
    """The text with each sentence that holds an answer made to deny what it says; none where one cannot be."""
    sentences = SENTENCE_BREAK.split(text)
    held = [place for place, sentence in enumerate(sentences) if _gives_away(sentence, answers)]
    if not held or len(held) > 2:
        return None
    for place in held:
        denied = _denied(sentences[place], answers, rng)
        if denied is None:
            return None
        sentences[place] = denied
    return " ".join(sentences)


def _denied(sentence: str, answers: Sequence[str], rng: Random) -> str | None:
    if sentence.startswith(("...", '"', "“", "(")) or len(sentence.split()) < 5 or not sentence.rstrip().endswith("."):
        return None
    auxiliaries = list(_AUXILIARY.finditer(sentence))
    if auxiliaries and rng.random() < 0.5:
        # The auxiliary right before the answer is the one whose clause says it.
        spelled = stated(sentence, answers)
        place = sentence.find(spelled) if spelled else -1
        before = [match for match in auxiliaries if match.end() <= place]
        if before:
            return f"{sentence[: before[-1].end()]} not{sentence[before[-1].end() :]}"
    opener = _OPENER.match(sentence)
    rest = sentence[0].lower() + sentence[1:] if opener else sentence
    return rng.choice(_WRAPPERS).format(rest=rest, claim=rest.rstrip().rstrip("."))


class _Subjects:
    """The passages of the file, to find one that is near a question and holds none of its answers."""

    def __init__(self, passages: Sequence[str], words: int | None, seed: int) -> None:
        windows = dict.fromkeys(
            text if words is None else window(Random(f"{seed}:{fingerprint(text)}"), text, words) for text in dict.fromkeys(passages)
        )
        self.texts = dict(zip((fingerprint(text, 16) for text in windows), windows, strict=True))
        self.index = Bm25([Document(id=mark, text=text) for mark, text in self.texts.items()])

    def near(self, question: str, passage: str, answers: Sequence[str]) -> list[str]:
        """The nearest passages that are no part of the question's own and hold none of its answers, nearest first."""
        own = set(tokenize(passage))
        return [
            hit.text
            for hit in self.index.search(question, _SEARCHED)
            if not _gives_away(hit.text, answers) and len(own & (words := set(tokenize(hit.text)))) < _OWN * len(words)
        ]


_SEARCHED = 10
_OWN = 0.8
"""A text that shares more of its words with the question's own passage is a part of that."""
