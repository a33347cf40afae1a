"""Withdraw a certificate when live scores no longer look like those it rests on: exit status 0 holds, 3 withdrawn, 4 undecided.

python -m eval.drift certificate=runs/certificate live=predictions.jsonl
"""

import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from random import Random

from pydantic import Field
from rich.console import Console
from scipy.stats import fisher_exact, ks_2samp

from conf.job import job
from eval.certainty import certificate as record
from eval.certainty.certificate import LOOKS, WITHDRAWN, Certificate, Withdrawn
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import Journal, iter_records
from rag.records import Prediction, Record, Text
from rag.rounding import same, settle
from rag.settings import InputPath, JobSettings

_EXACT = 10_000
"""Scores on one side up to which the Kolmogorov-Smirnov test is exact."""


class Verdict(StrEnum):
    """What a look at live scores ends in."""

    HOLDS = "holds"
    WITHDRAWN = "withdrawn"
    UNDECIDED = "undecided"


EXIT_STATUS = {Verdict.HOLDS: 0, Verdict.WITHDRAWN: 3, Verdict.UNDECIDED: 4}
"""For a scheduler; 1 is a crash and 2 input that cannot be used."""


class DriftJob(JobSettings):
    """Settings of this job."""

    certificate: InputPath
    """Folder that `eval.certify` wrote; looks and a withdrawal are written into it."""
    live: InputPath
    """JSONL of predictions."""
    level: float = Field(gt=0, lt=1)
    """Chance of withdrawing for nothing, over all looks together."""
    least: int = Field(ge=1)
    """Live questions with a score below which nothing is decided."""


class Look(Record):
    """One look at live scores: the content of `drift.json`, and a line of the certificate's `looks.jsonl`."""

    verdict: Verdict
    said: Text
    look: int
    """Which look it is that decided something, from 1; that of an undecided one is the next to come."""
    level: float
    """What this look may spend of the level of all looks."""
    questions: int
    """Live questions."""
    scored: int
    """Those of them whose set has a Sieve score."""
    distance: float | None = None
    """Largest distance between both distributions of scores (Kolmogorov-Smirnov); none where nothing was tested."""
    p_distance: float | None = None
    flagged_before: float | None = None
    """Share of the certificate's scores at or above its threshold."""
    flagged_live: float | None = None
    p_flagged: float | None = None
    visible: float | None = None
    """A distance from which on this look would have withdrawn the certificate, about."""
    data: Text
    """SHA-256 of the live predictions."""
    date: Text


def look(settings: DriftJob, out: Path) -> Look:
    """Compare live scores with the certificate's, and write `drift.json` and a picture to `out`; a withdrawal goes beside the certificate.

    Raises InputError for a folder without a certificate that certifies something, and for live predictions at another threshold.
    """
    certificate = record.read(settings.certificate)
    if certificate.threshold is None:
        raise InputError(f"{settings.certificate}: nothing was certified there, so that nothing can be withdrawn")
    if not certificate.scores:
        raise InputError(f"{settings.certificate}: the certified system has no Sieve, and without its scores there is nothing to compare")
    live = list(iter_records(settings.live, Prediction))
    _require_threshold(live, certificate.threshold)
    drawn = one_each(live, settings.seed)
    scores = sorted(prediction.sieve_score for prediction in drawn if prediction.sieve_score is not None)
    earlier = record.withdrawn(settings.certificate)
    found = _compare(settings, certificate, scores, len(drawn), _looks(settings.certificate) + 1)
    if earlier is not None:
        found = found.model_copy(
            update={"verdict": Verdict.WITHDRAWN, "said": f"Withdrawn already, on {earlier.date}: {earlier.reason} Certify anew."}
        )
    else:
        Journal(settings.certificate / LOOKS).append([found])
        if found.verdict is Verdict.WITHDRAWN:
            note = Withdrawn(reason=found.said, date=found.date, look=found.look)
            record.write_record(settings.certificate / WITHDRAWN, note)
    record.write_record(out / "drift.json", found)
    seen = {name: getattr(found, name) for name in ("distance", "p_distance", "flagged_before", "flagged_live", "p_flagged", "visible")}
    settings.tracking.log({"withdrawn": found.verdict is Verdict.WITHDRAWN, **seen}, found.look)
    settings.tracking.file(out / "drift.json")
    console = Console(width=120)
    console.print(f"{found.verdict.value}: {found.said}", markup=False, highlight=False)
    if scores:
        _draw(certificate, scores, out / "drift.png", console)
    return found


