"""Certify operating points: at most alpha of the answers wrong and at most beta of the answerable sets refused, with confidence 1 - delta.

python -m eval.certify calibration=RUN test=RUN alpha=0.1 beta=0.2 delta=0.1
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, model_validator
from rich.console import Console

from conf.job import job, saved
from eval.certainty import certificate as record
from eval.certainty.certificate import Certificate, Required, Risk, Tested
from eval.certainty.confidence import Half, Readable, Row, Source, readable, row_of, temper
from eval.certainty.intervals import Certain, certainty
from eval.certainty.learn_then_test import Certification, Limits, Need, count, deal, in_order, plan, propose, run_tests, tail, upper_bound
from eval.certainty.replies import Point, Run, one_each, read_pairs, require_reach, run_of
from eval.certainty.report import markdown, said
from eval.certainty.risk import aurc, risk_coverage
from eval.outcomes import Match, outcome
from eval.predict import EXAMPLES, PREDICTIONS
from eval.settings import EvalJob
from rag.calibration import reliability
from rag.checkpoint import MANIFEST, sha256
from rag.errors import InputError
from rag.jsonl import read_json
from rag.provenance import command, provenance
from rag.records import Example, Prediction, RetrievalState
from rag.settings import Component, Files, JobSettings

LEVEL = 0.95
"""Of the intervals of the calibration figures."""


class CertifyJob(JobSettings):
    """Settings of this job."""

    calibration: Files
    """Folder of a run, or `[replies,scores]`: one without a Sieve, and one on the same examples whose Sieve scores are taken."""
    test: Files | None = None
    """The same of a run on other questions."""
    alpha: float = Field(gt=0, lt=1)
    """Largest share of wrong answers among the answers given."""
    beta: float = Field(gt=0, lt=1)
    """Largest share of answerable sets that get no answer."""
    delta: float = Field(gt=0, lt=1)
    """Largest chance that a certified point breaks a limit."""
    learn: float = Field(ge=0, lt=1)
    """Share of the questions that the points and their order are learnt from."""
    points: int = Field(ge=1)
    """Thresholds to try."""
    confidences: int = Field(ge=0)
    """Least confidences of an answer to try with each threshold."""
    thresholds: tuple[float, ...] | None = Field(default=None, min_length=1)
    """Thresholds to test in place of learnt ones; with `learn=0` in this very order."""
    confidence: Source
    """Whose confidence the calibration figures are of."""
    bins: int = Field(ge=2)
    """Bins of the reliability diagram."""
    resamples: int = Field(ge=1)
    """Bootstrap resamples of the calibration figures."""

    @model_validator(mode="after")
    def _points_come_from_somewhere(self) -> Self:
        for name in ("calibration", "test"):
            folders = getattr(self, name)
            if folders is not None and len(folders) > 2:
                raise ValueError(f"{name}: expected a run, or one of replies and one of scores, got {len(folders)}")
        if self.thresholds is not None and self.confidences:
            raise ValueError("confidences: not used where thresholds are given")
        if self.thresholds is None and self.learn == 0:
            raise ValueError("learn: expected a share above 0, because the points and their order are learnt; or set thresholds=[...]")
        return self


class Loaded(NamedTuple):
    """A run read back."""

    pairs: list[tuple[Example, Prediction]]
    run: Run
    match: Match
    data: dict[str, str]
    system: dict[str, str]


def certify(settings: CertifyJob, out: Path) -> Certificate:
    """Write `certificate.json`, `certificate.md` and pictures (with the extra `figures`) to `out`; nothing certified is a result too.

    Raises InputError for runs that cannot be used, that share questions, or that cannot tell about a threshold asked for.
    """
    loaded = load(settings.calibration)
    other = None if settings.test is None else load(settings.test)
    if other is not None:
        _require_apart(loaded, other)
    limits = Limits(settings.alpha, settings.beta, settings.delta)
    tested = _tested(settings, loaded.run, limits)
    chosen = tested.chosen()
    need = None if chosen is not None else plan(tested.points, loaded.run.replies, limits, settings.seed, settings.learn)
    rows = _rows(loaded, settings.confidence)
    questions = [example.question_id for example, _ in loaded.pairs]
    figures = certainty(rows, questions, resamples=settings.resamples, seed=settings.seed, level=LEVEL)
    half = temper(rows, settings.seed)
    check = None if other is None or chosen is None else _check(tested.points[chosen], other.run, limits, settings.seed)
    result = _certificate(settings, loaded, other, tested, need, check, [*figures], half)
    record.write(out, result)
    (out / "certificate.md").write_text(markdown(result, figures, half), encoding="utf-8")
    settings.tracking.log(_drawn(result), result.questions)
    for name in (record.CERTIFICATE, "certificate.md"):
        settings.tracking.file(out / name)
    console = Console(width=120)
    console.print(result.said, markup=False, highlight=False)
    _draw(out, tested, readable(rows), half, settings.bins, console)
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return result


def load(folders: Sequence[Path]) -> Loaded:
    """A run's replies with what it was run with; scores from a second run where there is one."""
    made = saved(folders[0], EvalJob, Path.cwd())
    pairs = read_pairs(folders[0])
    scores = read_pairs(folders[1]) if len(folders) > 1 else None
    run = run_of(pairs, made.match, scores)
    data = {f"{folder.name}/{name}": sha256(folder / name) for folder in folders for name in (EXAMPLES, PREDICTIONS)}
    system: dict[str, str] = {}
    for folder in folders:
        asked = saved(folder, EvalJob, Path.cwd()).system
        prefix = "" if len(folders) == 1 else f"{folder.name}: "
        system[f"{prefix}system"] = f"{asked.target.__module__}.{asked.target.__qualname__}"
        system |= {f"{prefix}{name}": digest for name, digest in _checkpoints(asked).items()}
        system[f"{prefix}commit"] = _commit(folder)
    return Loaded(pairs, run, made.match, data, system)


