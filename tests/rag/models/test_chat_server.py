"""Chat models behind a server, over real HTTP: what comes back, what is retried, what ends the run."""

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rag.errors import InputError
from rag.models.chat import ChatFailure, ChatRequest, Completion, Message, StreamingChat
from rag.models.chat_server import ChatServer

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]


def ask(text: str, seed: int = 0) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), seed)


def client(url: str, **changes: Any) -> ChatServer:
    return ChatServer(**{"base_url": url, "model": "m", "max_retries": 2, "timeout": 5.0, **changes})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's back-off starts at half a second; its rule stays, the unit shrinks."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.005)


def test_replies_are_in_the_order_of_the_requests_whichever_comes_first(stub: Any) -> None:
    let_go = {text: threading.Event() for text in "abc"}
    let_go["c"].set()

    def behaviour(body: dict[str, Any], _: int) -> Any:
        text = body["messages"][-1]["content"]
        let_go[text].wait(60)
        return stub.said(text.upper(), seconds={"a": 0.1, "b": 0.05}.get(text, 0.0))

    with stub.serving(behaviour) as server:
        chat = client(server.url, concurrency=3, timeout=120)
        assert isinstance(chat, StreamingChat)
        places = []
        for place, _ in chat.stream([ask("a"), ask("b"), ask("c")]):
            places.append(place)
            let_go["abc"[max(0, place - 1)]].set()
        assert places == [2, 1, 0]
        assert chat.complete([ask("a"), ask("b"), ask("c")]) == [Completion(text, 7, 3, True) for text in "ABC"]


def test_what_the_server_is_sent(stub: Any) -> None:
    with stub.serving(lambda body, _: stub.said("ok")) as server:
        client(server.url, temperature=0.7, max_tokens=9, extra_body={"top_k": 4}).complete([ask("é 東京", seed=11)])
        client(server.url, temperature=None, limit_key="max_completion_tokens").complete([ask("b")])
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "é 東京"}]
    assert server.bodies[0] == {"model": "m", "messages": messages, "seed": 11, "temperature": 0.7, "max_tokens": 9, "top_k": 4}
    assert set(server.bodies[1]) == {"model", "messages", "seed", "max_completion_tokens"}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_are_under_way_than_asked_for(stub: Any, concurrency: int) -> None:
    """Each waits in the server until as many are there."""
    together = threading.Barrier(concurrency, timeout=60)
    with stub.serving(lambda body, _: stub.said("ok", seconds=0 * together.wait())) as server:
        client(server.url, concurrency=concurrency, timeout=120).complete([ask(str(i)) for i in range(9)])
    assert server.most_at_once == concurrency


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_what_may_pass_is_tried_again_and_counted(stub: Any, status: int) -> None:
    with stub.serving(lambda body, number: stub.said("at last") if number == 3 else stub.refused(status, "busy")) as server:
        assert client(server.url).complete([ask("a")]) == [Completion("at last", 7, 3, True, retries=2)]


