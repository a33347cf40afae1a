"""Your own questions: JSON lines, CSV, or a data set of the Hugging Face hub, with a mapping of columns.

    {"id": "007", "question": "Who keeps the light?", "answers": ["Ada Kol", "A. Kol"],
     "documents": [{"title": "The light", "text": "Ada Kol keeps it."}]}

    nr,frage,antwort
    007,Is the light on?,no

`columns` names what your columns are called: `{question: frage, answers: antwort, id: nr}`. Cells stay text: `007` and `no` are what was written. In
JSON lines a number or a boolean as an answer is refused, because how it was written is lost. A `documents` column holds the candidates, each a text
or an object with `text` and `title`; in CSV as a JSON list.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from data_gen.questions import Question, candidates, named
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import Answers, NumberedId
from data_gen.sources.origin import Origin, read_records
from rag.errors import InputError, nearest
from rag.jsonl import describe
from rag.records import Id, Text
from rag.settings import Settings

ORIGIN = Origin(what="questions with answers", where="your own data", how="one question a line, or a row of a table")


class Columns(Settings):
    """Names of the columns, and what a cell of answers holds."""

    question: str = "question"
    answers: str = "answers"
    id: str | None = None
    """An id that never changes; where there is none, ids come from the questions' text."""
    documents: str | None = None
    """Candidates; where there are none, documents are to be retrieved."""
    reference: str | None = None
    """A sentence that states the answer."""
    answers_as: Literal["cell", "json", "separated"] = "cell"
    """`cell`: a list, or one answer as it stands. `json`: the text of a JSON list. `separated`: texts between `separator`s."""
    separator: str = Field(default="|", min_length=1)

    def named(self) -> dict[str, str]:
        """Column by field, for the fields that have one."""
        names = {name: getattr(self, name) for name in ("question", "answers", "id", "documents", "reference")}
        return {name: column for name, column in names.items() if column is not None}


class _Passage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Text = ""
    text: Text


def _passages(value: Any) -> Any:
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    items = _json_list(value) if isinstance(value, str) else value
    return [{"text": item} if isinstance(item, str) else item for item in items] if isinstance(items, (list, tuple)) else items


