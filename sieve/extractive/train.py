"""Train an extractive Sieve in three steps: the reader, the judge of what the reader falls for, and how both become a score.

Each step is kept in the folder when it is done, so that a run that was stopped goes on with the next one.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import torch
from peft import PeftModel, get_peft_model
from transformers import Trainer

from rag.checkpoint import last_checkpoint
from rag.errors import InputError
from rag.models.base import max_positions, pick_device, pick_dtype, quiet
from rag.models.lora import lora_config, save_adapter
from rag.records import Condition, Document, DocumentLabel, Example
from rag.settings import InputPath
from rag.tracking import Tracking
from sieve.data import draw
from sieve.extractive.answers import Relation, bare, compare
from sieve.extractive.claims import Read, claims, pairs, sample
from sieve.extractive.data import SILENT, Collator, rows
from sieve.extractive.decision import DecisionSettings, Pair
from sieve.extractive.decision import fit as fit_decision
from sieve.extractive.judge import LABELS, collate
from sieve.extractive.judge import encode as encode_claims
from sieve.extractive.load import JUDGE, READER, load_judge, load_reader, load_sieve
from sieve.extractive.model import has_segments, load_backbone, load_weights, save_weights
from sieve.extractive.predict import ExtractiveSieve
from sieve.extractive.reader import Reader
from sieve.extractive.settings import ExtractiveSettings
from sieve.extractive.trainer import build_trainer, class_loss, span_loss
from sieve.fitted import Fitted
from sieve.joint.model import head_layers
from sieve.threshold import DEFAULT

logger = logging.getLogger(__name__)


def fit(
    config: ExtractiveSettings,
    train: Sequence[Example],
    validation: Sequence[Example],
    learnt: Mapping[Condition, int],
    out: Path,
    *,
    limit: int | None,
    pairs_file: InputPath | None,
    init: Path | None,
    seed: int,
    tracking: Tracking,
) -> Fitted:
    """Train reader and judge, write both and the tokenizer to `out`, and fit the decision's weights on the validation sets.

    Training goes by documents, and every document that says something known is a row, whatever the condition of its set. With a
    `limit`, it is that of so many sets, drawn from those whose condition is `learnt` (`sieve.data.draw`). With `init`, reader and judge go on
    from that checkpoint. The fit goes by sets of two or more documents: those whose condition is `learnt`. Raises InputError for data that
    cannot be used.
    """
    drawn = train if limit is None else draw([example for example in train if example.condition in learnt], learnt, limit, seed)
    steps = 0
    if not (out / READER).is_file():
        steps += _train_reader(config, drawn, validation, out, init=init, seed=seed, tracking=tracking)
    if not (out / JUDGE / "adapter_config.json").is_file():
        steps += _train_judge(config, drawn, validation, out, pairs_file=pairs_file, init=init, seed=seed, tracking=tracking)

    # The fit is made on what serving loads.
    sieve = load_sieve(config.model, config.inputs, config.decision or DecisionSettings(), out, threshold=DEFAULT)
    if config.decision is None:
        judged = [example for example in validation if example.condition in learnt and len(example.documents) > 1]
        sieve.decision = fit_decision(_pairs(sieve, judged), [learnt[example.condition] == 1 for example in judged])
        sieve.forget()
    settings = config.model_copy(update={"decision": sieve.decision})
    counts = Counter(str(document.label) for example in drawn for document in example.documents)
    base = load_backbone(config.model, "reader", torch.float32).fingerprint
    return Fitted(sieve, steps, base, len(drawn), counts, settings, least_documents=2)


def _train_reader(
    config: ExtractiveSettings,
    train: Sequence[Example],
    validation: Sequence[Example],
    out: Path,
    *,
    init: Path | None,
    seed: int,
    tracking: Tracking,
) -> int:
    """Teach an encoder to find each document's answer, or that there is none. Returns the steps."""
    backbone = load_backbone(config.model, "reader", pick_dtype(config.model.precision, pick_device("auto")))
    positions = max_positions(backbone.model)
    if positions is not None and config.inputs.max_length > positions:
        raise InputError(f"sieve.inputs.max_length={config.inputs.max_length}: the model reads at most {positions} tokens; lower it")
    if init is not None:
        load_weights(backbone.model, init / READER)
    prepared = [
        rows(examples, backbone.tokenizer, config.inputs, limit=most, seed=seed, name=name)
        for name, examples, most in (("training", train, None), ("validation", validation, config.train.validation_rows))
    ]
    collate_rows = Collator(int(backbone.tokenizer.pad_token_id), segments=has_segments(backbone.model))
    trainer = build_trainer(
        backbone.model,
        config.train,
        prepared[0],
        prepared[1],
        collate_rows,
        span_loss,
        out / "trainer" / "reader",
        seed=seed,
        tracking=tracking,
    )
    _run(trainer, config.train.epochs)
    save_weights(trainer.accelerator.unwrap_model(backbone.model), out / READER)
    if trainer.is_world_process_zero():
        backbone.tokenizer.save_pretrained(out)
    trainer.accelerator.wait_for_everyone()
    return trainer.state.global_step


