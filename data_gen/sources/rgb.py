"""Questions of RGB's `en_fact` file (JSON lines): true snippets, the same ones edited to a false answer, and snippets without the answer."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from data_gen.pools.pool import Material
from data_gen.sources.fields import NumberedId
from rag.jsonl import iter_records
from rag.records import Id, Text


def _flat(value: Any) -> Any:
    """The format nests the spellings of one answer, and gives a single answer bare."""
    if isinstance(value, list):
        return [inner for item in value for inner in (_flat(item) if isinstance(item, list) else [item])]
    return [value]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NumberedId
    query: Id
    answer: Annotated[tuple[Id, ...], BeforeValidator(_flat), Field(min_length=1)]
    fakeanswer: Id
    positive: tuple[Text, ...]
    positive_wrong: tuple[Text, ...]
    negative: tuple[Text, ...]


def materials(path: Path) -> list[Material]:
    """What the file holds on each question, in its order. Raises InputError that names line and field."""
    return [
        Material(
            question_id=f"{path.stem}-{record.id}",
            question=record.query,
            answers=tuple(dict.fromkeys(record.answer)),
            passages=record.negative,
            wrong=record.fakeanswer.strip(),
            edited=tuple((true, wrong) for true, wrong in zip(record.positive, record.positive_wrong, strict=False) if true != wrong),
        )
        for record in iter_records(path, _Record)
    ]
