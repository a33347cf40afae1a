import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, ValidationError

from rag.jsonl import describe
from rag.settings import Component, Files, InputPath, Settings, Target


class Inner(Settings):
    rate: float = 0.1
    name: str = "x"


class Job(Settings):
    threshold: float = 0.5
    files: list[InputPath] = Field(default_factory=list)
    inner: Inner = Inner()
    part: Target | None = None


def make(size: int, name: str = "a", parts: list[int] | None = None, inner: Target | None = None) -> tuple[int, str]:
    return size, name


class Thing:
    def __init__(self, path: InputPath) -> None:
        self.path = path

    @classmethod
    def load(cls, path: InputPath) -> "Thing":
        return cls(path)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest imports this file under a name of its own; a target is found through `sys.modules` by that name."""
    monkeypatch.setitem(sys.modules, "made_for_test", sys.modules[__name__])


def problem(config: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        Job.model_validate(config)
    return describe(caught.value, Job)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"treshold": 0.4}, "treshold: unknown field; did you mean 'threshold'?"),
        ({"inner": {"rat": 1}}, "inner.rat: unknown field; did you mean 'rate'?"),
        ({"inner": {"name": 7}}, "inner.name: Input should be a valid string"),
        ({"files": "a.jsonl"}, "files: Input should be a valid list"),
        ({"part": {"_target_": "made_for_test.make", "size": 1, "nam": "b"}}, "part: unknown key 'nam'; did you mean 'name'?"),
        ({"part": {"_target_": "made_for_test.make"}}, "part: 'size' is required"),
        ({"part": {"_target_": "made_for_test.make", "size": "???"}}, "part: 'size' must be set"),
        ({"part": {"_target_": "made_for_test.make", "size": 1, "name": 7}}, "part: 'name': Input should be a valid string"),
        ({"part": {"_target_": "made_for_test.make", "size": 1, "parts": [1, "x"]}}, "part: 'parts.1': Input should be a valid integer"),
        ({"part": {"_target_": "made_for_test.mkae", "size": 1}}, "part: `_target_` made_for_test.mkae: 'made_for_test' has no 'mkae'"),
        ({"part": {"_target_": "no_such_module.make"}}, "part: `_target_` no_such_module.make: no such module"),
        ({"part": {"_target_": "math.pi"}}, "part: `_target_` math.pi: expected something to call, found a float"),
        ({"part": {"size": 1}}, "part: expected a mapping with a `_target_`"),
        ({"part": "make"}, "part: expected a mapping with a `_target_`"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(config: dict[str, Any], expected: str) -> None:
    assert expected in problem(config)


def test_all_problems_of_a_target_are_told_at_once() -> None:
    told = problem({"part": {"_target_": "made_for_test.make", "nam": "b"}})
    assert "unknown key 'nam'" in told
    assert "'size' is required" in told


def test_a_target_is_checked_first_and_called_by_build() -> None:
    inner = {"_target_": "made_for_test.make", "size": 2}
    part = Job.model_validate({"part": {"_target_": "made_for_test.make", "size": 1, "inner": inner}}).part
    assert isinstance(part, Component)
    assert part.build() == (1, "a")
    assert part.arguments["inner"].build() == (2, "a")


def test_a_misspelt_key_of_a_nested_target_is_named() -> None:
    inner = {"_target_": "made_for_test.make", "size": 2, "nam": "b"}
    assert "unknown key 'nam'; did you mean 'name'?" in problem({"part": {"_target_": "made_for_test.make", "size": 1, "inner": inner}})


@pytest.mark.parametrize("target", ["made_for_test.Thing", "made_for_test.Thing.load"])
def test_relative_input_paths_resolve_against_the_root_not_the_working_directory(target: str, tmp_path: Path) -> None:
    """Pitfall D2."""
    config = {"files": ["a.jsonl", "/b.jsonl"], "part": {"_target_": target, "path": "c.jsonl"}}
    job = Job.model_validate(config, context={"root": tmp_path})
    assert job.files == [tmp_path / "a.jsonl", Path("/b.jsonl")]
    assert job.part is not None
    assert job.part.build().path == tmp_path / "c.jsonl"


def test_a_missing_module_inside_an_existing_one_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_extra.py").write_text("import an_extra_that_is_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="an_extra_that_is_not_installed"):
        Job.model_validate({"part": {"_target_": "needs_extra.make"}})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Job().threshold = 0.1


class FilesOnly(Settings):
    files: Files


@pytest.mark.parametrize("given", ["a.jsonl", ["a.jsonl"], ("a.jsonl",), Path("a.jsonl")])
def test_one_file_is_a_tuple_of_one(given: Any) -> None:
    assert FilesOnly.model_validate({"files": given}).files == (Path("a.jsonl"),)


def test_several_files_keep_their_order_and_are_resolved_against_the_root() -> None:
    checked = FilesOnly.model_validate({"files": ["b.jsonl", "/abs/a.jsonl"]}, context={"root": Path("/root")})
    assert checked.files == (Path("/root/b.jsonl"), Path("/abs/a.jsonl"))


@pytest.mark.parametrize("given", [[], None, 5, ["a.jsonl", 7]])
def test_no_file_and_what_is_no_path_are_refused(given: Any) -> None:
    with pytest.raises(ValidationError, match="files"):
        FilesOnly.model_validate({"files": given})
