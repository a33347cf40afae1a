"""The training job: what it leaves, and what it refuses."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from safetensors.torch import load_file

from conf.overrides import check_overrides
from rag.checkpoint import MANIFEST, sha256
from rag.errors import InputError
from rag.jsonl import iter_records, write_records
from rag.models.base import fingerprint, pick_dtype
from rag.records import Condition, Document, Example, RetrievalState
from rag.trackers.json_lines import METRICS, JsonLines, Line
from rag.tracking import Run, Tracking
from sage.inputs import InputSettings
from sage.model import Backbone
from sage.parse import Kind
from sage.predict import Reply, load
from sage.settings import DataSettings, SageSettings, TrainJob
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


def test_the_trackers_are_told_what_the_trainer_measures_by_step(
    chatml_base: Path, make_example: Callable[..., Example], job_in: Callable[..., TrainJob], tmp_path: Path
) -> None:
    tracking = Tracking({"jsonl": JsonLines})
    job = job_in(tmp_path, chatml_base, [make_example(1), make_example(2)], epochs=2, logging_steps=1)
    with tracking.running(Run("sage_train", tmp_path, {}, {})):
        result = train(job.model_copy(update={"tracking": tracking}), tmp_path / "out")
    told = {(line.step, name): value for line in iter_records(tmp_path / METRICS, Line) for name, value in line.metrics.items()}
    log = json.loads((result.path / "history.json").read_text())["log"]
    for ours, theirs in {"train/loss": "loss", "train/learning_rate": "learning_rate", "validation/loss": "eval_loss"}.items():
        logged = {entry["step"]: entry[theirs] for entry in log if theirs in entry}
        assert {step: value for (step, name), value in told.items() if name == ours} == logged != {}
    assert told[log[-1]["step"], "checkpoint/loss"] == result.manifest.validation["loss"]


def test_a_complete_folder_is_not_trained_again(
    trained: TrainingResult, chatml_base: Path, memorised: list[Example], job_in: Callable[..., TrainJob], tmp_path: Path
) -> None:
    before = (trained.path / "adapter_model.safetensors").stat().st_mtime_ns
    again = train(job_in(tmp_path, chatml_base, memorised, epochs=40, eval_steps=20), trained.path)
    assert again == trained
    assert (trained.path / "adapter_model.safetensors").stat().st_mtime_ns == before


def test_the_default_precision_trains_on_a_cpu(
    train_on: Callable[..., TrainingResult], chatml_base: Path, make_example: Callable[..., Example], caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall B5: one setting resolves by device, and the run records the result."""
    with caplog.at_level(logging.INFO):
        result = train_on(chatml_base, [make_example(1)], precision="auto")
    assert f"validation loss {result.manifest.validation['loss']:.4f} at step " in caplog.text
    assert f"written to {result.path}" in caplog.text
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
    assert (job.data.train, job.data.validation) == ((Path("a.jsonl"), Path("b.jsonl")), (Path("c.jsonl"),))
    assert (job.sage.inputs.conflict, train.answerable_per_conflict) == (None, None)


def test_the_local_profile_is_the_same_job_on_another_base() -> None:
    job = composed("profile=local", "data.train=a.jsonl")
    assert job.sage.model.base.startswith("artifact:")
    assert job.data.train == (Path("a.jsonl"),)


@pytest.mark.parametrize("override", ["sage.max_seq_length=2048", "+sage.max_seq_length=2048", "sage.train.max_seq_length=2048"])
def test_trls_old_key_is_refused_with_ours(override: str) -> None:
    """Pitfall B4."""
    with pytest.raises(InputError, match=r"unknown key 'sage\.(train\.)?max_seq_length'; did you mean 'sage.train.max_length'"):
        check_overrides([override], TrainJob, "sage_train")


def test_a_length_limit_without_room_for_an_answer_is_refused() -> None:
    """Pitfall B1."""
    with pytest.raises(
        ValueError, match="sage.train.max_length=700 leaves no token for an answer after a prompt of sage.inputs.max_prompt_tokens"
    ):
        composed("profile=local", "sage.train.max_length=700")


