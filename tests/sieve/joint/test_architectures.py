"""Each encoder of conf/sieve, as a tiny random model of its architecture with the position table that the real one has."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
import pytest
import torch
import yaml
from omegaconf import OmegaConf
from peft import get_peft_model
from transformers import Trainer

import conf
import sieve.train
from rag.errors import InputError
from rag.models.lora import LoraSettings, lora_config
from rag.records import Example
from rag.rounding import TOLERANCE
from sieve.joint.model import LongContext, load_backbone, require_positions
from sieve.predict import Sieve, load
from sieve.settings import SieveSettings, TrainJob

# What of a real config decides how long an input may be.
DEBERTA_V3 = {"max_position_embeddings": 512, "position_biased_input": False, "position_buckets": 256, "max_relative_positions": -1}
REAL: dict[str, tuple[str, dict[str, Any]]] = {
    "longformer_base_4096": ("longformer", {"max_position_embeddings": 4098}),
    "deberta_v3_base": (
        "deberta-v2",
        {**DEBERTA_V3, "share_att_key": True, "norm_rel_ebd": "layer_norm", "type_vocab_size": 0},
    ),
    "roberta_large": ("roberta", {"max_position_embeddings": 514}),
    "modernbert_base": ("modernbert", {"max_position_embeddings": 8192, "local_attention": 128}),
    "minilm": ("bert", {"max_position_embeddings": 512}),
    "minilm_longformer": ("bert", {"max_position_embeddings": 512}),
    "smollm2_12_layers": ("llama", {"max_position_embeddings": 8192, "eos_token_id": 4}),
}
# Layers to give an adapter, by architecture, as docs/training.md lists them.
TARGETS = {
    "longformer": ("query", "key", "value", "query_global", "key_global", "value_global"),
    "deberta-v2": ("query_proj", "key_proj", "value_proj"),
    "roberta": ("query", "key", "value"),
    "modernbert": ("Wqkv", "Wo"),
    "bert": ("query", "key", "value"),
    "llama": ("q_proj", "k_proj", "v_proj", "o_proj"),
}
LORA = LoraSettings(r=2, alpha=4)
NewBase = Callable[..., Path]
JobIn = Callable[..., TrainJob]


@functools.cache
def settings_of(name: str) -> SieveSettings:
    """What conf/sieve/NAME.yaml composes to."""
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed = hydra.compose("sieve_train", [f"sieve={name}", "data.train=x", "data.validation=x"])
    return TrainJob.model_validate(OmegaConf.to_container(composed, resolve=True)).sieve


def tiny(name: str, new_base: NewBase) -> SieveSettings:
    """The yaml's own settings on a tiny base; what counts layers or names a token of the real one is made to fit it."""
    family, changes = REAL[name]
    settings = settings_of(name)
    layers = None if settings.model.num_layers is None else 1
    model = settings.model.model_copy(
        update={"base": str(new_base(family, **changes)), "num_layers": layers, "pad_token": None, "precision": "fp32"}
    )
    return settings.model_copy(update={"model": model})


def test_every_encoder_of_the_configs_is_here() -> None:
    files = (Path(conf.__file__).parent / "sieve").glob("*.yaml")
    own = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")).get("model", {}).get("base") for path in files}
    assert {base for base in own.values() if base} == {own[name] for name in REAL if own[name]}


@pytest.mark.parametrize("name", REAL)
def test_the_configured_length_fits_the_encoder(new_base: NewBase, name: str) -> None:
    """Pitfall A3; `test_model` runs a Longformer at its limit."""
    settings = tiny(name, new_base)
    require_positions(load_backbone(settings.model).model, settings.inputs.max_length)


def test_a_deberta_without_a_position_table_reads_beyond_512_tokens_and_its_last_one_counts(new_base: NewBase) -> None:
    """Its distances are grouped, all far ones in one group."""
    settings = tiny("deberta_v3_base", new_base)
    assert settings.inputs.max_length == 1024
    model = load_backbone(settings.model).model
    ids = torch.randint(5, 100, (2, 1024), generator=torch.Generator().manual_seed(0))
    ids[1] = ids[0]
    ids[1, -1] = 5 if ids[0, -1] != 5 else 6
    with torch.inference_mode():
        one, other = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    assert one.isfinite()
    assert one != other


