"""Load, train and keep the encoder of an extractive Sieve: any encoder of transformers, its embeddings frozen."""

from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from rag.errors import InputError
from rag.models.base import Precision, fingerprint, load_model, load_tokenizer, locate
from rag.models.lora import whole
from rag.processes import rank
from rag.settings import Settings

Task = Literal["reader", "judge"]
"""`reader`: two logits for each token, of where an answer begins and ends. `judge`: logits for the whole input."""


class ModelSettings(Settings):
    """Which encoder."""

    base: str
    """Hub id, folder, or `artifact:NAME`."""
    revision: str | None = None
    """Hub commit."""
    base_license: str | None = None
    """Licence of the base, for the model card."""
    pad_token: str | None = None
    """Replaces the tokenizer's padding token."""
    num_layers: int | None = Field(default=None, ge=1)
    """Keep only the first layers."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Replaces the base's dropout in training. On a CPU, drawing it takes as long as the layers themselves."""
    precision: Precision = "auto"
    """Compute in bfloat16 or float32."""
    attention: Literal["sdpa", "eager"] | None = None
    """Attention kernel, the architecture's own choice where it is none; on a CPU torch's fused one has a slow backward pass."""


class Backbone(Settings):
    """A model with a new head, its tokenizer, and what identifies its weights."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    """Its tokenizer, padding on the right."""
    fingerprint: str
    """`rag.models.base.fingerprint` of the encoder."""


def load_backbone(settings: ModelSettings, task: Task, dtype: torch.dtype, labels: int = 2) -> Backbone:
    """Load base weights and tokenizer; the head is new, drawn from torch's random state. `labels` are the judge's logits.

    Raises InputError for a base that cannot be found or has fewer layers than asked for, and for a tokenizer that does not tell where its
    tokens stand in the text.
    """
    tokenizer = load_tokenizer(settings.base, settings.revision, settings.pad_token)
    if not tokenizer.is_fast:
        raise InputError(f"sieve.model.base: the tokenizer of {settings.base} does not tell where tokens stand; choose another base")
    config = AutoConfig.from_pretrained(locate(settings.base), revision=settings.revision)
    options: dict[str, Any] = {"attn_implementation": settings.attention, "num_labels": labels}
    if settings.num_layers is not None:
        if settings.num_layers > config.num_hidden_layers:
            raise InputError(f"sieve.model.num_layers={settings.num_layers}: {settings.base} has {config.num_hidden_layers} layers")
        options["num_hidden_layers"] = settings.num_layers
    if settings.dropout is not None:
        options |= {
            name: settings.dropout for name in config.to_dict() if name.endswith(("dropout", "dropout_prob")) and "classifier" not in name
        }
    auto_class = AutoModelForQuestionAnswering if task == "reader" else AutoModelForSequenceClassification
    model = load_model(auto_class, settings.base, settings.revision, dtype=dtype, **options)
    model.get_input_embeddings().requires_grad_(False)
    return Backbone(model=model, tokenizer=tokenizer, fingerprint=fingerprint(model))


def has_segments(model: PreTrainedModel) -> bool:
    """Whether the encoder is told which tokens are the question's and which the document's."""
    return int(getattr(model.config, "type_vocab_size", 0) or 0) > 1


def save_weights(model: PreTrainedModel, path: Path) -> None:
    """Write all weights but the frozen ones, which the base has, in the dtype they are in.

    Every process of a run must call it, since each may hold a part of the weights; the first one writes.
    """
    weights = {name: whole(tensor).cpu().contiguous() for name, tensor in model.named_parameters() if tensor.requires_grad}
    if rank() == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        save_file(weights, partial, {"format": "pt"})
        partial.replace(path)


def load_weights(model: PreTrainedModel, path: Path, *, head: bool = True) -> None:
    """Put weights that `save_weights` wrote on their base; without `head`, those of the encoder alone.

    Raises InputError when names or shapes are not those of the model, or a weight is not a number.
    """
    try:
        weights = load_file(path)
    except Exception as error:
        raise InputError(
            f"{path}: expected weights in safetensors, could not read them: {error}; train or fetch the checkpoint again"
        ) from error
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not head:
        inside = f"{model.base_model_prefix}."
        wanted = {name: parameter for name, parameter in wanted.items() if name.startswith(inside)}
        weights = {name: tensor for name, tensor in weights.items() if name.startswith(inside)}
        wanted = {name: parameter for name, parameter in wanted.items() if name in weights or not name.startswith(f"{inside}pooler.")}
    missing, unexpected = sorted(set(wanted) - set(weights)), sorted(set(weights) - set(wanted))
    shapes = sorted(name for name in set(wanted) & set(weights) if wanted[name].shape != weights[name].shape)
    if missing or unexpected or shapes:
        raise InputError(
            f"{path}: these are not the weights of this model: missing {missing[:3]}, unexpected {unexpected[:3]}, of another shape "
            f"{shapes[:3]}; train or fetch the checkpoint again"
        )
    if broken := sorted(name for name, tensor in weights.items() if not tensor.isfinite().all()):
        raise InputError(f"{path}: the weights {broken[:3]} are not numbers; train or fetch the checkpoint again")
    with torch.no_grad():
        for name, tensor in weights.items():
            wanted[name].copy_(tensor)
