"""Load the Sieve: any encoder with one logit, plain, shortened to its first layers, adapted by LoRA, or turned into a Longformer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel, get_peft_model
from pydantic import Field
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from rag.checkpoint import read_manifest, require_same_base
from rag.errors import InputError
from rag.models.base import Precision, fingerprint, load_model, load_tokenizer, locate, max_positions, quiet
from rag.models.lora import LoraSettings, lora_config, save_adapter, whole
from rag.processes import rank
from rag.settings import Settings
from sieve.data import Objective

BERT_FAMILY = ("bert", "roberta")
SHARED_SHAPE = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "type_vocab_size",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
    "num_labels",
)
"""Settings that a Longformer shares with the encoder it is made of."""


class LongContext(Settings):
    """Conversion of a short-context encoder to a Longformer (Beltagy et al. 2020, section 5) of the same weights."""

    max_positions: int = Field(ge=64)
    """Tokens that the converted model can read."""
    attention_window: int = Field(default=256, ge=2, multiple_of=2)
    """Tokens that each token attends to, half on either side."""


class ModelSettings(Settings):
    """Which encoder, and how much of it is trained."""

    base: str
    """Hub id, folder, or `artifact:NAME`."""
    revision: str | None = None
    """Hub commit."""
    base_license: str | None = None
    """Licence of the base, for the model card; set it together with `base`."""
    pad_token: str | None = None
    """Replaces the tokenizer's padding token."""
    num_layers: int | None = Field(default=None, ge=1)
    """Keep only the first layers."""
    long_context: LongContext | None = None
    """Turn a BERT or RoBERTa encoder into a Longformer."""
    lora: LoraSettings | None = None
    """Train an adapter and the head; all weights where it is none."""
    precision: Precision = "auto"
    """Compute in bfloat16 or float32."""


class Backbone(Settings):
    """A model before adapters, its tokenizer, and what identifies its weights."""

    model: PreTrainedModel
    """Sequence classifier with one logit or three, in float32."""
    tokenizer: PreTrainedTokenizerBase
    """Its tokenizer, padding on the right."""
    fingerprint: str
    """`rag.models.base.fingerprint` of the backbone."""


def load_backbone(settings: ModelSettings, outputs: int = 1) -> Backbone:
    """Load base weights and tokenizer. The classification head of `outputs` logits is new, drawn from torch's random state.

    Raises InputError for a base that cannot be found, that has fewer layers than asked for, or that cannot be converted.
    """
    tokenizer = load_tokenizer(settings.base, settings.revision, settings.pad_token)
    options: dict[str, Any] = {"num_labels": outputs}
    if settings.num_layers is not None:
        config = AutoConfig.from_pretrained(locate(settings.base), revision=settings.revision)
        if settings.num_layers > config.num_hidden_layers:
            raise InputError(f"sieve.model.num_layers={settings.num_layers}: {settings.base} has {config.num_hidden_layers} layers")
        options |= first_layers(config.to_dict(), settings.num_layers)
    model = load_model(AutoModelForSequenceClassification, settings.base, settings.revision, dtype=torch.float32, **options)
    if settings.long_context is not None:
        model = to_longformer(model, settings.long_context.max_positions, settings.long_context.attention_window)
    # Decoder-only classifiers find the last token of a row by the padding id.
    model.config.pad_token_id = tokenizer.pad_token_id
    return Backbone(model=model, tokenizer=tokenizer, fingerprint=fingerprint(model))


def trainable(backbone: Backbone, settings: ModelSettings, init: Path | None, objective: Objective) -> PreTrainedModel | PeftModel:
    """The model to train: with an adapter and head on a frozen base, or with all weights where `settings.lora` is none.

    With `init`, weights go on from that checkpoint. Raises InputError when it was trained on another base, with another adapter or for
    another objective.
    """
    if init is not None:
        manifest = read_manifest(init, "sieve")
        require_same_base(init, manifest, backbone.fingerprint)
        learnt = manifest.settings.get("objective", "conflict")
        if learnt != objective:
            raise InputError(f"init={init}: trained with objective={learnt}, but this run has {objective}; set them alike")
        before = ModelSettings.model_validate(manifest.settings["model"]).lora
        if before != settings.lora:
            raise InputError(f"init={init}: trained with sieve.model.lora={before}, but this run has {settings.lora}; set them alike")
        return load_weights(backbone.model, settings, init, train=True)
    if settings.lora is None:
        return backbone.model
    config = lora_config(settings.lora, "classification")
    config.modules_to_save = head_layers(backbone.model)
    with quiet():
        return get_peft_model(backbone.model, config)


