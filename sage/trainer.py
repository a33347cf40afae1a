"""Set up TRL's trainer from our settings, and write the adapter that it leaves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import EarlyStoppingCallback, TrainerState
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from rag.models.lora import LoraSettings, lora_config
from rag.trackers.trainer import Report
from rag.tracking import Tracking
from sage.data import Row
from sage.model import Backbone
from sage.settings import TrainSettings

IGNORED = -100
"""Label of a position that is not taught."""


class AnswerTrainer(SFTTrainer):
    """TRL's trainer with the logits of the answers alone.

    Answers are a few tokens of hundreds. Without Triton, and so on every CPU, TRL 1.16 computes the logits of all positions, in float32:
    most of a step's time for a small model with a large vocabulary.
    """

    def compute_loss(
        self, model: torch.nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Cross-entropy over the supervised tokens, averaged over all of them in an optimiser step when their number is given."""
        rows = right_aligned(inputs)
        labels = rows.pop("labels")
        longest = int((labels != IGNORED).long().argmax(1).neg().max()) + labels.shape[1]
        labels = labels[:, -longest:]
        outputs = model(**rows, use_cache=False, logits_to_keep=torch.arange(-longest - 1, -1, device=labels.device))
        losses = torch.nn.functional.cross_entropy(outputs.logits.float().transpose(1, 2), labels, reduction="none", ignore_index=IGNORED)
        counted = labels != IGNORED
        loss = losses.sum() / (counted.sum() if num_items_in_batch is None else num_items_in_batch)
        right = self.accelerator.gather_for_metrics(((outputs.logits.argmax(-1) == labels) & counted).sum()).sum()
        total = self.accelerator.gather_for_metrics(counted.sum()).sum()
        self._metrics["train" if model.training else "eval"]["mean_token_accuracy"].append((right / total).item())
        if num_items_in_batch is not None and self.args.average_tokens_across_devices:
            # The number is that of all processes, whose gradients are then averaged.
            loss = loss * self.accelerator.num_processes
        return (loss, outputs) if return_outputs else loss


def right_aligned(inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
    """A batch padded on the right as one padded on the left, so that all answers end at the right edge; with its position ids."""
    mask = inputs["attention_mask"]
    length = mask.shape[1]
    places = (torch.arange(length, device=mask.device) - (length - mask.sum(1, keepdim=True))) % length
    moved = {name: inputs[name].gather(1, places) for name in ("input_ids", "attention_mask", "labels")}
    return {**moved, "position_ids": (moved["attention_mask"].cumsum(1) - 1).clamp(min=0)}


def build_trainer(
    backbone: Backbone,
    lora: LoraSettings,
    settings: TrainSettings,
    train_rows: Sequence[Row],
    validation_rows: Sequence[Row],
    folder: Path,
    seed: int,
    tracking: Tracking,
) -> SFTTrainer:
    """Put a new adapter on the base and set up TRL's trainer around it; checkpoints go to `folder`.

    Evaluation computes the loss alone, and no logits are kept. The checkpoint with the lowest validation loss is loaded at the end.
    """
    every = "epoch" if settings.eval_steps is None else "steps"
    config = SFTConfig(
        output_dir=str(folder),
        seed=seed,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup_ratio,
        lr_scheduler_type=settings.scheduler,
        optim=settings.optimizer,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation,
        activation_checkpointing=settings.gradient_checkpointing,
        max_length=settings.max_length,
        completion_only_loss=True,
        bf16=backbone.model.dtype is torch.bfloat16,
        use_cpu=backbone.model.device.type == "cpu",
        dataloader_pin_memory=backbone.model.device.type == "cuda",
        prediction_loss_only=True,
        eval_strategy=every,
        eval_steps=settings.eval_steps,
        save_strategy=every,
        save_steps=settings.eval_steps or 500,
        save_total_limit=2,
        load_best_model_at_end=True,
        restore_callback_states_from_checkpoint=True,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        logging_steps=settings.logging_steps,
        report_to="none",
    )
    return AnswerTrainer(
        model=backbone.model,
        args=config,
        train_dataset=Dataset.from_list(list(train_rows)),
        eval_dataset=Dataset.from_list(list(validation_rows)),
        processing_class=backbone.tokenizer,
        peft_config=lora_config(lora, "generation"),
        callbacks=[*([] if settings.patience is None else [EarlyStoppingCallback(settings.patience)]), Report(tracking)],
    )


def best_metrics(state: TrainerState) -> dict[str, float]:
    """Loss, token accuracy and step of the evaluation whose checkpoint was kept."""
    best = next(entry for entry in state.log_history if entry.get("eval_loss") == state.best_metric)
    return {"loss": best["eval_loss"], "token_accuracy": best["eval_mean_token_accuracy"], "step": best["step"]}
