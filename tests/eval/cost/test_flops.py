"""Operations counted by torch against closed forms, and those against sums done by hand."""

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, BertConfig, LlamaConfig, LongformerConfig, RobertaConfig

from eval.cost import flops
from eval.cost.shapes import SHAPES, random_model, shape
from rag.errors import InputError
from rag.models.base import quiet

LLAMA = {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 20}


def llama(**options: Any) -> torch.nn.Module:
    attention = options.pop("attention", "eager")
    return AutoModelForCausalLM.from_config(
        LlamaConfig(**{**LLAMA, "num_hidden_layers": 2, **options}), attn_implementation=attention
    ).eval()


def counted(model: torch.nn.Module, tokens: int, sequences: int = 1, new_tokens: int = 1) -> tuple[int, int]:
    with quiet(), flops.counting() as counter:
        cache = flops.read(model, tokens, sequences)
        read = counter.flops
        if cache is not None:
            flops.write(model, cache, new_tokens, sequences)
    return read, counter.flops - read


def test_a_decoder_of_two_layers_by_hand() -> None:
    """A layer's weights: 8x8 for queries and outputs, 8x4 for keys and values, three of 8x12: 480. Five tokens, heads of width 2.

    Read: 2 x 5 x 2 x 480, attention 4 x 2 x 25 x 8, logits of one position 2 x 8 x 20. Two further tokens of three that are written:
    2 x 2 x 480 and 2 x 8 x 20 each, attention over 6 and 7 positions 4 x 2 x 8 x (6 + 7).
    """
    model = llama()
    assert counted(model, 5, new_tokens=3) == (9600 + 1600 + 320, 2 * (1920 + 320) + 832)
    assert flops.closed_form(model.config, 5, 1) == 11520
    assert flops.closed_form_of_writing(model.config, 5, 3, 1) == 5312
    assert counted(model, 5, sequences=3, new_tokens=3) == (3 * 11520, 3 * 5312)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("inference", [True, False])
def test_fused_attention_on_a_cpu_is_counted_like_any_other(attention: str, inference: bool) -> None:
    """Without a formula for it, torch's counter leaves the CPU's fused attention out: 9920 here."""
    with torch.inference_mode(inference):
        assert counted(llama(attention=attention), 5, new_tokens=3) == (11520, 5312)


def test_an_encoder_of_one_layer_by_hand() -> None:
    """Weights 4 x 8 x 8 + 2 x 8 x 12 = 448; six tokens: 2 x 6 x 448 + 4 x 36 x 8; a pooler of 8 x 8 and 3 classes: 2 x (64 + 24)."""
    config = BertConfig(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, vocab_size=20, num_labels=3)
    for attention in ("eager", "sdpa"):
        model = AutoModelForSequenceClassification.from_config(config, attn_implementation=attention).eval()
        assert counted(model, 6)[0] == 5376 + 1152 + 176
        assert counted(model, 6, sequences=2)[0] == 2 * 6704 == flops.closed_form(config, 6, 2)


@pytest.mark.parametrize("tokens", [8, 13, 16, 40])
def test_longformer_pads_to_its_window_and_looks_no_further(tokens: int) -> None:
    config = LongformerConfig(
        hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2, attention_window=[8, 8], vocab_size=20,
        max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    model = AutoModelForSequenceClassification.from_config(config).eval()
    assert counted(model, tokens, sequences=2)[0] == flops.closed_form(config, tokens, 2)


def test_roberta_and_a_decoder_that_classifies() -> None:
    tiny = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 20, "num_labels": 1}
    for config in (
        RobertaConfig(**tiny, max_position_embeddings=40),
        LlamaConfig(**LLAMA, num_hidden_layers=2, num_labels=2, pad_token_id=0),
    ):
        model = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager").eval()
        model.config.architectures = [type(model).__name__]
        assert not flops.is_generator(model)
        assert counted(model, 7, sequences=2)[0] == flops.closed_form(model.config, 7, 2)


def test_an_adapter_that_is_not_merged_is_counted_and_its_parameters_are_within() -> None:
    """r=2 on queries (8x8) and values (8x4) of two layers: 2 x (2 x 16 + 2 x 12) = 112 parameters, each used once for each token."""
    base = llama()
    bare, bare_bytes = flops.parameters(base), flops.weight_bytes(base)
    model = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")).get_base_model()
    assert flops.adapter_parameters(model) == 112
    assert flops.parameters(model) == bare + 112
    assert flops.weight_bytes(model) == bare_bytes + 4 * 112
    read, written = counted(model, 5, new_tokens=3)
    assert read == 11520 + 2 * 5 * 112 == flops.closed_form(model.config, 5, 1, adapter=112)
    assert written == flops.closed_form_of_writing(model.config, 5, 3, 1, adapter=112)


def test_shared_weights_count_once() -> None:
    tied, apart = llama(tie_word_embeddings=True), llama(tie_word_embeddings=False)
    assert flops.parameters(apart) - flops.parameters(tied) == 20 * 8


@pytest.mark.parametrize("name", [name for name in SHAPES if SHAPES[name].config["model_type"] != "longformer"])
def test_a_published_shape_needs_no_memory_and_gives_what_its_closed_form_says(name: str) -> None:
    """One layer of each; all layers are alike."""
    wanted = SHAPES[name]._replace(config={**SHAPES[name].config, "num_hidden_layers": 1})
    model = random_model(wanted, torch.bfloat16)
    assert next(model.parameters()).device.type == "meta"
    read, written = counted(model, 64, new_tokens=3)
    assert read == flops.closed_form(model.config, 64, 1)
    assert written == (flops.closed_form_of_writing(model.config, 64, 3, 1) or 0)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("llama3_8b", 8_030_261_248), ("mistral_7b_instruct", 7_248_023_552), ("gemma2_9b_it", 9_241_705_984), ("smollm2_135m", 134_515_008)],
)
def test_shapes_have_as_many_parameters_as_their_model_cards_say(name: str, parameters: int) -> None:
    """The totals that the hub shows for the published safetensors."""
    assert flops.parameters(random_model(SHAPES[name], torch.bfloat16)) == parameters


def test_a_shape_is_found_by_its_base_too_and_an_unknown_one_is_named() -> None:
    assert shape("meta-llama/Meta-Llama-3-8B-Instruct") is SHAPES["llama3_8b"]
    with pytest.raises(InputError, match="no shape is called 'llama3_9b'; did you mean 'llama3_8b'"):
        shape("llama3_9b")


def test_the_longest_sequence_within_a_number_of_operations() -> None:
    config = LlamaConfig(**LLAMA, num_hidden_layers=2)
    assert flops.tokens_for(config, 11520, 1) == 5
    assert flops.tokens_for(config, 11519, 1) == 4
    assert flops.tokens_for(config, 3 * 11520, 3) == 5


def test_a_family_without_a_formula_has_none() -> None:
    from transformers import ModernBertConfig

    assert flops.closed_form(ModernBertConfig(), 8, 1) is None
    assert flops.closed_form_of_writing(BertConfig(), 8, 2, 1) is None
