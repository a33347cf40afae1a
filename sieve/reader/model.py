"""Load the reader's base: a causal language model, whole or shortened to its first layers, with or without its adapter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import torch
from peft import PeftModel, get_peft_model, load_peft_weights, set_peft_model_state_dict
from pydantic import Field
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from rag.checkpoint import read_manifest, require_same_base
from rag.errors import InputError
from rag.models.base import Precision, fingerprint, load_model, load_tokenizer, locate, quiet
from rag.models.lora import LoraSettings, lora_config
from rag.settings import Settings


class ModelSettings(Settings):
    """Which causal language model, and how it is adapted."""

    base: str
    """Hub id, folder, or `package:MODULE/PATH`."""
    revision: str | None = None
    """Hub commit."""
    base_license: str | None = None
    """Licence of the base, for the model card."""
    pad_token: str | None = None
    """Replaces the tokenizer's padding token; must differ from its end of sequence, which the reader says."""
    num_layers: int | None = Field(default=None, ge=1)
    """Keep only the first layers."""
    lora: LoraSettings
    """The adapter that is trained."""
    precision: Precision = "auto"
    """Compute in bfloat16 or float32."""
    attention: Literal["sdpa", "eager"] | None = None
    """Attention kernel, the architecture's own choice where it is none; on a CPU torch's fused one has a slow backward pass."""


class Backbone(Settings):
    """A base model before adapters, its tokenizer, and what identifies its weights."""

    model: PreTrainedModel
    """Causal language model."""
    tokenizer: PreTrainedTokenizerBase
    """Its tokenizer."""
    fingerprint: str
    """`rag.models.base.fingerprint` of the model."""


def load_backbone(settings: ModelSettings, dtype: torch.dtype) -> Backbone:
    """Load base weights and tokenizer.

    Raises InputError for a base that cannot be found or has fewer layers than asked for, and for a tokenizer that has no end of sequence
    or pads with it.
    """
    tokenizer = load_tokenizer(settings.base, settings.revision, settings.pad_token)
    if tokenizer.eos_token_id is None or tokenizer.eos_token_id == tokenizer.pad_token_id:
        raise InputError(
            f"sieve.model.pad_token: the reader of {settings.base} needs an end of sequence that is not its padding token "
            f"'{tokenizer.pad_token}'; set it to one of the tokenizer's unused special tokens"
        )
    options: dict[str, Any] = {"attn_implementation": settings.attention}
    if settings.num_layers is not None:
        available = AutoConfig.from_pretrained(locate(settings.base), revision=settings.revision).num_hidden_layers
        if settings.num_layers > available:
            raise InputError(f"sieve.model.num_layers={settings.num_layers}: {settings.base} has {available} layers")
        options |= {"num_hidden_layers": settings.num_layers}
    model = load_model(AutoModelForCausalLM, settings.base, settings.revision, dtype=dtype, **options)
    model.config.pad_token_id = tokenizer.pad_token_id
    return Backbone(model=model, tokenizer=tokenizer, fingerprint=fingerprint(model))


def trainable(backbone: Backbone, settings: ModelSettings, init: Sequence[Path]) -> PeftModel:
    """The base with a new adapter, with the one of the checkpoint `init`, or with the mean of several.

    Raises InputError when one of `init` was trained on another base or with another adapter.
    """
    for folder in init:
        manifest = read_manifest(folder, "sieve")
        require_same_base(folder, manifest, backbone.fingerprint)
        before = manifest.settings["model"].get("lora")
        if before != settings.lora.model_dump(mode="json"):
            raise InputError(f"init={folder}: trained with sieve.model.lora={before}, but this run has {settings.lora}; set them alike")
    with quiet():
        model = get_peft_model(backbone.model, lora_config(settings.lora, "generation"))
        if init:
            adapters = [load_peft_weights(str(folder), device="cpu") for folder in init]
            mean = {name: torch.stack([weights[name].float() for weights in adapters]).mean(0) for name in adapters[0]}
            set_peft_model_state_dict(model, mean)
    return cast(PeftModel, model)


def load_adapter(backbone: Backbone, folder: Path, device: torch.device) -> PreTrainedModel:
    """The base with the adapter in `folder` merged into it, on `device`: reading then costs what the base costs."""
    with quiet():
        adapted = PeftModel.from_pretrained(backbone.model, str(folder), autocast_adapter_dtype=False)
        merged = cast(PreTrainedModel, adapted.merge_and_unload())
    merged.to(device)  # type: ignore[arg-type]
    return merged
