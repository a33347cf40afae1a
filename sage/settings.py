"""Settings of the Sage's training job, with the paper's names for its choices and the key of each in every error."""

from typing import Literal, Self

from pydantic import Field, model_validator

from rag.settings import Files, JobSettings, Settings
from sage.inputs import InputSettings
from sage.model import ModelSettings


class TrainSettings(Settings):
    """How the Sage is trained."""

    epochs: float = Field(gt=0)
    """Passes over the training rows."""
    learning_rate: float = Field(gt=0)
    """Peak learning rate."""
    warmup_ratio: float = Field(ge=0, lt=1)
    """Share of all steps in which the learning rate rises."""
    scheduler: Literal["linear", "cosine", "constant_with_warmup"]
    """Learning rate after the warm-up."""
    optimizer: str
    """Name of an optimizer of transformers' Trainer, such as `adamw_torch`."""
    batch_size: int = Field(ge=1)
    """Rows in one forward pass."""
    gradient_accumulation: int = Field(ge=1)
    """Forward passes in one optimizer step."""
    max_length: int = Field(ge=16)
    """Longest row in tokens, prompt and answer together; a longer one stops the run."""
    allow_cut_answers: bool = False
    """Leave out, and count, rows longer than `max_length` instead of stopping."""
    max_answerable: int | None = Field(default=None, ge=1)
    """Most answerable examples to train on; all of them where it is none."""
    answerable_per_unanswerable: float | None = Field(default=None, gt=0)
    """Answerable examples for each unanswerable one; no proportion where it is none."""
    answerable_per_conflict: float | None = Field(default=None, gt=0)
    """Answerable examples for each conflict one, for a Sage that has a string for it; no proportion where it is none."""
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them: less memory, more time."""
    eval_steps: int | None = Field(default=None, ge=1)
    """Optimizer steps between evaluations, and between checkpoints; once an epoch where it is none."""
    logging_steps: int = Field(default=10, ge=1)
    """Optimizer steps between loss reports."""
    patience: int | None = Field(default=None, ge=1)
    """Stop after this many evaluations without a lower validation loss; never where it is none."""


class SageSettings(Settings):
    """The Sage: what it is, what it reads, how it learns."""

    model: ModelSettings
    inputs: InputSettings
    train: TrainSettings

    @model_validator(mode="after")
    def _room_for_an_answer(self) -> Self:
        if self.train.max_length <= self.inputs.max_prompt_tokens:
            raise ValueError(
                f"sage.train.max_length={self.train.max_length} leaves no token for an answer after a prompt of "
                f"sage.inputs.max_prompt_tokens={self.inputs.max_prompt_tokens}; raise the first or lower the second"
            )
        return self


class DataSettings(Settings):
    """Files of Examples."""

    train: Files
    """One file, or several."""
    validation: Files
    """Chooses the checkpoint; shares no question with the training files."""
    limit: int | None = Field(default=None, ge=1)
    """Use the first N training examples, counted over all training files in their order; validation is read whole."""


class TrainJob(JobSettings):
    """Settings of this job; the run's folder becomes the checkpoint."""

    sage: SageSettings
    data: DataSettings
