"""Fine-tune the Sieve to tell conflicting from answerable sets: `python -m sieve.train data.train=... data.validation=...`."""

import logging
import math
import shutil
from pathlib import Path
from typing import NamedTuple

from transformers import set_seed

from conf.job import job
from rag.checkpoint import MANIFEST, Base, Manifest, hashes, last_checkpoint, read_manifest, write_manifest
from rag.errors import InputError
from rag.models.base import pick_device, pick_dtype
from rag.provenance import provenance
from rag.splits import require_disjoint
from sieve.data import paths, read, rows
from sieve.model import load_backbone, require_positions, save_weights, trainable
from sieve.predict import Sieve, load
from sieve.settings import TrainJob
from sieve.threshold import DEFAULT, choose, rates
from sieve.trainer import build_trainer

logger = logging.getLogger(__name__)


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
    train_examples, validation_examples = read(train_files)[: settings.data.limit], read(validation_files)
    require_disjoint({"data.train": train_examples, "data.validation": validation_examples})
    train_rows = rows(train_examples, backbone.tokenizer, config.inputs, "training")
    validation_rows = rows(validation_examples, backbone.tokenizer, config.inputs, "validation")

    model = trainable(backbone, config.model, settings.init)
    trainer = build_trainer(model, backbone, settings, train_rows, validation_rows, out / "trainer")
    trainer.train(resume_from_checkpoint=last_checkpoint(out / "trainer"))
    dtype = pick_dtype(config.model.precision, pick_device("auto"))
    save_weights(model, config.model.base, out, dtype)
    backbone.tokenizer.save_pretrained(out)

    # The threshold is chosen on the model that serving loads: without the trainer's autocast, all weights in the dtype of computing.
    served = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False).to(dtype)
    sieve = Sieve(served, backbone.tokenizer, config.inputs, model_type=backbone.model.config.model_type, threshold=DEFAULT)
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


main = job(train, TrainJob, config_name="sieve_train")

if __name__ == "__main__":
    main()
