"""Read the records of a source's file, and say where to get a file that is not there."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from rag.errors import InputError
from rag.jsonl import describe, iter_records, read_json

RecordT = TypeVar("RecordT", bound=BaseModel)


class Origin(NamedTuple):
    """Where a data set comes from, for the one who has not got it yet."""

    what: str
    """Its name."""
    where: str
    """A public address."""
    how: str
    """Which of its files to take, and in what form to put it on disk."""


def absent(path: Path, origin: Origin, key: str = "dataset.questions.path", endings: Sequence[str] = ()) -> InputError:
    """The error for a file, or a folder of files with these `endings`, that is not at `path`: what to get, from where, and where to put it."""
    found = "a folder" if path.is_dir() else "nothing"
    files = f" or a folder of {' or '.join(endings)} files" if endings else ""
    found += f" without {' or '.join(endings)} files" if endings and path.is_dir() else ""
    return InputError(
        f"{path}: expected a file of {origin.what}{files}, found {found} at that path; get it from {origin.where} ({origin.how}), "
        f"and put it there or set {key} to where it is"
    )


def require_list(content: object, path: Path, what: str) -> list[object]:
    """The content of a JSON file as a list that is not empty. Raises InputError that says what came instead."""
    if not isinstance(content, list) or not content:
        raise InputError(f"{path}: expected a JSON list of {what}, got {'an empty list' if content == [] else type(content).__name__}")
    return content


def validated(items: list[object], model: type[RecordT], where: str) -> Iterator[RecordT]:
    """Each item as a record. Raises InputError that names `where`, the item's place and the field."""
    for index, item in enumerate(items):
        try:
            yield model.model_validate(item)
        except ValidationError as error:
            raise InputError(f"{where}: record {index}: {describe(error, model)}") from error


def read_records(path: Path, model: type[RecordT], origin: Origin, key: str = "dataset.questions.path") -> Iterator[RecordT]:
    """The records of a JSON list, or of JSON lines, which are read one by one.

    Raises InputError for a file that is not there or holds nothing, and for a record that does not fit, naming file, record and field.
    """
    if not path.is_file():
        raise absent(path, origin, key)
    with path.open("rb") as file:
        is_list = file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    if is_list:
        yield from validated(require_list(read_json(path), path, f"records of {origin.what}"), model, str(path))
        return
    count = 0
    for count, record in enumerate(iter_records(path, model), start=1):  # noqa: B007
        yield record
    if count == 0:
        raise InputError(f"{path}: expected records of {origin.what}, found an empty file")
