"""What `eval.profile` asks for, as types."""

from typing import Any

from pydantic import Field

from rag.models.base import Precision
from rag.records import Text
from rag.settings import Files, JobSettings


class ProfileJob(JobSettings):
    """Settings of this job."""

    sieve: dict[str, Any] | None = None
    """A file of conf/sieve: the base whose shape stands in where the profile has no checkpoint."""
    sage: dict[str, Any] | None = None
    """A file of conf/sage, likewise."""
    runs: Files | None = None
    """Folders of `eval.pipeline` whose systems are profiled together, on the same examples."""
    names: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """What to call them; the folders' names where it is none."""
    baseline: Files | None = None
    """Of `runs`, those that the others are set against; each against each where it is none."""
    models: tuple[Text, ...] | None = None
    """Of the footprint: checkpoint folders and names of shapes; the profile's Sieve and Sage where it is none."""
    limit: int | None = Field(default=None, ge=1)
    """Examples to time, drawn by the seed; all where it is none."""
    warmup: int = Field(ge=0)
    """Batches that each system answers, untimed, before the first timed one of a batch size; again after each start."""
    repeats: int = Field(ge=1)
    """Timed rounds over the examples at `batch_size`."""
    batch_size: int = Field(ge=1)
    """Examples given at a time where latency is measured."""
    batch_sizes: tuple[int, ...] = ()
    """Sizes that throughput is measured at, one round each."""
    flop_examples: int = Field(ge=0)
    """Examples whose floating-point operations are counted; it runs each stage on them once more."""
    tokens: int = Field(ge=1)
    """Of the footprint: tokens of one sequence; fewer where a model reads no more."""
    new_tokens: int = Field(ge=1)
    """Of the footprint: tokens that a generator writes."""
    sequences: int = Field(ge=1)
    """Of the footprint: sequences in the batch."""
    precision: Precision = "bf16"
    """Of the footprint: what random weights are in."""
    device: Text = "auto"
    """Of the footprint: where checkpoints are loaded."""
    resamples: int = Field(ge=1)
    """Bootstrap resamples, drawn by question."""
