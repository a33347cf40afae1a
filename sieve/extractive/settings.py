"""Settings of an extractive Sieve; the values of the shipped one are in conf/sieve/extractive_minilm.yaml."""

from typing import Literal

from pydantic import Field

from rag.models.lora import LoraSettings
from rag.settings import Settings
from sieve import training
from sieve.extractive.decision import DecisionSettings
from sieve.extractive.inputs import InputSettings
from sieve.extractive.model import ModelSettings
from sieve.threshold import ThresholdSettings


class TrainSettings(training.TrainSettings):
    """How the reader is trained."""

    validation_rows: int = Field(default=2000, ge=1)
    """Windows of the validation data, drawn by the seed, that each evaluation reads."""


class JudgeSettings(Settings):
    """How the judge is trained: an adapter on the reader's encoder."""

    lora: LoraSettings
    train: training.TrainSettings
    documents: int = Field(ge=1)
    """Training documents, drawn by the seed, that the reader reads to find claims in."""
    validation_documents: int = Field(default=1500, ge=1)
    """The same of the validation data."""
    pairs: int = Field(default=0, ge=0)
    """Pairs of sentences of `data.pairs` that it learns from too, drawn by the seed."""


class ExtractiveSettings(Settings):
    """A file of conf/sieve with `form: extractive`."""

    form: Literal["extractive"]
    model: ModelSettings
    inputs: InputSettings
    train: TrainSettings
    judge: JudgeSettings
    decision: DecisionSettings | None = None
    """How readings become a score; fitted on validation sets where it is none, and stored in the manifest."""
    threshold: ThresholdSettings = ThresholdSettings()