@pytest.mark.parametrize("profile", ["paper", "local"])
def test_sage_only_is_the_profiles_sage_with_words_for_a_conflict(profile: str) -> None:
    """Paper 002, section 4.4 and table 14; nothing else differs from the two-way Sage of the profile."""
    two_way, sage_only = (composed(f"profile={profile}", *more).sage for more in ([], ["sage=sage_only"]))
    assert (sage_only.inputs.instruction, sage_only.inputs.conflict) == ("unanswerable_conflict", "conflict")
    assert sage_only.train.answerable_per_conflict == 1
    assert sage_only.model == two_way.model
    assert sage_only.inputs.under("unanswerable") == two_way.inputs
    assert sage_only.train.model_copy(update={"answerable_per_conflict": None}) == two_way.train


def test_the_limit_counts_training_examples_over_all_files(
    chatml_base: Path, job_in: Callable[..., TrainJob], make_example: Callable[..., Example], tmp_path: Path
) -> None:
    job = job_in(tmp_path, chatml_base, [make_example(1), make_example(2)])
    write_records(tmp_path / "more.jsonl", [make_example(3), make_example(4)])
    data = DataSettings(train=[tmp_path / "train.jsonl", tmp_path / "more.jsonl"], validation=tmp_path / "validation.jsonl", limit=3)
    (tmp_path / "out").mkdir()
    result = train(job.model_copy(update={"data": data}), tmp_path / "out")
    rows = json.loads((tmp_path / "out" / "history.json").read_text())["rows"]
    assert (rows["train"]["answerable"], rows["validation"]["answerable"]) == (3, 2)
    assert set(result.manifest.data) == {"train.jsonl", "more.jsonl", "validation.jsonl"}


@pytest.fixture(scope="module")
def sage_only(
    chatml_base: Path,
    job_in: Callable[..., TrainJob],
    memorised: list[Example],
    make_example: Callable[..., Example],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[TrainingResult, list[Example], SageSettings]:
    """A tiny Sage that has learnt an answer, an abstention and a conflict; what it learnt, and its settings."""
    folder = tmp_path_factory.mktemp("sage_only")
    conflict = make_example(1).model_copy(
        update={
            "id": "c1",
            "documents": (Document(id="d1", text="The capital of Peru is Lima."), Document(id="d2", text="The capital of Peru is Cusco.")),
            "state": RetrievalState.DISTRACTED,
            "condition": Condition.CONFLICT,
        }
    )
    examples = [*memorised, conflict]
    job = job_in(folder, chatml_base, examples, epochs=30, eval_steps=20)
    inputs = InputSettings(max_prompt_tokens=400, instruction="unanswerable_conflict", conflict="conflict")
    settings = job.sage.model_copy(update={"inputs": inputs})
    (folder / "out").mkdir()
    return train(job.model_copy(update={"sage": settings}), folder / "out"), examples, settings


def test_sage_only_learns_three_kinds_of_reply(sage_only: tuple[TrainingResult, list[Example], SageSettings]) -> None:
    result, examples, settings = sage_only
    assert (result.manifest.abstention, result.manifest.conflict) == ("unanswerable", "conflict")
    sage = load(result.path, device="cpu", precision="fp32", max_new_tokens=12, expected=settings)
    replies = sage.answer([e.question for e in examples], [e.documents for e in examples])
    assert [r.parsed.kind for r in replies if isinstance(r, Reply)] == [Kind.ANSWER, Kind.ABSTENTION, Kind.CONFLICT]


def test_sage_only_does_not_pass_for_a_two_way_sage(sage_only: tuple[TrainingResult, list[Example], SageSettings]) -> None:
    result, _, settings = sage_only
    two_way = settings.model_copy(update={"inputs": settings.inputs.under("unanswerable")})
    with pytest.raises(InputError, match="sage.inputs.conflict: trained with conflict, config has None"):
        load(result.path, device="cpu", expected=two_way)


def test_the_run_writes_a_card_with_its_data_and_command(trained: TrainingResult) -> None:
    text = (trained.path / "README.md").read_text(encoding="utf-8")
    counts = trained.manifest.counts["train"]
    assert f"Trained on {counts['answerable']} answerable, {counts['unanswerable']} unanswerable examples" in text
    assert trained.manifest.data["train.jsonl"] in text
    assert trained.manifest.command is not None and trained.manifest.command in text
    assert f"| {trained.manifest.validation['loss']:.4g} |" in text
