"""Show how far a job is: a bar in a terminal, a line in the log now and then where there is none."""

import logging
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

logger = logging.getLogger(__name__)

EVERY = 30.0
"""Seconds between two lines of the log."""


class Progress:
    """Counts items, with their rate; `report` gets seconds and rate with each line and at the end."""

    def __init__(self, what: str, total: int, report: Callable[[Mapping[str, float], int], None]) -> None:
        """Count `total` items under the name of `what` is done with them, such as `predicted`."""
        self.what, self.total, self.report = what, total, report
        self.done = 0
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        self.bar = Bar(*columns, console=console) if console.is_terminal else None

    def __enter__(self) -> Self:
        """Begin to count."""
        self.began = self.told = time.monotonic()
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task(self.what, total=self.total)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Say how it ended."""
        if self.bar is not None:
            self.bar.stop()
        if self.done:
            self._tell(time.monotonic())

    def advance(self, count: int) -> None:
        """Count items."""
        self.done += count
        if self.bar is not None:
            self.bar.advance(self.task, count)
        now = time.monotonic()
        if now - self.told >= EVERY and self.done < self.total:
            self._tell(now)

    def _tell(self, now: float) -> None:
        self.told = now
        seconds = now - self.began
        rate = self.done / max(seconds, 1e-9)
        self.report({f"{self.what}/seconds": seconds, f"{self.what}/per_second": rate}, self.done)
        if self.bar is None:
            left = f", about {(self.total - self.done) / rate:.0f} s left" if self.done < self.total else ""
            logger.info("%d of %d %s in %.0f s, %.3g a second%s", self.done, self.total, self.what, seconds, rate, left)
