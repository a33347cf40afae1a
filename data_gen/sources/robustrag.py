"""Examples from a RobustRAG file (RealtimeQA, open NQ, SimpleQA): questions with Google snippets, a wrong answer and texts that support it.

    python -m eval.pipeline dataset=realtimeqa dataset.path=realtimeqa.json

A set holds the first `k` usable snippets. It is `answerable` when a gold answer occurs in one of them, else `unanswerable`. A `conflict` set is
an answerable one with a text for the wrong answer in place of a snippet. `docs/data.md` has the rules in full and what comes out of them.
"""

import hashlib
import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from data_gen.split import assign
from rag.errors import InputError
from rag.jsonl import describe, read_json
from rag.records import Condition, Document, DocumentLabel, Example, Id, RetrievalState, Text
from rag.settings import InputPath
from rag.text import contains

logger = logging.getLogger(__name__)


def _id_text(value: Any) -> Any:
    """The format numbers its questions; everywhere else in the project an id is text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Snippet(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Text = ""
    text: Text = ""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Annotated[Id, BeforeValidator(_id_text)]
    question: Id
    correct: Annotated[tuple[Id, ...], BeforeValidator(_as_list), Field(alias="correct answer", min_length=1)]
    expanded: Annotated[tuple[Text, ...], BeforeValidator(_as_list), Field(alias="expanded answer")] = ()
    incorrect: Annotated[Id, Field(alias="incorrect answer")]
    incorrect_context: tuple[Text, ...]
    context: tuple[_Snippet, ...]


@dataclass(frozen=True)
class _Case:
    """One question with its usable snippets as labelled documents."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    documents: tuple[Document, ...]
    incorrect: str
    incorrect_context: tuple[str, ...]

    @property
    def golds(self) -> int:
        return sum(document.label is DocumentLabel.ANSWERABLE for document in self.documents)

    def example(self, condition: Condition, documents: tuple[Document, ...], source: str) -> Example:
        state = RetrievalState.DISTRACTED if condition is Condition.CONFLICT else RetrievalState(condition)
        return Example(
            id=f"{self.question_id}-{condition}",
            question_id=self.question_id,
            question=self.question,
            documents=tuple(document.model_copy(update={"rank": rank}) for rank, document in enumerate(documents, start=1)),
            answers=self.answers,
            state=state,
            condition=condition,
            source=source,
        )


def load(
    path: InputPath,
    k: int = 5,
    seed: int = 0,
    split: str = "test",
    shares: dict[str, float] | None = None,
    titles: bool = False,
    aliases: bool = True,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Example]:
    """One or two Examples for each question of the file, in the file's order: answerable and conflict, or unanswerable.

    `shares` deals the questions out to splits, all to `test` when absent. `titles` makes the title a part of each document, for the rule and
    for the reader. `aliases` accepts the file's `expanded answer` as gold too; leave it off where those are whole sentences, as in SimpleQA.
    `limit` keeps the first examples. What was left out is logged, and added to `dropped` by reason. Raises InputError for a file that does
    not fit the format, naming the record and the field.
    """
    given = {"test": 1.0} if shares is None else shares
    if given.get(split, 0) <= 0:
        raise InputError(f"split={split}: expected a split with a share of the questions, got shares {given}; set dataset.shares")
    for name, value, low in (("k", k, 2), ("limit", limit, 1)):
        if value is not None and value < low:
            raise InputError(f"{name}: expected a number of at least {low}, got {value}")
    reasons: Counter[str] = Counter()
    examples: list[Example] = []
    for record in _read(path):
        if assign(record.question, given, seed) == split:
            examples += _examples(_case(record, path.stem, k, titles, aliases, reasons), path.name, seed, reasons)
    conditions = Counter(str(example.condition) for example in examples)
    logger.info("%s: %s", path, ", ".join(f"{count} {name}" for name, count in sorted(conditions.items())) or "no examples")
    for reason, count in sorted(reasons.items()):
        logger.info("%s: left out %d: %s", path, count, reason)
    if dropped is not None:
        dropped.update(reasons)
    return examples[:limit]


