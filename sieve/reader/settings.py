"""Settings of a Sieve that reads documents one by one; the values of the shipped one are in conf/sieve/smollm2_reader.yaml."""

from typing import Literal

from pydantic import Field

from rag.settings import Settings
from sieve.reader.agreement import AgreementSettings
from sieve.reader.inputs import InputSettings
from sieve.reader.model import ModelSettings
from sieve.threshold import ThresholdSettings


class TrainSettings(Settings):
    """How the reader is trained."""

    epochs: float = Field(gt=0)
    learning_rate: float = Field(gt=0)
    warmup_ratio: float = Field(ge=0, lt=1)
    batch_size: int = Field(ge=1)
    gradient_accumulation: int = Field(ge=1)
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them: less memory, more time."""
    scheduler: Literal["linear", "cosine", "constant_with_warmup"]
    weight_decay: float = Field(ge=0)
    patience: int = Field(ge=1)
    """Stop after this many evaluations without a better one."""
    evals_per_epoch: int = Field(ge=1)
    silent_per_answer: float | None = Field(default=None, gt=0)
    """At most so many documents without an answer for each with one; all where it is none."""


class ReaderSettings(Settings):
    """A file of conf/sieve with `form: reader`."""

    form: Literal["reader"]
    model: ModelSettings
    inputs: InputSettings
    train: TrainSettings
    agreement: AgreementSettings | None = None
    """How readings are compared; fitted on validation sets where it is none, and stored in the manifest."""
    threshold: ThresholdSettings = ThresholdSettings()
