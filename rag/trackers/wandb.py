"""Report to Weights & Biases, online or into files that `wandb sync` sends later."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from rag.errors import InputError
from rag.tracking import Run

ID = "run_id.txt"


class Wandb:
    """One run of W&B for one run's folder; its own files lie in `wandb/` there."""

    def __init__(
        self,
        project: str,
        entity: str | None = None,
        mode: Literal["online", "offline", "disabled"] | None = None,
        tags: tuple[str, ...] = (),
    ) -> None:
        """Where to report to; with no `mode`, the environment's `WANDB_MODE` decides."""
        self.project, self.entity, self.mode, self.tags = project, entity, mode, tags

    def start(self, run: Run) -> None:
        """Begin or go on. Raises InputError where wandb is not installed and where nobody is logged in."""
        try:
            import wandb
        except ImportError as error:
            raise InputError("tracking=wandb needs wandb; pip install 'sieve-and-sage[wandb]', or set tracking=default") from error
        mode = self.mode or os.environ.get("WANDB_MODE", "online")
        try:
            self.run: Any = wandb.init(
                project=self.project,
                entity=self.entity,
                mode=mode,  # type: ignore[arg-type]  # what the environment says is checked by wandb
                tags=self.tags,
                job_type=run.job,
                name=run.name,
                dir=run.folder,
                config={**run.settings, "provenance": run.provenance},
                id=_run_id(run.folder / "wandb"),
                # Without a server there is nothing to go on from, and wandb warns where it is asked to.
                resume="allow" if mode == "online" else None,
            )
        except wandb.errors.UsageError as error:
            raise InputError(
                f"tracking.wandb: {error}; log in with `wandb login`, or set tracking.wandb.mode=offline and send the run with `wandb sync`"
            ) from error
        # W&B's own count of steps never goes back, but that of a run that goes on does.
        self.run.define_metric("*", step_metric="step")

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Hand over metrics; wandb sends them in the background."""
        self.run.log({**metrics, "step": step})

    def file(self, path: Path) -> None:
        """Keep a file with the run, as it is now."""
        self.run.save(str(path), base_path=str(path.parent), policy="now")

    def finish(self, finished: bool) -> None:
        """Send what is left, and wait until the run's files are complete: W&B closes them in a process of its own, after `finish` returned."""
        import wandb

        self.run.finish(exit_code=0 if finished else 1)
        wandb.teardown()


def _run_id(folder: Path) -> str:
    """The id of this folder's run, the same one when it goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ID
    if not path.is_file():
        path.write_text(secrets.token_hex(4) + "\n", encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()
