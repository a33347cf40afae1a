"""What `eval.pipeline` asks for, as types; other jobs read it back from a run's folder."""

from typing import Any

from pydantic import Field

from eval.engine import Local
from eval.outcomes import Match
from eval.sweep import SweepTable
from rag.records import Text
from rag.settings import Component, InputPath, JobSettings, Target


class EvalJob(JobSettings):
    """Settings of this job."""

    dataset: Target
    """A function that returns Examples."""
    sieve: dict[str, Any] | None = None
    """What the Sieve's checkpoint was trained as, for systems that have one."""
    sage: dict[str, Any] | None = None
    """What the Sage's checkpoint was trained as, for systems that have one."""
    sieve_checkpoint: str | None = None
    """Folder that systems take the Sieve from, for configs to refer to."""
    sage_checkpoint: str | None = None
    """Folder that systems take the Sage from, for configs to refer to."""
    system: Target
    """A function or class that gives a `serve.systems.System`."""
    engine: Target = Component(Local, {})
    """Where the system predicts: a file of conf/engine, which gives an `eval.engine.Engine`."""
    predictions: InputPath | None = None
    """Score this file instead of running a system; the examples are those beside it, or the data set where there are none."""
    name: Text | None = None
    """What reports call the system; where it is none, by its module, or predictions that were made elsewhere by their file."""
    batch_size: int = Field(ge=1)
    """Examples given to the system, and written to disk, at a time."""
    match: Match
    """When an answer counts as correct."""
    resamples: int = Field(ge=1)
    """Bootstrap resamples, drawn by question."""
    show: int = Field(ge=0)
    """Examples to show in the terminal, balanced over conditions."""
    html: bool = False
    """Write `report.html`, a page that opens offline, and its pictures."""
    html_examples: int = Field(default=1000, ge=0)
    """Examples whose documents, prompt and output are in the page, at most; of all others it has the question and the verdict."""
    table: SweepTable | None = None
    """What becomes of the runs of a sweep; a single run has no use for it."""
