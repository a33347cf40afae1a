"""TRL sees the rows as we made them, trains the adapter alone, and resumes where it stopped."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl.trainer.sft_trainer import SFTTrainer

from rag.models.lora import LoraSettings
from rag.records import Example
from rag.tracking import Tracking
from sage.data import Row, make_row
from sage.inputs import InputSettings
from sage.model import Backbone, ModelSettings, load_backbone
from sage.settings import TrainSettings
from sage.trainer import build_trainer

# PEFT 0.21 asks for a name that transformers 5.24 deprecates: https://github.com/huggingface/peft/issues
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

BuildTrainer = Callable[..., SFTTrainer]


@pytest.fixture
def new_trainer(
    request: pytest.FixtureRequest,
    settings_for: Callable[..., ModelSettings],
    inputs: InputSettings,
    train_settings: TrainSettings,
    make_example: Callable[..., Example],
    tmp_path: Path,
) -> BuildTrainer:
    """Build a trainer on a base of its own with four different rows."""

    def build(base: str = "chatml_base", **changes: object) -> SFTTrainer:
        backbone = load_backbone(settings_for(request.getfixturevalue(base)))
        rows = make_rows(backbone, inputs, make_example)
        settings = train_settings.model_copy(update=changes)
        return build_trainer(backbone, LoraSettings(r=4, alpha=8), settings, rows, rows[:2], tmp_path, 0, Tracking({}))

    return build


def make_rows(backbone: Backbone, inputs: InputSettings, make_example: Callable[..., Example]) -> list[Row]:
    examples = [make_example(i, answer=answer) for i, answer in enumerate(["Lima", "no", None, "Cusco 007"])]
    return [make_row(example, backbone.tokenizer, inputs, backbone.ends[0]) for example in examples]


@pytest.mark.parametrize("base", ["chatml_base", "llama3_base"])
def test_every_prepared_row_teaches_the_answer_and_its_end_and_nothing_of_the_prompt(
    new_trainer: BuildTrainer,
    base: str,
    inputs: InputSettings,
    make_example: Callable[..., Example],
    settings_for: Callable[..., ModelSettings],
    request: pytest.FixtureRequest,
) -> None:
    """Pitfalls B2 and B4: read from the dataset that TRL prepared, and from the batch that it collates."""
    trainer = new_trainer(base)
    backbone = load_backbone(settings_for(request.getfixturevalue(base)))
    made = make_rows(backbone, inputs, make_example)
    prepared = trainer.train_dataset
    assert len(prepared) == len(made)
    for row, source in zip(prepared, made, strict=True):
        taught = [label for label in row["labels"] if label != -100]
        assert row["input_ids"] == source["input_ids"]
        assert [label != -100 for label in row["labels"]] == [bit == 1 for bit in source["completion_mask"]]
        assert len(taught) >= 2
        assert row["labels"][-1] == backbone.ends[0]
    batch = trainer.data_collator([prepared[0], prepared[3]])
    assert batch["labels"][0].tolist()[: len(made[0]["input_ids"])] == prepared[0]["labels"]
    padding = batch["attention_mask"] == 0
    assert padding.any()
    assert set(batch["labels"][padding].tolist()) == {-100}
    assert set(batch["input_ids"][padding].tolist()) == {backbone.tokenizer.pad_token_id}


def test_training_changes_every_adapter_weight_and_no_base_weight(new_trainer: BuildTrainer) -> None:
    trainer = new_trainer(epochs=2, warmup_ratio=0.0)
    before = {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}
    trainer.train()
    adapters = 0
    for name, parameter in trainer.model.named_parameters():
        adapted = "lora_" in name
        adapters += adapted
        assert parameter.requires_grad == adapted
        assert torch.equal(parameter, before[name]) != adapted, name
    assert adapters == 2 * 7 * 2  # A and B, seven linear layers, two blocks


def test_evaluation_keeps_no_logits(new_trainer: BuildTrainer) -> None:
    """Pitfall B6: the loss is all that evaluation computes."""
    trainer = new_trainer()
    inputs = next(iter(trainer.get_eval_dataloader()))
    loss, logits, labels = trainer.prediction_step(trainer.model, inputs, trainer.args.prediction_loss_only)
    assert loss.ndim == 0
    assert (logits, labels) == (None, None)


def test_two_passes_of_one_row_give_the_loss_of_one_pass_of_two(new_trainer: BuildTrainer) -> None:
    losses = []
    for batch_size, accumulation in ((4, 1), (1, 4)):
        trainer = new_trainer(batch_size=batch_size, gradient_accumulation=accumulation, epochs=3)
        trainer.train()
        losses.append([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    assert len(losses[0]) == 3
    assert losses[0] == pytest.approx(losses[1], abs=2e-4)


class StopAt(TrainerCallback):
    """Stops a run as a kill would, after the checkpoint of one step is on disk."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object) -> None:
        control.should_training_stop = state.global_step >= self.step


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(new_trainer: BuildTrainer, tmp_path: Path) -> None:
    """Pitfall C3: adapter, optimizer, scheduler, step and data order come back."""

    def outcome(trainer: SFTTrainer) -> tuple[int, list[float]]:
        return trainer.state.global_step, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    straight = new_trainer(epochs=2)
    trainable = straight.model.num_parameters(only_trainable=True)
    straight.train()
    for path in tmp_path.iterdir():
        path.rename(tmp_path.parent / f"straight-{path.name}")

    first = new_trainer(epochs=2)
    first.add_callback(StopAt(2))
    first.train()
    assert first.state.global_step == 2
    second = new_trainer(epochs=2)
    second.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert second.model.num_parameters(only_trainable=True) == trainable > 0
    assert outcome(second)[0] == outcome(straight)[0] == 4
    assert outcome(second)[1] == pytest.approx(outcome(straight)[1], abs=1e-4)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_loss_of_the_answers_alone_is_the_loss_that_trl_computes(new_trainer: BuildTrainer, mode: str) -> None:
    trainer = new_trainer()
    trainer.model.train(mode == "train")
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(4)])
    assert len(set(batch["attention_mask"].sum(1).tolist())) > 1
    for count in (None, 40):
        ours = trainer.compute_loss(trainer.model, dict(batch), num_items_in_batch=count)
        theirs = SFTTrainer.compute_loss(trainer, trainer.model, dict(batch), num_items_in_batch=count)
        assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-4)
    accuracies = trainer._metrics[mode]["mean_token_accuracy"]
    assert accuracies[0] == pytest.approx(accuracies[1])