def _checkpoints(system: Component, prefix: str = "") -> dict[str, str]:
    """Name and manifest's hash of each checkpoint by the key that names it, those of systems within systems too."""
    found: dict[str, str] = {}
    for name, value in system.arguments.items():
        if isinstance(value, Path) and (value / MANIFEST).is_file():
            found[f"{prefix}{name}"] = f"{value.name} {sha256(value / MANIFEST)}"
        elif isinstance(value, Component):
            found |= _checkpoints(value, f"{prefix}{name}.")
    return found


def _commit(folder: Path) -> str:
    """The commit of the code that made a run."""
    content = read_json(folder / "run.json")
    versions = content.get("versions", {}) if isinstance(content, dict) else {}
    return str(versions.get("commit", "unknown"))


def _require_apart(first: Loaded, second: Loaded) -> None:
    shared = {reply.question_id for reply in first.run.replies} & {reply.question_id for reply in second.run.replies}
    if shared:
        raise InputError(
            f"test: expected other questions than those of calibration, both have {len(shared)}, such as '{min(shared)}'; "
            "set test to a run on another split"
        )


def _tested(settings: CertifyJob, run: Run, limits: Limits) -> Certification:
    learning, testing = deal(run.replies, settings.learn, settings.seed)
    if not testing or (settings.learn and not learning):
        raise InputError(
            f"calibration: expected questions to learn from and questions to test on, got {len({r.question_id for r in run.replies})} in all"
        )
    if settings.thresholds is not None:
        points = [Point(threshold) for threshold in settings.thresholds]
        require_reach(points, run.reach)
    else:
        points = propose(learning, run.reach, settings.points, settings.confidences)
    if learning:
        points = in_order(points, learning, limits)
    return run_tests(points, testing, limits, settings.seed, len({reply.question_id for reply in learning}))


def _rows(loaded: Loaded, source: Source) -> list[Row]:
    """Answers with their confidence."""
    rows = (
        row_of(prediction, outcome(example, prediction, loaded.match), example.state is RetrievalState.ANSWERABLE, source)
        for example, prediction in loaded.pairs
    )
    return [row for row in rows if row is not None]


