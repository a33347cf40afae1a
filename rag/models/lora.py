"""LoRA adapters by PEFT, with one set of settings for both stages."""

from pathlib import Path
from typing import Literal

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model_state_dict
from pydantic import Field
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor

from rag.processes import rank
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


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """A weight without its graph, gathered where FSDP has split it among processes; then every process must call this, in the same order."""
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach()


def save_adapter(model: PeftModel, base: str, folder: Path, dtype: torch.dtype) -> None:
    """Write the adapter's weights in `dtype`, and its config, which names `base` as the settings do and not a folder of this machine.

    Every process of a run must call it, since each may hold a part of the weights; the first one writes.
    """
    parts = get_peft_model_state_dict(model, save_embedding_layers=False)
    weights = {name: whole(tensor).to("cpu", dtype).contiguous() for name, tensor in parts.items()}
    if rank() != 0:
        return
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "adapter_model.safetensors", {"format": "pt"})
    config = model.peft_config["default"]
    config.base_model_name_or_path = base
    config.inference_mode = True
    config.save_pretrained(str(folder))
