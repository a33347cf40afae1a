"""Hashes of what settings say to read."""

import hashlib
from pathlib import Path

from pydantic import TypeAdapter

from rag.inputs import SAMPLE, hash_inputs
from rag.settings import CachePath, Files, InputPath, Settings, Target


def test_files_and_folders_are_named_from_the_root_and_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (root / "checkpoint").mkdir(parents=True)
    elsewhere.mkdir()
    for path in (root / "a.jsonl", root / "checkpoint" / "weights", elsewhere / "b.jsonl"):
        path.write_bytes(path.name.encode())
    found = hash_inputs([root / "a.jsonl", root / "checkpoint", root / "." / "a.jsonl", elsewhere / "b.jsonl", root / "none"], root)
    assert list(found) == [str(elsewhere / "b.jsonl"), "a.jsonl", "checkpoint/"]
    assert found["a.jsonl"] == hashlib.sha256(b"a.jsonl").hexdigest()


def test_a_folder_is_known_by_names_sizes_and_both_ends_of_its_files(tmp_path: Path) -> None:
    big = tmp_path / "weights"
    content = bytearray(3 * SAMPLE)

    def hashed() -> str:
        big.write_bytes(content)
        return hash_inputs([tmp_path], tmp_path.parent)[f"{tmp_path.name}/"]

    seen = [hashed()]
    assert hashed() == seen[0]
    for place in (0, 3 * SAMPLE - 1):
        content[place] = 1
        seen.append(hashed())
    content.append(0)
    seen.append(hashed())
    (tmp_path / "manifest.json").touch()
    seen.append(hashed())
    assert len(set(seen)) == 5
    # An index that is made inside a corpus' folder does not change the corpus.
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "rows").touch()
    assert hashed() == seen[-1]


def component(path: InputPath, replies: CachePath | None = None) -> None:
    """A component that reads a file and keeps what it did."""


class Job(Settings):
    data: Files
    checkpoint: InputPath | None = None
    dataset: Target


def test_every_path_that_settings_say_to_read_is_collected_wherever_it_is(tmp_path: Path) -> None:
    inputs: set[Path] = set()
    dataset = {"_target_": f"{__name__}.component", "path": "d", "replies": "r"}
    context = {"root": tmp_path, "inputs": inputs}
    checked = TypeAdapter(Job).validate_python({"data": ["a", "b"], "checkpoint": "c", "dataset": dataset}, context=context)
    assert inputs == {tmp_path / name for name in "abcd"}
    assert checked.dataset.arguments["replies"] == tmp_path / "r"
