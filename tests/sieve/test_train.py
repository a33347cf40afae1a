"""The training job in process, on tiny bases: what it changes, what it leaves, and how it goes on after a kill."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from transformers import EvalPrediction, Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rag.checkpoint import MANIFEST, last_checkpoint, sha256
from rag.errors import InputError
from rag.jsonl import iter_records, read_files
from rag.models.base import pick_dtype
from rag.models.lora import LoraSettings
from rag.records import Condition, Document, Example, RetrievalState
from rag.rounding import TOLERANCE
from rag.trackers.json_lines import METRICS, JsonLines, Line
from rag.tracking import Run as TrackedRun
from rag.tracking import Tracking
from sieve.data import classes, outputs
from sieve.joint.data import rows
from sieve.joint.inputs import encode
from sieve.joint.model import load_backbone, trainable
from sieve.joint.trainer import accuracy, build_trainer, cross_entropy
from sieve.predict import Sieve, load
from sieve.settings import SieveSettings, TrainJob
from sieve.threshold import choose, rates
from sieve.train import TrainingResult, train

BaseOf = Callable[[str], Path]
JobIn = Callable[..., TrainJob]
MakeExample = Callable[..., Example]
Examples = Callable[..., list[Example]]
LORA = LoraSettings(r=4, alpha=8)
CLASSES = (Condition.ANSWERABLE, Condition.CONFLICT)


class Run:
    """A finished training with its settings and its folder."""

    def __init__(self, settings: TrainJob, out: Path) -> None:
        self.settings = settings
        self.out = out
        self.result: TrainingResult = train(settings, out)


@pytest.fixture(scope="module")
def with_adapter(base: BaseOf, job_in: JobIn, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("adapter")
    return Run(job_in(folder, base("llama"), lora=LORA, epochs=6), folder / "out")


@pytest.fixture(scope="module")
def with_all_weights(base: BaseOf, job_in: JobIn, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("all-weights")
    return Run(job_in(folder, base("llama"), epochs=6), folder / "out")


@pytest.fixture(params=["with_adapter", "with_all_weights"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def scores(model: Sieve, examples: list[Example]) -> list[float]:
    return [s.score for s in model.screen([e.question for e in examples], [e.documents for e in examples])]


def test_a_cue_of_one_word_is_learnt(run: Run, make_examples: Examples) -> None:
    """On new questions; before training the scores say nothing."""
    unseen = make_examples(10, start=60)
    distracted = [example.condition is Condition.CONFLICT for example in unseen]
    settings = run.settings.sieve
    fresh = load_backbone(settings.model)
    untrained = Sieve(fresh.model, fresh.tokenizer, settings.inputs, model_type="llama", threshold=0.5)
    assert rates(scores(untrained, unseen), distracted, 0.5).macro_f1 < 0.7
    assert rates(scores(run.result.sieve, unseen), distracted, run.result.sieve.threshold).macro_f1 > 0.9


def test_an_adapter_and_the_head_are_trained_and_the_base_is_not(with_adapter: Run) -> None:
    settings = with_adapter.settings.sieve.model
    before = dict(load_backbone(settings).model.named_parameters())
    changed = 0
    for name, parameter in with_adapter.result.sieve.model.named_parameters():
        plain = name.removeprefix("base_model.model.").replace(".base_layer", "").replace(".original_module", "")
        if "lora_B" in name:
            assert parameter.abs().max() > 0, name  # an adapter starts from zeros
            changed += 1
        elif "modules_to_save" in name:
            original = with_adapter.result.sieve.model.get_parameter(name.replace("modules_to_save.default", "original_module"))
            assert not torch.equal(parameter, original), name
            changed += 1
        elif "lora_A" not in name and not plain.startswith("score"):  # a new head differs at each load
            assert torch.equal(parameter, before[plain]), name
    assert changed == 2 * 7 + 1  # seven linear layers in each of two blocks, and the head


def test_all_weights_are_trained_without_an_adapter(with_all_weights: Run) -> None:
    before = dict(load_backbone(with_all_weights.settings.sieve.model).model.named_parameters())
    after = dict(with_all_weights.result.sieve.model.named_parameters())
    assert before.keys() == after.keys()
    assert [name for name in before if torch.equal(before[name], after[name])] == []


def test_the_trackers_are_told_what_training_measures_by_step(base: BaseOf, job_in: JobIn, tmp_path: Path) -> None:
    tracking = Tracking({"jsonl": JsonLines})
    job = job_in(tmp_path, base("llama"), lora=LORA, epochs=6).model_copy(update={"tracking": tracking})
    with tracking.running(TrackedRun("sieve_train", tmp_path, {}, {})):
        result = train(job, tmp_path / "out")
    lines = list(iter_records(tmp_path / METRICS, Line))
    told = {(line.step, name): value for line in lines for name, value in line.metrics.items()}
    by_name = {name: [step for step, other in told if other == name] for _, name in told}
    assert by_name["train/loss"] == by_name["train/learning_rate"] == sorted(set(by_name["train/loss"]))
    assert len(by_name["validation/loss"]) == len(by_name["validation/accuracy"]) > 1
    assert told[lines[-1].step, "checkpoint/macro_f1"] == result.manifest.validation["macro_f1"]


def test_a_loaded_checkpoint_scores_as_the_trained_model_did(run: Run, make_examples: Examples) -> None:
    examples = make_examples(4, start=300)
    loaded = load(run.out)
    assert scores(loaded, examples) == pytest.approx(scores(run.result.sieve, examples), abs=TOLERANCE["float32"])
    assert loaded.threshold == run.result.sieve.threshold == run.result.manifest.threshold
    assert loaded.inputs == run.settings.sieve.inputs
    assert not loaded.model.training


def test_the_threshold_is_chosen_on_validation_and_stored(base: BaseOf, job_in: JobIn, make_examples: Examples, tmp_path: Path) -> None:
    """Promise 10, on a Sieve so little trained that the threshold is not the default."""
    validation = make_examples(8, start=50)
    labels = [example.condition is Condition.CONFLICT for example in validation]
    result = train(job_in(tmp_path, base("llama"), validation=validation, epochs=0.1), tmp_path / "out")
    expected = scores(result.sieve, validation)
    assert result.sieve.threshold == result.manifest.threshold == pytest.approx(choose(expected, labels))
    assert result.sieve.threshold != 0.5
    at = rates(expected, labels, result.sieve.threshold)
    stored = result.manifest.validation
    assert {name: stored[name] for name in ("sets", "questions", "macro_f1", "tpr", "fpr")} == {
        "sets": 16, "questions": 8, "macro_f1": at.macro_f1, "tpr": at.tpr, "fpr": at.fpr
    }  # fmt: skip
    low, high = result.manifest.intervals["macro_f1"]
    assert low <= at.macro_f1 <= high


def test_the_folder_holds_what_serving_needs_and_nothing_of_the_way_there(run: Run) -> None:
    """Promise 13."""
    weights = (
        {"adapter_config.json", "adapter_model.safetensors"} if run.settings.sieve.model.lora else {"config.json", "model.safetensors"}
    )
    assert {path.name for path in run.out.iterdir()} == weights | {"README.md", "tokenizer.json", "tokenizer_config.json", MANIFEST}


def test_the_manifest_says_what_was_trained_on_what(run: Run) -> None:
    """Promise 13; pitfall A1: the pattern of global attention is among the settings."""
    manifest = json.loads((run.out / MANIFEST).read_text())
    model = run.settings.sieve.model
    assert manifest["stage"] == "sieve"
    assert manifest["base"] == {"id": model.base, "revision": None, "fingerprint": load_backbone(model).fingerprint}
    assert SieveSettings.model_validate({k: manifest["settings"][k] for k in ("model", "inputs", "train")}) == run.settings.sieve
    assert manifest["settings"]["inputs"]["global_attention"] == "first"
    assert (manifest["settings"]["seed"], manifest["settings"]["dtype"]) == (0, "torch.float32")
    assert manifest["data"] == {name: sha256(run.out.parent / name) for name in ("train.jsonl", "validation.jsonl")}
    assert {"torch", "transformers", "commit"} <= manifest["provenance"].keys()


def test_an_adapter_names_its_base_as_the_settings_do(base: BaseOf, job_in: JobIn, tmp_path: Path) -> None:
    """Not by the folder of this machine that it was read from."""
    job = job_in(tmp_path, Path("artifact:all-minilm-l6-v2"), lora=LORA, model={"num_layers": 1}, epochs=0.1)
    train(job, tmp_path / "out")
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "artifact:all-minilm-l6-v2"


def test_an_adapter_on_another_base_does_not_load(with_adapter: Run, new_base: Callable[..., Path], tmp_path: Path) -> None:
    """Promise 13."""
    other = new_base("llama", seed=1)
    copy = tmp_path / "copy"
    shutil.copytree(with_adapter.out, copy)
    manifest = json.loads((copy / MANIFEST).read_text())
    manifest["settings"]["model"]["base"] = str(other)
    (copy / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="trained on .* with fingerprint [0-9a-f]{16}, but the base that was loaded has"):
        load(copy)


def test_all_weights_serve_without_their_base(
    new_base: Callable[..., Path], job_in: JobIn, make_examples: Examples, tmp_path: Path
) -> None:
    """Promise 13: also when the base was shortened and turned into a Longformer."""
    base = new_base("bert")
    long_context = {"max_positions": 128, "attention_window": 32}
    job = job_in(tmp_path, base, model={"num_layers": 1, "long_context": long_context}, epochs=0.5)
    result = train(job, tmp_path / "out")
    shutil.rmtree(base)
    served = load(tmp_path / "out")
    assert served.model_type == "longformer"
    assert scores(served, make_examples(2)) == pytest.approx(scores(result.sieve, make_examples(2)), abs=TOLERANCE["float32"])


@pytest.mark.parametrize("manifest", [None, {"stage": "sage", "base": {"id": "b", "fingerprint": "f"}, "settings": {}}])
def test_a_folder_that_is_no_sieve_checkpoint_does_not_load(manifest: dict[str, Any] | None, tmp_path: Path) -> None:
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="expected a sieve checkpoint"):
        load(tmp_path)


def test_a_complete_folder_is_not_trained_again(with_adapter: Run, make_examples: Examples) -> None:
    before = (with_adapter.out / "adapter_model.safetensors").stat().st_mtime_ns
    again = train(with_adapter.settings, with_adapter.out)
    assert (with_adapter.out / "adapter_model.safetensors").stat().st_mtime_ns == before
    assert again.manifest == with_adapter.result.manifest
    assert scores(again.sieve, make_examples(2)) == pytest.approx(
        scores(with_adapter.result.sieve, make_examples(2)), abs=TOLERANCE["float32"]
    )


# A step of Adam is about as long as the learning rate, so one of 1e-9 leaves the weights where they were.
STILL: dict[str, Any] = {"epochs": 0.1, "learning_rate": 1e-9}


def test_init_goes_on_from_a_checkpoint(run: Run, job_in: JobIn, make_examples: Examples, tmp_path: Path) -> None:
    model = run.settings.sieve.model
    result = train(job_in(tmp_path, Path(model.base), lora=model.lora, init=run.out, **STILL), tmp_path / "out")
    examples = make_examples(4, start=400)
    assert scores(result.sieve, examples) == pytest.approx(scores(run.result.sieve, examples), abs=1e-4)
    assert scores(load(tmp_path / "out"), examples) == pytest.approx(scores(result.sieve, examples), abs=TOLERANCE["float32"])


def test_without_epochs_the_weights_stay_as_they_were(
    run: Run, job_in: JobIn, make_examples: Examples, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = run.settings.sieve.model
    with caplog.at_level(logging.INFO):
        result = train(job_in(tmp_path, Path(model.base), lora=model.lora, init=run.out, epochs=0), tmp_path / "out")
    found = f"Macro-F1 {result.manifest.validation['macro_f1']:.3f} on validation at threshold {result.manifest.threshold:.4g}"
    assert f"{found}; written to {tmp_path / 'out'}" in caplog.text
    examples = make_examples(4, start=400)
    assert scores(result.sieve, examples) == pytest.approx(scores(run.result.sieve, examples), abs=1e-4)


def test_init_is_trained_further(with_adapter: Run, job_in: JobIn, make_examples: Examples, tmp_path: Path) -> None:
    job = job_in(tmp_path, Path(with_adapter.settings.sieve.model.base), lora=LORA, init=with_adapter.out, epochs=1)
    examples = make_examples(4, start=400)
    after, before = scores(train(job, tmp_path / "out").sieve, examples), scores(with_adapter.result.sieve, examples)
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) > 1e-3


def test_init_of_another_base_or_another_adapter_is_refused(with_adapter: Run, base: BaseOf, job_in: JobIn, tmp_path: Path) -> None:
    same = Path(with_adapter.settings.sieve.model.base)
    with pytest.raises(InputError, match="trained on .* with fingerprint"):
        train(job_in(tmp_path, base("bert"), lora=LORA, init=with_adapter.out), tmp_path / "out")
    for lora in (None, LoraSettings(r=8, alpha=8)):
        with pytest.raises(InputError, match=r"init=.*: trained with sieve.model.lora=r=4 alpha=8 .*, but this run has .*; set them alike"):
            train(job_in(tmp_path, same, lora=lora, init=with_adapter.out), tmp_path / "out")


def test_init_of_another_objective_is_refused(with_adapter: Run, job_in: JobIn, make_example: MakeExample, tmp_path: Path) -> None:
    """Its head has another number of classes, or its score another meaning."""
    base = Path(with_adapter.settings.sieve.model.base)
    data = {"train": three_ways(make_example, 4), "validation": three_ways(make_example, 2, start=50)}
    job = job_in(tmp_path, base, lora=LORA, init=with_adapter.out, **data)
    for objective in ("threeway", "unanswerable"):
        with pytest.raises(InputError, match=f"trained with objective=conflict, but this run has {objective}; set them alike"):
            train(job.model_copy(update={"objective": objective}), tmp_path / "out")


class At(TrainerCallback):
    """Notes the step that a run begins from, and is killed when the checkpoint of a step is on disk."""

    def __init__(self, killed_at: int | None) -> None:
        self.killed_at = killed_at
        self.begun: int | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object) -> None:
        self.begun = state.global_step

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object) -> None:
        if state.global_step == self.killed_at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("lora", [LORA, None], ids=["adapter", "all weights"])
def test_a_run_that_was_killed_goes_on_from_its_last_checkpoint(
    base: BaseOf, job_in: JobIn, make_examples: Examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lora: LoraSettings | None
) -> None:
    """Promise 15: it ends as an uninterrupted run does, and a checkpoint that was cut off while writing is passed over."""
    job = job_in(tmp_path, base("llama"), lora=lora, epochs=3)
    straight = train(job, tmp_path / "straight")

    def run(killed_at: int | None) -> tuple[At, TrainingResult]:
        seen = At(killed_at)

        def build(*arguments: Any) -> Trainer:
            trainer = build_trainer(*arguments)
            trainer.add_callback(seen)
            return trainer

        monkeypatch.setattr("sieve.joint.train.build_trainer", build)
        return seen, train(job, tmp_path / "out")

    with pytest.raises(KeyboardInterrupt):
        run(killed_at=8)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"trainer"}
    (tmp_path / "out" / "trainer" / "checkpoint-9").mkdir()
    seen, resumed = run(killed_at=None)
    assert seen.begun == 8
    examples = make_examples(4, start=300)
    assert scores(resumed.sieve, examples) == pytest.approx(scores(straight.sieve, examples), abs=1e-4)
    assert resumed.manifest.threshold == pytest.approx(straight.manifest.threshold, abs=1e-4)


def test_the_last_checkpoint_is_the_newest_complete_one(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path / "nothing") is None
    for step in (9, 10, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert last_checkpoint(tmp_path) is None
    for step in (9, 10):
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").touch()
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")


def new_trainer(job: TrainJob, folder: Path) -> Any:
    """The trainer of a job, with the job's own files."""
    torch.manual_seed(0)
    loaded = load_backbone(job.sieve.model, outputs(job.objective))
    model = trainable(loaded, job.sieve.model, None, job.objective)
    learnt = classes(job.objective, job.data.clean)
    train_rows = rows(read_files(job.data.train), loaded.tokenizer, job.sieve.inputs, learnt, "training")
    validation_rows = rows(read_files(job.data.validation), loaded.tokenizer, job.sieve.inputs, learnt, "validation")
    return build_trainer(model, loaded, job.sieve, job.seed, train_rows, validation_rows, folder, job.tracking)


