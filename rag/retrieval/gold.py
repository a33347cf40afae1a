"""Questions with the documents that a retriever should find for them."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from rag.errors import InputError
from rag.jsonl import iter_records
from rag.records import Id, Record


class GoldQuestion(Record):
    """One line of a file of questions: `{"id": "q1", "question": "Who ...?", "gold": ["d7"]}`."""

    id: Id
    question: Id
    """The question as a user would ask it; never blank."""
    gold: Annotated[tuple[Id, ...], Field(min_length=1)]
    """Ids of the documents that answer it."""


def read_questions(path: Path) -> list[GoldQuestion]:
    """Read a file of questions. Raises InputError for an empty file, and for an id, or a gold document of one question, that comes twice."""
    questions = list(iter_records(path, GoldQuestion))
    if not questions:
        raise InputError(f"{path}: expected at least one question with gold documents, found an empty file")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise InputError(f"{path}: id: '{question.id}' comes twice; give each question its own")
        if len(set(question.gold)) < len(question.gold):
            raise InputError(f"{path}: gold: '{question.id}' names a document twice")
        seen.add(question.id)
    return questions
