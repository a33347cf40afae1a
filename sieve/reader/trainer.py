"""Set up transformers' trainer for the reader."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

from rag.models.base import pick_device, pick_dtype
from sieve.reader.data import Collator, Row
from sieve.reader.settings import ReaderSettings


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
    device = pick_device("auto")
    steps = max(1, len(train_rows) // (config.batch_size * config.gradient_accumulation * config.evals_per_epoch))
    arguments = TrainingArguments(
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
        train_sampling_strategy="group_by_length",
        eval_strategy="steps",
        eval_steps=steps,
        save_strategy="steps",
        save_steps=steps,
        save_total_limit=2,
        logging_steps=10,
        load_best_model_at_end=True,
        restore_callback_states_from_checkpoint=True,
        metric_for_best_model="eval_loss",
        prediction_loss_only=True,
        bf16=pick_dtype(settings.model.precision, device) == torch.bfloat16,
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type != "cpu",
        remove_unused_columns=False,
        label_names=["labels"],
        report_to="none",
        seed=seed,
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
