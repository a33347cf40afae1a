"""Give a call a deadline: a stage that hangs must not hang its caller."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

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
