"""Where a system predicts: in this process, or on a cluster with one system in each worker. All give the same predictions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from rag.cluster import Workers, spread
from rag.records import Prediction, Query
from rag.settings import Component
from serve.systems import System

Batches = Sequence[Sequence[Query]]


class Engine(Protocol):
    """A way to get the predictions of batches."""

    def predict(self, system: Component, batches: Batches) -> Iterator[tuple[int, list[Prediction]]]:
        """Yield the number of each batch with its predictions, as they come; every batch is given to the system as it is."""
        ...


class Local:
    """This process: one system, batch after batch."""

    def predict(self, system: Component, batches: Batches) -> Iterator[tuple[int, list[Prediction]]]:
        """In order."""
        built: System = system.build()
        for number, batch in enumerate(batches):
            yield number, built.predict(batch)


class Ray:
    """Workers on the machines of the Ray cluster that `RAY_ADDRESS` names, or on this machine."""

    def __init__(self, workers: int, cpus_per_worker: float = 1, gpus_per_worker: float = 0) -> None:
        """How many workers, and what each is given; each loads the system for itself."""
        self.workers = Workers(workers, cpus_per_worker, gpus_per_worker)

    def predict(self, system: Component, batches: Batches) -> Iterator[tuple[int, list[Prediction]]]:
        """In the order in which they are done. Paths must mean the same on all machines."""
        numbers = {f"batch {number} ({batch[0].id} to {batch[-1].id})": number for number, batch in enumerate(batches)}

        def start() -> Callable[[Sequence[Query]], list[Prediction]]:
            built: System = system.build()
            return built.predict

        for name, made in spread(start, dict(zip(numbers, batches, strict=True)), self.workers):
            yield numbers[name], made
