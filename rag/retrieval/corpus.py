"""A corpus on disk that is never loaded into memory: a file of documents, tables that find one by its row or its id, and a fingerprint.

A folder holds `documents.jsonl`, `offsets.bin` (where each row begins), `places.bin` (each row's place in the order of ids), `rows.bin` (its
inverse) and `corpus.json`. Beside the documents themselves that is 24 bytes a document. Writing keeps 16 to 32 bytes a document in memory,
reading none.
"""

import hashlib
import json
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from rag.errors import InputError
from rag.jsonl import describe, dump, read_json
from rag.records import Document, Record, Text
from rag.retrieval.seen import Seen

logger = logging.getLogger(__name__)

DOCUMENTS, OFFSETS, PLACES, ROWS, CARD = "documents.jsonl", "offsets.bin", "places.bin", "rows.bin", "corpus.json"
_BLOCK = 10_000
_EVERY = 1_000_000

Rows = npt.NDArray[np.int64]
Duplicates = Literal["drop", "keep"]


class CorpusCard(Record):
    """The content of `corpus.json`."""

    format: Literal[1] = 1
    count: int = Field(ge=0)
    """Documents in the corpus."""
    fingerprint: Text
    """Hash of all documents in their order."""
    source: Text = ""
    """Where the documents come from."""
    duplicates: Duplicates
    """Whether a document with the title and text of an earlier one was left out."""
    left_out: dict[Text, int]
    """Documents that were left out, by reason: `blank`, `duplicate`."""
    duplicates_kept: int = 0
    """Documents with the title and text of an earlier one that are in the corpus."""


class Corpus:
    """Documents by row, read from disk one by one. Safe to share between threads; a pickled corpus is opened again where it arrives."""

    def __init__(self, folder: Path, card: CorpusCard) -> None:
        """Keep the folder and map its tables; `open` is the way to a corpus."""
        self.folder = folder
        self.card = card
        self._offsets = mapped(folder / OFFSETS, np.dtype(np.int64), (card.count + 1,))
        self.places: Rows = mapped(folder / PLACES, np.dtype(np.int64), (card.count,))
        """Each row's place in the order of ids: what ties are settled by."""
        self._rows = mapped(folder / ROWS, np.dtype(np.int64), (card.count,))
        self._bytes = mapped(folder / DOCUMENTS, np.dtype(np.uint8), (int(self._offsets[-1]),))

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """Open a folder that `write_corpus` wrote. Raises InputError for any other, and where a file is missing or has another size."""
        folder = Path(folder)
        if not (folder / CARD).is_file():
            raise InputError(f"corpus={folder}: expected a folder that holds {CARD}, found none; write one with python -m data_gen.corpus")
        try:
            card = CorpusCard.model_validate(read_json(folder / CARD))
        except ValidationError as error:
            raise InputError(f"{folder / CARD}: {describe(error, CorpusCard)}") from error
        if missing := [name for name in (DOCUMENTS, OFFSETS, PLACES, ROWS) if not (folder / name).is_file()]:
            raise InputError(f"corpus={folder}: {', '.join(missing)} is missing; write the corpus again")
        return cls(folder, card)

    @property
    def fingerprint(self) -> str:
        """Equal for two corpora of the same documents in the same order."""
        return self.card.fingerprint

    def __len__(self) -> int:
        return self.card.count

    def __getitem__(self, row: int) -> Document:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a corpus of {len(self)} documents")
        start, end = int(self._offsets[row]), int(self._offsets[row + 1])
        return self._parse(self._bytes[start:end].tobytes(), row)

    def __iter__(self) -> Iterator[Document]:
        return self.read(0)

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Corpus.open, (self.folder,)

    def read(self, start: int, stop: int | None = None) -> Iterator[Document]:
        """Documents from row `start` on, up to and without `stop`, in one sweep over the file."""
        end = len(self) if stop is None else min(stop, len(self))
        with (self.folder / DOCUMENTS).open("rb") as lines:
            lines.seek(int(self._offsets[min(start, len(self))]))
            for row in range(start, end):
                yield self._parse(lines.readline(), row)

    def find(self, document_id: str) -> int | None:
        """The row of a document, by binary search over ids; none where the corpus does not hold it."""
        wanted = document_id.encode()
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            row = int(self._rows[middle])
            found = self[row].id.encode()
            if found == wanted:
                return row
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return None

    def _parse(self, line: bytes, row: int) -> Document:
        try:
            return Document.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"{self.folder / DOCUMENTS}:{row + 1}: {describe(error, Document)}; write the corpus again") from error


def mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """A file of numbers as an array that stays on disk. Raises InputError where the file has another size."""
    expected, found = int(np.prod(shape)) * dtype.itemsize, path.stat().st_size
    if found != expected:
        raise InputError(
            f"{path}: expected {expected} bytes, found {found}; it is damaged or not finished, delete its folder and make it again"
        )
    return np.memmap(path, dtype=dtype, mode="r", shape=shape) if expected else np.empty(shape, dtype=dtype)


