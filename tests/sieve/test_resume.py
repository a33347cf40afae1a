"""Pitfall C3: training goes on as if it had never stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

import sieve.train
from rag.models.lora import LoraSettings
from sieve.settings import TrainJob


class KilledAt(TrainerCallback):
    """A kill after the checkpoint of one step is on disk."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object) -> None:
        if state.global_step == self.step:
            raise KeyboardInterrupt


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the job with the loss of every step logged, and return its trainer; where it is killed, when that has happened."""

    def train(job: TrainJob, out: Path, killed_at: int | None = None) -> Any:
        built: list[Any] = []

        def watched(**arguments: Any) -> Any:
            trainer = Trainer(**arguments)
            trainer.args.logging_steps = 1
            if killed_at is not None:
                trainer.add_callback(KilledAt(killed_at))
            built.append(trainer)
            return trainer

        monkeypatch.setattr("sieve.joint.trainer.Trainer", watched)
        if killed_at is None:
            sieve.train.train(job, out)
        else:
            with pytest.raises(KeyboardInterrupt):
                sieve.train.train(job, out)
        [trainer] = built
        return trainer

    return train


def losses(trainer: Any) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def trainable(trainer: Any) -> int:
    return sum(parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad)


@pytest.mark.parametrize("lora", [LoraSettings(r=4, alpha=8), None], ids=["adapter", "all weights"])
def test_two_steps_and_two_more_are_four_steps(
    base: Callable[[str], Path], job_in: Callable[..., TrainJob], run: Callable[..., Any], tmp_path: Path, lora: LoraSettings | None
) -> None:
    job = job_in(tmp_path, base("llama"), lora=lora, epochs=1, evals_per_epoch=2)
    straight = run(job, tmp_path / "straight")
    assert run(job, tmp_path / "out", killed_at=2).state.global_step == 2
    resumed = run(job, tmp_path / "out")
    assert trainable(resumed) == trainable(straight) > 0
    assert resumed.state.global_step == straight.state.global_step == 4
    assert len(losses(straight)) == 4
    assert losses(resumed) == pytest.approx(losses(straight), abs=1e-4)


def test_training_ends_when_its_time_is_up_with_an_evaluation(
    base: Callable[[str], Path], job_in: Callable[..., TrainJob], run: Callable[..., Any], tmp_path: Path
) -> None:
    job = job_in(tmp_path, base("llama"), lora=LoraSettings(r=4, alpha=8), epochs=50, minutes=1e-9)
    trainer = run(job, tmp_path / "out")
    assert trainer.state.global_step == 1
    assert [entry["step"] for entry in trainer.state.log_history if "eval_loss" in entry] == [1]


@pytest.mark.parametrize(("key", "value"), [("warmup_ratio", 0.05), ("scheduler", "linear")])
def test_a_budget_of_time_needs_one_learning_rate(key: str, value: object, job_in: Callable[..., TrainJob], tmp_path: Path) -> None:
    settings = job_in(tmp_path, tmp_path).sieve.train
    plain = {**settings.model_dump(), "minutes": 5.0, "warmup_ratio": 0.0, "scheduler": "constant_with_warmup"}
    assert type(settings).model_validate(plain).minutes == 5
    with pytest.raises(ValueError, match="set sieve.train.warmup_ratio=0 and sieve.train.scheduler=constant_with_warmup"):
        type(settings).model_validate({**plain, key: value})