class Gradients(TrainerCallback):
    """The gradient of the head at every step of the optimizer, before clipping."""

    def __init__(self) -> None:
        self.steps: list[torch.Tensor] = []

    def on_pre_optimizer_step(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.steps.append(kwargs["model"].score.weight.grad.clone())


def test_one_row_four_times_is_four_rows_once(base: BaseOf, job_in: JobIn, make_examples: Examples, tmp_path: Path) -> None:
    """The loss is a mean over the rows of an optimiser step, also of the last one, which has two."""
    gradients, losses = [], []
    for batch_size, accumulation in ((4, 1), (1, 4)):
        job = job_in(tmp_path, base("llama"), train=make_examples(5), batch_size=batch_size, gradient_accumulation=accumulation, epochs=1)
        trainer, seen = new_trainer(job, tmp_path / f"{batch_size}"), Gradients()
        trainer.add_callback(seen)
        losses.append(trainer.train().training_loss)
        gradients.append(seen.steps)
    assert len(gradients[0]) == 3
    assert losses[0] == pytest.approx(losses[1], abs=TOLERANCE["float32"])
    for whole, accumulated in zip(*gradients, strict=True):
        assert torch.allclose(whole, accumulated, atol=1e-4)
        assert whole.norm() > 1e-3


def test_validation_loss_is_a_mean_over_rows(base: BaseOf, job_in: JobIn, make_examples: Examples, tmp_path: Path) -> None:
    """Ten rows in batches of four; accuracy is at the paper's threshold of 0.5."""
    job = job_in(tmp_path, base("llama"), validation=make_examples(5, start=50), batch_size=4)
    trainer = new_trainer(job, tmp_path / "out")
    metrics = trainer.evaluate()
    batch = trainer.data_collator(trainer.eval_dataset)
    with torch.inference_mode():
        logits = trainer.model.eval()(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, 0]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch["labels"].float())
    assert metrics["eval_loss"] == pytest.approx(float(loss), abs=TOLERANCE["float32"])
    assert metrics["eval_accuracy"] == pytest.approx(float(((logits >= 0) == (batch["labels"] == 1)).float().mean()))