def head_layers(model: PreTrainedModel) -> list[str]:
    """Names of the layers that turn the backbone's output into a logit.

    A base often comes without them. They are then drawn at random, so an adapter is of use only with all of them beside it; PEFT
    would keep `classifier` and `score` alone and lose the dense layer before them that ModernBERT, DeBERTa and BERT have.
    """
    outside = [name for name, layer in model.named_children() if name != model.base_model_prefix and any(True for _ in layer.parameters())]
    return outside + [name for name, _ in model.base_model.named_children() if name == "pooler"]


def first_layers(config: Mapping[str, Any], number: int) -> dict[str, Any]:
    """What changes in a model's config when only its first `number` layers are kept; some families have lists with an entry by layer."""
    by_layer = {name: config[name][:number] for name in ("attention_window", "layer_types") if isinstance(config.get(name), list)}
    return {"num_hidden_layers": number, **by_layer}


def load_weights(base: PreTrainedModel, settings: ModelSettings, folder: Path, *, train: bool) -> PreTrainedModel | PeftModel:
    """Put the weights of a checkpoint folder on its base: an adapter, or all weights where `settings.lora` is none."""
    if settings.lora is not None:
        with quiet():
            return PeftModel.from_pretrained(base, folder, is_trainable=train)
    return load_model(AutoModelForSequenceClassification, str(folder), dtype=torch.float32)


def save_weights(model: PreTrainedModel | PeftModel, base: str, folder: Path, dtype: torch.dtype) -> None:
    """Write what `load_weights` reads: an adapter in `dtype`, the dtype it is served in, or all weights as they are.

    Every process of a run must call it, since each may hold a part of the weights; the first one writes.
    """
    if isinstance(model, PeftModel):
        save_adapter(model, base, folder, dtype)
        return
    weights = {name: whole(tensor) for name, tensor in model.state_dict().items()}
    if rank() == 0:
        model.save_pretrained(folder, state_dict=weights)


def require_positions(model: PreTrainedModel, max_length: int) -> None:
    """Refuse sequences longer than the model's position table, special tokens included. Raises InputError."""
    limit = max_positions(model)
    if limit is not None and max_length > limit:
        raise InputError(
            f"sieve.inputs.max_length={max_length}: the model reads at most {limit} tokens; lower it or set sieve.model.long_context"
        )


def to_longformer(model: PreTrainedModel, length: int, attention_window: int) -> LongformerForSequenceClassification:
    """Build a Longformer of `length` positions from a BERT or RoBERTa sequence classifier.

    The projections of global attention start as copies of the local ones, and the position table is tiled, as in Longformer's own
    conversion of RoBERTa (Beltagy et al. 2020, section 5). On inputs that fit in half the attention window, the result computes what
    the original did. Raises InputError for other families.
    """
    config = model.config
    if config.model_type not in BERT_FAMILY:
        raise InputError(f"sieve.model.long_context: expected a {' or '.join(BERT_FAMILY)} encoder, got {config.model_type}")
    pad = config.pad_token_id
    first = pad + 1
    target = LongformerForSequenceClassification(
        LongformerConfig(
            attention_window=attention_window,
            max_position_embeddings=first + length,
            **{name: getattr(config, name) for name in SHARED_SHAPE},
        )
    )
    source = model.base_model.state_dict()
    weights = {name: tensor for name, tensor in source.items() if not name.startswith(("pooler.", "embeddings.position"))}
    for name, tensor in list(weights.items()):
        for projection in ("query", "key", "value"):
            if f".self.{projection}." in name:
                weights[name.replace(f".{projection}.", f".{projection}_global.")] = tensor.clone()
    table = source["embeddings.position_embeddings.weight"]
    # BERT uses its position table from row 0, RoBERTa from the row after the padding index; Longformer always does the latter.
    used = table[first:] if config.model_type == "roberta" else table
    positions = used.repeat(-(-length // len(used)), 1)[:length]
    weights["embeddings.position_embeddings.weight"] = torch.cat([torch.zeros(first, table.shape[1]), positions])
    missing, unexpected = target.longformer.load_state_dict(weights, strict=False)
    missing = [name for name in missing if not name.startswith("pooler.")]
    if missing or unexpected:
        raise InputError(f"sieve.model.long_context: cannot convert {config.model_type}: missing {missing}, unexpected {unexpected}")
    _copy_pooler(source, target)
    target.eval()
    return target


def _copy_pooler(source: dict[str, torch.Tensor], target: LongformerForSequenceClassification) -> None:
    """BERT's pooler and Longformer's head both put a tanh layer on the first token, so the one starts the other."""
    if "pooler.dense.weight" in source:
        head = target.classifier.dense
        head.load_state_dict({"weight": source["pooler.dense.weight"], "bias": source["pooler.dense.bias"]})
