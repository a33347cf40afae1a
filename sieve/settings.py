"""Settings of the Sieve's training job."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from rag.settings import InputPath, JobSettings
from sieve.data import DataSettings, Objective
from sieve.extractive.settings import ExtractiveSettings
from sieve.joint.settings import SieveSettings
from sieve.measure.audit import AuditSettings

AnySettings = Annotated[SieveSettings | ExtractiveSettings, Field(discriminator="form")]
"""A file of conf/sieve; `form` says which."""


class TrainJob(JobSettings):
    """Settings of this job."""

    sieve: AnySettings
    objective: Objective = "conflict"
    """`conflict` against clean sets (`data.clean`); `unanswerable` against answerable sets, which makes no gate; or `threeway`, all three."""
    data: DataSettings
    init: InputPath | None = None
    """Sieve checkpoint to go on from."""
    audit: AuditSettings | None = None
    """How `data.audit` is audited."""

    @model_validator(mode="after")
    def _a_start_that_fits(self) -> Self:
        if self.sieve.train.epochs == 0 and self.init is None:
            raise ValueError("sieve.train.epochs=0 trains nothing and only fits what validation decides; set init to a checkpoint")
        return self

    @model_validator(mode="after")
    def _an_audit_has_settings_and_a_gate(self) -> Self:
        if self.data.audit and self.audit is None:
            raise ValueError("data.audit is set, but not how to audit; choose a file of conf/audit with audit=default")
        if self.data.audit and self.objective == "unanswerable":
            raise ValueError("data.audit: objective=unanswerable makes no gate, so there is nothing to audit; leave data.audit out")
        return self
