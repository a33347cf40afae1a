"""Every yaml of a third-party model names something that can be called with its keys, all of them, at their defaults."""

import inspect
from pathlib import Path
from typing import Any

import hydra
import pytest
import yaml
from omegaconf import OmegaConf
from pydantic import TypeAdapter

import conf
from rag.models.cached_chat import CachedChat
from rag.models.chat_server import ChatServer
from rag.models.nli_lexical import LexicalNli
from rag.settings import Component, Target

FOLDER = Path(conf.__file__).parent
GROUPS = ("chat", "nli", "reranker")
CHOICES = [path.relative_to(FOLDER).with_suffix("").as_posix() for group in GROUPS for path in sorted((FOLDER / group).glob("*.yaml"))]


def bound(choice: str, *overrides: str) -> tuple[Component, dict[str, Any]]:
    group, _, name = choice.partition("/")
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed: Any = OmegaConf.to_container(hydra.compose(overrides=[f"+{group}={name}", *overrides]), resolve=True)
    node = {key: "given.gguf" if value == "???" else value for key, value in composed[group].items()}
    return TypeAdapter(Target).validate_python(node, context={"root": Path("/root")}), node


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_binds_and_shows_every_key(choice: str) -> None:
    component, node = bound(choice)
    assert f"{component.target.__module__}.{component.target.__qualname__}" == node["_target_"]
    assert set(component.arguments) == set(inspect.signature(component.target).parameters)


def test_the_medical_and_scientific_models_are_read_as_the_open_domain_one_is() -> None:
    targets = {choice: bound(choice)[0].target for choice in CHOICES if choice.startswith("nli/") and choice != "nli/lexical"}
    assert len(targets) == 4 and len(set(targets.values())) == 1


def test_what_needs_no_weights_is_built(tmp_path: Path) -> None:
    server, node = bound("chat/openai_server", "chat.extra_body={top_p: 0.9}", "chat.temperature=null")
    assert isinstance(server.build(), ChatServer)
    cache = {"_target_": "rag.models.cached_chat.load", "chat": node, "folder": str(tmp_path)}
    cached = TypeAdapter(Target).validate_python(cache).build()
    assert isinstance(cached, CachedChat)
    assert cached.name == "meta-llama/Meta-Llama-3-8B-Instruct max_tokens=512 top_p=0.9"
    assert isinstance(bound("nli/lexical")[0].build(), LexicalNli)


def test_the_paper_s_re_ranker() -> None:
    """Paper 002, appendix A."""
    assert yaml.safe_load((FOLDER / "reranker/bge_reranker_large.yaml").read_text(encoding="utf-8"))["base"] == "BAAI/bge-reranker-large"