def _json_list(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected a JSON list, got text that is not JSON: {error.msg}") from error
    if not isinstance(value, list):
        raise ValueError(f"expected a JSON list, got {type(value).__name__}")
    return value


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    question: Id
    answers: Answers
    id: NumberedId | None = None
    documents: Annotated[tuple[_Passage, ...], BeforeValidator(_passages)] = ()
    reference: Text | None = None


class _Line(BaseModel):
    """A JSON object with whatever keys."""

    model_config = ConfigDict(frozen=True, extra="allow")


def from_jsonl(
    path: Paths,
    columns: Columns = Columns(),  # noqa: B008
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split of JSON lines or of a JSON list.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. Raises InputError that names file,
    record and column.
    """
    return deal(partial(_json_rows, columns), _question, path, split, shares, seed, limit, dropped)


def from_csv(
    path: Paths,
    columns: Columns = Columns(),  # noqa: B008
    delimiter: str = ",",
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split of a table in UTF-8 whose first row names the columns; `delimiter` is what separates cells.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. Raises InputError that names file,
    row and column.
    """
    return deal(partial(_csv_rows, columns, delimiter), _question, path, split, shares, seed, limit, dropped)


def from_huggingface(
    name: str,
    columns: Columns = Columns(),  # noqa: B008
    config: str | None = None,
    revision: str | None = None,
    splits: dict[str, str] | None = None,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split of a data set on the hub, or of a folder in a form that `datasets` reads.

    `splits` says which of the data set's splits each of ours is, such as `{train: train, validation: train, test: validation}`; splits that name
    the same one share it by `shares`; none is for a data set with all three. `revision` pins a version. Raises InputError for a data set
    that cannot be loaded, and for a row that does not fit, with its number and column.
    """
    return deal(
        partial(_hub_rows, name, config, revision, columns),
        partial(_hub_question, name),
        {name: name for name in ("train", "validation", "test")} if splits is None else splits,
        split,
        shares,
        seed,
        limit,
        dropped,
    )


def _json_rows(columns: Columns, path: Path) -> Iterator[_Row]:
    for number, line in enumerate(read_records(path, _Line, ORIGIN), start=1):
        yield _row(line.model_extra or {}, columns, f"{path}: record {number}")


def _csv_rows(columns: Columns, delimiter: str, path: Path) -> Iterator[_Row]:
    if not path.is_file():
        raise InputError(
            f"{path}: expected a CSV file, found {'a folder' if path.is_dir() else 'nothing'} at that path; set dataset.questions.path"
        )
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter, strict=True)
            for number, cells in enumerate(reader, start=1):
                where = f"{path}: row {number}"
                if None in cells or None in cells.values():
                    raise InputError(f"{where}: expected {len(reader.fieldnames or ())} cells as in the first row, found more or fewer")
                yield _row(cells, columns, where)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text: {error}") from error
    except csv.Error as error:
        raise InputError(f"{path}: row {number + 1}: {error}") from error
    if number == 0:
        raise InputError(f"{path}: expected rows under a row of column names, found none")


def _hub_rows(name: str, config: str | None, revision: str | None, columns: Columns, hub_split: str) -> Iterator[_Row]:
    from datasets import load_dataset  # A heavy import that only this source needs.

    try:
        rows = load_dataset(name, config, split=hub_split, revision=revision)
    except (OSError, ValueError) as error:  # No network, no such data set, config or split: `datasets` raises subclasses of these.
        raise InputError(
            f"{name}: could not load the split '{hub_split}' of this data set: {error}; check questions.name, .config, .splits and .revision, "
            "or fetch it where there is a network, save it with `to_json` and use questions=jsonl"
        ) from error
    for number, cells in enumerate(rows, start=1):
        yield _row(cells, columns, f"{name}, {hub_split}: row {number}")


def _row(cells: Mapping[str, Any], columns: Columns, where: str) -> _Row:
    fields: dict[str, Any] = {}
    for field, column in columns.named().items():
        if column not in cells:
            raise InputError(
                f"{where}: no column '{column}'{nearest(column, cells)}; set dataset.questions.columns.{field} to one of {', '.join(cells) or 'them'}"
            )
        fields[field] = cells[column]
    # An empty cell of a table is no id and no reference.
    fields = {field: None if value == "" and field in ("id", "reference") else value for field, value in fields.items()}
    try:
        if isinstance(fields["answers"], str):
            fields["answers"] = _split_answers(fields["answers"], columns)
        return _Row.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{where}: {describe(error, _Row)}") from error
    except ValueError as error:
        raise InputError(f"{where}: answers: {error}") from error


def _split_answers(cell: str, columns: Columns) -> list[Any]:
    if columns.answers_as == "json":
        return _json_list(cell)
    if columns.answers_as == "separated":
        return [part.strip() for part in cell.split(columns.separator) if part.strip()]
    return [cell]


def _question(path: Path, row: _Row, reasons: Counter[str]) -> Question:
    return _made(path.stem, path.name, row, reasons)


def _hub_question(name: str, _: str, row: _Row, reasons: Counter[str]) -> Question:
    return _made(name.rstrip("/").rpartition("/")[2], name, row, reasons)


def _made(prefix: str, source: str, row: _Row, reasons: Counter[str]) -> Question:
    question_id = named(prefix, row.question) if row.id is None else f"{prefix}-{row.id}"
    return Question(
        id=question_id,
        question=row.question,
        answers=tuple(dict.fromkeys(row.answers)),
        documents=candidates(question_id, ((one.title, one.text) for one in row.documents), reasons),
        reference=row.reference if row.reference is not None and row.reference.strip() else None,
        source=source,
    )
