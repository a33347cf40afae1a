"""llama.cpp as a chat model, with a stand-in for its library that has the same interface."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag.errors import InputError
from rag.models.chat import ChatFailure, ChatRequest, Completion, Message, StreamingChat
from rag.models.chat_llama_cpp import LlamaCppChat, load


class Llama:
    """What `llama_cpp.Llama` takes and gives (version 0.3); two threads inside it at once are noted."""

    made: dict[str, Any]

    def __init__(
        self, model_path: str, *, n_ctx: int, n_gpu_layers: int, n_threads: int | None, chat_format: str | None, verbose: bool
    ) -> None:
        Llama.made = {key: value for key, value in locals().items() if key != "self"}
        self.calls: list[dict[str, Any]] = []
        self.inside = 0
        self.crowded = False
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def create_chat_completion(
        self, messages: list[Any], *, temperature: float, top_p: float, top_k: int, min_p: float, seed: int, max_tokens: int
    ) -> dict[str, Any]:
        self.inside += 1
        self.crowded = self.crowded or self.inside > 1
        time.sleep(0.005)
        self.inside -= 1
        self.calls.append({key: value for key, value in locals().items() if key != "self"})
        said = messages[-1]["content"]
        if said == "long":
            raise ValueError("Requested tokens (9000) exceed context window of 4096")
        if said == "bug":
            raise ValueError("something else")
        choice = {"index": 0, "message": {"role": "assistant", "content": None if said == "null" else said.upper()}}
        return {
            "choices": [{**choice, "finish_reason": "length" if said == "cut" else "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        }


def ask(text: str, seed: int = 0) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), seed)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("llama_cpp")
    module.Llama = Llama  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    (tmp_path / "m.gguf").write_bytes(b"weights")
    return tmp_path / "m.gguf"


def inner(chat: LlamaCppChat) -> Llama:
    return chat._llama  # type: ignore[no-any-return]


def test_replies(path: Path) -> None:
    chat = load(path)
    assert isinstance(chat, StreamingChat)
    replies = chat.complete([ask("é 東京"), ask("long"), ask("cut"), ask("null")])
    assert replies[0] == Completion("É 東京", 5, 2, True)
    assert replies[1] == ChatFailure("Requested tokens (9000) exceed context window of 4096")
    assert replies[2:] == [Completion("CUT", 5, 2, False), Completion("", 5, 2, True)]


def test_what_the_library_is_given(path: Path) -> None:
    chat = load(path, context=99, max_tokens=7, temperature=0.5, top_p=0.9, gpu_layers=-1, threads=2, chat_format="llama-3")
    chat.complete([ask("a"), ask("b"), ask("a", 1), ask("a")])
    assert Llama.made == {
        "model_path": str(path),
        "n_ctx": 99,
        "n_gpu_layers": -1,
        "n_threads": 2,
        "chat_format": "llama-3",
        "verbose": False,
    }
    calls = inner(chat).calls
    assert calls[0]["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    assert {key: calls[0][key] for key in ("temperature", "top_p", "top_k", "min_p", "max_tokens")} == {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 0,
        "min_p": 0.0,
        "max_tokens": 7,
    }
    seeds = [call["seed"] for call in calls]
    assert len(set(seeds)) == 3 and seeds[0] == seeds[3] and all(0 <= seed < 2**31 for seed in seeds)
    assert inner(chat).resets == 4


def test_without_a_system_role(path: Path) -> None:
    chat = load(path, system_role=False)
    chat.complete([ask("Who?")])
    assert inner(chat).calls[0]["messages"] == [{"role": "user", "content": "Be brief.\n\nWho?"}]


def test_two_threads_take_turns(path: Path) -> None:
    """Pitfall H3."""
    chat = load(path)
    start = threading.Barrier(4)

    def one(text: str) -> Any:
        start.wait()
        return chat.complete([ask(text)])[0]

    with ThreadPoolExecutor(4) as pool:
        assert [reply.text for reply in pool.map(one, "abcd")] == list("ABCD")
    assert not inner(chat).crowded


def test_a_bug_is_no_failure_of_a_request(path: Path) -> None:
    with pytest.raises(ValueError, match="something else"):
        load(path).complete([ask("bug")])


def test_what_is_missing_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="chat.path: expected a GGUF file, found none at .*n.gguf"):
        load(path.with_name("n.gguf"))
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(InputError, match=r"pip install 'sieve-and-sage\[gguf\]'"):
        load(path)


def test_the_name_covers_the_file_s_content_and_the_settings(path: Path) -> None:
    names = {load(path).name, load(path, temperature=1.0).name, load(path, max_tokens=9).name, load(path, chat_format="gemma").name}
    path.write_bytes(b"other weights")
    assert len(names | {load(path).name}) == 5
    assert load(path, threads=2, gpu_layers=3).name == load(path).name
