"""Natural conflicts: WikiContradict (Hou et al. 2024), two passages of Wikipedia that editors have marked as contradicting each other.

    python -m data_gen.build dataset=wikicontradict dataset.path=wikicontradict.csv 'splits=[test]' out=data/wikicontradict

The file is the CSV of the data set ibm/Wikipedia_contradict_benchmark on the Hugging Face hub, or JSON lines of the same fields. Nobody
wrote these conflicts to deceive, and no model did: what a Sieve flags here it has not learnt from a generator's style.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data_gen.documents import document, fingerprint, ranked
from data_gen.label import stated
from data_gen.sources.fields import NumberedId
from data_gen.sources.left_out import report
from rag.errors import InputError
from rag.jsonl import describe, iter_records
from rag.records import Condition, Document, DocumentLabel, Example, Id, RetrievalState, Text
from rag.retrieval.bm25 import Bm25
from rag.settings import InputPath
from rag.text import contains, normalize

_SEARCHED = 20
"""Passages to look at for one of another question."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    id: Annotated[NumberedId, Field(alias="question_ID")]
    question: Id
    context1: Text
    context2: Text
    answer1: Text
    answer2: Text


def load(path: InputPath, split: str = "test", limit: int | None = None, dropped: Counter[str] | None = None) -> list[Example]:
    """Three Examples for each usable row: both passages, and each of them with one about another question.

    The first is a conflict (`variant` `natural_conflict`), the others are answerable (`one_side`), so a Sieve that flags whatever
    comes from here gains nothing. All rows belong to the split `test`. What was left out is logged, and added to `dropped` by reason.
    Raises InputError for another split and for a file that does not fit the format.
    """
    if split != "test":
        raise InputError(f"split={split}: natural conflicts are for testing only; set dataset.split=test and splits=[test]")
    reasons: Counter[str] = Counter()
    records = [record for record in _read(path) if _usable(record, reasons)]
    index = Bm25([Document(id=mark, text=text) for mark, text in {fingerprint(t): t for r in records for t in _texts(r)}.items()])
    examples: list[Example] = []
    for record in records:
        question_id = f"{path.stem}-{record.id}"
        first, second = (
            document(question_id, text, label, stated(text, (answer,)) or answer)
            for text, label, answer in (
                (record.context1, DocumentLabel.ANSWERABLE, record.answer1),
                (record.context2, DocumentLabel.CONFLICT, record.answer2),
            )
        )
        examples.append(_example(record, question_id, Condition.CONFLICT, (first, second), path.name, 0))
        stranger = next(_strangers(record, question_id, index), None)
        if stranger is None:
            reasons["no passage of another question to put beside one side"] += 1
            continue
        for number, side in enumerate((first, second), start=1):
            alone = side.model_copy(update={"label": DocumentLabel.ANSWERABLE})
            examples.append(_example(record, question_id, Condition.ANSWERABLE, (alone, stranger), path.name, number))
    report(str(path), reasons, dropped)
    return examples[:limit]


def _read(path: Path) -> list[_Record]:
    if path.suffix != ".csv":
        return list(iter_records(path, _Record))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; set dataset.path to the CSV of ibm/Wikipedia_contradict_benchmark") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: {error}") from error
    records = []
    for number, row in enumerate(rows, start=1):
        try:
            records.append(_Record.model_validate(row))
        except ValidationError as error:
            raise InputError(f"{path}: row {number}: {describe(error, _Record)}") from error
    if not records:
        raise InputError(f"{path}: expected rows of WikiContradict, found none")
    return records


def _texts(record: _Record) -> tuple[str, str]:
    return record.context1, record.context2


def _usable(record: _Record, reasons: Counter[str]) -> bool:
    if not all(text.strip() for text in (*_texts(record), record.answer1, record.answer2)):
        reasons["a passage or an answer is blank"] += 1
    elif normalize(record.answer1) == normalize(record.answer2):
        reasons["both answers are the same"] += 1
    elif fingerprint(record.context1) == fingerprint(record.context2):
        reasons["both passages are the same"] += 1
    else:
        return True
    return False


def _strangers(record: _Record, question_id: str, index: Bm25) -> Iterator[Document]:
    """Passages of other questions, nearest first, in which neither answer stands."""
    own = {fingerprint(text) for text in _texts(record)}
    return (
        document(question_id, hit.text, DocumentLabel.NEUTRAL)
        for hit in index.search(record.question, len(own) + _SEARCHED)
        if hit.id not in own and not contains(hit.text, record.answer1) and not contains(hit.text, record.answer2)
    )


def _example(record: _Record, question_id: str, condition: Condition, documents: tuple[Document, ...], source: str, number: int) -> Example:
    conflict = condition is Condition.CONFLICT
    return Example(
        id=f"{question_id}-{condition}-{number}",
        question_id=question_id,
        question=record.question,
        documents=ranked(documents),
        answers=(record.answer2 if number == 2 else record.answer1,),
        state=RetrievalState.DISTRACTED if conflict else RetrievalState.ANSWERABLE,
        condition=condition,
        variant="natural_conflict" if conflict else "one_side",
        source=source,
    )
