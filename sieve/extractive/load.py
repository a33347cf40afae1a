"""Load what training of an extractive Sieve wrote."""

from pathlib import Path

import torch
from peft import PeftModel
from transformers import PreTrainedModel

from rag.checkpoint import Manifest, require_same_base
from rag.errors import InputError
from rag.models.base import Precision, pick_device, pick_dtype, quiet
from sieve.extractive.decision import DecisionSettings
from sieve.extractive.inputs import InputSettings
from sieve.extractive.judge import LABELS, Judge
from sieve.extractive.model import ModelSettings, has_segments, load_backbone, load_weights
from sieve.extractive.predict import ExtractiveSieve
from sieve.extractive.reader import Reader
from sieve.threshold import DEFAULT

READER = "reader.safetensors"
JUDGE = "judge"


def load_reader(
    model: ModelSettings,
    inputs: InputSettings,
    folder: Path,
    *,
    manifest: Manifest | None = None,
    device: str = "auto",
    batch_tokens: int = 16_384,
) -> Reader:
    """The reader of a folder; its base must be the one of the `manifest`, where there is one already.

    Raises InputError for a base or weights that are missing or not those of this model.
    """
    place = pick_device(device)
    backbone = load_backbone(model, "reader", pick_dtype(model.precision, place))
    if manifest is not None:
        require_same_base(folder, manifest, backbone.fingerprint)
    load_weights(backbone.model, folder / READER)
    torch.nn.Module.to(backbone.model, place)
    return Reader(backbone.model, backbone.tokenizer, inputs, segments=has_segments(backbone.model), batch_tokens=batch_tokens)


def load_judge(model: ModelSettings, folder: Path, *, device: str = "auto", batch_tokens: int = 16_384) -> Judge:
    """The judge of a folder: an adapter on the reader's encoder, merged in float32, where little is lost, then rounded."""
    place = pick_device(device)
    backbone = load_backbone(model, "judge", torch.float32, labels=len(LABELS))
    load_weights(backbone.model, folder / READER, head=False)
    if not (folder / JUDGE / "adapter_config.json").is_file():
        raise InputError(f"{folder}: expected the judge's adapter in {JUDGE}/, found none; train the Sieve again")
    with quiet():
        adapted = PeftModel.from_pretrained(backbone.model, str(folder / JUDGE), autocast_adapter_dtype=False)
        merged: PreTrainedModel = adapted.merge_and_unload()
    torch.nn.Module.to(merged, place, pick_dtype(model.precision, place))
    return Judge(merged, backbone.tokenizer, segments=has_segments(merged), batch_tokens=batch_tokens)


def load_sieve(
    model: ModelSettings,
    inputs: InputSettings,
    decision: DecisionSettings,
    folder: Path,
    *,
    threshold: float,
    temperature: float = 1.0,
    manifest: Manifest | None = None,
    device: str = "auto",
    batch_tokens: int = 16_384,
) -> ExtractiveSieve:
    """Reader and judge of a folder as one."""
    return ExtractiveSieve(
        load_reader(model, inputs, folder, manifest=manifest, device=device, batch_tokens=batch_tokens),
        load_judge(model, folder, device=device, batch_tokens=batch_tokens),
        decision,
        threshold=threshold,
        temperature=temperature,
    )


def load(
    folder: Path, manifest: Manifest, *, base: tuple[str, str | None] | None, device: str, precision: Precision | None, batch_tokens: int
) -> ExtractiveSieve:
    """Load a checkpoint; `base` is where to find its base, id and revision, instead of where it was in training.

    Raises InputError when the base is missing or another one than the weights were trained on.
    """
    settings = ModelSettings.model_validate(manifest.settings["model"])
    changes: dict[str, object] = {} if base is None else {"base": base[0], "revision": base[1]}
    settings = settings.model_copy(update=changes if precision is None else {**changes, "precision": precision})
    return load_sieve(
        settings,
        InputSettings.model_validate(manifest.settings["inputs"]),
        DecisionSettings.model_validate(manifest.settings["decision"]),
        folder,
        threshold=DEFAULT if manifest.threshold is None else manifest.threshold,
        temperature=manifest.temperature,
        manifest=manifest,
        device=device,
        batch_tokens=batch_tokens,
    )
