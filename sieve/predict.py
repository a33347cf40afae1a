"""Load a trained Sieve of whichever form: scores for sets of documents, and leave-one-out scores that show which document is to blame."""

from pathlib import Path

from rag.checkpoint import read_manifest
from rag.errors import InputError
from rag.models.base import Precision
from sieve.extractive.load import load as load_extractive
from sieve.extractive.predict import ExtractiveSieve
from sieve.joint.predict import Embedding, Sieve
from sieve.joint.predict import load as load_joint
from sieve.joint.settings import SieveSettings
from sieve.screening import Removal, Screening
from sieve.settings import AnySettings

__all__ = ["AnySettings", "AnySieve", "Embedding", "ExtractiveSieve", "Removal", "Screening", "Sieve", "load"]

AnySieve = Sieve | ExtractiveSieve
"""Whatever `load` returns: both forms screen sets and leave documents out."""


def load(
    path: Path | str,
    *,
    expected: AnySettings | None = None,
    device: str = "auto",
    precision: Precision | None = None,
    batch_tokens: int = 16_384,
    gate: bool = True,
) -> AnySieve:
    """Load a checkpoint folder that `sieve.train` wrote, of whichever form.

    A folder with all weights serves alone; one with an adapter needs its base, which is loaded from where `expected` says, or else
    from where it was when the adapter was trained. `precision` overrides the one it was trained with. Scores of a checkpoint of
    `objective=unanswerable` are P(unanswerable), so it is no `gate`. Raises InputError for a folder that is not a Sieve checkpoint, that was
    not trained as `expected`, that is no gate where one is wanted, or whose base is missing or another one.
    """
    folder = Path(path)
    manifest = read_manifest(folder, "sieve")
    if manifest.threshold is None:
        raise InputError(f"{folder}: the manifest has no threshold; train the Sieve again")
    form = manifest.settings.get("form", "joint")
    if expected is not None and form != expected.form:
        raise InputError(
            f"{folder}: trained as form={form}, but the config has form={expected.form}; choose the sieve=... it was trained with"
        )
    if form == "extractive":
        base = None if expected is None else (expected.model.base, expected.model.revision)
        return load_extractive(folder, manifest, base=base, device=device, precision=precision, batch_tokens=batch_tokens)
    joint = expected if isinstance(expected, SieveSettings) else None
    return load_joint(folder, manifest, expected=joint, device=device, precision=precision, batch_tokens=batch_tokens, gate=gate)
