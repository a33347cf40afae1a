"""The manifest that makes a checkpoint folder self-sufficient: what it was trained on, from which base, and how to use it."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from rag.errors import InputError
from rag.jsonl import describe
from rag.records import Record, Text

MANIFEST = "manifest.json"


class Base(Record):
    """The frozen model under an adapter, or the one that fine-tuning started from."""

    id: Text
    """Hub id, folder, or `artifact:NAME`."""
    revision: Text | None = None
    """Hub commit; none for a folder or an artifact."""
    fingerprint: Text
    """Hash of names, shapes and sampled values of the base's parameters (`rag.models.base.fingerprint`)."""


class Manifest(Record):
    """Everything but weights and tokenizer that serving needs from a checkpoint folder."""

    stage: Literal["sieve", "sage"]
    """Which stage's `predict.load` reads this folder."""
    format: Literal[1] = 1
    """Version of this layout."""
    base: Base
    """The model that the weights beside this file belong to."""
    settings: dict[str, Any]
    """Resolved settings of the stage: model, inputs and training."""
    threshold: float | None = Field(default=None, ge=0, le=1)
    """Sieve: flag a set whose score is at least this; chosen on validation data."""
    temperature: float = Field(default=1.0, gt=0)
    """Sieve: what logits are divided by before they become scores; fitted on validation data, like the threshold."""
    abstention: Text | None = None
    """Sage: the exact string it was trained to say when the documents hold no answer."""
    conflict: Text | None = None
    """Sage: the exact string it was trained to say when the documents give different answers; none where it learnt none."""
    validation: dict[str, float] = Field(default_factory=dict)
    """Metrics on the validation split at the kept checkpoint."""
    intervals: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """95 % intervals of those metrics, resampled by question."""
    data: dict[str, Text] = Field(default_factory=dict)
    """SHA-256 of each data file, by its name."""
    counts: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Examples of each split by how they were put together: `variant`, or `condition` where that is blank. What a reader is trained on are
    documents, by their label."""
    command: Text | None = None
    """The command that trained this checkpoint."""
    provenance: dict[str, Text] = Field(default_factory=dict)
    """Git commit, package versions and machine of the run."""


def sha256(path: Path) -> str:
    """Hash a file without reading it into memory at once."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def hashes(files: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of each file, by its path from the folder that holds them all, so that two files of one name stay apart."""
    # As they were named: where a link leads to is this machine's business.
    given = [Path(os.path.abspath(path)) for path in files]
    root = os.path.commonpath([path.parent for path in given])
    return {path.relative_to(root).as_posix(): sha256(path) for path in given}


def last_checkpoint(folder: Path) -> str | None:
    """The newest checkpoint in `folder` that was written to its end; none when there is none. The trainer's state is its last file."""
    complete = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    return str(max(complete, key=lambda path: int(path.name.rpartition("-")[2]))) if complete else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest last, so that a folder which has one is complete. Raises InputError when the disk refuses."""
    partial = folder / f"{MANIFEST}.partial"
    try:
        partial.write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        partial.replace(folder / MANIFEST)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{folder}: could not write {MANIFEST} ({error.strerror}); without it this checkpoint does not load") from error


def read_manifest(folder: Path, stage: Literal["sieve", "sage"]) -> Manifest:
    """Read and check the manifest of a checkpoint of `stage`.

    Raises InputError for a folder that is missing, incomplete, malformed, or a checkpoint of the other stage.
    """
    path = folder / MANIFEST
    if not path.is_file():
        found = "a folder without it" if folder.is_dir() else "no such folder"
        raise InputError(
            f"{folder}: expected a {stage} checkpoint with a {MANIFEST}, found {found}; train one with `python -m {stage}.train`"
        )
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Manifest)}") from error
    if manifest.stage != stage:
        raise InputError(f"{folder}: expected a {stage} checkpoint, found a {manifest.stage} checkpoint")
    return manifest


def require_same_settings(folder: Path, manifest: Manifest, settings: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Refuse a checkpoint that was trained with other values of these dotted keys than `settings` has. Raises InputError that names them."""
    pairs = {key: (_at(manifest.settings, key), _at(settings, key)) for key in keys}
    if different := {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}:
        listed = "; ".join(
            f"{manifest.stage}.{key}: trained with {trained}, config has {asked}" for key, (trained, asked) in different.items()
        )
        raise InputError(
            f"{folder}: trained on {manifest.base.id} with other settings than the config names ({listed}); "
            f"choose the {manifest.stage}=... that it was trained with, or another checkpoint"
        )


def _at(settings: Mapping[str, Any], key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = value[part]
    return value


def require_same_base(folder: Path, manifest: Manifest, fingerprint: str) -> None:
    """Refuse weights of another base than the one the checkpoint was trained on. Raises InputError."""
    if fingerprint != manifest.base.fingerprint:
        raise InputError(
            f"{folder}: trained on {manifest.base.id} with fingerprint {manifest.base.fingerprint}, "
            f"but the base that was loaded has {fingerprint}; set the base to the model named in {MANIFEST}"
        )
