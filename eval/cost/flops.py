"""Count floating-point operations: by torch's counter while a model runs, and from the shape of the model alone."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import DynamicCache

FORMULAS: Final = {
    "decoder": (
        "2 b T L (2 d h a + 2 d v a + 3 d f) + 4 b L T^2 h a, and 2 b d V for each position with logits, which is one. Each further token reads "
        "the n before it and itself: T becomes 1, and T^2 becomes n + 1."
    ),
    "encoder": "2 b T L (4 d^2 + 2 d f) + 4 b L T^2 d + 2 b (d^2 + d c).",
    "longformer": (
        "T is padded to a multiple of the window 2w. 2 b T L (6 d^2 + 2 d f) + 2 b L g d^2 for projections, b L (8 w (T - w) d + 6 w T d) "
        "for the window (as transformers computes it, in chunks), 8 b L T g d for g global tokens, + 2 b (d^2 + d c)."
    ),
}
"""b sequences of T tokens, L layers of width d with h heads of width a and v heads of keys and values, f wide inside, a vocabulary of V and c
classes. A multiplication and an addition are two operations; norms, activations and softmax count none, and causal attention is counted whole,
as torch's counter does. An adapter that is not merged adds 2 b T times its parameters."""

DECODERS: Final = ("gemma2", "llama", "mistral", "qwen2", "qwen3")
ENCODERS: Final = ("bert", "roberta", "xlm-roberta")


class Counted:
    """What a counter has seen so far."""

    def __init__(self, counter: FlopCounterMode) -> None:
        """Read from torch's counter."""
        self._counter = counter

    @property
    def flops(self) -> int:
        """Operations since it began."""
        return int(self._counter.get_total_flops())


@contextmanager
def counting() -> Iterator[Counted]:
    """Count what runs in this thread inside the block.

    torch 2.13 leaves out the CPU's fused attention, so it is counted here, as the fused attention of other devices is there.
    """
    fused: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with FlopCounterMode(display=False, custom_mapping={fused: _attention}) as counter:
        yield Counted(counter)


def _attention(query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], *_: Any, **__: Any) -> int:
    """Queries with keys, and weights with values; each head of the query has its own work, also where several share a key."""
    batch, heads, queries, width = query
    return 2 * batch * heads * queries * key[-2] * (width + value[-1])


def is_generator(model: torch.nn.Module) -> bool:
    """Whether the model writes text, rather than scores it."""
    return any("CausalLM" in name for name in getattr(_config(model), "architectures", None) or [type(model).__name__])


@torch.no_grad()
def read(model: torch.nn.Module, tokens: int, sequences: int) -> DynamicCache | None:
    """One forward pass over sequences of arbitrary ids: a generator's logits of the last position and its cache, or an encoder's scores."""
    device = next(model.parameters()).device
    # The lowest ids stand for padding in some vocabularies.
    ids = torch.full((sequences, tokens), _config(model).vocab_size - 1, device=device)
    if is_generator(model):
        return model(input_ids=ids, use_cache=True, logits_to_keep=1)["cache"]  # type: ignore[no-any-return]
    # Without a mask all of it is read; a mask would have to be looked into, which is not possible where tensors have no values.
    if _config(model).model_type == "longformer":
        model(input_ids=ids, global_attention_mask=torch.zeros_like(ids).index_fill_(1, torch.tensor([0], device=device), 1))
    else:
        model(input_ids=ids)
    return None


@torch.no_grad()
def write(model: torch.nn.Module, cache: DynamicCache, new_tokens: int, sequences: int) -> None:
    """What generation runs after the prompt: the prompt's pass gave the first token, each further one takes a pass of its own."""
    ids = torch.full((sequences, 1), _config(model).vocab_size - 1, device=next(model.parameters()).device)
    for _ in range(new_tokens - 1):
        model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)


def closed_form(config: Any, tokens: int, sequences: int, *, adapter: int = 0) -> int | None:
    """Operations of `read` from a transformers config; none for a family that has no formula here. `adapter`: parameters not merged."""
    family = str(config.model_type)
    if family in DECODERS:
        return _decoder(config, tokens, tokens, sequences, adapter)
    if family in ENCODERS:
        return _encoder(config, tokens, sequences) + 2 * sequences * tokens * adapter
    if family == "longformer":
        window = int(max(config.attention_window))
        padded = math.ceil(tokens / window) * window
        return _longformer(config, padded, sequences, global_tokens=1) + 2 * sequences * padded * adapter
    return None


def closed_form_of_writing(config: Any, tokens: int, new_tokens: int, sequences: int, *, adapter: int = 0) -> int | None:
    """Operations of `write` after a prompt of `tokens`."""
    if config.model_type not in DECODERS:
        return None
    return sum(_decoder(config, 1, tokens + further, sequences, adapter) for further in range(1, new_tokens))


def _decoder(config: Any, queries: int, keys: int, sequences: int, adapter: int) -> int:
    width, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    of_queries, of_keys = config.num_attention_heads * head, config.num_key_value_heads * head
    weights = layers * (2 * width * of_queries + 2 * width * of_keys + 3 * width * inner) + adapter
    attention = 4 * layers * queries * keys * of_queries
    if any("CausalLM" in name for name in config.architectures or ["CausalLM"]):
        last = 2 * width * config.vocab_size
    else:
        last = 2 * queries * width * config.num_labels
    return int(sequences * (2 * queries * weights + attention + last))


def _encoder(config: Any, tokens: int, sequences: int) -> int:
    width, layers = config.hidden_size, config.num_hidden_layers
    weights = layers * (4 * width**2 + 2 * width * config.intermediate_size)
    return int(sequences * (2 * tokens * weights + 4 * layers * tokens**2 * width + _head(config)))


def _longformer(config: Any, tokens: int, sequences: int, global_tokens: int) -> int:
    width = config.hidden_size
    total = _head(config)
    for window in config.attention_window:
        half = window // 2
        total += 2 * tokens * (6 * width**2 + 2 * width * config.intermediate_size) + 2 * global_tokens * width**2
        total += 8 * half * (tokens - half) * width + 6 * half * tokens * width
        total += 8 * tokens * global_tokens * width
    return int(sequences * total)


def _head(config: Any) -> int:
    """A dense layer and the logits, on one token of each sequence."""
    return int(2 * (config.hidden_size**2 + config.hidden_size * config.num_labels))


def _config(model: torch.nn.Module) -> Any:
    return model.config


def tokens_for(config: Any, flops: float, sequences: int) -> int:
    """The longest sequences whose reading takes at most so many operations, by the closed form; to see what a published figure may count."""
    low, high = 0, 1

    def form(tokens: int) -> float:
        return closed_form(config, tokens, sequences) or math.inf

    while form(high) <= flops:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if form(middle) <= flops else (low, middle)
    return low


def adapter_parameters(model: torch.nn.Module) -> int:
    """Parameters of LoRA layers that are not merged into their base."""
    return sum(parameter.numel() for name, parameter in _named(model).items() if "lora_" in name)


def parameters(model: torch.nn.Module) -> int:
    """All parameters, adapters included; shared ones once."""
    return sum(parameter.numel() for parameter in _named(model).values())


def weight_bytes(model: torch.nn.Module) -> int:
    """Bytes of all parameters and buffers."""
    tensors = [*_named(model).values(), *model.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _named(model: torch.nn.Module) -> Mapping[str, torch.nn.Parameter]:
    return dict(model.named_parameters())
