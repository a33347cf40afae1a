"""The folder of an index: what it was made from, refused where that differs, and finished after a stop."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rag.errors import InputError
from rag.jsonl import describe, read_json
from rag.records import Record, Text

CARD, UNFINISHED, SCRATCH, _LOCK = "index.json", "unfinished.json", "scratch", "lock"

Setting = str | int | float | bool | None


class IndexCard(Record):
    """What an index depends on: the content of `index.json`, and of `unfinished.json` until the index is complete."""

    kind: Text
    corpus: Text
    """Fingerprint of the corpus."""
    documents: int
    settings: dict[Text, Setting]
    """Tokenizer, model, prompts and all else that the files depend on."""
    counts: dict[Text, int] = Field(default_factory=dict)
    """What was counted while it was made, such as documents that were cut."""

    @property
    def fingerprint(self) -> str:
        """Equal for two indexes that must find the same."""
        content = self.model_dump_json(exclude={"counts"})
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """Kind and fingerprint."""
        return f"{self.kind}-{self.fingerprint}"


class Opened(NamedTuple):
    """A complete index."""

    folder: Path
    card: IndexCard


def open_or_build(folder: Path | None, corpus_folder: Path, expected: IndexCard, build: Callable[[Path], dict[str, int]]) -> Opened:
    """Open the index in `folder`, or make it there: on first use, or on with what a stopped run left.

    Without a folder it lies in `index/` of the corpus' folder, under a name of its own. `build` goes on with the files that it finds in the
    folder and returns what it counted; what it leaves in `scratch` there is deleted once the index is complete. Of several processes one
    builds and the others wait for it. Raises InputError where the folder holds an index of another corpus or of other settings, and says
    which.
    """
    folder = corpus_folder / "index" / expected.name if folder is None else Path(folder)
    if not (folder / CARD).is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _alone(folder / _LOCK):
                if not (folder / CARD).is_file():
                    _build(folder, expected, build)
        except OSError as error:
            raise InputError(f"index={folder}: could not write ({error.strerror}); what was done is kept, rerun to go on") from error
    return Opened(folder, _require_same(folder, CARD, expected))


def _build(folder: Path, expected: IndexCard, build: Callable[[Path], dict[str, int]]) -> None:
    if (folder / UNFINISHED).is_file():
        _require_same(folder, UNFINISHED, expected)
    elif found := sorted(path.name for path in folder.iterdir() if path.name != _LOCK):
        raise InputError(f"index={folder}: expected a new folder or an index, found {found[0]}; choose another folder")
    else:
        write_json(folder / UNFINISHED, expected.model_dump(mode="json"))
    counts = build(folder)
    write_json(folder / CARD, expected.model_copy(update={"counts": counts}).model_dump(mode="json"))
    (folder / UNFINISHED).unlink()
    shutil.rmtree(folder / SCRATCH, ignore_errors=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, however it ends."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _require_same(folder: Path, name: str, expected: IndexCard) -> IndexCard:
    try:
        found = IndexCard.model_validate(read_json(folder / name))
    except ValidationError as error:
        raise InputError(f"{folder / name}: {describe(error, IndexCard)}") from error
    differences = [
        f"{what}: {there!r} there, {here!r} asked for"
        for what, there, here in (
            ("kind", found.kind, expected.kind),
            ("corpus", f"{found.corpus} of {found.documents} documents", f"{expected.corpus} of {expected.documents} documents"),
            *((key, found.settings.get(key), expected.settings.get(key)) for key in sorted(found.settings | expected.settings)),
        )
        if there != here
    ]
    if differences:
        raise InputError(
            f"index={folder}: was made for something else ({'; '.join(differences)}); set index to a new folder to make another one there, "
            "delete this one to make it again, or ask for what it was made for"
        )
    return found


def write_json(path: Path, content: object) -> None:
    """Replace a small JSON file in one step, on disk when this returns."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", encoding="utf-8") as out:
        out.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        out.flush()
        os.fsync(out.fileno())
    partial.replace(path)


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal's error output; the function given moves it on."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda number: bar.advance(task, number)
