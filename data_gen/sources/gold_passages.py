"""Questions with one gold passage each, in the format of RAAT's cache of golden contexts: `question`, `answers` and `ctx`."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data_gen.pool import Material
from rag.errors import InputError
from rag.jsonl import describe, read_json
from rag.records import Id, Text


class _Passage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    text: Text


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    question: Id
    answers: Annotated[tuple[Id, ...], Field(min_length=1)]
    ctx: _Passage


def materials(path: Path) -> list[Material]:
    """What the file holds on each question, in its order. Raises InputError that names record and field."""
    content = read_json(path)
    if not isinstance(content, list) or not content:
        raise InputError(
            f"{path}: expected a JSON list of questions with a gold passage, got {'an empty list' if content == [] else type(content).__name__}"
        )
    found = []
    for index, item in enumerate(content):
        try:
            record = _Record.model_validate(item)
        except ValidationError as error:
            raise InputError(f"{path}: record {index}: {describe(error, _Record)}") from error
        found.append(Material(f"{path.stem}-{index}", record.question, tuple(dict.fromkeys(record.answers)), (record.ctx.text,)))
    return found
