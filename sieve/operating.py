"""What each threshold would do on given data (paper 002, table 10), and how well the scores are calibrated.

python -m sieve.operating checkpoint=checkpoints/local/sieve data=data/demo/validation.jsonl
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, field_validator
from rich import box
from rich.console import Console
from rich.table import Table

from conf.job import job
from rag import card
from rag.calibration import Bin, expected_calibration_error, reliability, rescale
from rag.checkpoint import MANIFEST, hashes, read_manifest, sha256
from rag.errors import InputError
from rag.jsonl import read_files
from rag.provenance import command, provenance
from rag.records import Record, Text
from rag.settings import InputPath, JobSettings
from sieve.measure.audit_report import number, numbers
from sieve.measure.groups import should_flag
from sieve.measure.intervals import auc_figure, macro_f1
from sieve.measure.scores import readable, request, require_same_inputs, score_all
from sieve.measure.settings import MeasureSettings
from sieve.predict import load
from sieve.threshold import rates

HEADER = ("threshold", "Macro-F1", "interval", "TPR", "TNR", "FPR", "FNR")


class OperatingJob(JobSettings, MeasureSettings):
    """Settings of this job."""

    checkpoint: InputPath
    """Folder that `sieve.train` wrote."""
    thresholds: tuple[float, ...] = Field(min_length=1)
    """Thresholds of the table, from 0 to 1; the stored one is added."""
    bins: int = Field(ge=2)
    """Bins of equal width for calibration."""

    @field_validator("thresholds")
    @classmethod
    def _are_scores(cls, thresholds: tuple[float, ...]) -> tuple[float, ...]:
        if beyond := [threshold for threshold in thresholds if not 0 <= threshold <= 1]:
            raise ValueError(f"expected numbers from 0 to 1, as scores are, got {', '.join(map(str, beyond))}")
        return thresholds


class Point(Record):
    """One threshold: a set is flagged when its score is at least this. Rates are none where their class is absent."""

    threshold: float
    stored: bool
    """Whether it is the one that the checkpoint uses."""
    macro_f1: float
    low: float | None
    high: float | None
    tpr: float | None
    tnr: float | None
    fpr: float | None
    fnr: float | None


class Calibration(Record):
    """How scores at one temperature agree with frequencies."""

    temperature: float
    error: float
    """Expected calibration error, from 0 to 1."""
    bins: tuple[Bin, ...]


class Operating(Record):
    """The content of `operating.json`."""

    sets: int
    distracted: int
    questions: int
    without_documents: int
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    points: tuple[Point, ...]
    before: Calibration
    """At temperature 1."""
    after: Calibration
    """At the stored temperature, as served."""
    resamples: int
    seed: int
    data: dict[str, Text]
    provenance: dict[str, Text]


class Labelled(NamedTuple):
    """Scores as served, with what they should say."""

    scores: list[float]
    distracted: list[bool]
    questions: list[str]


def run(settings: OperatingJob, out: Path) -> Operating:
    """Score the examples and write `operating.json`, `operating.md`, `rates.png` and `reliability.png` to `out`.

    Scores are written as they come; repeated with the same `out`, the job calls no model for those it has. The pictures need the
    extra `figures` and are left out with a word where it is not installed. Raises InputError for a checkpoint or examples it cannot use.
    """
    manifest = read_manifest(settings.checkpoint, "sieve")
    data = hashes(settings.data)
    require_same_inputs(out, {MANIFEST: sha256(settings.checkpoint / MANIFEST), **data})
    if manifest.threshold is None:
        raise InputError(f"{settings.checkpoint}: the manifest has no threshold; train the Sieve again")
    kept, blank = readable(read_files(settings.data))
    asked = [request(f"set:{example.id}", example.question, example.documents) for example in kept]
    sieve = load(settings.checkpoint, device=settings.device)
    by_key = score_all(sieve, asked, out / "scores.jsonl", batch_size=settings.batch_size, title="sets")
    rows = Labelled([by_key[a.key].score for a in asked], [should_flag(e) for e in kept], [e.question_id for e in kept])
    area = auc_figure(*rows, resamples=settings.resamples, seed=settings.seed)
    raw = rescale(rows.scores, manifest.temperature, 1.0)
    result = Operating(
        sets=len(kept),
        distracted=sum(rows.distracted),
        questions=len(set(rows.questions)),
        without_documents=blank,
        auc=area.value,
        auc_low=area.low,
        auc_high=area.high,
        points=points(rows, settings.thresholds, manifest.threshold, settings.resamples, settings.seed),
        before=calibration(raw, rows.distracted, 1.0, settings.bins),
        after=calibration(rows.scores, rows.distracted, manifest.temperature, settings.bins),
        resamples=settings.resamples,
        seed=settings.seed,
        data=data,
        provenance={"command": command("sieve.operating"), "checkpoint": str(settings.checkpoint), **provenance()},
    )
    (out / "operating.json").write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (out / "operating.md").write_text(markdown(result), encoding="utf-8")
    stored = next(point for point in result.points if point.stored)
    at_threshold = {name: getattr(stored, name) for name in ("macro_f1", "tpr", "fpr")}
    settings.tracking.log({"auc": result.auc, "calibration_error": result.after.error, **at_threshold}, result.sets)
    for name in ("operating.json", "operating.md"):
        settings.tracking.file(out / name)
    console = Console(width=120)
    table = Table(*HEADER, box=box.SIMPLE_HEAD, pad_edge=False)
    for cells in table_rows(result):
        table.add_row(*cells)
    console.print(summary(result), table)
    try:
        from sieve.measure.figures import plot_rates, plot_reliability
    except ImportError:
        console.print("no pictures: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
    else:
        plot_rates(rows.scores, rows.distracted, manifest.threshold, out / "rates.png")
        plot_reliability({"temperature 1": result.before.bins, "as served": result.after.bins}, out / "reliability.png")
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return result


def points(rows: Labelled, thresholds: Sequence[float], stored: float, resamples: int, seed: int) -> tuple[Point, ...]:
    """The thresholds in rising order, the stored one among them."""
    return tuple(_point(rows, threshold, threshold == stored, resamples, seed) for threshold in sorted({*thresholds, stored}))


def _point(rows: Labelled, threshold: float, stored: bool, resamples: int, seed: int) -> Point:
    at = rates(rows.scores, rows.distracted, threshold)
    figure = macro_f1([score >= threshold for score in rows.scores], rows.distracted, rows.questions, resamples=resamples, seed=seed)
    tnr, fnr = (None if rate is None else 1 - rate for rate in (at.fpr, at.tpr))
    return Point(
        threshold=threshold, stored=stored, macro_f1=at.macro_f1, low=figure.low, high=figure.high, tpr=at.tpr, tnr=tnr, fpr=at.fpr, fnr=fnr
    )


def calibration(scores: Sequence[float], distracted: Sequence[bool], temperature: float, bins: int) -> Calibration:
    """Error and bins of scores at a temperature."""
    error = expected_calibration_error(scores, distracted, bins)
    return Calibration(temperature=temperature, error=error, bins=tuple(reliability(scores, distracted, bins)))


def summary(result: Operating) -> str:
    """What was measured, in one paragraph."""
    return (
        f"{result.distracted} distracted sets and {result.sets - result.distracted} others of {result.questions} questions. "
        f"AUC {number(result.auc)} ({numbers(result.auc_low, result.auc_high)}). Expected calibration error {result.before.error:.3f} at "
        f"temperature 1, {result.after.error:.3f} at the stored {result.after.temperature:.3g}. Intervals: 95 %, bootstrap by question, "
        f"{result.resamples} resamples, seed {result.seed}. A score equal to the threshold is flagged."
    )


def table_rows(result: Operating) -> list[tuple[str, ...]]:
    """Cells of the table under `HEADER`."""
    return [
        (
            f"{point.threshold:.4g}{' (stored)' if point.stored else ''}",
            number(point.macro_f1),
            numbers(point.low, point.high),
            *map(number, (point.tpr, point.tnr, point.fpr, point.fnr)),
        )
        for point in result.points
    ]


def markdown(result: Operating) -> str:
    """The tables as a Markdown document."""
    sections = {"": summary(result), "Rates by threshold": card.table(HEADER, table_rows(result))}
    for name, part in (("Reliability at temperature 1", result.before), ("Reliability as served", result.after)):
        cells = [(f"{b.low:.2f} to {b.high:.2f}", str(b.n), f"{b.mean_score:.3f}", f"{b.frequency:.3f}") for b in part.bins]
        sections[name] = card.table(("scores", "sets", "mean score", "distracted"), cells)
    sections["Where the numbers come from"] = card.table(("", ""), [*result.provenance.items(), *result.data.items()])
    return card.render("Operating points of a Sieve", sections)


main = job(run, OperatingJob, config_name="sieve_operating")

if __name__ == "__main__":
    main()
