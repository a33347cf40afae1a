"""Settings of the paper's form of Sieve; its values are in conf/sieve/longformer_base_4096.yaml."""

from typing import Literal

from rag.settings import Settings
from sieve import training
from sieve.joint.inputs import InputSettings
from sieve.joint.model import ModelSettings
from sieve.threshold import ThresholdSettings


class TrainSettings(training.TrainSettings):
    """How a Sieve of the paper's form is trained."""

    best_metric: Literal["loss", "accuracy"]
    """Validation metric that picks the checkpoint."""


class SieveSettings(Settings):
    """A file of conf/sieve whose form is the paper's: the whole set, or each pair of documents, is one sequence."""

    form: Literal["joint"] = "joint"
    model: ModelSettings
    inputs: InputSettings
    train: TrainSettings
    threshold: ThresholdSettings = ThresholdSettings()