def _read(path: Path) -> list[_Record]:
    content = read_json(path)
    if not isinstance(content, list) or not content:
        raise InputError(
            f"{path}: expected a JSON list of RobustRAG records, got {'an empty list' if content == [] else type(content).__name__}"
        )
    records = []
    index_of: dict[str, int] = {}
    for index, item in enumerate(content):
        try:
            record = _Record.model_validate(item)
        except ValidationError as error:
            raise InputError(f"{path}: record {index}: {describe(error, _Record)}") from error
        if record.id in index_of:
            raise InputError(f"{path}: record {index}: id: '{record.id}' was already used by record {index_of[record.id]}")
        index_of[record.id] = index
        records.append(record)
    return records


def _case(record: _Record, name: str, k: int, titles: bool, aliases: bool, reasons: Counter[str]) -> _Case:
    question_id = f"{name}-{record.id}"
    given = (*record.correct, *record.expanded) if aliases else record.correct
    answers = tuple(dict.fromkeys(answer for answer in given if answer.strip()))
    documents: list[Document] = []
    seen: set[str] = set()
    for snippet in record.context:
        fingerprint = _fingerprint(snippet.text)
        if len(documents) == k:
            break
        if not snippet.text.strip():
            reasons["snippet without text"] += 1
        elif fingerprint in seen:
            reasons["snippet repeats a better ranked one"] += 1
        else:
            seen.add(fingerprint)
            title = snippet.title if titles else ""
            documents.append(_document(question_id, title, snippet.text, _label(f"{title}\n{snippet.text}", answers)))
    return _Case(question_id, record.question, answers, tuple(documents), record.incorrect, record.incorrect_context)


def _label(text: str, answers: tuple[str, ...]) -> DocumentLabel:
    return DocumentLabel.ANSWERABLE if _contains_any(text, answers) else DocumentLabel.UNANSWERABLE


def _contains_any(text: str, answers: tuple[str, ...]) -> bool:
    return any(contains(text, answer) for answer in answers)


def _fingerprint(text: str) -> str:
    """Equal for texts that differ in case and spacing only."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:8]


def _document(question_id: str, title: str, text: str, label: DocumentLabel) -> Document:
    """The id comes from the text, so that it stays the same wherever the document stands."""
    return Document(id=f"{question_id}-{_fingerprint(text)}", title=title, text=text, label=label)


def _examples(case: _Case, source: str, seed: int, reasons: Counter[str]) -> list[Example]:
    if not case.documents:
        reasons["question without a usable snippet"] += 1
        return []
    if case.golds == 0:
        return [case.example(Condition.UNANSWERABLE, case.documents, source)]
    if any(contains(d.text, case.incorrect) for d in case.documents if d.label is not DocumentLabel.ANSWERABLE):
        reasons["answerable question with a snippet that names only the wrong answer"] += 1
        return []
    answerable = case.example(Condition.ANSWERABLE, case.documents, source)
    distracted = _with_conflict(case, Random(f"{seed}:{case.question_id}"), reasons)
    return [answerable] if distracted is None else [answerable, case.example(Condition.CONFLICT, distracted, source)]


def _with_conflict(case: _Case, rng: Random, reasons: Counter[str]) -> tuple[Document, ...] | None:
    """The documents with a text for the wrong answer in place of one, at a random position; a gold document always stays."""
    texts = [text for text in case.incorrect_context if _supports(text, case, reasons)]
    replaceable = [d for d in case.documents if d.label is not DocumentLabel.ANSWERABLE or case.golds > 1]
    if not texts:
        reasons["conflict set without a usable text for the wrong answer"] += 1
        return None
    if not replaceable:
        reasons["conflict set without a document to replace"] += 1
        return None
    removed = rng.choice(replaceable)
    documents = [document for document in case.documents if document is not removed]
    conflict = _document(case.question_id, "", rng.choice(texts), DocumentLabel.CONFLICT)
    documents.insert(rng.randrange(len(documents) + 1), conflict)
    return tuple(documents)


def _supports(text: str, case: _Case, reasons: Counter[str]) -> bool:
    if not text.strip():
        reasons["text for the wrong answer is blank"] += 1
        return False
    if _contains_any(text, case.answers):
        reasons["text for the wrong answer contains a gold answer"] += 1
        return False
    if not contains(text, case.incorrect):
        reasons["text for the wrong answer does not contain it"] += 1
        return False
    return True
