"""Read and write records as JSON Lines; errors name file, line and field."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError

from rag.errors import InputError, nearest
from rag.records import Example

RecordT = TypeVar("RecordT", bound=BaseModel)


def describe(error: ValidationError, model: type[BaseModel]) -> str:
    """One line for all problems of a record: the field's path, what was wrong, and the nearest name for an unknown field."""
    problems = []
    for item in error.errors():
        field = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            message = f"unknown field{nearest(str(item['loc'][-1]), _fields_at(model, item['loc'][:-1]))}"
        else:
            message = item["msg"].removeprefix("Value error, ")
        problems.append(f"{field}: {message}" if field else message)
    return "; ".join(problems)


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Names of the fields of the record that a path leads to, such as those of Document for `documents.0`."""
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_records_in(model.model_fields[part].annotation), model)
    return list(model.model_fields)


def _records_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _records_in(argument)


def iter_records(path: Path, model: type[RecordT]) -> Iterator[RecordT]:
    """Yield one record for each non-blank line.

    Raises InputError for a missing file, a line that is not UTF-8 or JSON, and a record that does not fit `model`.
    """
    return (record for _, record in _numbered(path, model))


class Records(Iterable[RecordT]):
    """Records of a file, read anew by each pass over them and never held; `iter_records` says what is refused."""

    def __init__(self, path: Path, model: type[RecordT]) -> None:
        """Remember where the records are; nothing is read yet."""
        self.path = path
        self.model = model

    def __iter__(self) -> Iterator[RecordT]:
        return iter_records(self.path, self.model)


def _numbered(path: Path, model: type[RecordT]) -> Iterator[tuple[int, RecordT]]:
    if not path.is_file():
        raise InputError(f"{path}: expected a JSONL file of {model.__name__} records, found {_found(path)}")
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, start=1):
            if not raw.strip():
                continue
            where = f"{path}:{number}"
            try:
                yield number, model.model_validate_json(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError as error:
                raise InputError(f"{where}: expected UTF-8 text: {error}") from error
            except ValidationError as error:
                if error.errors()[0]["type"] == "json_invalid":
                    raise InputError(f"{where}: expected one JSON object: {error.errors()[0]['msg']}") from error
                raise InputError(f"{where}: {describe(error, model)}") from error


def _found(path: Path) -> str:
    return "a folder" if path.is_dir() else "nothing at that path"


def read_examples(path: Path) -> list[Example]:
    """Read examples; ids must be unique and the file must hold at least one."""
    first_line: dict[str, int] = {}
    examples = []
    for number, example in _numbered(path, Example):
        if example.id in first_line:
            raise InputError(
                f"{path}:{number}: id: '{example.id}' was already used in line {first_line[example.id]}; give each example its own"
            )
        first_line[example.id] = number
        examples.append(example)
    if not examples:
        raise InputError(f"{path}: expected at least one Example, found an empty file")
    return examples


def read_files(paths: Sequence[Path]) -> list[Example]:
    """Read examples from several files, in order, as `read_examples` reads each; ids may repeat from file to file."""
    return [example for path in paths for example in read_examples(path)]


def dump(record: BaseModel) -> str:
    """One JSON line without fields that hold their default; text stays readable (no ASCII escapes)."""
    return record.model_dump_json(exclude_defaults=True)


def write_records(path: Path, records: Iterable[BaseModel]) -> int:
    """Write all records or none: the file appears under its name only when it is complete. Returns the count.

    Raises InputError when the disk refuses; what was at `path` before is kept.
    """
    _make_parent(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    count = 0
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as out:
            for record in records:
                out.write(dump(record) + "\n")
                count += 1
            out.flush()
            os.fsync(out.fileno())
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: could not write ({error.strerror}); nothing was changed") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def _make_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: could not make this folder ({error.strerror}); choose another place to write to") from error


class Journal:
    """A JSONL file that grows by whole lines and survives a crash or a full disk: rows done stay, a rerun goes on after them."""

    def __init__(self, path: Path) -> None:
        """Open `path` for appending. A torn last line, left by a crash while writing, is cut off.

        Raises InputError when `path` is a folder or lies in none.
        """
        if path.is_dir():
            raise InputError(f"{path}: expected a file to append to, found a folder")
        _make_parent(path)
        self.path = path
        self._cut_torn_line()

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        if content and not content.endswith(b"\n"):
            with self.path.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)

    def append(self, records: Iterable[BaseModel]) -> None:
        """Append records and flush them to disk.

        Raises InputError when the disk refuses; a half-written line is cut off, so that the file still reads.
        """
        block = "".join(dump(record) + "\n" for record in records).encode()
        try:
            with self.path.open("ab") as out:
                out.write(block)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            self._cut_torn_line()
            raise InputError(f"{self.path}: could not write ({error.strerror}); rows written so far are kept, rerun to go on") from error


def read_json(path: Path) -> object:
    """Read one JSON file. Raises InputError that names the file, and the line and column of a fault."""
    if not path.is_file():
        raise InputError(f"{path}: expected a JSON file, found {_found(path)}")
    try:
        return json.loads(path.read_bytes())
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path}: not JSON that can be read: nested too deeply") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
