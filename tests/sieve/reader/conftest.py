"""A tiny random causal model as a reader."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from rag.models.lora import LoraSettings
from sieve.reader.agreement import AgreementSettings
from sieve.reader.inputs import InputSettings
from sieve.reader.model import ModelSettings, load_backbone
from sieve.reader.predict import ReaderSieve


@pytest.fixture(scope="session")
def causal_base(new_base: Callable[..., Path]) -> Path:
    return new_base("llama", AutoModelForCausalLM, seed=3)


@pytest.fixture(scope="session")
def model_settings(causal_base: Path) -> ModelSettings:
    return ModelSettings(base=str(causal_base), lora=LoraSettings(r=2, alpha=4), precision="fp32")


@pytest.fixture
def reader(model_settings: ModelSettings) -> ReaderSieve:
    backbone = load_backbone(model_settings, torch.float32)
    return ReaderSieve(
        backbone.model,
        backbone.tokenizer,
        InputSettings(max_length=64, max_answer_tokens=4),
        # Weights under which the answers of a random model disagree to different degrees.
        AgreementSettings(quieter=1.0, louder=1.0, preference=0.25, intercept=0.0, slope=0.5, offset=0.5, floor=0.01),
        threshold=0.5,
    )
