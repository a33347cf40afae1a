"""Set up transformers' trainer for the reader."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer

from rag.tracking import Tracking
from sieve.reader.data import Collator, Row
from sieve.reader.settings import ReaderSettings
from sieve.training import callbacks, training_arguments


def build_trainer(
    model: torch.nn.Module,
    settings: ReaderSettings,
    seed: int,
    pad_id: int,
    end_id: int,
    train_rows: list[Row],
    validation_rows: list[Row],
    folder: Path,
    tracking: Tracking,
) -> Trainer:
    """Set up transformers' Trainer with `reading_loss`; evaluation computes the loss alone."""
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
        compute_loss_func=partial(reading_loss, end_id=end_id, accumulation=config.gradient_accumulation),
        callbacks=callbacks(config, tracking),
    )


def reading_loss(
    outputs: Any, labels: torch.Tensor, num_items_in_batch: int | torch.Tensor | None = None, *, end_id: int, accumulation: int = 1
) -> torch.Tensor:
    """What a document says, and for one that speaks, that it does: the mean over rows of two cross-entropies, in nats.

    The first is that of the answer's tokens, averaged within the row, so that a long answer weighs as much as a short one. The second,
    of documents with an answer, is -log(1 - P(`end_id` first)). Without it, whether a document speaks would be learnt from silent
    documents with full weight and from the others with a fraction of it, one token of several.

    In training, where the trainer gives `num_items_in_batch` (it counts tokens, which are no measure here) and leaves the average over
    the batches of a step to the loss, the sum is divided by their number, `accumulation`.
    """
    logits = outputs.logits.float()
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none", ignore_index=-100)
    given = labels != -100
    rows, first = torch.arange(len(labels), device=labels.device), given.int().argmax(1)
    opening = logits[rows, first]
    others = opening.index_fill(1, torch.tensor([end_id], device=labels.device), -math.inf).logsumexp(1)
    speaks = torch.where(labels[rows, first] == end_id, 0.0, opening.logsumexp(1) - others)
    loss = (losses.sum(1) / given.sum(1) + speaks).mean()
    return loss if num_items_in_batch is None else loss / accumulation
