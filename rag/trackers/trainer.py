"""What transformers' trainer measures, told to the run's trackers."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rag.tracking import Tracking


class Report(TrainerCallback):
    """Reports loss, learning rate and gradient norm as `train/...`, and each evaluation as `validation/...`, by optimiser step.

    Takes the place of the trainer's own `report_to`, whose libraries would each begin a run of their own, without the run's settings.
    """

    def __init__(self, tracking: Tracking) -> None:
        """Report to these trackers."""
        self.tracking = tracking

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Pass on what is a number; of several processes the first reports."""
        if logs is not None and state.is_world_process_zero:
            self.tracking.log({named(key): float(value) for key, value in logs.items() if isinstance(value, Real)}, state.global_step)


def named(key: str) -> str:
    """A name of transformers' log as one of ours: `eval_loss` is `validation/loss`, `loss` is `train/loss`."""
    return f"validation/{key.removeprefix('eval_')}" if key.startswith("eval_") else f"train/{key}"
