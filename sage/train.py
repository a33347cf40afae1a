"""Train the Sage's adapter on JSONL files of Examples: `python -m sage.train data.train=FILE data.validation=FILE`."""

import json
import logging
import shutil
from pathlib import Path
from typing import NamedTuple, cast

from peft import PeftModel

from conf.job import job
from rag import card
from rag.checkpoint import MANIFEST, Base, Manifest, hashes, last_checkpoint, read_manifest, write_manifest
from rag.errors import InputError
from rag.jsonl import read_files
from rag.models.lora import save_adapter
from rag.processes import world_size
from rag.provenance import command, provenance
from rag.splits import require_disjoint
from sage.card import write_card
from sage.data import prepare
from sage.model import load_backbone, require_bitsandbytes
from sage.settings import TrainJob
from sage.trainer import best_metrics, build_trainer

logger = logging.getLogger(__name__)


class TrainingResult(NamedTuple):
    """Where the checkpoint is, and what its manifest says."""

    path: Path
    manifest: Manifest


def train(settings: TrainJob, out: Path) -> TrainingResult:
    """Train an adapter, keep the checkpoint with the lowest validation loss, and save it to `out` with all that serving needs.

    Goes on from the last intermediate checkpoint when an earlier run into `out` was interrupted, and does nothing when it was complete.
    Raises InputError for examples that cannot be used and for rows that do not fit `sage.train.max_length`.
    """
    if (out / MANIFEST).is_file():
        logger.info("%s already holds a complete checkpoint", out)
        return TrainingResult(out, read_manifest(out, "sage"))
    sage, data = settings.sage, settings.data
    train_examples, validation_examples = read_files(data.train)[: data.limit], read_files(data.validation)
    require_disjoint({"data.train": train_examples, "data.validation": validation_examples})

    if sage.model.lora is None:
        raise InputError("sage.model.lora: expected the settings of the adapter to train, got none")
    if sage.train.optimizer.startswith("paged_") or "8bit" in sage.train.optimizer:
        require_bitsandbytes(f"sage.train.optimizer={sage.train.optimizer}")
    backbone = load_backbone(sage.model)
    train_rows = prepare(train_examples, backbone, sage, settings.seed)
    validation_rows = prepare(validation_examples, backbone, sage, settings.seed)
    logger.info("training rows: %s; validation rows: %s", train_rows.counts, validation_rows.counts)

    folder = out / "trainer"
    rows = train_rows.rows, validation_rows.rows
    trainer = build_trainer(backbone, sage.model.lora, sage.train, *rows, folder, settings.seed, settings.tracking)
    trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    trainer.accelerator.wait_for_everyone()

    save_adapter(cast(PeftModel, trainer.model), sage.model.base, out, backbone.model.dtype)
    if not trainer.is_world_process_zero():
        trainer.accelerator.wait_for_everyone()
        return TrainingResult(out, read_manifest(out, "sage"))
    backbone.tokenizer.save_pretrained(out)
    history = {"rows": {"train": train_rows.counts, "validation": validation_rows.counts}, "log": trainer.state.log_history}
    (out / "history.json").write_text(json.dumps(history, indent=2) + "\n", encoding="utf-8")
    manifest = Manifest(
        stage="sage",
        base=Base(id=sage.model.base, revision=sage.model.revision, fingerprint=backbone.fingerprint),
        settings={**sage.model_dump(mode="json"), "seed": settings.seed, "dtype": str(backbone.model.dtype), "processes": world_size()},
        abstention=sage.inputs.abstention,
        conflict=sage.inputs.conflict,
        validation=best_metrics(trainer.state),
        data=hashes((*data.train, *data.validation)),
        counts={"train": dict(train_rows.counts), "validation": dict(validation_rows.counts)},
        command=command("sage.train"),
        provenance=provenance(),
    )
    card.write(out, write_card(manifest))
    write_manifest(out, manifest)
    settings.tracking.log({f"checkpoint/{name}": value for name, value in manifest.validation.items()}, trainer.state.global_step)
    settings.tracking.file(out / MANIFEST)
    shutil.rmtree(folder)
    logger.info("validation loss %.4f at step %d, the lowest; written to %s", manifest.validation["loss"], manifest.validation["step"], out)
    trainer.accelerator.wait_for_everyone()
    return TrainingResult(out, manifest)


main = job(train, TrainJob, config_name="sage_train")

if __name__ == "__main__":
    main()
