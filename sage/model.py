"""Load the Sage's base model and tokenizer."""

import importlib.util
from typing import Any, Literal, NamedTuple

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import Precision, fingerprint, load_model, load_tokenizer, pick_device, pick_dtype
from rag.models.lora import LoraSettings
from rag.models.turns import end_ids
from rag.records import Text
from rag.settings import Settings


class ModelSettings(Settings):
    """Which language model, and how it is adapted."""

    base: Text
    """Hub id, folder, or `artifact:NAME`."""
    revision: Text | None = None
    """Hub commit."""
    base_license: Text | None = None
    """Licence of the base, for the model card."""
    pad_token: Text | None = None
    """Replaces the tokenizer's padding token; must differ from every end token."""
    end_tokens: tuple[Text, ...] = ()
    """Tokens that end generation beside the chat template's end of turn and the base's own end of sequence."""
    lora: LoraSettings | None
    """The adapter that is trained; none in a checkpoint that `sage.merge` wrote, whose weights hold it."""
    precision: Precision = "auto"
    """Compute in bfloat16 or float32."""
    quantization: Literal["nf4"] | None = None
    """Keep the frozen base in 4 bits (Dettmers et al. 2023): a quarter of the memory, another base, and no merging."""
    attention: Literal["sdpa", "eager"] | None = None
    """Attention kernel, the architecture's own choice where it is none; on a CPU torch's fused one has a slow backward pass."""
    device: Text = "auto"
    """`auto`, or a torch device such as `cpu` or `cuda:0`."""


class Backbone(NamedTuple):
    """A base model before adapters, with its tokenizer; its dtype is the one that it computes in, also where it is kept in 4 bits."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    ends: tuple[int, ...]
    """Ids that end generation; the first is the end of an assistant's turn, which training teaches."""
    fingerprint: str
    """`rag.models.base.fingerprint` of the model."""


def load_backbone(settings: ModelSettings) -> Backbone:
    """Load the base, in the dtype and on the device that the settings resolve to.

    Raises InputError for a base that cannot be found, has no chat template, or whose padding token is also an end token, and where 4 bits
    are asked for without bitsandbytes.
    """
    device = pick_device(settings.device)
    tokenizer = load_tokenizer(settings.base, settings.revision, settings.pad_token)
    dtype = pick_dtype(settings.precision, device)
    options = {"dtype": dtype} if settings.quantization is None else in_4_bits(dtype, device)
    model = load_model(AutoModelForCausalLM, settings.base, settings.revision, attn_implementation=settings.attention, **options)
    if settings.quantization is None:
        model.to(device)  # type: ignore[arg-type]
    ends = end_ids(tokenizer, model, settings.end_tokens, "sage.model")
    if tokenizer.pad_token_id in ends:
        raise InputError(
            f"sage.model.pad_token: the padding token '{tokenizer.pad_token}' of {settings.base} also ends a turn or a sequence; "
            "set it to one of the tokenizer's unused special tokens"
        )
    # One greedy configuration that replaces the base's own, which may ask for sampling.
    model.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=list(ends), pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id
    )
    model.config.pad_token_id = tokenizer.pad_token_id
    model.config.bos_token_id = tokenizer.bos_token_id
    return Backbone(model, tokenizer, ends, fingerprint(model))


def require_bitsandbytes(setting: str) -> None:
    """Raise InputError, naming the setting that needs it, when bitsandbytes is not installed."""
    if importlib.util.find_spec("bitsandbytes") is None:
        raise InputError(f'{setting} needs bitsandbytes, which is not installed; `pip install -e ".[gpu]"`, or choose another value')


def in_4_bits(dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """What loading needs to pack the weights of linear layers into NF4 with double quantization, and to compute in `dtype`.

    Raises InputError when bitsandbytes is not installed.
    """
    require_bitsandbytes("sage.model.quantization=nf4")
    packed = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype)
    return {"quantization_config": packed, "dtype": dtype, "device_map": {"": device}}
