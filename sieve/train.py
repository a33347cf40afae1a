"""Fine-tune the Sieve to tell conflicting from answerable sets: `python -m sieve.train data.train=... data.validation=...`."""

import logging
import math
import shutil
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from transformers import EarlyStoppingCallback, EvalPrediction, Trainer, TrainingArguments, set_seed

from conf.job import job
from rag.checkpoint import MANIFEST, Base, Manifest, read_manifest, write_manifest
from rag.errors import InputError
from rag.models.base import pick_device, pick_dtype
from rag.provenance import provenance
from rag.settings import InputPath, JobSettings, Settings
from sieve.data import Collator, DataSettings, Row, hashes, paths, read, rows
from sieve.inputs import InputSettings
from sieve.model import Backbone, ModelSettings, load_backbone, require_positions, save_weights, trainable
from sieve.predict import Sieve, load
from sieve.threshold import choose, rates

logger = logging.getLogger(__name__)


class TrainSettings(Settings):
    """Optimisation; the paper's values are in conf/sieve/longformer_base_4096.yaml."""

    epochs: float = Field(gt=0)
    learning_rate: float = Field(gt=0)
    warmup_ratio: float = Field(ge=0, lt=1)
    batch_size: int = Field(ge=1)
    gradient_accumulation: int = Field(ge=1)
    scheduler: Literal["linear", "cosine", "constant_with_warmup"]
    weight_decay: float = Field(ge=0)
    patience: int = Field(ge=1)
    """Stop after this many evaluations without a better one."""
    evals_per_epoch: int = Field(ge=1)
    best_metric: Literal["loss", "accuracy"]
    """Validation metric that picks the checkpoint."""


class SieveSettings(Settings):
    """One file of conf/sieve."""

    model: ModelSettings
    inputs: InputSettings
    train: TrainSettings


class TrainJob(JobSettings):
    """Settings of this job."""

    sieve: SieveSettings
    data: DataSettings
    init: InputPath | None = None
    """Sieve checkpoint to go on from."""


class TrainingResult(NamedTuple):
    """What training gives beside the checkpoint folder it writes."""

    sieve: Sieve
    manifest: Manifest


def train(settings: TrainJob, out: Path) -> TrainingResult:
    """Train, pick checkpoint and threshold on validation data, and write a checkpoint folder to `out`.

    Intermediate checkpoints are kept in `out/trainer` until the end; a run that was killed goes on from the last one, and a folder
    that is complete is not trained again. Raises InputError for data or settings that cannot be used, and when training diverged.
    """
    if (out / MANIFEST).is_file():
        logger.info("%s already holds a complete checkpoint", out)
        return TrainingResult(load(out), read_manifest(out, "sieve"))
    set_seed(settings.seed)
    config = settings.sieve
    backbone = load_backbone(config.model)
    require_positions(backbone.model, config.inputs.max_length)
    train_files, validation_files = paths(settings.data.train), paths(settings.data.validation)
    train_rows = rows(read(train_files)[: settings.data.limit], backbone.tokenizer, config.inputs, "training")
    validation_rows = rows(read(validation_files), backbone.tokenizer, config.inputs, "validation")

    model = trainable(backbone, config.model, settings.init)
    trainer = build_trainer(model, backbone, settings, train_rows, validation_rows, out / "trainer")
    trainer.train(resume_from_checkpoint=last_checkpoint(out / "trainer"))
    save_weights(model, config.model.base, out)
    backbone.tokenizer.save_pretrained(out)

    # The threshold is chosen on the model that serving loads: without the trainer's autocast, all weights in the dtype of computing.
    dtype = pick_dtype(config.model.precision, pick_device("auto"))
    served = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False).to(dtype)
    sieve = Sieve(served, backbone.tokenizer, config.inputs, model_type=backbone.model.config.model_type, threshold=0.5)
    scores = sieve.score([row["encoding"] for row in validation_rows])
    if not all(map(math.isfinite, scores)):
        raise InputError("training diverged: the Sieve's scores are not numbers; lower sieve.train.learning_rate")
    labels = [row["label"] == 1.0 for row in validation_rows]
    sieve.threshold = choose(scores, labels)
    at = rates(scores, labels, sieve.threshold)
    manifest = Manifest(
        stage="sieve",
        base=Base(id=config.model.base, revision=config.model.revision, fingerprint=backbone.fingerprint),
        settings={**config.model_dump(mode="json"), "seed": settings.seed, "dtype": str(dtype)},
        threshold=sieve.threshold,
        validation={"sets": len(labels), **{name: rate for name, rate in at._asdict().items() if rate is not None}},
        data=hashes((*train_files, *validation_files)),
        provenance=provenance(),
    )
    write_manifest(out, manifest)
    shutil.rmtree(out / "trainer")
    return TrainingResult(sieve, manifest)


def last_checkpoint(folder: Path) -> str | None:
    """The newest checkpoint in `folder` that was written to its end; none when there is none. The trainer's state is its last file."""
    complete = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    return str(max(complete, key=lambda path: int(path.name.rpartition("-")[2]))) if complete else None


def build_trainer(
    model: torch.nn.Module, backbone: Backbone, settings: TrainJob, train_rows: list[Row], validation_rows: list[Row], folder: Path
) -> Trainer:
    """Set up transformers' Trainer with binary cross-entropy (paper 002, section 3.2)."""
    config = settings.sieve.train
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
        eval_strategy="steps",
        eval_steps=steps,
        save_strategy="steps",
        save_steps=steps,
        save_total_limit=2,
        logging_steps=10,
        load_best_model_at_end=True,
        restore_callback_states_from_checkpoint=True,
        metric_for_best_model=f"eval_{config.best_metric}",
        greater_is_better=config.best_metric == "accuracy",
        bf16=pick_dtype(settings.sieve.model.precision, device) == torch.bfloat16,
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type != "cpu",
        remove_unused_columns=False,
        label_names=["labels"],
        report_to="none",
        seed=settings.seed,
    )
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=train_rows,
        eval_dataset=validation_rows,
        data_collator=Collator(backbone.tokenizer, settings.sieve.inputs, backbone.model.config.model_type),
        compute_loss_func=bce,
        compute_metrics=accuracy,
        callbacks=[EarlyStoppingCallback(config.patience)],
    )


def bce(outputs: Any, labels: torch.Tensor, num_items_in_batch: int | torch.Tensor | None = None) -> torch.Tensor:
    """Binary cross-entropy on the logit, averaged over all rows of an optimiser step when their number is given."""
    losses = torch.nn.functional.binary_cross_entropy_with_logits(outputs.logits.float().squeeze(-1), labels.float(), reduction="none")
    return losses.mean() if num_items_in_batch is None else losses.sum() / num_items_in_batch


def accuracy(prediction: EvalPrediction) -> dict[str, float]:
    """Share of validation sets on the right side of 0.5, the paper's default threshold."""
    logits = torch.as_tensor(prediction.predictions).squeeze(-1)
    return {"accuracy": float(((logits >= 0) == (torch.as_tensor(prediction.label_ids) == 1)).float().mean())}


main = job(train, TrainJob, config_name="sieve_train")

if __name__ == "__main__":
    main()
