"""A file of results by key that only grows, by whole lines: a kill loses the line it cut, and several processes may write to it."""

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final

from rag.errors import InputError

logger = logging.getLogger(__name__)

_START: Final = re.compile(rb'\{"key": ?"([0-9a-f]{64})", ')


class ResultStore:
    """Results on disk, found by the SHA-256 of what they answer; where a key comes twice, the last one counts.

    Memory holds the place of each line, not the lines. What another process appends is found at the next key that is not known yet.
    """

    def __init__(self, path: Path) -> None:
        """Open a file, which need not exist. Raises InputError where its folder cannot be made."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent}: could not make this folder for results ({error.strerror}); choose another store") from error
        self.path = path
        self._places: dict[str, int] = {}
        self._end = 0
        self._lock = Lock()

    def get(self, key: str) -> dict[str, Any] | None:
        """What was kept under a key; none where nothing was, or where its line was cut by a kill."""
        with self._lock:
            if key not in self._places:
                self._scan()
            place = self._places.get(key)
            if place is None:
                return None
            with self.path.open("rb") as lines:
                lines.seek(place)
                raw = lines.readline()
            try:
                line: dict[str, Any] = json.loads(raw)
            except ValueError:  # Neither UTF-8 nor JSON, or no end to it.
                logger.warning("%s: the line at byte %d is damaged, so its result is made again", self.path, place)
                del self._places[key]
                return None
            return line

    def put(self, lines: Mapping[str, Mapping[str, object]]) -> None:
        """Append what belongs to each key and flush it to disk. Raises InputError when the disk refuses; what was there stays."""
        if not lines:
            return
        block = "".join(json.dumps({"key": key, **line}, ensure_ascii=False) + "\n" for key, line in lines.items()).encode()
        try:
            with self._lock, self.path.open("a+b", buffering=0) as out:
                # A line that a kill cut is closed, not cut off: another process may be writing behind it.
                if out.seek(0, os.SEEK_END) and out.seek(-1, os.SEEK_END) >= 0 and out.read(1) != b"\n":
                    block = b"\n" + block
                written = out.write(block)
                os.fsync(out.fileno())
        except OSError as error:
            raise InputError(f"{self.path}: could not write ({error.strerror}); results so far are kept, rerun to go on") from error
        if written != len(block):
            raise InputError(f"{self.path}: could not write (the disk is full); results so far are kept, rerun to go on")

    def _scan(self) -> None:
        """Note where the lines begin that were appended since the last time. A last line without an end may still be being written."""
        if not self.path.is_file():
            return
        with self.path.open("rb") as lines:
            lines.seek(self._end)
            for raw in lines:
                if not raw.endswith(b"\n"):
                    break
                if found := _START.match(raw):
                    self._places[found[1].decode()] = self._end
                self._end += len(raw)