def test_a_deberta_with_a_position_table_still_ends_at_it(new_base: NewBase) -> None:
    model = load_backbone(settings_of("deberta_v3_base").model.model_copy(update={"base": str(new_base("deberta-v2"))})).model
    with pytest.raises(InputError, match="sieve.inputs.max_length=257: the model reads at most 256 tokens"):
        require_positions(model, 257)


@pytest.mark.parametrize("name", ["deberta_v3_base", "roberta_large", "modernbert_base"])
def test_it_trains_saves_loads_and_scores(
    new_base: NewBase, job_in: JobIn, make_examples: Callable[..., list[Example]], tmp_path: Path, name: str
) -> None:
    """Three optimizer steps by the yaml's own training settings."""
    settings = tiny(name, new_base)
    job = job_in(tmp_path, Path(settings.model.base))
    train_settings = settings.train.model_copy(update={"epochs": 3, "batch_size": 8, "gradient_accumulation": 4})
    job = job.model_copy(update={"sieve": settings.model_copy(update={"train": train_settings})})
    torch.manual_seed(0)
    before = load_backbone(settings.model).model.state_dict()
    result = sieve.train.train(job, tmp_path / "out")
    served = load(tmp_path / "out", device="cpu", precision="fp32")
    after = served.model.state_dict()
    assert sum(not torch.equal(after[key], tensor) for key, tensor in before.items()) > len(before) / 2
    examples = make_examples(4, start=300)
    assert scores(served, examples) == pytest.approx(scores(result.sieve, examples), abs=TOLERANCE["float32"])


def scores(sieve: Sieve, examples: list[Example]) -> list[float]:
    return [s.score for s in sieve.screen([e.question for e in examples], [e.documents for e in examples])]


@pytest.mark.parametrize("name", REAL)
def test_an_adapter_finds_its_layers_by_the_names_of_the_architecture(new_base: NewBase, name: str) -> None:
    """Those of the yaml, or those that the documentation lists."""
    settings = tiny(name, new_base).model
    family = REAL[name][0] if settings.long_context is None else "longformer"
    lora = settings.lora or LoraSettings(r=2, alpha=4, target_modules=TARGETS[family])
    if settings.long_context is not None:
        settings = settings.model_copy(update={"long_context": LongContext(max_positions=512, attention_window=32)})
    backbone = load_backbone(settings)
    config = lora_config(lora, "classification")
    adapted = {
        n.removesuffix(".lora_A.default.weight") for n, _ in get_peft_model(backbone.model, config).named_parameters() if "lora_A" in n
    }
    assert {layer.rpartition(".")[2] for layer in adapted} == set(TARGETS[family]) == set(lora.target_modules)
    assert len(adapted) >= len(TARGETS[family]) * (settings.num_layers or 2)


@pytest.mark.parametrize(
    ("family", "lora"),
    [("longformer", None), ("deberta-v2", None), ("modernbert", LORA), ("llama", LORA)],
    ids=lambda value: str(value)[:10],
)
def test_gradient_checkpointing_changes_no_gradient(
    new_base: NewBase,
    job_in: JobIn,
    make_examples: Callable[..., list[Example]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    family: str,
    lora: LoraSettings | None,
) -> None:
    """Through the job: the same weights after three steps, the last of which depend on the gradients of the first."""
    base, ends = new_base(family), []
    for checkpointing in (False, True):
        changes = {"gradient_checkpointing": checkpointing, "epochs": 3, "evals_per_epoch": 1}
        job = job_in(tmp_path, base, train=make_examples(4), validation=make_examples(2, start=50), lora=lora, **changes)
        trainers: list[Any] = []
        monkeypatch.setattr("sieve.joint.trainer.Trainer", lambda keep=trainers, **arguments: keep.append(Trainer(**arguments)) or keep[-1])
        sieve.train.train(job, tmp_path / f"{checkpointing}")
        [trainer] = trainers
        assert trainer.model.is_gradient_checkpointing == checkpointing
        ends.append({name: p.detach() for name, p in trainer.model.named_parameters() if p.requires_grad})
    assert len(ends[0]) > 0
    for name, weights in ends[0].items():
        assert torch.allclose(weights, ends[1][name], atol=1e-4), name
