"""Load the Sage's base model and tokenizer, and find the tokens that end its turn."""

import importlib.util
from typing import Any, Literal, NamedTuple

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import Precision, fingerprint, load_model, load_tokenizer, pick_device, pick_dtype
from rag.models.lora import LoraSettings
from rag.records import Text
from rag.settings import Settings

SENTINEL = "sentinel"


class ModelSettings(Settings):
    """Which language model, and how it is adapted."""

    base: Text
    """Hub id, folder, or `package:MODULE/PATH`."""
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
    ends = end_ids(tokenizer, model, settings.end_tokens)
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


def end_ids(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, further: tuple[str, ...] = ()) -> tuple[int, ...]:
    """Ids at which generation stops: the chat template's end of turn first, then every end of sequence that the base names.

    A base may name another token than its template ends a turn with, so one alone is not enough.
    """
    unknown = [token for token in further if token not in tokenizer.get_vocab()]
    if unknown:
        raise InputError(f"sage.model.end_tokens: not in the vocabulary: {', '.join(unknown)}")
    named = model.generation_config.eos_token_id
    candidates = [
        end_of_turn(tokenizer),
        tokenizer.eos_token_id,
        *(named if isinstance(named, list) else [named]),
        *(tokenizer.convert_tokens_to_ids(token) for token in further),
    ]
    return tuple(dict.fromkeys(int(i) for i in candidates if i is not None))


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int:
    """The control token that the chat template puts after the assistant's words, found by rendering a turn.

    Raises InputError when there is no chat template, or when it ends the turn without a control token.
    """
    if tokenizer.chat_template is None:
        raise InputError("sage.model.base: the tokenizer has no chat template; choose an instruction-tuned model")
    chat = [{"role": "user", "content": "question"}, {"role": "assistant", "content": SENTINEL}]
    rendered = str(tokenizer.apply_chat_template(chat, tokenize=False))
    tail = tokenizer(rendered.rpartition(SENTINEL)[2], add_special_tokens=False)["input_ids"]
    if not tail or tail[0] not in tokenizer.added_tokens_decoder:
        raise InputError("sage.model.base: the chat template does not end an assistant's turn with a control token")
    return int(tail[0])
