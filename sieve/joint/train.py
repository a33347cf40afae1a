"""Train the paper's form of Sieve: one sequence for the whole set, or for each pair of its documents."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rag.checkpoint import last_checkpoint
from rag.models.base import pick_device, pick_dtype
from rag.records import Example
from sieve.data import Classes, outputs
from sieve.fitted import Fitted
from sieve.joint.data import rows
from sieve.joint.model import load_backbone, load_weights, require_positions, save_weights, trainable
from sieve.joint.predict import Sieve
from sieve.joint.settings import SieveSettings
from sieve.joint.trainer import build_trainer
from sieve.settings import TrainJob
from sieve.threshold import DEFAULT


def fit(
    settings: TrainJob, config: SieveSettings, train: Sequence[Example], validation: Sequence[Example], learnt: Classes, out: Path
) -> Fitted:
    """Train, and write weights and tokenizer to `out`. Raises InputError for data or settings that cannot be used."""
    backbone = load_backbone(config.model, outputs(settings.objective))
    require_positions(backbone.model, config.inputs.max_length)
    train_rows = rows(train, backbone.tokenizer, config.inputs, learnt, "training", limit=settings.data.limit, seed=settings.seed)
    validation_rows = rows(validation, backbone.tokenizer, config.inputs, learnt, "validation")
    model = trainable(backbone, config.model, settings.init, settings.objective)
    trainer = build_trainer(model, backbone, config, settings.seed, train_rows, validation_rows, out / "trainer", settings.tracking)
    if config.train.epochs:
        trainer.train(resume_from_checkpoint=last_checkpoint(out / "trainer"))
    trainer.accelerator.wait_for_everyone()
    dtype = pick_dtype(config.model.precision, pick_device("auto"))
    save_weights(model, config.model.base, out, dtype)
    if trainer.is_world_process_zero():
        backbone.tokenizer.save_pretrained(out)
    trainer.accelerator.wait_for_everyone()

    # The threshold is chosen on the model that serving loads: without the trainer's autocast, all weights in the dtype of computing.
    # Under FSDP a process holds a part of each weight, so they are read from the folder.
    if trainer.is_fsdp_enabled:
        model = load_weights(load_backbone(config.model, outputs(settings.objective)).model, config.model, out, train=False)
    served = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False).to(dtype)
    sieve = Sieve(served, backbone.tokenizer, config.inputs, model_type=backbone.model.config.model_type, threshold=DEFAULT)
    return Fitted(
        sieve, trainer.state.global_step, backbone.fingerprint, len(train_rows), Counter(row["group"] for row in train_rows), config
    )
