"""LoRA adapters by PEFT, with one set of settings for both stages."""

from typing import Literal

from peft import LoraConfig, TaskType
from pydantic import Field

from rag.settings import Settings


class LoraSettings(Settings):
    """Low-rank adaptation (Hu et al. 2021); the paper's Sage uses r=8 and alpha=16 (paper 002, appendix C)."""

    r: int = Field(ge=1)
    """Rank of the update."""
    alpha: int = Field(ge=1)
    """The update is scaled by alpha / r."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout on the adapter's input while training."""
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"
    """Names of the layers that get an adapter."""


def lora_config(settings: LoraSettings, task: Literal["classification", "generation"]) -> LoraConfig:
    """Translate our settings to PEFT's."""
    targets = settings.target_modules if isinstance(settings.target_modules, str) else list(settings.target_modules)
    return LoraConfig(
        task_type=TaskType.SEQ_CLS if task == "classification" else TaskType.CAUSAL_LM,
        r=settings.r,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=targets,
    )