def test_the_loss_by_hand() -> None:
    """-log(sigmoid(0)) is log 2, -log(1 - sigmoid(2)) is 2.1269; of three equal classes, -log(1/3) is 1.0986."""
    one = type("Outputs", (), {"logits": torch.tensor([[0.0], [2.0]])})
    labels = torch.tensor([1, 0])
    assert float(cross_entropy(one, labels)) == pytest.approx((0.6931 + 2.1269) / 2, abs=1e-4)
    assert float(cross_entropy(one, labels, num_items_in_batch=8)) == pytest.approx((0.6931 + 2.1269) / 8, abs=1e-4)
    three = type("Outputs", (), {"logits": torch.tensor([[5.0, 5.0, 5.0], [0.0, 0.0, 40.0]])})
    labels = torch.tensor([0, 2])
    assert float(cross_entropy(three, labels)) == pytest.approx(1.0986 / 2, abs=1e-4)
    assert float(cross_entropy(three, labels, num_items_in_batch=4)) == pytest.approx(1.0986 / 4, abs=1e-4)


def test_accuracy_by_hand() -> None:
    """A single logit is right on its side of zero, zero being positive; of three the largest counts."""
    assert accuracy(EvalPrediction(np.array([[0.0], [-1.0], [2.0], [-3.0]]), np.array([1, 0, 0, 1]))) == {"accuracy": 0.5}
    three = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 1.0, 0.5], [2.0, 1.0, 0.0]])
    assert accuracy(EvalPrediction(three, np.array([0, 2, 1, 1]))) == {"accuracy": 0.75}


