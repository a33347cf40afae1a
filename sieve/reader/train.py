"""Train a reader and fit how its readings are compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from rag.checkpoint import last_checkpoint
from rag.errors import InputError
from rag.models.base import pick_device, pick_dtype
from rag.models.lora import save_adapter
from rag.records import Condition, Example
from rag.tracking import Tracking
from sieve.data import draw
from sieve.fitted import Fitted
from sieve.reader.agreement import AgreementSettings, Pair
from sieve.reader.agreement import fit as fit_agreement
from sieve.reader.data import disagree, rows
from sieve.reader.model import load_adapter, load_backbone, trainable
from sieve.reader.predict import ReaderSieve
from sieve.reader.settings import ReaderSettings
from sieve.reader.trainer import build_trainer
from sieve.threshold import DEFAULT


def fit(
    config: ReaderSettings,
    train: Sequence[Example],
    validation: Sequence[Example],
    learnt: Mapping[Condition, int],
    out: Path,
    *,
    limit: int | None,
    init: Sequence[Path],
    seed: int,
    tracking: Tracking,
) -> Fitted:
    """Train the adapter, write it and the tokenizer to `out`, and fit the agreement's weights on the validation sets.

    Training goes by documents, and every document that says something known is a row, whatever the condition of its set. With a
    `limit`, it is that of so many sets, drawn from those whose condition is `learnt` (`sieve.data.draw`). The fit goes by sets: those
    whose condition is `learnt`. Raises InputError for data that cannot be used.
    """
    dtype = pick_dtype(config.model.precision, pick_device("auto"))
    backbone = load_backbone(config.model, dtype)
    positions = backbone.model.config.max_position_embeddings
    if config.inputs.max_length + config.inputs.max_answer_tokens > positions:
        raise InputError(
            f"sieve.inputs.max_length={config.inputs.max_length}: with an answer of {config.inputs.max_answer_tokens} tokens more than the "
            f"{positions} that the model reads; lower it"
        )
    drawn = train if limit is None else draw([example for example in train if example.condition in learnt], learnt, limit, seed)
    prepared = {
        name: rows(
            examples, backbone.tokenizer, config.inputs, silent_per_answer=config.train.silent_per_answer, seed=seed, name=name
        )
        for name, examples in (("training", drawn), ("validation", validation))
    }  # fmt: skip
    model = trainable(backbone, config.model, init)
    pad_id, end_id = int(backbone.tokenizer.pad_token_id), int(backbone.tokenizer.eos_token_id)
    trainer = build_trainer(model, config, seed, pad_id, end_id, prepared["training"], prepared["validation"], out / "trainer", tracking)
    if config.train.epochs:
        trainer.train(resume_from_checkpoint=last_checkpoint(out / "trainer"))
    trainer.accelerator.wait_for_everyone()
    if trainer.is_world_process_zero():
        save_adapter(trainer.accelerator.unwrap_model(model), config.model.base, out, torch.bfloat16)
        backbone.tokenizer.save_pretrained(out)
    trainer.accelerator.wait_for_everyone()

    # The fit is made on what serving loads: the adapter as it was written, merged into a fresh base.
    served = load_backbone(config.model, dtype)
    agreement = config.agreement or AgreementSettings()
    reader = ReaderSieve(load_adapter(served, out, pick_device("auto")), served.tokenizer, config.inputs, agreement, threshold=DEFAULT)
    if config.agreement is None:
        judged = [example for example in validation if example.condition in learnt]
        contests = reader.contests([example.question for example in judged], [example.documents for example in judged])
        pairs = [[Pair(contest, disagree(first, second)) for first, second, contest in of_set] for of_set in contests]
        reader.agreement = fit_agreement(pairs, [learnt[example.condition] == 1 for example in judged])
    settings = config.model_copy(update={"agreement": reader.agreement})
    return Fitted(reader, trainer, backbone.fingerprint, len(drawn), Counter(row["group"] for row in prepared["training"]), settings)
