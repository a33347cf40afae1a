"""A cache of replies on disk: nothing is paid twice, a killed run goes on where it stopped, and what was used is accounted for."""

import hashlib
import json
import logging
import os
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from rag.errors import InputError
from rag.models.chat import ChatFailure, ChatModel, ChatRequest, Completion, Reply, stream
from rag.records import Record, Text
from rag.settings import CachePath, Settings, Target

logger = logging.getLogger(__name__)


class Price(Settings):
    """What a provider charges."""

    prompt: float = Field(default=0.0, ge=0)
    """For a million prompt tokens."""
    completion: float = Field(default=0.0, ge=0)
    """For a million completion tokens."""
    currency: Text = "USD"

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The price of so many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


class Usage(Record):
    """What was asked since a cache was opened, and what it cost."""

    requests: int = 0
    """All requests: those asked, `cached` and `repeated`."""
    cached: int = 0
    """Answered from the folder."""
    repeated: int = 0
    """The same as another request of the same call, so asked once for both."""
    failed: int = 0
    """Asked, and failed for good."""
    unfinished: int = 0
    """Asked, and cut at the token limit."""
    retries: int = 0
    """Times that a request which was answered in the end was sent again; those of failed ones are not known."""
    prompt_tokens: int = 0
    """Of replies that were asked for; a failed request counts none."""
    completion_tokens: int = 0
    cost: float = 0.0
    """Of these tokens."""
    cached_prompt_tokens: int = 0
    """Of replies from the folder, paid for earlier."""
    cached_completion_tokens: int = 0
    cached_cost: float = 0.0
    """Of those tokens; together with `cost`, what the replies are worth, whichever run paid."""
    currency: Text = "USD"

    @property
    def asked(self) -> int:
        """Requests that reached the model."""
        return self.requests - self.cached - self.repeated


class _Message(Record):
    role: Text
    content: Text


class _Entry(Record):
    """One file of the cache: the request, so that a reader sees what was asked, and the reply."""

    model: Text
    seed: int
    messages: tuple[_Message, ...]
    text: Text
    prompt_tokens: int
    completion_tokens: int
    finished: bool
    retries: int = 0


class CachedChat:
    """A chat model whose replies are kept, one JSON file each, under the hash of model name, messages and seed.

    A reply is stored as soon as it is there, so a kill loses at most the requests that are under way. A reply that was cut at the token limit is
    stored like any other: it is paid for, and would come out the same again; another limit is another name. A failure is not stored, so that a
    rerun asks again. Files are written whole under another name and then renamed, which works on a shared file system with several processes;
    where two of them ask the same at the same moment, both pay, and the reply that was stored first is the one that both go on with.
    """

    def __init__(self, chat: ChatModel, folder: Path, price: Price | None = None) -> None:
        """Open a cache, which may hold replies of several models. Raises InputError for a folder that cannot be made."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: could not make this folder for replies ({error.strerror}); choose another") from error
        self._chat = chat
        self.folder = folder
        self.price = price or Price()
        self._counts: Counter[str] = Counter()
        self._asks_again = False

    @property
    def name(self) -> str:
        """That of the model."""
        return self._chat.name

    def forget(self) -> None:
        """Ask for everything from here on, whatever the folder holds, so that a measurement of time is one of the model. The folder stays."""
        self._asks_again = True

    @property
    def usage(self) -> Usage:
        """What was asked through this object so far."""
        counts = self._counts
        return Usage(
            **counts,
            cost=self.price.of(counts["prompt_tokens"], counts["completion_tokens"]),
            cached_cost=self.price.of(counts["cached_prompt_tokens"], counts["cached_completion_tokens"]),
            currency=self.price.currency,
        )

    def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """One reply for each request, in order: from the folder, or asked for and stored. The same request twice is asked once.

        Raises InputError when the model does, for a file of the cache that cannot be read, and for a disk that cannot be written; replies so far
        are stored.
        """
        keys = [self._key(request) for request in requests]
        replies: dict[str, Reply] = {}
        missing: dict[str, ChatRequest] = {}
        self._counts["requests"] += len(requests)
        for key, request in zip(keys, requests, strict=True):
            stored = replies.get(key) or (None if key in missing or self._asks_again else self._read(key))
            if isinstance(stored, Completion):
                replies[key] = stored
                self._counts["cached"] += 1
                self._counts["cached_prompt_tokens"] += stored.prompt_tokens
                self._counts["cached_completion_tokens"] += stored.completion_tokens
            elif key in missing:
                self._counts["repeated"] += 1
            else:
                missing[key] = request
        asked = list(missing.items())
        for place, reply in stream(self._chat, [request for _, request in asked]):
            key, request = asked[place]
            replies[key] = self._keep(key, request, reply)
        self._log(len(requests), [replies[key] for key in missing])
        return [replies[key] for key in keys]

    def _keep(self, key: str, request: ChatRequest, reply: Reply) -> Reply:
        if isinstance(reply, ChatFailure):
            self._counts["failed"] += 1
            return reply
        self._counts["retries"] += reply.retries
        self._counts["unfinished"] += not reply.finished
        self._counts["prompt_tokens"] += reply.prompt_tokens
        self._counts["completion_tokens"] += reply.completion_tokens
        return self._read(key) or self._write(key, request, reply)

    def _log(self, requests: int, asked: Sequence[Reply]) -> None:
        logger.info("%s: %s requests, %s asked, the others were known", self.name, requests, len(asked))
        for reason, count in Counter(reply.reason for reply in asked if isinstance(reply, ChatFailure)).most_common():
            logger.warning("%s: %s failed: %s", self.name, count, reason)

    def _key(self, request: ChatRequest) -> str:
        words = json.dumps([self.name, request.messages, request.seed])
        return hashlib.sha256(words.encode()).hexdigest()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _read(self, key: str) -> Completion | None:
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            entry = _Entry.model_validate_json(content)
        except ValidationError as error:
            raise InputError(
                f"{path}: expected a stored reply, found something else; delete the file, and it will be asked for again"
            ) from error
        return Completion(entry.text, entry.prompt_tokens, entry.completion_tokens, entry.finished, entry.retries)

    def _write(self, key: str, request: ChatRequest, reply: Completion) -> Completion:
        messages = tuple(_Message(role=message.role, content=message.content) for message in request.messages)
        entry = _Entry(model=self.name, seed=request.seed, messages=messages, **reply._asdict())
        path = self._path(key)
        partial = path.with_name(f"{key}.{os.getpid()}.{uuid.uuid4().hex}.partial")
        try:
            path.parent.mkdir(exist_ok=True)
            with partial.open("w", encoding="utf-8", newline="\n") as out:
                out.write(entry.model_dump_json(indent=1))
                out.flush()
                os.fsync(out.fileno())
            partial.replace(path)
        except OSError as error:
            raise InputError(f"{path}: could not write ({error.strerror}); replies so far are stored, rerun to go on") from error
        finally:
            partial.unlink(missing_ok=True)
        return reply


def load(chat: Target, folder: CachePath | None, price: Price | None = None) -> ChatModel:
    """The model that a config names, behind a cache in `folder`; the model itself where no folder is to keep its replies."""
    model: ChatModel = chat.build()
    return model if folder is None else CachedChat(model, folder, price)