def one_each(live: Sequence[Prediction], seed: int) -> list[Prediction]:
    """One prediction for each question, drawn by the seed, as the certificate's own scores were."""
    by_question: dict[str, list[Prediction]] = {}
    for prediction in sorted(live, key=lambda prediction: prediction.id):
        by_question.setdefault(prediction.question_id, []).append(prediction)
    return [Random(f"{seed}:any:{question}").choice(of) for question, of in sorted(by_question.items())]


def spend(level: float, number: int) -> float:
    """What look `number` (from 1) may spend: level / (n (n + 1)), which adds up to the level over all looks there will ever be."""
    return level / (number * (number + 1))


def compare(before: Sequence[float], live: Sequence[float], threshold: float) -> tuple[float, float, float]:
    """Largest distance between the two distributions, its p-value, and that of a changed share at or above the threshold (Fisher).

    Both are valid where scores repeat, the first conservatively so.
    """
    method = "exact" if max(len(before), len(live)) <= _EXACT else "asymp"
    distance = ks_2samp(before, live, method=method)
    flagged = [sum(score >= threshold for score in scores) for scores in (before, live)]
    table = [[flagged[0], len(before) - flagged[0]], [flagged[1], len(live) - flagged[1]]]
    return float(distance.statistic), float(distance.pvalue), float(fisher_exact(table).pvalue)


def _compare(settings: DriftJob, certificate: Certificate, scores: Sequence[float], questions: int, number: int) -> Look:
    # Live scores may come from another processor than the certificate's: where the two are one but for rounding, nothing drifted.
    marks = [*certificate.scores, certificate.threshold or 0.0]
    before, scores, [threshold] = settle(certificate.scores, marks), settle(scores, marks), settle(marks[-1:], marks)
    allowed = spend(settings.level, number)
    known = Look(
        verdict=Verdict.UNDECIDED,
        said=f"{len(scores)} live questions with a score; at least {settings.least} are needed.",
        look=number,
        level=allowed,
        questions=questions,
        scored=len(scores),
        data=sha256(settings.live),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if len(scores) < settings.least:
        return known
    distance, p_distance, p_flagged = compare(before, scores, threshold)
    shares = [sum(score >= threshold for score in of) / len(of) for of in (before, scores)]
    drifted = min(p_distance, p_flagged) <= allowed / 2
    visible = math.sqrt(-math.log(allowed / 4) / 2 * (len(before) + len(scores)) / (len(before) * len(scores)))
    told = (
        f"Scores of {len(scores)} live questions lie up to {distance:.3f} from those of the {len(before)} certified on (p {p_distance:.2g}); "
        f"{shares[1]:.1%} are flagged, {shares[0]:.1%} were (p {p_flagged:.2g}); look {number} may spend {allowed:.2g}."
    )
    said = (
        f"{told} The certificate is withdrawn."
        if drifted
        else f"{told} A distance below about {min(1.0, visible):.2f} would not have shown."
    )
    return known.model_copy(
        update={
            "verdict": Verdict.WITHDRAWN if drifted else Verdict.HOLDS,
            "said": said,
            "distance": distance,
            "p_distance": p_distance,
            "flagged_before": shares[0],
            "flagged_live": shares[1],
            "p_flagged": p_flagged,
            "visible": visible,
        }
    )


def _looks(folder: Path) -> int:
    """Earlier looks that decided something; undecided ones tested nothing and spent nothing."""
    path = folder / LOOKS
    return sum(look.verdict is not Verdict.UNDECIDED for look in iter_records(path, Look)) if path.is_file() else 0


def _require_threshold(live: Sequence[Prediction], threshold: float) -> None:
    if other := {p.threshold for p in live if p.threshold is not None and not same(p.threshold, threshold, "float64")}:
        raise InputError(
            f"live: expected predictions at the certified threshold {threshold:.17g}, got {', '.join(map(str, sorted(other)))}; the certificate "
            "says nothing of another one: serve with system.threshold set to the certified one"
        )


def _draw(certificate: Certificate, scores: Sequence[float], path: Path, console: Console) -> None:
    try:
        from eval.certainty.figures import plot_drift
    except ImportError:
        console.print("no picture: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
        return
    plot_drift(certificate.scores, scores, certificate.threshold or 0.0, path)


def run(settings: DriftJob, out: Path) -> None:
    """`look`, and its verdict as the exit status of the process."""
    if status := EXIT_STATUS[look(settings, out).verdict]:
        sys.exit(status)


main = job(run, DriftJob, config_name="eval_drift")

if __name__ == "__main__":
    main()
