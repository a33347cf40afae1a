"""The cache of replies: nothing is paid twice, nothing paid is lost, and the account is right."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rag.errors import InputError
from rag.models.cached_chat import CachedChat, Price, Usage
from rag.models.chat import ChatFailure, ChatModel, ChatRequest, Completion, Message, Reply
from rag.models.chat_server import ChatServer
from rag.settings import Target

ROOT = Path(__file__).parents[3]


class Echo:
    """A chat model without streaming that says what it is told in capitals, fails at `bad` and is cut at `long`."""

    def __init__(self, name: str = "echo") -> None:
        self.name = name
        self.asked: list[ChatRequest] = []

    def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        self.asked += requests
        return [self._reply(request) for request in requests]

    def _reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        if text == "bad":
            return ChatFailure("no")
        return Completion(f"{text.upper()} {request.seed}", 100, 10, text != "long", retries=2 if text == "busy" else 0)


class Backwards(Echo):
    """Hands replies over last first, and breaks before it comes to `stop`."""

    def stream(self, requests: Sequence[ChatRequest]) -> Iterator[tuple[int, Reply]]:
        for place in reversed(range(len(requests))):
            if requests[place].messages[-1].content == "stop":
                raise InputError("no server answers")
            yield place, self.complete([requests[place]])[0]


def ask(text: str, seed: int = 0) -> ChatRequest:
    return ChatRequest((Message("user", text),), seed)


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def test_a_reply_is_asked_for_once_whatever_object_asks(tmp_path: Path) -> None:
    first, second = Echo(), Echo()
    replies = CachedChat(first, tmp_path).complete([ask("a"), ask("b", 1)])
    assert replies == [Completion("A 0", 100, 10, True), Completion("B 1", 100, 10, True)]
    assert CachedChat(second, tmp_path).complete([ask("b", 1), ask("a")]) == replies[::-1]
    assert len(first.asked) == 2 and second.asked == []


@pytest.mark.parametrize(
    "other",
    [
        ask("a", 1),
        ChatRequest((Message("system", "a"),)),
        ChatRequest((Message("user", "a"), Message("user", ""))),
        ask("a "),
    ],
)
def test_another_seed_role_or_text_is_another_request(tmp_path: Path, other: ChatRequest) -> None:
    chat = Echo()
    CachedChat(chat, tmp_path).complete([ask("a"), other])
    assert chat.asked == [ask("a"), other]


def test_another_model_or_setting_is_another_request(tmp_path: Path) -> None:
    one, other = Echo("echo t=0"), Echo("echo t=1")
    CachedChat(one, tmp_path).complete([ask("a")])
    CachedChat(other, tmp_path).complete([ask("a")])
    assert len(other.asked) == 1 and len(files(tmp_path)) == 2


def test_the_same_request_twice_in_a_call_is_asked_once(tmp_path: Path) -> None:
    chat = Echo()
    cached = CachedChat(chat, tmp_path)
    assert cached.complete([ask("a"), ask("bad"), ask("a"), ask("bad")]) == [
        *(both := [Completion("A 0", 100, 10, True), ChatFailure("no")]),
        *both,
    ]
    assert chat.asked == [ask("a"), ask("bad")]
    assert (cached.usage.requests, cached.usage.asked, cached.usage.repeated, cached.usage.failed) == (4, 2, 2, 1)


def test_a_cache_that_forgets_asks_again_and_keeps_the_folder(tmp_path: Path) -> None:
    """A measurement of time must be one of the model, also where its replies are known."""
    chat = Echo()
    cached = CachedChat(chat, tmp_path)
    first = cached.complete([ask("a")])
    cached.forget()
    assert cached.complete([ask("a"), ask("a")]) == first * 2
    assert cached.complete([ask("a")]) == first
    assert len(chat.asked) == 3
    assert len(files(tmp_path)) == 1


def test_a_failure_is_asked_again_and_a_reply_that_was_cut_is_not(tmp_path: Path) -> None:
    chat = Echo()
    for _ in range(2):
        replies = CachedChat(chat, tmp_path).complete([ask("bad"), ask("long")])
    assert replies == [ChatFailure("no"), Completion("LONG 0", 100, 10, False)]
    assert chat.asked == [ask("bad"), ask("long"), ask("bad")]


def test_replies_before_a_refusal_are_stored(tmp_path: Path) -> None:
    chat = Backwards()
    with pytest.raises(InputError, match="no server answers"):
        CachedChat(chat, tmp_path).complete([ask("never"), ask("stop"), ask("b"), ask("c")])
    later = Backwards()
    assert CachedChat(later, tmp_path).complete([ask("a"), ask("b"), ask("c")])[1:] == [Completion(f"{x} 0", 100, 10, True) for x in "BC"]
    assert later.asked == [ask("a")]


def test_the_account(tmp_path: Path) -> None:
    price = Price(prompt=2.0, completion=10.0, currency="EUR")
    cached = CachedChat(Echo(), tmp_path, price)
    cached.complete([ask("a"), ask("busy"), ask("long"), ask("bad"), ask("a")])
    # Three replies of 100 and 10 tokens: 300 * 2 / 1e6 + 30 * 10 / 1e6.
    paid = {
        "failed": 1,
        "unfinished": 1,
        "retries": 2,
        "prompt_tokens": 300,
        "completion_tokens": 30,
        "cost": pytest.approx(0.0009),
        "currency": "EUR",
    }
    assert cached.usage.model_dump(exclude_defaults=True) == {"requests": 5, "repeated": 1, **paid}
    cached.complete([ask("a"), ask("a"), ask("bad")])
    from_folder = {"cached": 2, "cached_prompt_tokens": 200, "cached_completion_tokens": 20, "cached_cost": pytest.approx(0.0006)}
    assert cached.usage.model_dump(exclude_defaults=True) == {"requests": 8, "repeated": 1, **paid, "failed": 2, **from_folder}
    assert cached.usage.asked == 5
    assert Usage.model_validate_json(cached.usage.model_dump_json()) == cached.usage


def test_failures_are_counted_by_reason_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    CachedChat(Echo(), tmp_path).complete([ask("bad", 1), ask("bad", 2), ask("a")])
    assert "echo: 2 failed: no" in caplog.messages


@settings(max_examples=40, deadline=None)
@given(text=st.text(), said=st.text(), seed=st.integers(), system=st.text(max_size=3))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, text: str, said: str, seed: int, system: str) -> None:
    class Says(Echo):
        def _reply(self, request: ChatRequest) -> Reply:
            return Completion(said, 1, 2, True)

    folder = tmp_path_factory.mktemp("cache")
    request = ChatRequest((Message("system", system), Message("user", text)), seed)
    CachedChat(Says(), folder).complete([request])
    assert CachedChat(Echo(), folder).complete([request]) == [Completion(said, 1, 2, True)]


def test_a_stored_file_can_be_read_by_people(tmp_path: Path) -> None:
    CachedChat(Echo(), tmp_path).complete([ask("naïve 東京", 3)])
    [path] = files(tmp_path)
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "model": "echo",
        "seed": 3,
        "messages": [{"role": "user", "content": "naïve 東京"}],
        "text": "NAÏVE 東京 3",
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "finished": True,
        "retries": 0,
    }
    assert "東京" in path.read_text(encoding="utf-8")


def test_a_file_that_is_no_reply_is_named(tmp_path: Path) -> None:
    CachedChat(Echo(), tmp_path).complete([ask("a")])
    [path] = files(tmp_path)
    path.write_text('{"text": "half', encoding="utf-8")
    with pytest.raises(InputError, match=rf"{path.name}: expected a stored reply, found something else; delete the file"):
        CachedChat(Echo(), tmp_path).complete([ask("a")])


def test_a_folder_that_cannot_be_made_is_an_error_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    with pytest.raises(InputError, match="cache: could not make this folder for replies"):
        CachedChat(Echo(), tmp_path / "cache")


def test_a_full_disk_keeps_what_is_stored_and_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    cached = CachedChat(Echo(), tmp_path)
    cached.complete([ask("a")])
    before = files(tmp_path)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match=r"could not write \(No space left on device\); replies so far are stored"):
        cached.complete([ask("b")])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == before


def test_two_processes_that_ask_the_same_go_on_with_the_reply_stored_first(tmp_path: Path) -> None:
    class Meanwhile(Echo):
        """While it is asked, another process stores a reply to the same request."""

        def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
            CachedChat(Echo(self.name), tmp_path).complete(requests)
            return [Completion("another reply", 1, 1, True) for _ in requests]

    assert CachedChat(Meanwhile(), tmp_path).complete([ask("a")]) == [Completion("A 0", 100, 10, True)]
    assert CachedChat(Echo(), tmp_path).complete([ask("a")]) == [Completion("A 0", 100, 10, True)]


def test_a_config_names_model_and_folder(tmp_path: Path) -> None:
    server = {"_target_": "rag.models.chat_server.ChatServer", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    node = {"_target_": "rag.models.cached_chat.load", "chat": server, "folder": "replies", "price": {"prompt": 1.5}}
    cached = TypeAdapter(Target).validate_python(node, context={"root": tmp_path}).build()
    assert isinstance(cached, CachedChat)
    chat: ChatModel = cached
    assert (chat.name, cached.folder, cached.price.prompt) == ("m max_tokens=512 temperature=0.0", tmp_path / "replies", 1.5)


RUN = """
import sys
from pathlib import Path
from rag.models.cached_chat import CachedChat
from rag.models.chat import ChatRequest, Message
from rag.models.chat_server import ChatServer
from rag.settings import Target
chat = ChatServer(base_url=sys.argv[1], model="m", concurrency=2)
CachedChat(chat, Path(sys.argv[2])).complete([ChatRequest((Message("user", str(i)),)) for i in range(20)])
"""


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_kill_loses_the_requests_that_are_under_way_and_no_others(stub: Any, tmp_path: Path) -> None:
    """Killed in the middle, twice: the third run asks for what is missing, and every reply is there."""
    concurrency = 2
    with stub.serving(lambda body, _: stub.said(f"reply {body['messages'][-1]['content']}", seconds=0.04)) as server:
        for already in (5, 11):
            child = subprocess.Popen(
                [sys.executable, "-c", RUN, server.url, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path
            )
            deadline = time.monotonic() + 60
            while len(files(tmp_path)) < already and time.monotonic() < deadline:
                time.sleep(0.01)
            child.send_signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
        cached = CachedChat(ChatServer(base_url=server.url, model="m"), tmp_path)
        replies = cached.complete([ask(str(i)) for i in range(20)])
        asked = server.asked()
    assert replies == [Completion(f"reply {i}", 7, 3, True) for i in range(20)]
    assert cached.usage.cached >= 11
    assert set(asked) == {str(i) for i in range(20)}
    assert len(asked) <= 20 + 2 * concurrency