def test_the_wait_is_the_one_that_the_server_names(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("openai._base_client.time.sleep", waits.append)
    with stub.serving(
        lambda body, number: stub.said("ok") if number == 2 else stub.refused(429, "slow down", ("Retry-After", "0.4"))
    ) as server:
        assert client(server.url).complete([ask("a")]) == [Completion("ok", 7, 3, True, retries=1)]
    assert 0.4 in waits


def test_a_request_that_fails_for_good_leaves_the_others_alone(stub: Any) -> None:
    def behaviour(body: dict[str, Any], number: int) -> Any:
        return {"bad": stub.refused(500, "out of memory"), "long": stub.refused(400, "too long")}.get(
            body["messages"][-1]["content"], stub.said("ok")
        )

    with stub.serving(behaviour) as server:
        replies = client(server.url).complete([ask("a"), ask("bad"), ask("long"), ask("b")])
        asked = server.asked()
    assert [type(reply) for reply in replies] == [Completion, ChatFailure, ChatFailure, Completion]
    assert "HTTP 500" in replies[1].reason and "out of memory" in replies[1].reason
    assert "HTTP 400" in replies[2].reason and "too long" in replies[2].reason
    assert (asked.count("bad"), asked.count("long")) == (3, 1)


def test_a_server_that_does_not_answer_in_time(stub: Any) -> None:
    given_up = threading.Event()

    def behaviour(body: dict[str, Any], _: int) -> Any:
        if body["messages"][-1]["content"] == "slow":
            given_up.wait(60)
        return stub.said("late")

    with stub.serving(behaviour) as server:
        replies = client(server.url, timeout=1.0, max_retries=1).complete([ask("slow"), ask("a")])
        given_up.set()
    assert replies == [ChatFailure("time-out"), Completion("late", 7, 3, True)]
    assert server.asked().count("slow") == 2


def answers(stub: Any) -> Iterator[tuple[str, Any, Any]]:
    nothing = "the server sent no text"
    yield "null", stub.said(None), ChatFailure(nothing)
    yield "cut before the first word", stub.said(None, "length"), Completion("", 7, 3, False)
    yield "cut", stub.said("half a sen", "length"), Completion("half a sen", 7, 3, False)
    yield "no reason to end", stub.said("text", None), Completion("text", 7, 3, False)
    yield "filtered", stub.said("te", "content_filter"), ChatFailure("stopped by the server's content filter")
    yield "refusal", stub.said(None, refusal="I cannot."), ChatFailure("refused: I cannot.")
    yield "commentary", stub.said("Sure! Here it is:\n```\nLima\n```"), Completion("Sure! Here it is:\n```\nLima\n```", 7, 3, True)
    yield "unicode", stub.said("naïve 東京 😀 \\d+(x)$"), Completion("naïve 東京 😀 \\d+(x)$", 7, 3, True)
    yield "no choices", stub.raw(b'{"choices": []}'), ChatFailure("the server sent no choices")
    yield "null choices", stub.raw(b'{"choices": null}'), ChatFailure("the server sent no choices")
    yield (
        "no usage",
        stub.raw('{"choices": [{"message": {"content": "é"}, "finish_reason": "stop"}]}'.encode()),
        Completion("é", 0, 0, True),
    )
    yield "not JSON", stub.raw(b"{oops"), ChatFailure("not a chat completion: '{oops'")
    yield "half a character", stub.raw(b'{"choices": [{"message": {"content": "\\ud800"}}]}'), None
    yield (
        "a web page",
        stub.raw(b"<html>Log in</html>", content_type="text/html"),
        ChatFailure("not a chat completion: '<html>Log in</html>'"),
    )
    yield "an error with status 200", stub.raw(b'{"error": "boom"}'), ChatFailure("the server sent no choices")


def test_what_servers_answer(stub: Any) -> None:
    cases = {name: (answer, expected) for name, answer, expected in answers(stub)}
    with stub.serving(lambda body, _: cases[body["messages"][-1]["content"]][0]) as server:
        replies = client(server.url, max_retries=0).complete([ask(name) for name in cases])
    for (name, (_, expected)), reply in zip(cases.items(), replies, strict=True):
        assert isinstance(reply, ChatFailure) if expected is None else reply == expected, name


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (401, {}, "refuses the key .*bad key.*; set another key in STUB_KEY"),
        (403, {}, "refuses the key"),
        (404, {}, "does not offer 'm' .*; set chat.model to a name that it serves"),
        (429, {"code": "insufficient_quota"}, "has no credit left"),
    ],
)
def test_a_refusal_ends_the_run_before_thousands_of_requests(
    stub: Any, status: int, error: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", "sk-secret-1")
    with stub.serving(lambda body, _: stub.refused(status, "bad key sk-secret-1", **error)) as server:
        with pytest.raises(InputError, match=says) as caught:
            client(server.url, api_key_env="STUB_KEY", concurrency=2).complete([ask(str(i)) for i in range(1000)])
        assert len(server.bodies) < 20
    assert "sk-secret-1" not in str(caught.value)


def test_replies_that_were_under_way_at_a_refusal_are_handed_over(stub: Any) -> None:
    def behaviour(body: dict[str, Any], number: int) -> Any:
        return stub.refused(401, "bad key") if body["messages"][-1]["content"] == "0" else stub.said("paid", seconds=0.3)

    came: list[Any] = []
    with stub.serving(behaviour) as server, pytest.raises(InputError, match="set chat.api_key_env to the variable that holds your key"):
        came.extend(client(server.url, concurrency=3).stream([ask(str(i)) for i in range(9)]))
    answered = [int(text) for text in server.asked() if text != "0"]
    assert 2 <= len(answered) < 8
    assert sorted(came) == [(place, Completion("paid", 7, 3, True)) for place in sorted(answered)]


def test_no_server_at_the_address(stub: Any) -> None:
    with stub.serving(lambda body, _: stub.said("ok")) as server:
        url = server.url
    with pytest.raises(InputError, match=rf"no server answers at {url} .*; start it, or set chat.base_url"):
        client(url).complete([ask("a")])


def test_the_key_goes_to_the_server_and_nowhere_else(stub: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("STUB_KEY", "sk-secret-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    caplog.set_level(logging.INFO)
    with stub.serving(lambda body, _: stub.said("ok")) as server:
        with_key, without = client(server.url, api_key_env="STUB_KEY"), client(server.url)
        with_key.complete([ask("a")])
        without.complete([ask("b")])
    assert [headers["authorization"] for headers in server.headers] == ["Bearer sk-secret-1", "Bearer none"]
    assert "sk-" not in caplog.text + with_key.name + repr(with_key)
    assert caplog.text == ""


def test_a_key_that_is_not_set_is_missed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_KEY", raising=False)
    with pytest.raises(InputError, match="chat.api_key_env: the environment variable STUB_KEY is not set"):
        client("http://127.0.0.1:9/v1", api_key_env="STUB_KEY")


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.models.chat_server.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'sieve-and-sage\[api\]'"):
        client("http://127.0.0.1:9/v1")


def test_the_name_covers_what_decides_a_reply() -> None:
    url = "http://127.0.0.1:9/v1"
    names = {
        client(url, **changes).name
        for changes in ({}, {"temperature": 1.0}, {"max_tokens": 9}, {"extra_body": {"top_p": 0.5}}, {"model": "n"})
    }
    assert len(names) == 5
    assert (
        client(url).name
        == client("http://127.0.0.1:10/v1", timeout=9.0, concurrency=1, max_retries=0).name
        == "m max_tokens=512 temperature=0.0"
    )