def _check(point: Point, run: Run, limits: Limits, seed: int) -> Tested:
    """The point on a run that played no part so far; `certified` says whether the rates found there are within the limits."""
    require_reach([point], run.reach)
    drawn, clean = one_each(run.replies, seed, "any"), one_each([reply for reply in run.replies if reply.answerable], seed, "clean")
    counts = count([point], drawn, clean)
    p_wrong, p_refused = tail(counts.wrong, counts.answers, limits.alpha), tail(counts.refused, counts.clean, limits.beta)
    only = Certification(limits, [point], counts, p_wrong, p_refused, 0, 0, len(drawn))
    found = _row(only, 0)
    within = all(
        risk.rate is not None and risk.rate <= limit for risk, limit in ((found.wrong, limits.alpha), (found.refused, limits.beta))
    )
    return found.model_copy(update={"certified": within})


def _row(tested: Certification, i: int) -> Tested:
    counts, point, delta = tested.counts, tested.points[i], tested.limits.delta
    risks = []
    for events, n, p in ((counts.wrong, counts.answers, tested.p_wrong), (counts.refused, counts.clean, tested.p_refused)):
        k, of = int(events[i]), int(n[i])
        risks.append(Risk(events=k, n=of, rate=k / of if of else None, p_value=float(p[i]), bound=upper_bound(k, of, delta)))
    return Tested(
        threshold=point.threshold, least_confidence=point.confidence, wrong=risks[0], refused=risks[1], certified=i < tested.certified
    )


def _certificate(
    settings: CertifyJob,
    loaded: Loaded,
    other: Loaded | None,
    tested: Certification,
    need: Need | None,
    check: Tested | None,
    figures: list[Certain],
    half: Half | None,
) -> Certificate:
    chosen = tested.chosen()
    drawn = one_each(loaded.run.replies, settings.seed, "any")
    scores = sorted(reply.score for reply in drawn if reply.score is not None)
    required = need and Required(
        threshold=need.point.threshold,
        least_confidence=need.point.confidence,
        answers=need.answers,
        clean=need.clean,
        questions=need.questions,
    )
    rows = tuple(_row(tested, i) for i in range(len(tested.points)))
    data = {**loaded.data, **({f"test: {name}": digest for name, digest in other.data.items()} if other else {})}
    return Certificate(
        certified=chosen is not None,
        threshold=None if chosen is None else tested.points[chosen].threshold,
        least_confidence=None if chosen is None else tested.points[chosen].confidence,
        alpha=settings.alpha,
        beta=settings.beta,
        delta=settings.delta,
        said=said(rows, None if chosen is None else rows[chosen], required, tested.limits, loaded.run, len(drawn)),
        points=rows,
        required=required,
        check=check,
        questions=len(drawn),
        learnt_on=tested.learnt_on,
        tested_on=tested.tested_on,
        reach=loaded.run.reach,
        match=loaded.match,
        seed=settings.seed,
        scores=tuple(scores),
        without_score=len(drawn) - len(scores),
        data=data,
        system=loaded.system,
        calibration={
            **{figure.name: figure.value for figure in figures},
            **({"temperature": half.temperature, "ece_before": half.ece_before, "ece_after": half.ece_after} if half else {}),
        },
        provenance={"command": command("eval.certify"), **provenance()},
    )


def _drawn(result: Certificate) -> dict[str, float | None]:
    """What a tracker draws of a certificate."""
    points = sum(point.certified for point in result.points)
    return {"certified_points": points, "threshold": result.threshold, **{f"calibration/{n}": v for n, v in result.calibration.items()}}


def _draw(out: Path, tested: Certification, rows: Readable, half: Half | None, bins: int, console: Console) -> None:
    try:
        from eval import figures
        from eval.certainty.figures import plot_certification
    except ImportError:
        console.print("no pictures: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
        return
    plot_certification(tested, out / "certification.png")
    if rows.rows:
        title = ("Confidence of answers", "mean confidence", "share of right answers")
        reliable = figures.reliability({title: reliability(rows.confidence, rows.correct, bins)})
        (out / "reliability.png").write_bytes(figures.png(reliable))
        curve = risk_coverage(rows.confidence, rows.correct)
        name = f"AURC {aurc(curve):.3f}, n = {len(rows.rows)}"
        risky = figures.risk({name: list(zip(curve.coverage.tolist(), curve.risk.tolist(), strict=True))}, "all answers")
        (out / "risk_coverage.png").write_bytes(figures.png(risky))


main = job(certify, CertifyJob, config_name="eval_certify")

if __name__ == "__main__":
    main()
