"""Hashes of what a run reads, so that a result can be traced to its data."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from rag.checkpoint import sha256

SAMPLE = 1 << 20
"""Bytes at either end of a file in a folder that are read."""


def hash_inputs(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """SHA-256 of each file, and of each folder's listing, by path; paths below `root` are given from there, folders with a slash.

    A folder may hold weights or a corpus of many GB, so its hash is that of the names, sizes, and first and last MiB of the files in it;
    folders in it, such as an index of a corpus, are made from them. What is not there is left out: the job says itself what it misses.
    """
    found = {}
    for path in sorted({path.resolve() for path in paths}):
        name = (path.relative_to(root.resolve()) if path.is_relative_to(root.resolve()) else path).as_posix()
        if path.is_file():
            found[name] = sha256(path)
        elif path.is_dir():
            found[f"{name}/"] = _hash_folder(path)
    return found


def _hash_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLE))
            if size > SAMPLE:
                file.seek(max(SAMPLE, size - SAMPLE))
                digest.update(file.read(SAMPLE))
    return digest.hexdigest()
