"""Settings of a Sieve that reads documents one by one; the values of the shipped one are in conf/sieve/smollm2_reader.yaml."""

from typing import Literal

from pydantic import Field

from rag.settings import Settings
from sieve import training
from sieve.reader.agreement import AgreementSettings
from sieve.reader.inputs import InputSettings
from sieve.reader.model import ModelSettings
from sieve.threshold import ThresholdSettings


class TrainSettings(training.TrainSettings):
    """How the reader is trained."""

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