def _run(trainer: Trainer, epochs: float) -> None:
    if epochs:
        trainer.train(resume_from_checkpoint=last_checkpoint(Path(str(trainer.args.output_dir))))
    trainer.accelerator.wait_for_everyone()


def _train_judge(
    config: ExtractiveSettings,
    train: Sequence[Example],
    validation: Sequence[Example],
    out: Path,
    *,
    pairs_file: InputPath | None,
    init: Path | None,
    seed: int,
    tracking: Tracking,
) -> int:
    """Let the reader read documents of which it is known what they say, and teach the judge on what it found there. Returns the steps."""
    reader = load_reader(config.model, config.inputs, out)
    settings = config.judge
    learnt = claims(_read(reader, train, settings.documents, seed), seed)
    checked = claims(_read(reader, validation, settings.validation_documents, seed), seed)
    if pairs_file is not None:
        learnt += pairs(pairs_file, settings.pairs, seed)
    backbone = load_backbone(config.model, "judge", reader.model.dtype, labels=len(LABELS))
    load_weights(backbone.model, out / READER, head=False)
    adapter = lora_config(settings.lora, "classification")
    adapter.modules_to_save = head_layers(backbone.model)
    with quiet():
        model = (
            PeftModel.from_pretrained(backbone.model, init / JUDGE, is_trainable=True, autocast_adapter_dtype=False)
            if init is not None
            else get_peft_model(backbone.model, adapter, autocast_adapter_dtype=False)
        )
    pad_id, segments = int(backbone.tokenizer.pad_token_id), has_segments(backbone.model)
    encoded = [
        [
            {**row, "label": labelled.label}
            for row, labelled in zip(encode_claims([one.claim for one in part], backbone.tokenizer), part, strict=True)
        ]
        for part in (learnt, checked)
    ]
    trainer = build_trainer(
        cast(torch.nn.Module, model),
        settings.train,
        encoded[0],
        encoded[1],
        partial(_labelled, pad_id=pad_id, segments=segments),
        class_loss,
        out / "trainer" / "judge",
        seed=seed,
        tracking=tracking,
    )
    _run(trainer, settings.train.epochs)
    save_adapter(cast(PeftModel, trainer.accelerator.unwrap_model(model)), config.model.base, out / JUDGE, torch.bfloat16)
    trainer.accelerator.wait_for_everyone()
    judge = load_judge(config.model, out)
    verdicts = judge.judge([labelled.claim for labelled in checked])
    right = Counter(LABELS[one.label] for one, v in zip(checked, verdicts, strict=True) if max(v) == v[one.label])
    total = Counter(LABELS[labelled.label] for labelled in checked)
    logger.info("judge: right on %s", ", ".join(f"{right[name]} of {n} {name}" for name, n in sorted(total.items())))
    return trainer.state.global_step


def _labelled(batch: Sequence[dict[str, object]], *, pad_id: int, segments: bool) -> dict[str, torch.Tensor]:
    inputs = collate(cast(Sequence[dict[str, list[int]]], batch), pad_id, segments=segments)
    return {**inputs, "labels": torch.tensor([row["label"] for row in batch])}


def _read(reader: Reader, examples: Sequence[Example], limit: int, seed: int) -> list[Read]:
    chosen = sample(examples, limit, seed)
    encodings = reader.encode([(example.question, document) for example, document in chosen])
    readings = reader.read(encodings)
    return [
        Read(example, document, encoding.text, reading)
        for (example, document), encoding, reading in zip(chosen, encodings, readings, strict=True)
    ]


def _pairs(sieve: ExtractiveSieve, examples: Sequence[Example]) -> list[list[Pair]]:
    contests = sieve.contests([example.question for example in examples], [example.documents for example in examples])
    return [[Pair(contest, disagree(first, second)) for first, second, contest in of_set] for of_set in contests]


def disagree(first: Document, second: Document) -> bool | None:
    """Whether two documents contradict each other, by their labels; none where it is not known what one of them says.

    A document that lures to another subject contradicts one that answers: a reader of both is misled.
    """
    labels = {first.label, second.label}
    if labels & set(SILENT):
        return False
    if None in labels:
        return None
    if labels == {DocumentLabel.ANSWERABLE}:
        return False
    if labels == {DocumentLabel.ANSWERABLE, DocumentLabel.ADVERSARIAL}:
        return True
    if first.answer is None or second.answer is None:
        return None
    same = compare(bare(first.answer), bare(second.answer)) is Relation.SAME
    denied = [document.answer != bare(str(document.answer)) for document in (first, second)]
    return same if denied[0] != denied[1] else not same and not all(denied)
