"""Examples from a RobustRAG file (RealtimeQA, open NQ, SimpleQA): questions with Google snippets, a wrong answer and texts that support it.

    python -m eval.pipeline dataset=realtimeqa dataset.path=realtimeqa.json

A set holds the first `k` usable snippets. It is `answerable` when a gold answer occurs in one of them, else `unanswerable`. A `conflict` set is
an answerable one with a text for the wrong answer in place of a snippet. `docs/data.md` has the rules in full and what comes out of them.
`questions` gives the same questions before any of that, for data generation: all snippets as candidates, the texts for the wrong answer as conflicts.

    {"id": 0, "question": "What percentage of couples are 'sleep divorced'?", "correct answer": ["15%"], "expanded answer": ["0.15"],
     "incorrect answer": "32%", "incorrect_context": ["According to new research, 32% of couples have chosen to sleep divorce."],
     "context": [{"title": "Sleep divorce, survey finds", "text": "The survey of 2,005 adults found that ...", "link": "https://example.org"}]}

From the repository inspire-group/RobustRAG, `data/realtimeqa.json` and `data/open_nq.json` (NQ-google; not in every copy of the repository), and its
fork zeyushen-yo/RobustRAG, `data/simpleqa_sorted.json`; no licence stated. Keys other than these are not read.
"""

import logging
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from data_gen.documents import document, fingerprint, ranked
from data_gen.label import stated
from data_gen.pools.pool import Material
from data_gen.questions import Question, Simulated, candidates, distracting
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import NumberedId
from data_gen.sources.left_out import report
from data_gen.sources.origin import Origin, absent, require_list
from data_gen.split import assign
from rag.errors import InputError
from rag.jsonl import describe, read_json
from rag.records import Condition, Document, DocumentLabel, Example, Id, RetrievalState, Text
from rag.retrieval.bm25 import Bm25
from rag.settings import InputPath
from rag.text import contains

logger = logging.getLogger(__name__)

ORIGIN = Origin(
    what="questions in RobustRAG's format",
    where="https://github.com/inspire-group/RobustRAG",
    how="data/realtimeqa.json for RealtimeQA, data/open_nq.json for NQ-google; data/simpleqa_sorted.json is in its fork by zeyushen-yo",
)

_SEARCHED = 40
"""Snippets to look at for neutral ones, beside the question's own."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Snippet(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Text = ""
    text: Text = ""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NumberedId
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
    texts: tuple[str, ...]
    """All of its snippets, used or not."""

    @property
    def golds(self) -> int:
        return sum(d.label is DocumentLabel.ANSWERABLE for d in self.documents)

    def example(self, condition: Condition, documents: tuple[Document, ...], source: str) -> Example:
        state = RetrievalState.DISTRACTED if condition is Condition.CONFLICT else RetrievalState(condition)
        return Example(
            id=f"{self.question_id}-{condition}",
            question_id=self.question_id,
            question=self.question,
            documents=ranked(documents),
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
    neutral: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Example]:
    """One or two Examples for each question of the file, in the file's order: answerable and conflict, or unanswerable.

    `shares` deals the questions out to splits, all to `test` when absent. `titles` makes the title a part of each document, for the rule and
    for the reader. `aliases` accepts the file's `expanded answer` as gold too; leave it off where those are whole sentences, as in SimpleQA.
    `neutral` appends that many snippets of other questions of the split, nearest first by BM25, in which no answer stands (paper 002, table 6,
    has 1 to 3). `limit` keeps the first examples. What was left out is logged, and added to `dropped` by reason. Raises InputError for a file
    that does not fit the format, naming the record and the field.
    """
    given = {"test": 1.0} if shares is None else shares
    if given.get(split, 0) <= 0:
        raise InputError(f"split={split}: expected a split with a share of the questions, got shares {given}; set dataset.shares")
    for name, value, low in (("k", k, 2), ("limit", limit, 1), ("neutral", neutral, 0)):
        if value is not None and value < low:
            raise InputError(f"{name}: expected a number of at least {low}, got {value}")
    reasons: Counter[str] = Counter()
    examples: list[Example] = []
    records = [record for record in _read(path) if assign(record.question, given, seed) == split]
    strangers = _Strangers(records) if neutral else None
    for record in records:
        case = _case(record, path.stem, k, titles, aliases, reasons)
        made = _examples(case, path.name, seed, reasons)
        examples += [_with_neutral(example, strangers.near(case, neutral), reasons) for example in made] if strangers else made
    conditions = Counter(str(example.condition) for example in examples)
    logger.info("%s: %s", path, ", ".join(f"{count} {name}" for name, count in sorted(conditions.items())) or "no examples")
    report(str(path), reasons, dropped)
    return examples[:limit]


def materials(path: Path, aliases: bool = False) -> list[Material]:
    """What the file holds on each question, for sets of other kinds; `aliases` as in `load`, else `expanded answer` is generated text."""
    return [
        Material(
            question_id=f"{path.stem}-{record.id}",
            question=record.question,
            answers=_answers(record, aliases),
            passages=tuple(snippet.text for snippet in record.context),
            wrong=record.incorrect,
            generated_false=record.incorrect_context,
            generated_true=() if aliases else record.expanded,
        )
        for record in _read(path)
    ]


def questions(
    path: Paths,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    titles: bool = False,
    aliases: bool = True,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split with all their snippets as candidates, and the texts for the wrong answer as simulated conflicts.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. `titles` gives documents the titles
    of their snippets. `aliases` accepts the file's `expanded answer` as gold too; where it is off, it is no answer, and where it is a sentence (as
    in SimpleQA) it is the reference. Raises InputError that names file, record and field.
    """

    def make(file: Path, record: _Record, reasons: Counter[str]) -> Question:
        question_id = f"{file.stem}-{record.id}"
        documents = candidates(question_id, ((one.title if titles else "", one.text) for one in record.context), reasons)
        wrong = record.incorrect.strip()
        conflicts = (Simulated(text, DocumentLabel.CONFLICT, stated(text, (wrong,)) or wrong) for text in record.incorrect_context)
        sentences = () if aliases else record.expanded
        return Question(
            id=question_id,
            question=record.question,
            answers=_answers(record, aliases),
            documents=documents,
            simulated=distracting(question_id, conflicts, documents, reasons),
            reference=next((text for text in sentences if _contains_any(text, record.correct)), None),
            source=file.name,
        )

    return deal(_records, make, path, split, shares, seed, limit, dropped)


