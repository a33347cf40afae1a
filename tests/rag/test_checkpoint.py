import hashlib
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from rag.checkpoint import MANIFEST, Base, Manifest, read_manifest, require_same_base, require_same_settings, sha256, write_manifest
from rag.errors import InputError

SIEVE = Manifest(
    stage="sieve",
    base=Base(id="org/model", revision="abc", fingerprint="f1"),
    settings={"layers": 12, "question": "no"},
    threshold=0.5,
    validation={"macro_f1": 0.9},
)


def test_round_trip(tmp_path: Path) -> None:
    write_manifest(tmp_path, SIEVE)
    assert read_manifest(tmp_path, "sieve") == SIEVE
    assert os.listdir(tmp_path) == [MANIFEST]


def test_a_missing_folder_and_an_incomplete_one_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"expected a sieve checkpoint with a manifest\.json, found a folder without it; train one with `python -m sieve"
    ):
        read_manifest(tmp_path, "sieve")
    with pytest.raises(InputError, match="found no such folder"):
        read_manifest(tmp_path / "none", "sage")


def test_a_checkpoint_of_the_other_stage_is_refused(tmp_path: Path) -> None:
    write_manifest(tmp_path, SIEVE)
    with pytest.raises(InputError, match="expected a sage checkpoint, found a sieve checkpoint"):
        read_manifest(tmp_path, "sage")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"threshold": 0.5', '"threshold": 1.5', "threshold: Input should be less than or equal to 1"),
        ('"threshold"', '"treshold"', "treshold: unknown field; did you mean 'threshold'?"),
        ('"fingerprint"', '"finger_print"', "base.finger_print: unknown field; did you mean 'fingerprint'?"),
        ('"format": 1', '"format": 2', "format: Input should be 1"),
        ('"stage"', "stage", "Invalid JSON"),
    ],
)
def test_a_malformed_manifest_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    write_manifest(tmp_path, SIEVE)
    file = tmp_path / MANIFEST
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        read_manifest(tmp_path, "sieve")
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


def test_a_metric_that_is_no_number_is_refused_before_it_is_written() -> None:
    with pytest.raises(ValidationError, match="finite number"):
        Manifest(stage="sieve", base=SIEVE.base, settings={}, validation={"auc": float("nan")})


def test_a_manifest_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).mkdir()
    with pytest.raises(InputError, match=r"could not write manifest\.json .*; without it this checkpoint does not load"):
        write_manifest(tmp_path, SIEVE)
    assert os.listdir(tmp_path) == [MANIFEST]


def test_another_base_is_refused(tmp_path: Path) -> None:
    require_same_base(tmp_path, SIEVE, "f1")
    with pytest.raises(
        InputError, match="trained on org/model with fingerprint f1, but the base that was loaded has f2; set the base to the model"
    ):
        require_same_base(tmp_path, SIEVE, "f2")


def test_sha256_of_a_file_larger_than_one_block(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "data").write_bytes(content)
    assert sha256(tmp_path / "data") == hashlib.sha256(content).hexdigest()


def test_a_checkpoint_that_was_trained_with_other_settings_is_refused_by_key(tmp_path: Path) -> None:
    require_same_settings(tmp_path, SIEVE, {"layers": 12, "question": "yes"}, ["layers"])
    with pytest.raises(
        InputError, match=r"\(sieve\.question: trained with no, config has yes\); choose the sieve=\.\.\. that it was trained"
    ):
        require_same_settings(tmp_path, SIEVE, {"layers": 12, "question": "yes"}, ["layers", "question"])
