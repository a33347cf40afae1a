"""The base, its padding, and the tokens that end a turn."""

import copy
import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rag.errors import InputError
from rag.models.base import fingerprint
from rag.models.turns import end_of_turn
from rag.records import Example
from sage.model import Backbone, ModelSettings, in_4_bits, load_backbone
from sage.settings import TrainJob
from sage.train import train


def named(backbone: Backbone) -> list[str]:
    return list(backbone.tokenizer.convert_ids_to_tokens(list(backbone.ends)))


def test_generation_ends_at_the_templates_end_of_turn_and_at_the_bases_end_of_text(chatml: Backbone, llama3: Backbone) -> None:
    """Pitfall B2: Llama-3 ends turns with another token than its tokenizer's eos."""
    assert named(chatml) == ["<|im_end|>"]
    assert named(llama3) == ["<|eot_id|>", "<|end_of_text|>"]


def test_an_end_token_that_the_base_does_not_name_can_be_added(chatml_base: Path, settings_for: Callable[..., ModelSettings]) -> None:
    assert named(load_backbone(settings_for(chatml_base, end_tokens=("<|endoftext|>",)))) == ["<|im_end|>", "<|endoftext|>"]
    with pytest.raises(InputError, match="sage.model.end_tokens: not in the vocabulary: <eot>"):
        load_backbone(settings_for(chatml_base, end_tokens=("<eot>",)))


def test_padding_that_is_also_an_end_token_is_refused(chatml_base: Path, settings_for: Callable[..., ModelSettings]) -> None:
    """Pitfall B2."""
    with pytest.raises(InputError, match="sage.model.pad_token: the padding token '<|im_end|>'".replace("|", r"\|")):
        load_backbone(settings_for(chatml_base, pad_token=None))


def test_the_bases_own_sampling_settings_are_gone(chatml: Backbone) -> None:
    config = chatml.model.generation_config
    assert config.do_sample is False
    assert (config.temperature, config.top_p) == (None, None)


def test_a_template_without_an_end_of_turn_is_refused(new_base: Callable[..., Path], settings_for: Callable[..., ModelSettings]) -> None:
    base = new_base(template="{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}")
    with pytest.raises(InputError, match="does not end an assistant's turn with a control token"):
        load_backbone(settings_for(base))


def test_a_base_without_a_chat_template_is_refused(chatml: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chatml.tokenizer, "chat_template", None)
    with pytest.raises(InputError, match="no chat template; choose an instruction-tuned model"):
        end_of_turn(chatml.tokenizer)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp32", torch.float32)])
def test_the_base_is_loaded_in_the_precision_that_the_config_names(
    chatml_base: Path, settings_for: Callable[..., ModelSettings], precision: str, dtype: torch.dtype
) -> None:
    """Pitfall B5."""
    model = load_backbone(settings_for(chatml_base, precision=precision)).model
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}


def test_a_base_in_4_bits_is_packed_as_qlora_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dettmers et al. 2023: NF4, quantized constants, computing in the run's precision, on the run's device."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    options = in_4_bits(torch.bfloat16, torch.device("cuda:1"))
    packed = options["quantization_config"]
    assert (packed.load_in_4bit, packed.bnb_4bit_quant_type, packed.bnb_4bit_use_double_quant) == (True, "nf4", True)
    assert packed.bnb_4bit_compute_dtype is options["dtype"] is torch.bfloat16
    assert options["device_map"] == {"": torch.device("cuda:1")}


def test_4_bits_without_bitsandbytes_say_what_to_install(
    chatml_base: Path,
    settings_for: Callable[..., ModelSettings],
    job_in: Callable[..., TrainJob],
    make_example: Callable[..., Example],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == "bitsandbytes" else find(name, *more))
    with pytest.raises(InputError, match=r"sage.model.quantization=nf4 needs bitsandbytes, .*pip install -e \"\.\[gpu\]\""):
        load_backbone(settings_for(chatml_base, quantization="nf4"))
    with pytest.raises(InputError, match="sage.train.optimizer=paged_adamw_32bit needs bitsandbytes"):
        train(job_in(tmp_path, chatml_base, [make_example(1)], optimizer="paged_adamw_32bit"), tmp_path / "out")


def test_packed_weights_count_by_name_and_shape_in_a_fingerprint(chatml: Backbone) -> None:
    """Devices may pack them in another order; what stays whole still tells bases apart."""

    def packed(value: int, embedding: float = 0.0) -> str:
        model = copy.deepcopy(chatml.model)
        layer = model.model.layers[0].self_attn.q_proj
        layer.weight = torch.nn.Parameter(torch.full((64, 32), value, dtype=torch.uint8), requires_grad=False)
        model.model.embed_tokens.weight.data += embedding
        return fingerprint(model)

    assert packed(1) == packed(2) != chatml.fingerprint
    assert packed(1) != packed(1, embedding=1.0)