def write_corpus(documents: Iterable[Document], folder: Path, *, source: str = "", duplicates: Duplicates = "drop") -> Corpus:
    """Write documents as they come; the folder appears under its name only when it is complete.

    Kept of each document are id, title, text and metadata; rank, score, label and answer belong to a question. Blank texts are left out
    and counted. Where title and text are exactly those of an earlier document, the earlier one stays: the later one is dropped and counted,
    or with `duplicates=keep` kept and counted. Writing the same documents to the same folder again changes nothing. Raises InputError where
    two documents share an id, where none is left, and where the folder holds anything else.
    """
    folder = Path(folder)
    if folder.exists() and not (folder / CARD).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: expected a new folder or a corpus, found something else; choose another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}.partial-"))
        partial.chmod(0o755)
    except OSError as error:
        raise InputError(f"{folder}: could not make this folder ({error.strerror}); choose another") from error
    try:
        card = _write(documents, partial, source, duplicates)
        (partial / CARD).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
        if (folder / CARD).is_file():
            there = Corpus.open(folder)
            if there.fingerprint != card.fingerprint:
                raise InputError(
                    f"{folder}: holds another corpus ({len(there)} documents, {there.fingerprint}; these are {card.count}, "
                    f"{card.fingerprint}); choose another folder, or delete that one"
                )
        else:
            partial.rename(folder)
    except OSError as error:
        raise InputError(f"{folder}: could not write ({error.strerror}); nothing was changed") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    left_out = ", ".join(f"{count} {reason}" for reason, count in card.left_out.items()) or "none"
    logger.info("%s: %d documents, fingerprint %s; left out: %s", folder, card.count, card.fingerprint, left_out)
    return Corpus.open(folder)


def _write(documents: Iterable[Document], folder: Path, source: str, duplicates: Duplicates) -> CorpusCard:
    digest = hashlib.sha256()
    counts: Counter[str] = Counter()
    ids, texts = Seen(), Seen()
    count = end = width = 0
    with (folder / DOCUMENTS).open("wb") as out, (folder / OFFSETS).open("wb") as offsets:
        offsets.write(np.int64(0).tobytes())
        for block in _blocks(documents):
            known = ids.add([document.id for document in block])
            if any(known):
                raise InputError(f"expected documents with distinct ids, got '{block[known.index(True)].id}' twice")
            shown = [document for document in block if document.text.strip()]
            counts["blank"] += len(block) - len(shown)
            repeated = texts.add([f"{document.title}\0{document.text}" for document in shown])
            counts["duplicate"] += sum(repeated)
            kept = [d for d, again in zip(shown, repeated, strict=True) if not again] if duplicates == "drop" else shown
            for document in kept:
                line = (dump(document.model_copy(update={"rank": None, "score": None, "label": None, "answer": None})) + "\n").encode()
                out.write(line)
                digest.update(line)
                end += len(line)
                offsets.write(np.int64(end).tobytes())
                width = max(width, len(document.id.encode()))
            if (count + len(kept)) // _EVERY > count // _EVERY:
                logger.info("%d documents written", count + len(kept))
            count += len(kept)
    if not count:
        raise InputError(f"expected documents to make a corpus of, found none with text ({counts['blank']} blank)")
    _write_order(folder, count, width)
    duplicate = counts.pop("duplicate")
    left_out = {"blank": counts["blank"], "duplicate": duplicate if duplicates == "drop" else 0}
    return CorpusCard(
        count=count,
        fingerprint=digest.hexdigest()[:16],
        source=source,
        duplicates=duplicates,
        left_out={reason: number for reason, number in left_out.items() if number},
        duplicates_kept=duplicate if duplicates == "keep" else 0,
    )


def _write_order(folder: Path, count: int, width: int) -> None:
    """Sort the ids in a scratch file of fixed width; UTF-8 bytes sort as code points do."""
    scratch = folder / "ids.scratch"
    ids = np.memmap(scratch, dtype=f"S{width}", mode="w+", shape=(count,))
    with (folder / DOCUMENTS).open("rb") as lines:
        for row, line in enumerate(lines):
            ids[row] = json.loads(line)["id"].encode()
    rows = np.argsort(ids, kind="stable").astype(np.int64)
    places = np.empty(count, dtype=np.int64)
    places[rows] = np.arange(count)
    rows.tofile(folder / ROWS)
    places.tofile(folder / PLACES)
    del ids
    scratch.unlink()


def _blocks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    block = []
    for document in documents:
        block.append(document)
        if len(block) == _BLOCK:
            yield block
            block = []
    if block:
        yield block
