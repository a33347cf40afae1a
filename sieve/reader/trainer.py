"""Set up transformers' trainer for the reader."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import EarlyStoppingCallback, Trainer

from sieve.reader.data import Collator, Row
from sieve.reader.settings import ReaderSettings
from sieve.training import training_arguments


def build_trainer(
    model: torch.nn.Module,
    settings: ReaderSettings,
    seed: int,
    pad_id: int,
    train_rows: list[Row],
    validation_rows: list[Row],
    folder: Path,
) -> Trainer:
    """Set up transformers' Trainer with cross-entropy on the answers; evaluation computes the loss alone."""
    config = settings.train
    arguments = training_arguments(
        config,
        settings.model.precision,
        len(train_rows),
        folder,
        seed,
        metric_for_best_model="eval_loss",
        train_sampling_strategy="group_by_length",
        prediction_loss_only=True,
    )
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=train_rows,
        eval_dataset=validation_rows,
        data_collator=Collator(pad_id),
        compute_loss_func=partial(answer_loss, accumulation=config.gradient_accumulation),
        callbacks=[EarlyStoppingCallback(config.patience)],
    )


def answer_loss(
    outputs: Any, labels: torch.Tensor, num_items_in_batch: int | torch.Tensor | None = None, *, accumulation: int = 1
) -> torch.Tensor:
    """Cross-entropy over the tokens of each answer, averaged within a row and then over rows: a long answer weighs as much as a short one.

    In training, where the trainer gives `num_items_in_batch` (it counts tokens, which are no measure here) and leaves the average over
    the batches of a step to the loss, the sum is divided by their number, `accumulation`.
    """
    losses = torch.nn.functional.cross_entropy(outputs.logits.float().transpose(1, 2), labels, reduction="none", ignore_index=-100)
    loss = (losses.sum(1) / (labels != -100).sum(1)).mean()
    return loss if num_items_in_batch is None else loss / accumulation
