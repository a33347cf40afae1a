"""Tell trackers what a run is and what it measures. A tracker that fails never costs the run its results."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rag.errors import InputError
from rag.processes import rank

logger = logging.getLogger(__name__)

KEPT_FROM_THE_START = frozenset({"wandb"})
"""What trackers leave in a run's folder before anything is measured; none of it is a result."""


class Run(NamedTuple):
    """What a run is."""

    job: str
    """Name of its root config, such as `eval_pipeline`."""
    folder: Path
    settings: Mapping[str, Any]
    """Resolved."""
    provenance: Mapping[str, Any]
    """Commit, versions, machine, and the hashes of what it reads."""

    @property
    def name(self) -> str:
        """The last two folders, since those of a sweep often end in a number alone."""
        return "/".join(self.folder.parts[-2:])


class Tracker(Protocol):
    """One place that runs are reported to. Whatever it raises after `start` ends it, with a warning, and not the run."""

    def start(self, run: Run) -> None:
        """Begin, or go on with a run of this folder that was stopped. Raises InputError for what the user must change."""
        ...

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Take metrics; of several values of one metric at one step, the last holds, since a run that goes on repeats some."""
        ...

    def file(self, path: Path) -> None:
        """Take a file of the run's folder that is complete."""
        ...

    def finish(self, finished: bool) -> None:
        """Write what is left; `finished` is false where the run failed."""
        ...


class Tracking:
    """The trackers of a run, by name. Until it is `running`, and in all processes of a run but the first, it tells nobody."""

    def __init__(self, makers: Mapping[str, Callable[[], Tracker]]) -> None:
        """Take what makes the trackers; `running` makes them."""
        self._makers = dict(makers)
        self._trackers: dict[str, Tracker] = {}

    @contextmanager
    def running(self, run: Run) -> Iterator[None]:
        """Start all trackers, and finish them however the run ends. Raises InputError for one that cannot start, before any work is done."""
        if rank() != 0:
            yield
            return
        finished = False
        try:
            for name, make in self._makers.items():
                self._start(name, make, run)
            yield
            finished = True
        except SystemExit:
            # The job is done, and its exit status is its verdict.
            finished = True
            raise
        finally:
            self._tell(lambda tracker: tracker.finish(finished))
            self._trackers.clear()

    def _start(self, name: str, make: Callable[[], Tracker], run: Run) -> None:
        try:
            tracker = make()
            tracker.start(run)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"tracking.{name} could not start: {type(error).__name__}: {error}; set tracking=default for files in the run's folder alone"
            ) from error
        self._trackers[name] = tracker

    def log(self, metrics: Mapping[str, float | None], step: int) -> None:
        """Report metrics after `step` steps or examples. One that is none or not finite has no value to draw and is left out."""
        drawn = {name: float(value) for name, value in metrics.items() if value is not None and math.isfinite(value)}
        if drawn:
            self._tell(lambda tracker: tracker.log(drawn, step))

    def file(self, path: Path) -> None:
        """Report a complete file of the run's folder."""
        self._tell(lambda tracker: tracker.file(path))

    def _tell(self, what: Callable[[Tracker], None]) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                what(tracker)
            except Exception as error:
                del self._trackers[name]
                logger.warning("tracking.%s ended, the run goes on without it: %s: %s", name, type(error).__name__, error)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one with dotted keys; an empty one stays a value."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found.update(flat(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value})
    return found
