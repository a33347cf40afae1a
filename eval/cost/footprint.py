"""What a model is and needs (paper 002, table 8): parameters, bytes, operations of one batch, counted and by the closed form."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from peft import get_peft_model
from pydantic import TypeAdapter, ValidationError

from eval.cost import flops
from eval.cost.memory import PeakMemory
from eval.cost.shapes import random_model, shape
from rag.checkpoint import MANIFEST
from rag.errors import InputError
from rag.jsonl import read_json
from rag.models.base import Precision, max_positions, pick_dtype, quiet
from rag.models.lora import LoraSettings, lora_config
from rag.records import Record, Text
from sage import predict as sage_stage
from sieve import predict as sieve_stage

RANDOM = "random weights of the same shape"


class Footprint(Record):
    """One model, and one batch that it reads and, where it is a generator, goes on from."""

    name: Text
    weights: Text
    """Whose: a checkpoint's, or random ones of a published shape."""
    random: bool
    family: Text
    parameters: int
    """All, adapters included; shared ones once."""
    adapter_parameters: int
    """Those of them in adapters that are not merged into their base."""
    weight_bytes: int
    dtype: Text
    device: Text
    """`meta`: the parameters have no values, so nothing is computed and no memory taken."""
    attention: Text
    sequences: int
    tokens: int
    """Of each sequence; positions that the model pads come on top."""
    new_tokens: int
    """Written to each; 0 where the model writes none."""
    read_flops: int | None
    """Counted; none for a model whose inputs are not known here."""
    read_closed: int | None
    """By the closed form; none for a family without one."""
    write_flops: int | None
    write_closed: int | None
    working_bytes: int | None
    """Peak memory above the weights while it read and wrote; none where it is not measured."""
    memory: Text
    """How that was measured."""


class Batch(Record):
    """What each model is given."""

    sequences: int
    tokens: int
    new_tokens: int


def footprint(name: str, model: torch.nn.Module, batch: Batch, weights: str, *, random: bool = False) -> Footprint:
    """Count and measure one model where it is."""
    config: Any = getattr(model, "config", None)
    device = next(model.parameters()).device
    memory, working = PeakMemory(), None
    tokens, new_tokens = batch.tokens, 0
    counted: list[int | None] = [None, None]
    closed: list[int | None] = [None, None]
    if hasattr(config, "vocab_size"):
        tokens = min(tokens, max_positions(model) or tokens)  # type: ignore[arg-type]
        adapter = flops.adapter_parameters(model)
        if device.type != "meta":
            memory.start()
        with quiet(), flops.counting() as counter:
            cache = flops.read(model, tokens, batch.sequences)
            counted[0] = read = counter.flops
            closed[0] = flops.closed_form(config, tokens, batch.sequences, adapter=adapter)
            if cache is not None:
                new_tokens = batch.new_tokens
                flops.write(model, cache, new_tokens, batch.sequences)
                counted[1] = counter.flops - read
                closed[1] = flops.closed_form_of_writing(config, tokens, new_tokens, batch.sequences, adapter=adapter)
        working = None if device.type == "meta" else memory.stop()
    return Footprint(
        name=name,
        weights=weights,
        random=random,
        family=getattr(config, "model_type", type(model).__name__),
        parameters=flops.parameters(model),
        adapter_parameters=flops.adapter_parameters(model),
        weight_bytes=flops.weight_bytes(model),
        dtype=str(next(model.parameters()).dtype).removeprefix("torch."),
        device=str(device),
        attention="sliding window"
        if getattr(config, "model_type", "") == "longformer"
        else str(getattr(config, "_attn_implementation", "")),
        sequences=batch.sequences,
        tokens=tokens,
        new_tokens=new_tokens,
        read_flops=counted[0],
        read_closed=closed[0],
        write_flops=counted[1],
        write_closed=closed[1],
        working_bytes=working,
        memory="no values, nothing to measure" if device.type == "meta" else memory.how,
    )


def of_names(names: Sequence[str], batch: Batch, *, precision: Precision, device: str) -> list[Footprint]:
    """One row for each checkpoint folder or shape. Raises InputError for a name that is neither."""
    return [
        _of_checkpoint(Path(name).name, Path(name), batch, device)
        if (Path(name) / MANIFEST).is_file()
        else of_shape(name, name, None, batch, precision)
        for name in names
    ]


def of_profile(
    checkpoints: str, settings: Mapping[str, Mapping[str, Any] | None], batch: Batch, *, precision: Precision, device: str
) -> list[Footprint]:
    """One row for each stage: its checkpoint in the profile's folder, or random weights of the shape of its base, with its adapter."""
    rows = []
    for stage, of_stage in settings.items():
        folder = Path(checkpoints) / stage
        if (folder / MANIFEST).is_file():
            rows.append(_of_checkpoint(stage, folder, batch, device))
        elif of_stage is None:
            raise InputError(f"{stage}: no checkpoint in {folder} and no {stage}=... to take a shape from; set models=[...]")
        else:
            rows.append(
                of_shape(
                    stage, _value(of_stage, stage, "base", str), _value(of_stage, stage, "lora", LoraSettings | None), batch, precision
                )
            )
    return rows


def of_shape(name: str, wanted: str, lora: LoraSettings | None, batch: Batch, precision: Precision) -> Footprint:
    """A model of a published shape, see `shapes.random_model`; with an adapter where one is given. Raises InputError for an unknown shape."""
    found = shape(wanted)
    model: torch.nn.Module = random_model(found, pick_dtype(precision, torch.device("cpu")))
    if lora is not None:
        with quiet():
            adapted = get_peft_model(model, lora_config(lora, found.task), autocast_adapter_dtype=False)
        model = adapted.get_base_model().to(next(model.parameters()).dtype)
    return footprint(name, model.eval(), batch, f"{RANDOM} as {found.base}", random=True)


def _of_checkpoint(name: str, folder: Path, batch: Batch, device: str) -> Footprint:
    manifest: Any = read_json(folder / MANIFEST)
    stage: Literal["sieve", "sage"] = (
        manifest["stage"] if isinstance(manifest, dict) and manifest.get("stage") in ("sieve", "sage") else "sage"
    )
    model = sieve_stage.load(folder, device=device).models[0] if stage == "sieve" else sage_stage.load(folder, device=device).model
    return footprint(name, model, batch, f"checkpoint {folder}")


def _value(settings: Mapping[str, Any], stage: str, key: str, kind: Any) -> Any:
    try:
        return TypeAdapter(kind).validate_python(settings["model"][key])
    except (KeyError, TypeError, ValidationError) as error:
        raise InputError(
            f"{stage}.model.{key}: expected what a file of conf/{stage} has there, got {json.dumps(settings, default=str)[:80]}"
        ) from error
