"""Give a call a deadline: a stage that hangs must not hang its caller, and one item that fails must not cost the others their result."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

logger = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def within(seconds: float | None, call: Callable[[], ResultT]) -> ResultT:
    """Return `call()`, or raise TimeoutError after `seconds`; without a deadline the call runs in this thread.

    A thread cannot be killed: a call that timed out goes on in the background, and its result is dropped. It does not keep the program
    from ending, as the threads of a pool would.
    """
    if seconds is None:
        return call()
    future: Future[ResultT] = Future()
    Thread(target=_settle, args=(future, call), name="deadline", daemon=True).start()
    return future.result(timeout=seconds)


def _settle(future: "Future[ResultT]", call: Callable[[], ResultT]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # Belongs to the caller, who waits in another thread.
        future.set_exception(error)


def attempt(
    name: str, items: Sequence[ItemT], call: Callable[[Sequence[ItemT]], Sequence[ResultT]], seconds: float | None
) -> list[tuple[ResultT | None, float]]:
    """The result for each item with its share of the milliseconds; none for an item where the call failed or took longer than `seconds`.

    When the batch fails, its items are tried one by one, each with `seconds` of its own. Failures are logged with `name` and what `str` makes of
    the item.
    """
    started = time.perf_counter()
    try:
        results = within(None if seconds is None else seconds * len(items), lambda: call(items))
        if len(results) != len(items):
            raise RuntimeError(f"expected {len(items)} results, got {len(results)}")  # noqa: TRY301
    except Exception as error:  # What is attempted may fail of anything, and its caller goes on without it.
        if len(items) > 1:
            return [one for item in items for one in attempt(name, [item], call, seconds)]
        logger.error("%s: %s failed: %r", items[0], name, error)  # noqa: TRY400
        return [(None, 1000 * (time.perf_counter() - started))]
    milliseconds = 1000 * (time.perf_counter() - started) / len(items)
    return [(result, milliseconds) for result in results]
