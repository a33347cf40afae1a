"""Report to MLflow: a server, a database, or a folder of files."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag.errors import InputError
from rag.settings import CachePath
from rag.tracking import Run, flat

FOLDER_TAG = "folder"
BATCH = 100
"""Parameters that MLflow takes at a time."""
LONGEST = 6000
"""Characters of a parameter that MLflow takes; the whole is in config.yaml, which is kept with the run."""


class Mlflow:
    """One run of MLflow for one run's folder, found again by its tag `folder`."""

    def __init__(self, experiment: str, store: CachePath, uri: str | None = None) -> None:
        """Where to report to: `uri`, else what the environment's `MLFLOW_TRACKING_URI` names, else the folder `store`."""
        self.experiment, self.store, self.uri = experiment, store, uri

    def start(self, run: Run) -> None:
        """Begin or go on. Raises InputError where MLflow is not installed."""
        try:
            from mlflow import MlflowClient
            from mlflow.entities import Param
        except ImportError as error:
            raise InputError("tracking=mlflow needs MLflow; pip install 'sieve-and-sage[mlflow]', or set tracking=default") from error
        uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI")
        if uri is None:
            # MLflow 3 wants to be told that a folder is meant. A database needs the whole of MLflow, of which the extra has the client alone.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            uri = self.store.resolve().as_uri()
        self.client: Any = MlflowClient(tracking_uri=uri)
        experiment = self._experiment()
        folder = str(run.folder.resolve())
        self.run_id = self._earlier(experiment, folder)
        if self.run_id is None:
            tags = {"mlflow.runName": run.name, "job": run.job, FOLDER_TAG: folder}
            self.run_id = self.client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
            told = {**flat(run.settings), **flat({"provenance": run.provenance})}
            params = [Param(_name(key), str(value)[:LONGEST]) for key, value in told.items()]
            for start in range(0, len(params), BATCH):
                self.client.log_batch(self.run_id, params=params[start : start + BATCH], synchronous=True)
        else:
            self.client.set_terminated(self.run_id, "RUNNING")

    def _experiment(self) -> str:
        found = self.client.get_experiment_by_name(self.experiment)
        return str(found.experiment_id if found is not None else self.client.create_experiment(self.experiment))

    def _earlier(self, experiment: str, folder: str) -> str | None:
        quoted = folder.replace("'", "\\'")
        found = self.client.search_runs([experiment], filter_string=f"tags.{FOLDER_TAG} = '{quoted}'", max_results=1)
        return str(found[0].info.run_id) if found else None

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Send metrics; they are there when this returns, also where the environment asks MLflow to log in the background."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        taken = [Metric(_name(name), value, now, step) for name, value in metrics.items()]
        self.client.log_batch(self.run_id, metrics=taken, synchronous=True)

    def file(self, path: Path) -> None:
        """Send a file."""
        self.client.log_artifact(self.run_id, str(path))

    def finish(self, finished: bool) -> None:
        """Say how the run ended."""
        self.client.set_terminated(self.run_id, "FINISHED" if finished else "FAILED")


def _name(name: str) -> str:
    """A name with the characters that MLflow takes: `Recall@5` becomes `Recall_5`."""
    return re.sub(r"[^\w./ -]", "_", name)
