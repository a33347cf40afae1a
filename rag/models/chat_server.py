"""Chat models behind a server that speaks OpenAI's API: vLLM, llama.cpp's own server, or a hosted model."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from rag.errors import InputError
from rag.models.chat import ChatFailure, ChatRequest, Completion, Reply, in_order
from rag.records import Text

if TYPE_CHECKING:
    from openai import OpenAI

NO_KEY = "none"
"""Sent where no key is configured; the library insists on one, and would take OPENAI_API_KEY to whatever server this is."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Answer(BaseModel):
    """The fields that are read of a server's answer; servers add their own."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None


class ChatServer:
    """Asks a server, several requests at a time.

    The client library retries what may pass (time-outs, lost connections, 408, 409, 429, 5xx) with exponential back-off, or after the time that
    `Retry-After` names, up to two minutes. A request that still fails is a ChatFailure with its reason.
    """

    def __init__(
        self,
        base_url: Text,
        model: Text,
        api_key_env: Text | None = None,
        temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0,
        max_tokens: Annotated[int, Field(ge=1)] = 512,
        limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        timeout: Annotated[float, Field(gt=0)] = 120.0,
        max_retries: Annotated[int, Field(ge=0)] = 5,
        concurrency: Annotated[int, Field(ge=1)] = 8,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        `api_key_env` names the environment variable that holds the key, none for a server that asks for none; the key itself is neither stored
        with results nor logged. A temperature of none is not sent (some hosted models accept their own only). `timeout` is in seconds, for one
        try. `extra_body` holds further fields of the request, such as vLLM's `top_k`. Raises InputError without the library or the variable.
        """
        if find_spec("openai") is None:
            raise InputError("a chat server needs the package openai; pip install 'sieve-and-sage[api]'")
        self.model = model
        self.base_url = base_url
        self.api_key_env = api_key_env
        self.concurrency = concurrency
        self._timeout = timeout
        self._max_retries = max_retries
        if not self._key():
            raise InputError(f"chat.api_key_env: the environment variable {api_key_env} is not set; export your key in it")
        self._decoding = {} if temperature is None else {"temperature": temperature}
        self._decoding |= {limit_key: max_tokens}
        self._extra_body = dict(extra_body or {})
        # One line for each request would bury the rest of a job's log.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        logging.getLogger("openai").setLevel(logging.WARNING)

    @property
    def name(self) -> str:
        """Model and what else decides a reply; not the server's address, which changes when a server moves."""
        settings = {**self._decoding, **self._extra_body}
        return " ".join([self.model, *(f"{key}={value}" for key, value in sorted(settings.items()))])

    def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """One reply for each request, in order. Raises InputError when the server refuses the connection, the key or the model."""
        return in_order(self.stream(requests))

    def stream(self, requests: Sequence[ChatRequest]) -> Iterator[tuple[int, Reply]]:
        """Replies as they arrive, each with its request's place.

        A new request is sent when a reply has been taken, so that no more than `concurrency` replies are under way or not yet stored. A refusal
        ends the sending; what is under way is still handed over before InputError is raised.
        """
        from openai import OpenAI

        refusal: InputError | None = None
        waiting = enumerate(requests)
        client = OpenAI(api_key=self._key(), base_url=self.base_url, timeout=self._timeout, max_retries=self._max_retries)
        with client, ThreadPoolExecutor(self.concurrency) as pool:
            places = {pool.submit(self._ask, client, request): place for place, request in islice(waiting, self.concurrency)}
            while places:
                for future in wait(places, return_when=FIRST_COMPLETED).done:
                    place = places.pop(future)
                    try:
                        reply = future.result()
                    except InputError as error:
                        refusal = refusal or error
                        continue
                    yield place, reply
                    if refusal is None:
                        places |= {pool.submit(self._ask, client, request): place for place, request in islice(waiting, 1)}
        if refusal is not None:
            raise refusal

    def _key(self) -> str:
        return NO_KEY if self.api_key_env is None else os.environ.get(self.api_key_env, "")

    def _ask(self, client: "OpenAI", request: ChatRequest) -> Reply:
        import openai

        try:
            answer = client.chat.completions.with_raw_response.create(**self._body(request))
            return _read(answer.text, answer.retries_taken)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            key = (
                "chat.api_key_env to the variable that holds your key" if self.api_key_env is None else f"another key in {self.api_key_env}"
            )
            raise InputError(f"{self.base_url} refuses the key ({self._said(error)}); set {key}") from error
        except openai.NotFoundError as error:
            raise InputError(
                f"{self.base_url} does not offer '{self.model}' ({self._said(error)}); set chat.model to a name that it serves, "
                "and chat.base_url to the address that ends in /v1"
            ) from error
        except openai.RateLimitError as error:
            if error.code == "insufficient_quota":
                raise InputError(
                    f"{self.base_url}: the account behind {self.api_key_env} has no credit left ({self._said(error)})"
                ) from error
            return ChatFailure(f"HTTP 429: {self._said(error)}")
        except openai.APITimeoutError:
            return ChatFailure("time-out")
        except openai.APIConnectionError as error:
            # A refused connection or an unknown host; a connection lost on the way is this request's own failure.
            if type(error.__cause__).__name__ == "ConnectError":
                raise InputError(f"no server answers at {self.base_url} ({error.__cause__}); start it, or set chat.base_url") from error
            return ChatFailure(f"connection lost: {error.__cause__}")
        except openai.APIStatusError as error:
            return ChatFailure(f"HTTP {error.status_code}: {self._said(error)}")

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        chat = [message._asdict() for message in request.messages]
        return {"model": self.model, "messages": chat, "seed": request.seed, **self._decoding, "extra_body": self._extra_body}

    def _said(self, error: Exception) -> str:
        """The server's words on one line; some repeat the key that they were sent."""
        said = str(error) if self.api_key_env is None else str(error).replace(self._key(), "***")
        return " ".join(said.split())[:300]


def _read(text: str, retries: int) -> Reply:
    try:
        answer = _Answer.model_validate_json(text)
    except ValidationError:
        return ChatFailure(f"not a chat completion: {' '.join(text.split())[:200]!r}")
    if not answer.choices:
        return ChatFailure("the server sent no choices")
    choice = answer.choices[0]
    if choice.message.refusal is not None:
        return ChatFailure(f"refused: {choice.message.refusal}")
    if choice.finish_reason == "content_filter":
        return ChatFailure("stopped by the server's content filter")
    # A model that reasons in secret may reach the limit before its first visible word.
    if choice.message.content is None and choice.finish_reason != "length":
        return ChatFailure("the server sent no text")
    usage = answer.usage or _Usage()
    return Completion(choice.message.content or "", usage.prompt_tokens, usage.completion_tokens, choice.finish_reason == "stop", retries)