def losses_of(trainer: Any) -> list[float]:
    return [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]


@pytest.fixture
def misleading(base: BaseOf, job_in: JobIn, make_example: Callable[..., Example], tmp_path: Path) -> TrainJob:
    """A job whose validation labels are the wrong way round, so that learning makes them worse."""
    validation = [make_example(i, Condition.ANSWERABLE, text="the answer is red") for i in range(50, 58)]
    clean = [make_example(i, Condition.ANSWERABLE) for i in range(50, 58)]
    validation += [example.model_copy(update={"id": f"c{example.id}", "condition": Condition.CONFLICT}) for example in clean]
    return job_in(tmp_path, base("llama"), validation=validation, epochs=30, patience=3)


def test_training_stops_after_evaluations_without_a_better_one_and_keeps_the_best(misleading: TrainJob, tmp_path: Path) -> None:
    trainer = new_trainer(misleading, tmp_path / "out")
    trainer.train()
    losses = losses_of(trainer)
    assert len(losses) < 30
    assert losses.index(min(losses)) == len(losses) - 4
    assert trainer.evaluate()["eval_loss"] == pytest.approx(min(losses), abs=TOLERANCE["float32"])


def test_a_killed_run_keeps_count_of_its_evaluations(misleading: TrainJob, tmp_path: Path) -> None:
    """Promise 15: resumed between two of them, it stops where it would have stopped."""
    straight = new_trainer(misleading, tmp_path / "straight")
    straight.train()
    killed_at = straight.state.global_step - 4
    first = new_trainer(misleading, tmp_path / "out")
    first.add_callback(At(killed_at))
    with pytest.raises(KeyboardInterrupt):
        first.train()
    second = new_trainer(misleading, tmp_path / "out")
    second.train(resume_from_checkpoint=last_checkpoint(tmp_path / "out"))
    assert losses_of(second) == pytest.approx(losses_of(straight), abs=TOLERANCE["float32"])


