"""Ask a chat model many things and say how many it could not reply to."""

import logging
from collections import Counter
from collections.abc import Sequence

from rag.models.chat import ChatFailure, ChatModel, ChatRequest

logger = logging.getLogger(__name__)


def texts(chat: ChatModel, requests: Sequence[ChatRequest], title: str) -> list[str | None]:
    """The replies in order, also those that the token limit ended; none for a request that failed for good."""
    logger.info("%s: %d requests to %s", title, len(requests), chat.name)
    replies = chat.complete(requests) if requests else []
    failures = Counter(reply.reason for reply in replies if isinstance(reply, ChatFailure))
    if failures:
        reason, _ = failures.most_common(1)[0]
        logger.warning("%s: %d of %d requests failed, most often: %s", title, failures.total(), len(requests), reason)
    return [None if isinstance(reply, ChatFailure) else reply.text for reply in replies]
