"""Settings of the Sieve's training job."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from rag.settings import Files, JobSettings
from sieve.data import DataSettings, Objective
from sieve.joint.settings import SieveSettings
from sieve.measure.audit import AuditSettings
from sieve.reader.settings import ReaderSettings

AnySettings = Annotated[SieveSettings | ReaderSettings, Field(discriminator="form")]
"""A file of conf/sieve; `form` says which."""


class TrainJob(JobSettings):
    """Settings of this job."""

    sieve: AnySettings
    objective: Objective = "conflict"
    """`conflict` against clean sets (`data.clean`); `unanswerable` against answerable sets, which makes no gate; or `threeway`, all three."""
    data: DataSettings
    init: Files | None = None
    """Sieve checkpoint to go on from. Of several readers, the mean of their weights (Wortsman et al. 2022): better than each of them where
    one was trained on from the other, and meaningless where they have no start in common."""
    audit: AuditSettings | None = None
    """How `data.audit` is audited."""

    @model_validator(mode="after")
    def _a_start_that_fits(self) -> Self:
        if self.sieve.train.epochs == 0 and self.init is None:
            raise ValueError("sieve.train.epochs=0 trains nothing and only fits what validation decides; set init to a checkpoint")
        if self.sieve.form == "joint" and self.init is not None and len(self.init) > 1:
            raise ValueError(f"init: the weights of {len(self.init)} checkpoints can be averaged for sieve.form=reader only; give one")
        return self

    @model_validator(mode="after")
    def _an_audit_has_settings_and_a_gate(self) -> Self:
        if self.data.audit and self.audit is None:
            raise ValueError("data.audit is set, but not how to audit; choose a file of conf/audit with audit=default")
        if self.data.audit and self.objective == "unanswerable":
            raise ValueError("data.audit: objective=unanswerable makes no gate, so there is nothing to audit; leave data.audit out")
        return self
