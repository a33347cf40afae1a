"""Every yaml of conf/questions names a source and fits its arguments."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from pydantic import TypeAdapter

import conf
from rag.settings import Component, Target

FOLDER = Path(conf.__file__).parent / "questions"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def bind(name: str, **changes: Any) -> Component:
    given = {**yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")), **changes}
    filled = {key: "given.jsonl" if value == "???" else value for key, value in given.items()}
    bound = TypeAdapter(Target).validate_python(filled, context={"root": "/root"})
    assert isinstance(bound, Component)
    return bound


def test_there_is_a_yaml_for_each_source_of_questions() -> None:
    assert set(NAMES) == {
        "astroqa", "bioasq", "csv", "demo", "gold_passages", "huggingface", "jsonl", "medqa", "nq_google", "nq_wiki", "rag_bench", "realtimeqa", "webq",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_yaml_binds_and_names_every_argument(name: str) -> None:
    bound = bind(name)
    assert set(bound.arguments) == set(inspect.signature(bound.target).parameters) - {"dropped"}
    paths = bound.arguments.get("path", {})
    assert all(path.is_absolute() for path in (paths.values() if isinstance(paths, dict) else [paths]))


def test_a_path_can_be_one_file_or_one_for_each_split() -> None:
    assert bind("medqa", path="one.json").arguments["path"] == Path("/root/one.json")
    assert bind("nq_wiki", path={"test": "a.json"}).arguments["path"] == {"test": Path("/root/a.json")}
    config = OmegaConf.load(FOLDER / "rag_bench.yaml")
    OmegaConf.update(config, "path", "one.json")
    assert config.path == "one.json"
