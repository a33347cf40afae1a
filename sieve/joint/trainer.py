"""Set up transformers' trainer from our settings."""

from pathlib import Path
from typing import Any

import torch
from transformers import EvalPrediction, Trainer

from rag.tracking import Tracking
from sieve.joint.data import Collator, Row
from sieve.joint.model import Backbone
from sieve.joint.settings import SieveSettings
from sieve.training import callbacks, training_arguments


def build_trainer(
    model: torch.nn.Module,
    backbone: Backbone,
    settings: SieveSettings,
    seed: int,
    train_rows: list[Row],
    validation_rows: list[Row],
    folder: Path,
    tracking: Tracking,
) -> Trainer:
    """Set up transformers' Trainer with cross-entropy (paper 002, section 3.2)."""
    config = settings.train
    arguments = training_arguments(
        config,
        settings.model.precision,
        len(train_rows),
        folder,
        seed,
        metric_for_best_model=f"eval_{config.best_metric}",
        greater_is_better=config.best_metric == "accuracy",
    )
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=train_rows,
        eval_dataset=validation_rows,
        data_collator=Collator(backbone.tokenizer, settings.inputs, backbone.model.config.model_type),
        compute_loss_func=cross_entropy,
        compute_metrics=accuracy,
        callbacks=callbacks(config, tracking),
    )


def cross_entropy(outputs: Any, labels: torch.Tensor, num_items_in_batch: int | torch.Tensor | None = None) -> torch.Tensor:
    """Cross-entropy, binary on a single logit, averaged over all rows of an optimiser step when their number is given."""
    logits = outputs.logits.float()
    if logits.shape[-1] == 1:
        losses = torch.nn.functional.binary_cross_entropy_with_logits(logits.squeeze(-1), labels.float(), reduction="none")
    else:
        losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    return losses.mean() if num_items_in_batch is None else losses.sum() / num_items_in_batch


def accuracy(prediction: EvalPrediction) -> dict[str, float]:
    """Share of validation rows on the right side of 0.5, the paper's default threshold; of three classes, whose most probable one is right."""
    logits = torch.as_tensor(prediction.predictions)
    predicted = (logits.squeeze(-1) >= 0).long() if logits.shape[-1] == 1 else logits.argmax(-1)
    return {"accuracy": float((predicted == torch.as_tensor(prediction.label_ids)).float().mean())}
