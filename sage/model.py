"""Load the Sage's base model and tokenizer, and find the tokens that end its turn."""

from typing import NamedTuple

from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

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
    pad_token: Text | None = None
    """Replaces the tokenizer's padding token; must differ from every end token."""
    end_tokens: tuple[Text, ...] = ()
    """Tokens that end generation beside the chat template's end of turn and the base's own end of sequence."""
    lora: LoraSettings
    """The adapter that is trained."""
    precision: Precision = "auto"
    """Compute in bfloat16 or float32."""
    device: Text = "auto"
    """`auto`, or a torch device such as `cpu` or `cuda:0`."""


class Backbone(NamedTuple):
    """A base model before adapters, with its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    ends: tuple[int, ...]
    """Ids that end generation; the first is the end of an assistant's turn, which training teaches."""
    fingerprint: str
    """`rag.models.base.fingerprint` of the model."""


def load_backbone(settings: ModelSettings) -> Backbone:
    """Load the base, in the dtype and on the device that the settings resolve to.

    Raises InputError for a base that cannot be found, has no chat template, or whose padding token is also an end token.
    """
    device = pick_device(settings.device)
    tokenizer = load_tokenizer(settings.base, settings.revision, settings.pad_token)
    dtype = pick_dtype(settings.precision, device)
    model = load_model(AutoModelForCausalLM, settings.base, settings.revision, dtype=dtype).to(device)  # type: ignore[arg-type]
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
