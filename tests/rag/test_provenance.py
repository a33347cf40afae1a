"""The commit in a result is that of this project, or unknown."""

import re
import subprocess
from pathlib import Path

import pytest

from rag import provenance


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout of something else, into whose folder the package was installed."""
    git(tmp_path, "init")
    (tmp_path / "theirs.py").write_text("", encoding="utf-8")
    git(tmp_path, "add", "theirs.py")
    git(tmp_path, "commit", "-m", "theirs")
    installed = tmp_path / "provenance.py"
    installed.write_text("", encoding="utf-8")
    monkeypatch.setattr(provenance, "__file__", str(installed))
    return tmp_path


def test_the_commit_of_a_checkout_that_the_package_is_not_a_part_of_is_not_its_own(elsewhere: Path) -> None:
    assert provenance.provenance()["commit"] == "unknown"


def test_a_checkout_with_uncommitted_changes_is_marked(elsewhere: Path) -> None:
    git(elsewhere, "add", "provenance.py")
    git(elsewhere, "commit", "-m", "ours")
    commit = provenance.provenance()["commit"]
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    (elsewhere / "provenance.py").write_text("changed", encoding="utf-8")
    assert provenance.provenance()["commit"] == f"{commit}-dirty"


def test_without_git_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert provenance.provenance()["commit"] == "unknown"


def test_it_names_the_versions_that_a_result_depends_on() -> None:
    assert {"python", "machine", "pydantic", "torch", "transformers"} <= set(provenance.provenance())


def test_it_names_what_decides_the_last_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"flags": "fpu avx2 sse4_2 avx512f amx_bf16", "model name": "Chip 9000"}
    monkeypatch.setattr(provenance, "_told_of_the_processor", lambda what: flags.get(what, ""))
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    found = provenance.provenance()
    assert (found["instructions"], found["threads"]) == ("avx2 avx512f amx_bf16 ONEDNN_MAX_CPU_ISA=AVX2", "3")
    assert found["machine"].endswith("Chip 9000")
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert int(provenance.provenance()["threads"]) >= 1
