"""The shapes of published models, from their config.json, to stand in with random weights where the models themselves are not at hand."""

from typing import Any, Literal, NamedTuple

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedModel

from rag.errors import InputError, nearest


class Shape(NamedTuple):
    """What decides how large a model is and what it computes."""

    base: str
    """Hub id; the facts are from the config.json there."""
    task: Literal["generation", "classification"]
    config: dict[str, Any]


def _encoder(model_type: str, vocabulary: int, positions: int, layers: int = 12, width: int = 768, **more: Any) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": width // 64,
        "intermediate_size": 4 * width,
        "type_vocab_size": 1,
        "pad_token_id": 1,
        "num_labels": 1,
        **more,
    }


def _decoder(
    model_type: str, vocabulary: int, layers: int, width: int, inner: int, heads: int, of_keys: int, tied: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "vocab_size": vocabulary,
        "num_hidden_layers": layers,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": of_keys,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": tied,
        **more,
    }


LLAMA_8B = _decoder("llama", 128_256, 32, 4096, 14_336, 32, 8)
SHAPES = {
    "longformer_base_4096": Shape(
        "allenai/longformer-base-4096", "classification", _encoder("longformer", 50_265, 4098, attention_window=[512] * 12)
    ),
    "roberta_large": Shape("FacebookAI/roberta-large", "classification", _encoder("roberta", 50_265, 514, layers=24, width=1024)),
    "llama3_8b": Shape("meta-llama/Meta-Llama-3-8B-Instruct", "generation", LLAMA_8B),
    "med42_8b": Shape("m42-health/Llama3-Med42-8B", "generation", LLAMA_8B),
    "astrosage_8b": Shape("AstroMLab/AstroSage-8B", "generation", {**LLAMA_8B, "max_position_embeddings": 131_072}),
    "mistral_7b_instruct": Shape(
        "mistralai/Mistral-7B-Instruct-v0.3", "generation", _decoder("mistral", 32_768, 32, 4096, 14_336, 32, 8, sliding_window=None)
    ),
    "qwen25_7b_instruct": Shape("Qwen/Qwen2.5-7B-Instruct", "generation", _decoder("qwen2", 152_064, 28, 3584, 18_944, 28, 4)),
    "gemma2_9b_it": Shape(
        "google/gemma-2-9b-it", "generation", _decoder("gemma2", 256_000, 42, 3584, 14_336, 16, 8, tied=True, head_dim=256)
    ),
    "smollm2_135m": Shape("HuggingFaceTB/SmolLM2-135M-Instruct", "generation", _decoder("llama", 49_152, 30, 576, 1536, 9, 3, tied=True)),
}
"""By the names of conf/sieve and conf/sage."""


def shape(name: str) -> Shape:
    """A shape by its name or its base. Raises InputError with the nearest name."""
    found = SHAPES.get(name) or next((one for one in SHAPES.values() if one.base == name), None)
    if found is None:
        raise InputError(
            f"models: no checkpoint folder and no shape is called '{name}'{nearest(name, SHAPES)}; shapes: {', '.join(SHAPES)}"
        )
    return found


def random_model(wanted: Shape, dtype: torch.dtype) -> PreTrainedModel:
    """A model of the shape, in eager attention, which the counter sees whole; its parameters have no values (device `meta`).

    Longformer decides by values what to compute, so of it there are real random weights, in memory.
    """
    config = AutoConfig.for_model(**wanted.config)
    auto: Any = AutoModelForCausalLM if wanted.task == "generation" else AutoModelForSequenceClassification
    options = {} if config.model_type == "longformer" else {"attn_implementation": "eager"}
    with torch.device("cpu" if config.model_type == "longformer" else "meta"), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: PreTrainedModel = auto.from_config(config, dtype=dtype, **options)
    model.eval()
    return model
