"""Settings of the Sieve's training job; the paper's values are in conf/sieve/longformer_base_4096.yaml."""

from typing import Literal

from pydantic import Field

from rag.settings import InputPath, JobSettings, Settings
from sieve.data import DataSettings
from sieve.inputs import InputSettings
from sieve.model import ModelSettings


class TrainSettings(Settings):
    """How the Sieve is trained."""

    epochs: float = Field(gt=0)
    learning_rate: float = Field(gt=0)
    warmup_ratio: float = Field(ge=0, lt=1)
    batch_size: int = Field(ge=1)
    gradient_accumulation: int = Field(ge=1)
    scheduler: Literal["linear", "cosine", "constant_with_warmup"]
    weight_decay: float = Field(ge=0)
    patience: int = Field(ge=1)
    """Stop after this many evaluations without a better one."""
    evals_per_epoch: int = Field(ge=1)
    best_metric: Literal["loss", "accuracy"]
    """Validation metric that picks the checkpoint."""


class SieveSettings(Settings):
    """One file of conf/sieve."""

    model: ModelSettings
    inputs: InputSettings
    train: TrainSettings


class TrainJob(JobSettings):
    """Settings of this job."""

    sieve: SieveSettings
    data: DataSettings
    init: InputPath | None = None
    """Sieve checkpoint to go on from."""
