"""A tiny random encoder with a tokenizer that puts its own tokens around two texts."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import AutoModel

from sieve.extractive.inputs import InputSettings
from sieve.extractive.model import ModelSettings

INPUTS = InputSettings(max_length=40, stride=8, max_answer_tokens=4, max_windows=3)


def with_template(folder: Path) -> Path:
    """The tokenizer in the folder, with `<cls> first <sep> second <sep>` for two texts."""
    path = str(folder / "tokenizer.json")
    tokenizer = Tokenizer.from_file(path)
    ends = [(token, tokenizer.token_to_id(token)) for token in ("<cls>", "<sep>")]
    tokenizer.post_processor = TemplateProcessing(single="<cls> $A <sep>", pair="<cls> $A <sep> $B:1 <sep>:1", special_tokens=ends)
    tokenizer.save(path)
    return folder


@pytest.fixture(scope="session")
def encoder(new_base: Callable[..., Path]) -> Path:
    return with_template(new_base("bert", AutoModel, seed=5))


@pytest.fixture(scope="session")
def inputs() -> InputSettings:
    return INPUTS


@pytest.fixture(scope="session")
def model_settings(encoder: Path) -> ModelSettings:
    return ModelSettings(base=str(encoder), precision="fp32", dropout=0.0, attention="eager")
