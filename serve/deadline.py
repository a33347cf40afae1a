"""Give a call a deadline: a stage that hangs must not hang its caller."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

ResultT = TypeVar("ResultT")


def within(seconds: float | None, call: Callable[[], ResultT]) -> ResultT:
    """Return `call()`, or raise TimeoutError after `seconds`; without a deadline the call runs in this thread.

    A thread cannot be killed: a call that timed out goes on in the background, and its result is dropped.
    """
    if seconds is None:
        return call()
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deadline")
    try:
        return pool.submit(call).result(timeout=seconds)
    finally:
        pool.shutdown(wait=False)
