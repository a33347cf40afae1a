"""Metrics as TensorBoard's event files: `tensorboard --logdir runs` shows all runs below it."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.text.summary import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from rag.tracking import Run

FOLDER = "tensorboard"


class TensorBoard:
    """Writes to `tensorboard/` in the run's folder, from the first metrics on; needs neither torch nor TensorFlow."""

    def __init__(self) -> None:
        self.writer: EventFileWriter | None = None

    def start(self, run: Run) -> None:
        """Note where to write."""
        self.run = run

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Add scalars, on disk when this returns."""
        writer = self.writer or self._open(step)
        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        writer.flush()

    def _open(self, step: int) -> EventFileWriter:
        self.writer = EventFileWriter(str(self.run.folder / FOLDER))
        # A run that goes on repeats some steps: what an earlier process wrote from here on is not shown any more.
        self.writer.add_event(Event(wall_time=time.time(), step=step, session_log=SessionLog(status=SessionLog.START)))
        for name, told in (("settings", self.run.settings), ("provenance", self.run.provenance)):
            lines = json.dumps(told, indent=2, ensure_ascii=False, default=str).splitlines()
            # Four spaces make it verbatim in the Markdown that TensorBoard shows.
            self.writer.add_event(
                Event(wall_time=time.time(), step=step, summary=text_pb(name, "\n".join(f"    {line}" for line in lines)))
            )
        return self.writer

    def file(self, path: Path) -> None:
        """Nothing: TensorBoard shows no files."""

    def finish(self, finished: bool) -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()
