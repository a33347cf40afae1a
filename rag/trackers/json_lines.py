"""Metrics as JSON lines in the run's folder, for whatever reads JSON. Settings, versions and hashes lie beside them (`conf/job.py`)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from rag.jsonl import Journal
from rag.records import Record
from rag.tracking import Run

METRICS = "metrics.jsonl"


class Line(Record):
    """A line of `metrics.jsonl`. Where two lines give one metric at one step, the run went on after a stop, and the later one holds."""

    step: int
    """Steps of training, or examples."""
    time: str
    """UTC, in ISO 8601."""
    metrics: dict[str, float]


class JsonLines:
    """Appends each report to `metrics.jsonl`; the file is there from the first one on."""

    def start(self, run: Run) -> None:
        """Note where to write."""
        self.path = run.folder / METRICS

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Append one line."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        Journal(self.path).append([Line(step=step, time=time, metrics=dict(metrics))])

    def file(self, path: Path) -> None:
        """Nothing: the file is in the folder."""

    def finish(self, finished: bool) -> None:
        """Nothing: each line is on disk already."""