@pytest.mark.parametrize("lora", [None, LORA], ids=["all weights", "adapter"])
@pytest.mark.parametrize(("pattern", "sums"), [("first", [1, 1]), ("question", [7, 15])])
def test_the_mask_reaches_the_model_alike_from_the_trainer_and_from_serving(
    base: BaseOf,
    job_in: JobIn,
    make_example: Callable[..., Example],
    tmp_path: Path,
    pattern: Any,
    sums: list[int],
    lora: LoraSettings | None,
) -> None:
    """Pitfall A1: questions of 6 and 14 tokens, documents of different length, one batch of two."""
    examples = [
        make_example(1, Condition.ANSWERABLE, question=" ".join(["w1"] * 6)),
        make_example(2, Condition.CONFLICT, question=" ".join(["w2"] * 14)),
    ]
    job = job_in(tmp_path, base("longformer"), train=examples, validation=examples, lora=lora, batch_size=2, epochs=1)
    job = job.model_copy(
        update={"sieve": job.sieve.model_copy(update={"inputs": job.sieve.inputs.model_copy(update={"global_attention": pattern})})}
    )
    trainer = new_trainer(job, tmp_path / "out")
    longformer = trainer.model if lora is None else trainer.model.get_base_model()
    calls: list[dict[str, torch.Tensor]] = []
    longformer.register_forward_pre_hook(lambda _, args, kwargs: calls.append(kwargs), with_kwargs=True)

    trainer.train()
    trainer.evaluate()
    loaded = load_backbone(job.sieve.model)
    served = Sieve(trainer.model, loaded.tokenizer, job.sieve.inputs, model_type="longformer", threshold=0.5)
    served.score([encode(example.question, example.documents, loaded.tokenizer, job.sieve.inputs) for example in examples])

    assert len(calls) == 4  # one training step, two evaluations, serving
    for call in calls:
        mask = call["global_attention_mask"]
        assert mask.shape == call["input_ids"].shape
        assert int((mask * (1 - call["attention_mask"])).sum()) == 0
        assert sorted(mask.sum(1).tolist()) == sums
    for name in ("input_ids", "attention_mask", "global_attention_mask"):
        assert torch.equal(calls[2][name], calls[3][name])
        assert torch.equal(calls[0][name].sort(0).values, calls[3][name].sort(0).values)  # training shuffles


@pytest.mark.parametrize("precision", ["auto", "bf16", "fp32"])
def test_every_precision_trains_on_a_cpu_and_serves_in_it(
    base: BaseOf, job_in: JobIn, make_examples: Examples, tmp_path: Path, precision: Any
) -> None:
    """Pitfall B5: one setting resolves by device, the run records it, and the threshold belongs to the scores that are served."""
    result = train(job_in(tmp_path, base("llama"), lora=LORA, model={"precision": precision}, epochs=0.1), tmp_path / "out")
    dtype = pick_dtype(precision, torch.device("cpu"))
    served = load(tmp_path / "out", device="cpu")
    assert result.manifest.settings["dtype"] == str(dtype)
    for model in (result.sieve.model, served.model):
        assert {parameter.dtype for parameter in model.parameters()} == {dtype}
        with torch.inference_mode():
            assert model(input_ids=torch.tensor([[5, 6]])).logits.dtype == dtype  # no autocast is left from training
    assert scores(served, make_examples(3)) == pytest.approx(scores(result.sieve, make_examples(3)), abs=TOLERANCE["float32"])


