"""What all tests share."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import hypothesis
import pytest
import pytest_socket

# Tiny models gain nothing from threads, and lose a factor of ten where the cores are busy. Read by torch when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# How long an example takes says how busy the machine is, and nothing of the code.
hypothesis.settings.register_profile("any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("any machine")


class Answer(NamedTuple):
    """One HTTP answer; the body as it goes over the line."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    seconds: float = 0.0
    """How long the server takes."""


Behaviour = Callable[[dict[str, Any], int], Answer]


class StubServer(ThreadingHTTPServer):
    """Notes the body and the headers of each request; `behaviour` gets a body and how often its last message has been asked, from 1."""

    daemon_threads = True

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour = behaviour
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.under_way = 0
        self.most_at_once = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def asked(self) -> list[str]:
        return [body["messages"][-1]["content"] for body in self.bodies]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""


class Handler(BaseHTTPRequestHandler):
    server: StubServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.bodies.append(body)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            number = server.asked().count(body["messages"][-1]["content"])
            server.under_way += 1
            server.most_at_once = max(server.most_at_once, server.under_way)
        try:
            answer = server.behaviour(body, number)
            time.sleep(answer.seconds)
        finally:
            with server.lock:
                server.under_way -= 1
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the terminal."""


class Stub:
    """What a test makes a server and its answers with."""

    raw = Answer

    @staticmethod
    def said(text: Any, finish: Any = "stop", seconds: float = 0.0, **message: Any) -> Answer:
        """A chat completion."""
        choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        return Answer(json.dumps(body).encode(), seconds=seconds)

    @staticmethod
    def refused(status: int, message: str, *headers: tuple[str, str], **error: Any) -> Answer:
        return Answer(json.dumps({"error": {"message": message, **error}}).encode(), status, headers)

    @staticmethod
    @contextmanager
    def serving(behaviour: Behaviour) -> Iterator[StubServer]:
        server = StubServer(behaviour)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@pytest.fixture(scope="session")
def stub() -> type[Stub]:
    """A server over real HTTP that speaks OpenAI's chat API and answers as a test tells it; the test needs the mark `enable_socket`."""
    return Stub


@pytest.fixture
def ray_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray cluster of two nodes with one CPU each, on this machine."""
    pytest_socket.enable_socket()
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    pytest_socket.disable_socket(allow_unix_socket=True)