def _records(path: Path) -> list[_Record]:
    if not path.is_file():
        raise absent(path, ORIGIN)
    return _read(path)


def _read(path: Path) -> list[_Record]:
    content = require_list(read_json(path), path, "RobustRAG records")
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
    answers = _answers(record, aliases)
    documents: list[Document] = []
    seen: set[str] = set()
    for snippet in record.context:
        mark = fingerprint(snippet.text)
        if len(documents) == k:
            break
        if not snippet.text.strip():
            reasons["snippet without text"] += 1
        elif mark in seen:
            reasons["snippet repeats a better ranked one"] += 1
        else:
            seen.add(mark)
            title = snippet.title if titles else ""
            answer = stated(f"{title}\n{snippet.text}", answers)
            label = DocumentLabel.UNANSWERABLE if answer is None else DocumentLabel.ANSWERABLE
            documents.append(document(question_id, snippet.text, label, answer, title))
    texts = tuple(snippet.text for snippet in record.context)
    return _Case(question_id, record.question, answers, tuple(documents), record.incorrect, record.incorrect_context, texts)


def _answers(record: _Record, aliases: bool) -> tuple[str, ...]:
    given = (*record.correct, *record.expanded) if aliases else record.correct
    return tuple(dict.fromkeys(answer for answer in given if answer.strip()))


def _contains_any(text: str, answers: tuple[str, ...]) -> bool:
    return any(contains(text, answer) for answer in answers)


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


class _Strangers:
    """The snippets of all questions, to find some of other questions."""

    def __init__(self, records: list[_Record]) -> None:
        texts = {fingerprint(snippet.text): snippet.text for record in records for snippet in record.context if snippet.text.strip()}
        self.index = Bm25([Document(id=mark, text=text) for mark, text in texts.items()])

    def near(self, case: _Case, most: int) -> list[Document]:
        """The best documents of other questions in which neither an answer nor the wrong one stands."""
        own = {fingerprint(text) for text in case.texts}
        usable = (
            document(case.question_id, hit.text, DocumentLabel.NEUTRAL)
            for hit in self.index.search(case.question, len(own) + _SEARCHED)
            if hit.id not in own and not _contains_any(hit.text, (*case.answers, case.incorrect))
        )
        return list(islice(usable, most))


def _with_neutral(example: Example, neutral: list[Document], reasons: Counter[str]) -> Example:
    if not neutral:
        reasons["set without a neutral document to append"] += 1
    return example.model_copy(update={"documents": ranked((*example.documents, *neutral))})


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
    documents = [kept for kept in case.documents if kept is not removed]
    text = rng.choice(texts)
    conflict = document(case.question_id, text, DocumentLabel.CONFLICT, stated(text, (case.incorrect,)))
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
