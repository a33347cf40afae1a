"""Ask a chat model, and take from its replies what was asked for."""

import hashlib
import re
from collections.abc import Sequence

from rag.errors import InputError
from rag.models.chat import ChatFailure, ChatModel, ChatRequest, Completion

_LABEL = re.compile(
    r"(?:adversarial |answer |negated |source )?(?:sentence|passage)|(?:conflict|supporting) passage|output|answer|a", re.IGNORECASE
)
_COMMENTARY = re.compile(
    r"(?:sure|certainly|of course|okay|absolutely|here(?:'s| is| are)|the following|below is|this is)\b[^\n]*:\s*\n", re.IGNORECASE
)
_OUTAGE = 4
"""Requests of a call that have all failed."""
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "`": "`"}


def seed_of(seed: int, *parts: str) -> int:
    """A seed for one request: the same for the same parts, on every machine and in every order of work."""
    digest = hashlib.sha256(":".join((str(seed), *parts)).encode()).digest()
    return int.from_bytes(digest[:4]) >> 1


def ask(chat: ChatModel | None, requests: Sequence[ChatRequest]) -> list[str | None]:
    """The replies in order; none for a request that failed for good and for a reply that was cut at the token limit.

    Raises InputError where there is something to ask and no model, and where a model answers none of several requests: that is an outage, not the
    requests' fault, and what is missing is asked for when the build is repeated.
    """
    if not requests:
        return []
    if chat is None:
        raise InputError(
            "chat: expected a model to write sentences and passages, got none; set chat@dataset.chat=... to a file of conf/chat"
        )
    replies = chat.complete(requests)
    failed = [reply.reason for reply in replies if isinstance(reply, ChatFailure)]
    if len(failed) == len(requests) >= _OUTAGE:
        raise InputError(
            f"chat: none of {len(requests)} requests to {chat.name} was answered ({failed[0]}); see to the model or its server, then repeat the command"
        )
    return [reply.text if isinstance(reply, Completion) and reply.finished else None for reply in replies]


def passage(reply: str) -> str:
    """The reply without commentary before it, the prompt's own label, code fences and quotation marks around it."""
    text = reply.strip()
    text = re.sub(r"^```\w*\n|\n?```$", "", text).strip()
    text = _COMMENTARY.sub("", text, count=1).strip() if _COMMENTARY.match(text) else text
    head, colon, rest = text.partition(":")
    if colon and rest.strip() and _LABEL.fullmatch(head.strip(" *#")):
        text = rest.strip(" *\n")
    closing = _QUOTES.get(text[:1])
    if closing and len(text) > 1 and text.endswith(closing) and closing not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def sentence(reply: str) -> str:
    """The first line of the passage: models that are asked for one sentence add remarks on lines of their own."""
    lines = passage(reply).splitlines()
    return passage(lines[0]) if lines else ""