def test_a_checkpoint_can_be_served_in_another_precision(with_adapter: Run) -> None:
    assert {parameter.dtype for parameter in load(with_adapter.out, precision="bf16").model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("split", ["train", "validation"])
def test_data_of_one_class_stop_the_job_before_it_trains(
    base: BaseOf, job_in: JobIn, make_examples: Examples, tmp_path: Path, split: str
) -> None:
    clean = [example for example in make_examples(4) if example.condition is Condition.ANSWERABLE]
    said = rf"expected examples of each class, found 4 answerable, 0 conflict \(not used: none\); check data\.{split} and objective"
    with pytest.raises(InputError, match=said):
        train(job_in(tmp_path, base("llama"), **{"train": make_examples(8, 90), split: clean}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_length_that_the_base_cannot_read_stops_the_job(base: BaseOf, job_in: JobIn, tmp_path: Path) -> None:
    """Pitfall A3."""
    with pytest.raises(InputError, match="sieve.inputs.max_length=129: the model reads at most 128 tokens"):
        train(job_in(tmp_path, base("roberta"), max_length=129), tmp_path / "out")


def test_training_that_diverged_is_an_error_and_no_checkpoint(base: BaseOf, job_in: JobIn, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training diverged.*lower sieve.train.learning_rate"):
        train(job_in(tmp_path, base("llama"), learning_rate=1e38), tmp_path / "out")
    assert not (tmp_path / "out" / MANIFEST).exists()


def with_data(job: TrainJob, **changes: object) -> TrainJob:
    return job.model_copy(update={"data": job.data.model_copy(update=changes)})


def test_adapting_to_a_few_examples_is_recorded(with_adapter: Run, job_in: JobIn, tmp_path: Path) -> None:
    """Appendix B: which checkpoint it went on from, and on how many examples, so that a learning curve can be drawn."""
    base = Path(with_adapter.settings.sieve.model.base)
    job = with_data(job_in(tmp_path, base, lora=LORA, init=with_adapter.out, **STILL), limit=6)
    adapted = train(job, tmp_path / "out").manifest
    assert adapted.settings["data"] == {"clean": ["answerable"], "distracted": ["conflict"], "limit": 6, "examples": 6}
    assert adapted.settings["init"] == sha256(with_adapter.out / MANIFEST)
    assert adapted.counts["train"] == {"answerable": 3, "conflict": 3}
    whole = with_adapter.result.manifest
    assert whole.settings["data"] == {"clean": ["answerable"], "distracted": ["conflict"], "limit": None, "examples": 32}
    assert whole.settings["init"] is None


def test_a_limit_that_leaves_a_class_empty_stops_the_job(base: BaseOf, job_in: JobIn, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"training data: .* found 1 answerable, 0 conflict \(not used: {'over data.limit': 31}\)"):
        train(with_data(job_in(tmp_path, base("llama")), limit=1), tmp_path / "out")


def three_ways(make_example: MakeExample, count: int, start: int = 0) -> list[Example]:
    """As many answerable, conflict and unanswerable sets; the unanswerable ones have no word `answer` in them."""
    found = []
    for i in range(start, start + count):
        missing = make_example(i, Condition.UNANSWERABLE, state=RetrievalState.UNANSWERABLE, answers=())
        blank = [document.model_copy(update={"text": document.text.replace("answer", "w99")}) for document in missing.documents]
        found += [make_example(i, Condition.ANSWERABLE), make_example(i, Condition.CONFLICT)]
        found.append(missing.model_copy(update={"documents": tuple(blank)}))
    return found


@pytest.fixture(scope="module", params=["adapter", "all weights"])
def three_classes(request: Any, base: BaseOf, job_in: JobIn, make_example: MakeExample, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("threeway")
    data = {"train": three_ways(make_example, 12), "validation": three_ways(make_example, 6, start=50)}
    lora = LORA if request.param == "adapter" else None
    job = job_in(folder, base("llama"), lora=lora, epochs=8, **data)
    return Run(job.model_copy(update={"objective": "threeway"}), folder / "out")


def test_three_classes_are_learnt_and_conflict_is_the_score(three_classes: Run, make_example: MakeExample) -> None:
    """Figure 5 (d): P(distracted) is the softmax of the class `conflict`, the same from training and from a loaded folder."""
    served = load(three_classes.out)
    unseen = three_ways(make_example, 6, start=70)
    distracted = [example.condition is Condition.CONFLICT for example in unseen]
    assert rates(scores(served, unseen), distracted, served.threshold).macro_f1 > 0.9
    assert scores(served, unseen) == pytest.approx(scores(three_classes.result.sieve, unseen), abs=TOLERANCE["float32"])
    assert served.threshold == three_classes.result.manifest.threshold
    assert three_classes.result.manifest.settings["objective"] == "threeway"
    encodings = [encode(e.question, e.documents, served.tokenizer, served.inputs) for e in unseen]
    hits = 0
    for example, encoding, score in zip(unseen, encodings, scores(served, unseen), strict=True):
        with torch.inference_mode():
            logits = served.model(input_ids=torch.tensor([encoding.ids])).logits
        assert logits.shape == (1, 3)
        hits += int(logits.argmax()) == classes("threeway")[example.condition]
        # The temperature, which one number cannot take out of three classes, acts on the log-odds of the conflict.
        assert (score >= 0.5) == (float(torch.softmax(logits, -1)[0, 1]) >= 0.5)
    assert hits >= 15


def test_an_unanswerable_objective_is_learnt_and_is_no_gate(base: BaseOf, job_in: JobIn, make_example: MakeExample, tmp_path: Path) -> None:
    """Figure 5 (b): it scores P(unanswerable), which must not stand in front of anything as P(distracted)."""
    data = {"train": three_ways(make_example, 12), "validation": three_ways(make_example, 6, start=50)}
    job = job_in(tmp_path, base("llama"), lora=LORA, epochs=6, **data).model_copy(update={"objective": "unanswerable"})
    result = train(job, tmp_path / "out")
    unseen = [example for example in three_ways(make_example, 6, start=70) if example.condition is not Condition.CONFLICT]
    labels = [example.condition is Condition.UNANSWERABLE for example in unseen]
    loaded = load(tmp_path / "out", gate=False)
    assert rates(scores(loaded, unseen), labels, loaded.threshold).macro_f1 > 0.9
    assert train(job, tmp_path / "out").manifest == result.manifest  # a complete folder, read again
    with pytest.raises(
        InputError, match=r"objective=unanswerable, so its scores are P\(unanswerable\) and it cannot screen .*use a checkpoint"
    ):
        load(tmp_path / "out")


def test_unanswerable_sets_can_be_clean(base: BaseOf, job_in: JobIn, make_example: MakeExample, tmp_path: Path) -> None:
    """`data.clean`: a gate that lets them pass on to the Sage is trained to."""
    data = {"train": three_ways(make_example, 12), "validation": three_ways(make_example, 6, start=50)}
    job = job_in(tmp_path, base("llama"), lora=LORA, epochs=6, **data)
    result = train(with_data(job, clean=("answerable", "unanswerable")), tmp_path / "out")
    assert result.manifest.settings["data"]["examples"] == 36
    assert result.manifest.validation["sets"] == 18
    unseen = three_ways(make_example, 6, start=70)
    distracted = [example.condition is Condition.CONFLICT for example in unseen]
    assert rates(scores(result.sieve, unseen), distracted, result.sieve.threshold).macro_f1 > 0.9


def test_a_sieve_of_pairs_is_trained_on_pairs_and_its_threshold_on_sets(
    base: BaseOf, job_in: JobIn, make_example: MakeExample, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Larger sets are no training rows, since nothing says which of their pairs disagree; the threshold is for what is served, sets."""
    larger = [
        e.model_copy(update={"id": f"x{e.id}", "documents": (*e.documents, Document(id="d3", text="w5 w6"))})
        for e in (make_example(i, c) for i in range(60, 66) for c in (Condition.ANSWERABLE, Condition.CONFLICT))
    ]
    pairs = [make_example(i, c) for i in range(50, 54) for c in (Condition.ANSWERABLE, Condition.CONFLICT)]
    job = job_in(tmp_path, base("llama"), lora=LORA, validation=[*pairs, *larger], epochs=6)
    inputs = job.sieve.inputs.model_copy(update={"pooling": "pairs"})
    job = job.model_copy(update={"sieve": job.sieve.model_copy(update={"inputs": inputs})})
    with caplog.at_level(logging.INFO, logger="sieve.joint.data"):
        result = train(job, tmp_path / "out")
    assert "not used: {'more than two documents': 12}" in caplog.text
    assert result.manifest.validation["sets"] == 20
    served = load(tmp_path / "out", expected=job.sieve)
    assert served.inputs.pooling == "pairs"
    distracted = [example.condition is Condition.CONFLICT for example in larger]
    assert rates(scores(served, larger), distracted, served.threshold).macro_f1 > 0.9
    set_wise = job.sieve.model_copy(update={"inputs": inputs.model_copy(update={"pooling": "set"})})
    with pytest.raises(InputError, match=r"sieve\.inputs\.pooling: trained with pairs, config has set"):
        load(tmp_path / "out", expected=set_wise)


def test_a_checkpoint_from_before_a_setting_was_there_has_its_default(with_adapter: Run, make_examples: Examples, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(with_adapter.out, copy)
    manifest = json.loads((copy / MANIFEST).read_text())
    del manifest["settings"]["inputs"]["pooling"], manifest["settings"]["objective"], manifest["settings"]["data"]
    (copy / MANIFEST).write_text(json.dumps(manifest))
    served = load(copy, expected=with_adapter.settings.sieve)
    assert scores(served, make_examples(2)) == pytest.approx(scores(with_adapter.result.sieve, make_examples(2)), abs=TOLERANCE["float32"])


def composed(*overrides: str) -> TrainJob:
    with initialize_config_module(config_module="conf", version_base="1.3"):
        config = compose("sieve_train", overrides=["data.train=[a.jsonl,b.jsonl]", "data.validation=c.jsonl", *overrides])
    return TrainJob.model_validate(OmegaConf.to_container(config, resolve=True))


def test_the_paper_profile_is_appendix_c() -> None:
    job = composed()
    model, inputs, settings = job.sieve.model, job.sieve.inputs, job.sieve.train
    assert (model.base, model.lora, inputs.max_length) == ("allenai/longformer-base-4096", None, 4096)
    assert (settings.epochs, settings.learning_rate, settings.warmup_ratio, settings.best_metric) == (15, 2e-4, 0.05, "loss")
    assert job.data.train == (Path("a.jsonl"), Path("b.jsonl"))


def test_the_objective_is_a_key_of_the_command() -> None:
    job = composed("objective=threeway", "data.clean=[answerable,unanswerable]", "sieve.inputs.pooling=pairs")
    assert (job.objective, job.data.clean, job.sieve.inputs.pooling) == ("threeway", ("answerable", "unanswerable"), "pairs")
    assert (composed().objective, composed().data.clean, composed().sieve.inputs.pooling) == ("conflict", ("answerable",), "set")
    with pytest.raises(ValueError, match="'conflict', 'unanswerable' or 'threeway'"):
        composed("objective=conflicts")
    with pytest.raises(ValueError, match="at least 1 item"):
        composed("data.clean=[]")


def test_the_local_profile_is_the_same_job_on_another_base() -> None:
    job = composed("profile=local", "data.train=a.jsonl")
    assert job.sieve.model.base.startswith("artifact:")
    assert job.data.train == (Path("a.jsonl"),)


def test_a_checkpoint_is_refused_under_another_pattern_of_global_attention(with_adapter: Run) -> None:
    """Pitfall A1: the pattern is a part of what was trained."""
    trained_as = with_adapter.settings.sieve
    other = trained_as.model_copy(update={"inputs": trained_as.inputs.model_copy(update={"global_attention": "question"})})
    assert load(with_adapter.out, expected=trained_as).threshold == with_adapter.result.sieve.threshold
    with pytest.raises(InputError, match=r"sieve\.inputs\.global_attention: trained with first, config has question"):
        load(with_adapter.out, expected=other)


def test_a_question_in_both_files_stops_the_job(base: BaseOf, job_in: JobIn, make_examples: Examples, tmp_path: Path) -> None:
    """Pitfall G5."""
    with pytest.raises(InputError, match=r"expected each question in one split, found question_id 'q0' in data\.train"):
        train(job_in(tmp_path, base("llama"), train=make_examples(2), validation=make_examples(2)), tmp_path / "out")


def test_sets_of_two_thousand_tokens_train_and_score_on_a_converted_encoder(
    base: BaseOf, job_in: JobIn, make_example: MakeExample, tmp_path: Path
) -> None:
    """Five documents of 400 tokens, of which the last one tells: read whole, learnt from, and scored alike in any batch."""

    def long(number: int, condition: Condition) -> Example:
        short = make_example(number, condition)
        texts = [" ".join(f"w{(7 * number + 11 * i + j) % 100}" for j in range(395)) for i in range(4)]
        documents = [Document(id=f"n{i}", text=text) for i, text in enumerate(texts)]
        documents.append(Document(id="last", text=f"{' '.join(['w1'] * 385)} {short.documents[0].text}"))
        return short.model_copy(update={"documents": tuple(documents)})

    data = {name: [long(i, c) for i in range(start, start + 2) for c in CLASSES] for name, start in (("train", 0), ("validation", 50))}
    long_context = {"max_positions": 2048, "attention_window": 64}
    job = job_in(
        tmp_path,
        base("bert"),
        model={"long_context": long_context},
        max_length=2048,
        epochs=1,
        batch_size=4,
        **data,
    )
    before = dict(load_backbone(job.sieve.model).model.longformer.named_parameters())
    result = train(job, tmp_path / "out")
    after = dict(result.sieve.model.longformer.named_parameters())
    # One step changes every weight that the first token depends on; in the last layer it attends by global projections alone.
    local = {f"encoder.layer.1.attention.self.{part}.{kind}" for part in ("query", "key", "value") for kind in ("weight", "bias")}
    assert {name for name in before if torch.equal(before[name], after[name])} == local

    served = load(tmp_path / "out")
    examples = [*data["validation"], make_example(3, Condition.ANSWERABLE)]
    screenings = served.screen([e.question for e in examples], [e.documents for e in examples])
    assert [s.truncated for s in screenings] == [()] * 5
    assert all(1950 < s.tokens <= 2048 for s in screenings[:4])
    assert screenings[4].tokens < 20
    served.batch_tokens = 1  # one set a batch, so none is padded
    alone = served.screen([e.question for e in examples], [e.documents for e in examples])
    assert [s.score for s in screenings] == pytest.approx([s.score for s in alone], abs=TOLERANCE["float32"])
    assert len({round(s.score, 6) for s in screenings}) == 5
