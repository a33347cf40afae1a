"""Fine-tune the Sieve to tell conflicting from clean sets: `python -m sieve.train data.train=... data.validation=... objective=conflict`."""

import logging
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from accelerate import PartialState  # type: ignore[import-untyped]
from transformers import set_seed

from conf.job import job
from rag import card
from rag.checkpoint import MANIFEST, Base, Manifest, hashes, read_manifest, sha256, write_manifest
from rag.errors import InputError
from rag.jsonl import read_files
from rag.models.base import pick_device, pick_dtype
from rag.processes import world_size
from rag.provenance import command, provenance
from rag.records import Example
from rag.splits import require_disjoint
from sieve.card import write_card
from sieve.data import Classes, classes, group_of, leave_out
from sieve.extractive import train as extractive
from sieve.extractive.settings import ExtractiveSettings
from sieve.fitted import Fitted
from sieve.joint import train as joint
from sieve.measure.audit import audit
from sieve.measure.audit_report import verdict_line, write_json
from sieve.predict import AnySieve, load
from sieve.settings import TrainJob
from sieve.validation import validate

logger = logging.getLogger(__name__)


class TrainingResult(NamedTuple):
    """What training gives beside the checkpoint folder it writes."""

    sieve: AnySieve
    manifest: Manifest


def train(settings: TrainJob, out: Path) -> TrainingResult:
    """Train, pick checkpoint and threshold on validation data, and write a checkpoint folder to `out`.

    Intermediate checkpoints are kept in `out/trainer` until the end; a run that was killed goes on from the last one, and a folder
    that is complete is not trained again. `data.audit` is audited, and a model card is written beside the weights. Raises InputError
    for data or settings that cannot be used, and when training diverged.
    """
    if (out / MANIFEST).is_file():
        logger.info("%s already holds a complete checkpoint", out)
        return TrainingResult(load(out, gate=False), read_manifest(out, "sieve"))
    set_seed(settings.seed)
    config, data = settings.sieve, settings.data
    learnt = classes(settings.objective, data.clean, data.distracted)
    train_examples, validation_examples = leave_out(
        {"train": read_files(data.train), "validation": read_files(data.validation)}, data.leave_out
    )
    audit_examples = read_files(data.audit)
    require_disjoint({"data.train": train_examples, "data.validation": validation_examples})
    require_disjoint({"data.train": train_examples, "data.audit": audit_examples})
    fitted = _fit(settings, train_examples, validation_examples, learnt, out)
    sieve = fitted.sieve
    processes = PartialState()
    if not processes.is_main_process:
        processes.wait_for_everyone()
        return TrainingResult(load(out, gate=False), read_manifest(out, "sieve"))
    judged = [e for e in validation_examples if e.condition in learnt and len(e.documents) >= fitted.least_documents]
    screenings = sieve.screen([example.question for example in judged], [example.documents for example in judged])
    scores = [screening.score for screening in screenings]
    if not all(map(math.isfinite, scores)):
        raise InputError("training diverged: the Sieve's scores are not numbers; lower sieve.train.learning_rate")
    labels = [learnt[example.condition] == 1 for example in judged]
    validated = validate(scores, labels, [example.question_id for example in judged], config.threshold, seed=settings.seed)
    sieve.temperature, sieve.threshold = validated.temperature, validated.threshold
    figures = None
    if settings.audit is not None and audit_examples:
        journal = out / "trainer" / "audit_scores.jsonl"
        figures = audit(sieve, audit_examples, settings.audit, journal, seed=settings.seed, training=train_examples)
        figures = figures.model_copy(update={"data": hashes(data.audit), "provenance": {"command": command("sieve.train"), **provenance()}})
        write_json(out, figures)
        logger.info(verdict_line(figures))
    manifest = Manifest(
        stage="sieve",
        base=Base(id=config.model.base, revision=config.model.revision, fingerprint=fitted.fingerprint),
        settings={
            **fitted.settings.model_dump(mode="json"),
            "objective": settings.objective,
            "data": {"clean": list(data.clean), "distracted": list(data.distracted), "limit": data.limit, "examples": fitted.examples},
            "init": None if settings.init is None else sha256(settings.init / MANIFEST),
            "seed": settings.seed,
            "dtype": str(pick_dtype(config.model.precision, pick_device("auto"))),
            "processes": world_size(),
        },
        threshold=sieve.threshold,
        temperature=sieve.temperature,
        validation=validated.metrics,
        intervals=validated.intervals,
        data=hashes((*data.train, *data.validation, *([data.pairs] if data.pairs else []))),
        counts={
            "train": dict(fitted.rows),
            "validation": Counter(map(group_of, judged)),
        },
        command=command("sieve.train"),
        provenance=provenance(),
    )
    card.write(out, write_card(manifest, figures))
    write_manifest(out, manifest)
    settings.tracking.log({f"checkpoint/{name}": value for name, value in validated.metrics.items()}, fitted.steps)
    settings.tracking.file(out / MANIFEST)
    shutil.rmtree(out / "trainer", ignore_errors=True)  # a run that went on after its last step has none
    logger.info("Macro-F1 %.3f on validation at threshold %.4g; written to %s", validated.metrics["macro_f1"], validated.threshold, out)
    processes.wait_for_everyone()
    return TrainingResult(sieve, manifest)


def _fit(settings: TrainJob, train: Sequence[Example], validation: Sequence[Example], learnt: Classes, out: Path) -> Fitted:
    if isinstance(settings.sieve, ExtractiveSettings):
        if settings.objective != "conflict":
            raise InputError(
                f"objective={settings.objective}: an extractive Sieve compares answers, so it learns `conflict` alone; choose another sieve=..."
            )
        return extractive.fit(
            *(settings.sieve, train, validation, learnt, out),
            limit=settings.data.limit,
            pairs_file=settings.data.pairs,
            init=settings.init,
            seed=settings.seed,
            tracking=settings.tracking,
        )
    return joint.fit(settings, settings.sieve, train, validation, learnt, out)


main = job(train, TrainJob, config_name="sieve_train")

if __name__ == "__main__":
    main()
