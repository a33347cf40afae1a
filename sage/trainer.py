"""Set up TRL's trainer from our settings, and write the adapter that it leaves."""

from collections.abc import Sequence
from pathlib import Path

import torch
from datasets import Dataset
from transformers import EarlyStoppingCallback, TrainerState
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from rag.models.lora import LoraSettings, lora_config
from sage.data import Row
from sage.model import Backbone
from sage.settings import TrainSettings


def build_trainer(
    backbone: Backbone,
    lora: LoraSettings,
    settings: TrainSettings,
    train_rows: Sequence[Row],
    validation_rows: Sequence[Row],
    folder: Path,
    seed: int,
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
    return SFTTrainer(
        model=backbone.model,
        args=config,
        train_dataset=Dataset.from_list(list(train_rows)),
        eval_dataset=Dataset.from_list(list(validation_rows)),
        processing_class=backbone.tokenizer,
        peft_config=lora_config(lora, "generation"),
        callbacks=[] if settings.patience is None else [EarlyStoppingCallback(settings.patience)],
    )


def best_metrics(state: TrainerState) -> dict[str, float]:
    """Loss, token accuracy and step of the evaluation whose checkpoint was kept."""
    best = next(entry for entry in state.log_history if entry.get("eval_loss") == state.best_metric)
    return {"loss": best["eval_loss"], "token_accuracy": best["eval_mean_token_accuracy"], "step": best["step"]}
