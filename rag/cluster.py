"""Spread work over the workers of a Ray cluster: results as they come, a lost worker replaced, what failed named."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from rag.errors import InputError

logger = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
PATIENCE = 30.0
"""Seconds without news after which the log says that workers are waited for."""


class Workers(NamedTuple):
    """What is asked of the cluster that `RAY_ADDRESS` names, or of this machine."""

    number: int
    cpus: float = 1
    """Cores of each; Ray also gives it so many threads."""
    gpus: float = 0
    """GPUs of each; a half puts two workers on one."""
    attempts: int = 3
    """How often an item is given to a worker that is lost with it."""


class _Worker:
    """One process of the cluster."""

    def __init__(self, start: Callable[[], Callable[[Any], Any]]) -> None:
        self.start = start

    def begin(self) -> None:
        # Not when it is made: what that raises would reach us without its type.
        self.work = self.start()

    def do(self, item: Any) -> Any:
        return self.work(item)


def spread(start: Callable[[], Callable[[ItemT], ResultT]], items: Mapping[str, ItemT], workers: Workers) -> Iterator[tuple[str, ResultT]]:
    """Yield the name and the result of each item, as they come.

    `start` runs once in each worker and returns its work on one item, such as a loaded model's. An item that is lost with its worker (the
    machine went down, or memory ran out) goes to a new one. What the work itself raises is raised here, as it was and with the item's
    name, when the items under way are done. Raises InputError where Ray is not installed, and RuntimeError for an item that was lost too
    often.
    """
    try:
        import ray
        from ray.exceptions import RayActorError, RayTaskError
    except ImportError as error:
        raise InputError("engine=ray needs Ray; pip install 'sieve-and-sage[ray]', or set engine=local") from error
    if not ray.is_initialized():
        ray.init()
    actor: Any = ray.remote(num_cpus=workers.cpus, num_gpus=workers.gpus)(_Worker)
    waiting = deque(items)
    lost: Counter[str] = Counter()
    under_way: dict[Any, tuple[Any, str]] = {}
    failure: BaseException | None = None

    def hire() -> None:
        worker = actor.remote(start)
        under_way[worker.begin.remote()] = (worker, "")

    for _ in range(min(workers.number, len(items))):
        hire()
    try:
        while under_way:
            ready, _ = ray.wait(list(under_way), num_returns=1, timeout=PATIENCE)
            if not ready:
                _say_what_is_waited_for(ray, workers, sum(not name for _, name in under_way.values()))
                continue
            worker, name = under_way.pop(ready[0])
            try:
                result = ray.get(ready[0])
            except RayTaskError as error:
                failure = failure or _named(error.cause, name)
                waiting.clear()
                continue
            except RayActorError as error:
                lost[name] += 1
                if lost[name] < workers.attempts and failure is None:
                    logger.warning("a worker was lost%s; another takes its place (%s)", f" with {name}" if name else "", _first_line(error))
                    waiting.extendleft([name] if name else [])
                    hire()
                else:
                    what = f"with {name} " if name else "while it began "
                    failure = failure or RuntimeError(f"a worker was lost {what}{lost[name]} times, the last time so: {_first_line(error)}")
                    waiting.clear()
                continue
            if name:
                yield name, result
            if waiting:
                item = waiting.popleft()
                under_way[worker.do.remote(items[item])] = (worker, item)
            else:
                ray.kill(worker)
    finally:
        for worker, _ in under_way.values():
            ray.kill(worker)
    if failure is not None:
        raise failure


def _named(error: BaseException, name: str) -> BaseException:
    if name:
        error.add_note(f"raised by a worker's work on {name}")
    return error


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _say_what_is_waited_for(ray: Any, workers: Workers, beginning: int) -> None:
    """A worker that the cluster has no room for waits in silence."""
    if beginning:
        room = ray.cluster_resources()
        logger.info(
            "waiting for %d workers to load; each takes %g CPUs and %g GPUs of the %g and %g that the cluster has",
            *(beginning, workers.cpus, workers.gpus, room.get("CPU", 0), room.get("GPU", 0)),
        )
