"""What a source leaves out, by reason."""

import logging
from collections import Counter

logger = logging.getLogger(__name__)


def report(title: str, reasons: Counter[str], dropped: Counter[str] | None) -> None:
    """Log the counts under `title`, which says what was read, and add them to `dropped`."""
    for reason, count in sorted(reasons.items()):
        logger.info("%s: left out %d: %s", title, count, reason)
    if dropped is not None:
        dropped.update(reasons)
