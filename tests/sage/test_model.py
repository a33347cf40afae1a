"""The base, its padding, and the tokens that end a turn."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rag.errors import InputError
from sage.model import Backbone, ModelSettings, end_of_turn, load_backbone


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
