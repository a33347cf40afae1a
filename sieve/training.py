"""What training has in common, whatever the form of Sieve: its settings, and transformers' arguments made of them."""

import time
from pathlib import Path
from typing import Any, Literal, Self

import torch
from pydantic import Field, model_validator
from transformers import EarlyStoppingCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rag.models.base import Precision, pick_device, pick_dtype
from rag.processes import world_size
from rag.settings import Settings
from rag.trackers.trainer import Report
from rag.tracking import Tracking


class TrainSettings(Settings):
    """How any Sieve is trained."""

    epochs: float = Field(ge=0)
    """Passes over the training rows; with none, only what validation decides is fitted anew, such as the threshold."""
    learning_rate: float = Field(gt=0)
    warmup_ratio: float = Field(ge=0, lt=1)
    batch_size: int = Field(ge=1)
    gradient_accumulation: int = Field(ge=1)
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them: less memory, more time."""
    scheduler: Literal["linear", "cosine", "constant_with_warmup"]
    weight_decay: float = Field(ge=0)
    patience: int = Field(ge=1)
    """Stop after this many evaluations without a better one."""
    evals_per_epoch: int = Field(ge=1)
    minutes: float | None = Field(default=None, gt=0)
    """Stop after this much time, evaluations included, with a last evaluation; a run that goes on after a kill begins to count again.
    How many steps that will be is not known, so the learning rate must be the same in all of them."""

    @model_validator(mode="after")
    def _time_needs_a_constant_rate(self) -> Self:
        if self.minutes is not None and (self.warmup_ratio > 0 or self.scheduler != "constant_with_warmup"):
            raise ValueError(
                f"sieve.train.minutes={self.minutes:g} ends training before the steps that warm-up and schedule are shares of; set "
                "sieve.train.warmup_ratio=0 and sieve.train.scheduler=constant_with_warmup"
            )
        return self


class TimeBudget(TrainerCallback):
    """Ends training, with a last evaluation, at the first step after its time."""

    def __init__(self, minutes: float) -> None:
        """Count from the beginning of training."""
        self.seconds = 60 * minutes
        self.began = time.monotonic()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Begin to count."""
        self.began = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Stop when time is up."""
        if time.monotonic() - self.began >= self.seconds:
            control.should_evaluate = control.should_save = control.should_training_stop = True


def callbacks(config: TrainSettings, tracking: Tracking) -> list[TrainerCallback]:
    """What ends training early, which is no better evaluation for a while, and time; and what tells the trackers."""
    budget = [] if config.minutes is None else [TimeBudget(config.minutes)]
    return [EarlyStoppingCallback(config.patience), *budget, Report(tracking)]


def training_arguments(
    config: TrainSettings, precision: Precision, rows: int, folder: Path, seed: int, **options: Any
) -> TrainingArguments:
    """Evaluate and save `evals_per_epoch` times in an epoch of `rows`, over all processes; `options` are what one form adds."""
    device = pick_device("auto")
    rows_per_step = config.batch_size * config.gradient_accumulation * world_size()
    steps = max(1, rows // (rows_per_step * config.evals_per_epoch))
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        warmup_steps=config.warmup_ratio,
        lr_scheduler_type=config.scheduler,
        weight_decay=config.weight_decay,
        per_device_train_batch_size=config.batch_size,
        per_device_eval_batch_size=config.batch_size,
        gradient_accumulation_steps=config.gradient_accumulation,
        activation_checkpointing=config.gradient_checkpointing,
        eval_strategy="steps",
        eval_steps=steps,
        save_strategy="steps",
        save_steps=steps,
        save_total_limit=2,
        logging_steps=10,
        load_best_model_at_end=True,
        restore_callback_states_from_checkpoint=True,
        bf16=pick_dtype(precision, device) == torch.bfloat16,
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type != "cpu",
        remove_unused_columns=False,
        label_names=["labels"],
        report_to="none",
        seed=seed,
        **options,
    )
