"""A certificate on disk: what was certified, for which system, on which data, and whether it was withdrawn."""

from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from rag.errors import InputError
from rag.jsonl import describe
from rag.records import Record, Text

CERTIFICATE: Final = "certificate.json"
WITHDRAWN: Final = "withdrawn.json"
LOOKS: Final = "looks.jsonl"


class Risk(Record):
    """One of the two risks at one point."""

    events: int
    n: int
    """Sets of distinct questions."""
    rate: float | None
    """None where n is 0."""
    p_value: float
    """Of "the rate is above the limit": exact binomial."""
    bound: float
    """One-sided Clopper-Pearson bound of this point alone, at 1 - delta."""


class Tested(Record):
    """One operating point that was tested."""

    threshold: float
    least_confidence: float | None
    """Answers below this were held back; none: all were given."""
    wrong: Risk
    """Wrong answers among the answers given."""
    refused: Risk
    """Answerable sets that got no answer."""
    certified: bool


class Required(Record):
    """What it would take where the data did not certify, if the rates observed are the true ones."""

    threshold: float
    least_confidence: float | None
    answers: int
    clean: int
    questions: int
    """Labelled questions in all, with those to learn the order of points from."""


class Certificate(Record):
    """The content of `certificate.json`."""

    certified: bool
    threshold: float | None
    """The point to serve with; none where nothing was certified."""
    least_confidence: float | None
    """Answers below this are to be held back; none: all are given."""
    alpha: float
    """Limit of wrong answers among the answers given."""
    beta: float
    """Limit of answerable sets without an answer."""
    delta: float
    """Largest chance that any point marked as certified breaks a limit."""
    said: Text
    """The result in words."""
    points: tuple[Tested, ...]
    """In the order in which they were tested; the first that fails ends the test."""
    required: Required | None = None
    """Where nothing was certified and a larger number of examples would do."""
    check: Tested | None = None
    """The point on a run that played no part in certifying it; `certified` says whether both of its rates are within their limits."""
    questions: int
    learnt_on: int
    """Questions that the points and their order were learnt from."""
    tested_on: int
    reach: float
    """The highest threshold that the run can tell about."""
    match: Text
    """When an answer counted as correct."""
    seed: int
    scores: tuple[float, ...]
    """Sieve scores of one set of each question, sorted: what live scores are compared with."""
    without_score: int = Field(ge=0)
    """Questions whose set had none."""
    data: dict[str, Text]
    """SHA-256 of the examples and predictions."""
    system: dict[str, Text]
    """Checkpoints with the SHA-256 of their manifests, the system and the commit that ran it."""
    calibration: dict[str, float | None] = Field(default_factory=dict)
    """How far confidences can be trusted, by the names of the report's rows."""
    provenance: dict[str, Text]


class Withdrawn(Record):
    """The content of `withdrawn.json`: a certificate beside it is no longer to be relied on."""

    reason: Text
    date: Text
    """ISO 8601, UTC."""
    look: int


def write(folder: Path, certificate: Certificate) -> None:
    """Write `certificate.json`. Raises InputError when the disk refuses."""
    write_record(folder / CERTIFICATE, certificate)


def write_record(path: Path, record: Record) -> None:
    """Write one record as JSON, complete or not at all. Raises InputError when the disk refuses."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{path}: could not write ({error.strerror})") from error


def read(folder: Path) -> Certificate:
    """Read a certificate. Raises InputError for a folder without one, and for one that does not fit."""
    path = folder / CERTIFICATE
    if not path.is_file():
        raise InputError(f"{folder}: expected a folder that eval.certify wrote, found no {CERTIFICATE} in it")
    try:
        return Certificate.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Certificate)}") from error


def withdrawn(folder: Path) -> Withdrawn | None:
    """Why and when the certificate of a folder was withdrawn; none where it was not."""
    path = folder / WITHDRAWN
    if not path.is_file():
        return None
    try:
        return Withdrawn.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Withdrawn)}") from error
