"""Set up transformers' trainer for the reader and the judge."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer

from rag.models.master_weights import MasterAdamW
from rag.tracking import Tracking
from sieve.training import TrainSettings, callbacks, training_arguments

Loss = Callable[[Any, torch.Tensor], torch.Tensor]
"""From a model's outputs and a batch's labels to the mean loss over its rows."""


def build_trainer(
    model: torch.nn.Module,
    config: TrainSettings,
    train_rows: Sequence[Any],
    validation_rows: Sequence[Any],
    collate: Callable[[Sequence[Any]], dict[str, torch.Tensor]],
    loss: Loss,
    folder: Path,
    *,
    seed: int,
    tracking: Tracking,
) -> Trainer:
    """Set up transformers' Trainer; evaluation computes the loss alone, and the last weights are those that are kept.

    The rate falls to nothing at the end, so that the last weights are the best but for chance.
    """
    arguments = training_arguments(
        config,
        "fp32",  # the model's weights say in which precision it is computed
        len(train_rows),
        folder,
        seed,
        metric_for_best_model="eval_loss",
        train_sampling_strategy="group_by_length",
        prediction_loss_only=True,
    )
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = (MasterAdamW if weights[0].dtype == torch.bfloat16 else torch.optim.AdamW)(
        weights, lr=config.learning_rate, weight_decay=config.weight_decay
    )
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=list(train_rows),
        eval_dataset=list(validation_rows),
        data_collator=collate,
        compute_loss_func=partial(_averaged, loss=loss, accumulation=config.gradient_accumulation),
        callbacks=callbacks(config, tracking),
        optimizers=(optimizer, None),
    )


def _averaged(
    outputs: Any, labels: torch.Tensor, num_items_in_batch: int | torch.Tensor | None = None, *, loss: Loss, accumulation: int
) -> torch.Tensor:
    # In training, where it gives `num_items_in_batch`, the trainer leaves the average over the batches of a step to the loss.
    return loss(outputs, labels) / (1 if num_items_in_batch is None else accumulation)


def span_loss(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    """Mean over rows of -log P(a start) - log P(an end), in nats, each summed over all places that are right.

    `labels` are those of `sieve.extractive.data.Collator`.
    """
    logits = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1).float().masked_fill(labels < 0, -torch.inf)
    right = logits.masked_fill(labels != 1, -torch.inf)
    return (logits.logsumexp(1) - right.logsumexp(1)).sum(-1).mean()


def class_loss(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over rows, in nats, of `labels` [rows]."""
    return torch.nn.functional.cross_entropy(outputs.logits.float(), labels)
