"""What every chat model offers, whether it runs here or on a server."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from rag.errors import InputError


class Message(NamedTuple):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class ChatRequest(NamedTuple):
    """A chat to go on with, and the seed of what is sampled; another seed asks for another reply to the same chat."""

    messages: tuple[Message, ...]
    seed: int = 0


class Completion(NamedTuple):
    """What the model said."""

    text: str
    prompt_tokens: int
    """Tokens that the model read, chat template included; 0 where a server does not say."""
    completion_tokens: int
    """Tokens that it generated; 0 where a server does not say."""
    finished: bool
    """Whether it ended its turn itself; false where the token limit did."""
    retries: int = 0
    """How many times the request was sent again before this came."""


class ChatFailure(NamedTuple):
    """This request failed for good after the retries; the others of its call are unharmed."""

    reason: str


Reply = Completion | ChatFailure


class ChatModel(Protocol):
    """Answers chats."""

    @property
    def name(self) -> str:
        """Model and decoding settings: what a cache is keyed by."""
        ...

    def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """One reply for each request, in order; concurrency or batching is the model's own affair.

        Raises InputError when no request can succeed: the server refuses the connection, the key or the model.
        """
        ...


@runtime_checkable
class StreamingChat(ChatModel, Protocol):
    """A chat model that hands each reply over as soon as it is there, so that none is lost when a later one kills the run."""

    def stream(self, requests: Sequence[ChatRequest]) -> Iterator[tuple[int, Reply]]:
        """Pairs of a request's place and its reply, in the order of arrival; each request once. Raises InputError as `complete` does."""
        ...


def stream(chat: ChatModel, requests: Sequence[ChatRequest]) -> Iterator[tuple[int, Reply]]:
    """Replies as they arrive; a model that cannot stream is asked one request at a time."""
    if isinstance(chat, StreamingChat):
        yield from chat.stream(requests)
    else:
        for place, request in enumerate(requests):
            yield place, chat.complete([request])[0]


def in_order(replies: Iterator[tuple[int, Reply]]) -> list[Reply]:
    """Put a stream's replies in the order of their requests."""
    return [reply for _, reply in sorted(replies, key=lambda pair: pair[0])]


def sampling_seed(request: ChatRequest, bits: int) -> int:
    """A seed of so many bits for what is sampled: it differs for two chats under one seed, so that their replies are drawn independently."""
    words = json.dumps([request.seed, request.messages]).encode()
    return int.from_bytes(hashlib.sha256(words).digest()[:8], "big") >> (64 - bits)


def without_system_role(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The chat for a template that knows no system role: what the system says stands before the first user turn, a blank line between.

    Raises InputError for a chat without a user turn.
    """
    said = [message.content for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    first = next((place for place, message in enumerate(others) if message.role == "user"), None)
    if first is None:
        raise InputError("messages: expected at least one user turn, got none")
    others[first] = Message("user", "\n\n".join([*said, others[first].content]))
    return tuple(others)
