"""A profile as a record, as tables in the terminal, and as profile.json and profile.md."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from eval.cost.break_even import BreakEven
from eval.cost.flops import DECODERS, ENCODERS, FORMULAS
from eval.cost.footprint import Footprint
from eval.cost.latency import SpeedupRow, StageRow, ThroughputRow
from eval.cost.memory import TITLES
from eval.cost.pareto import ParetoPoint
from eval.cost.stage_flops import StageFlops
from eval.cost.usage import Usage
from eval.report import METRIC_TITLES
from eval.report.tables import Section, markdown_table, render_sections
from rag import card
from rag.errors import InputError
from rag.records import Record, Text

PROFILE = "profile.json"
PAGE = "profile.md"
WORDS: Final = frozenset({0, 1})
"""Columns of words where a table begins with two."""


class FlopRow(Record):
    """Operations of one stage of one system, on real examples."""

    system: Text
    stage: Text
    """`spent` is what the run went through by question: the Sage only where it was called."""
    n: int
    mean: float


class Timed(Record):
    """How the times were taken."""

    examples: int
    of: int
    """Examples of the runs."""
    questions: int
    batch_size: int
    rounds: int
    warmup: int
    resamples: int
    seed: int
    memory: Text
    """How peak memory was measured."""


class Profile(Record):
    """Everything that one profile says; what was not asked for is empty."""

    timed: Timed | None
    latency: tuple[StageRow, ...] = ()
    speedups: tuple[SpeedupRow, ...] = ()
    throughput: tuple[ThroughputRow, ...] = ()
    footprints: tuple[Footprint, ...] = ()
    flops: tuple[FlopRow, ...] = ()
    usage: tuple[Usage, ...] = ()
    break_even: tuple[BreakEven, ...] = ()
    pareto: tuple[ParetoPoint, ...] = ()
    notes: tuple[Text, ...] = ()


def flop_rows(counts: Sequence[StageFlops]) -> list[FlopRow]:
    """Means by system and stage."""
    rows = []
    for system in dict.fromkeys(row.system for row in counts):
        own = [row for row in counts if row.system == system]
        for stage in ("sieve", "leave_one_out", "sage"):
            if values := [row.stages[stage] for row in own if stage in row.stages]:
                rows.append(FlopRow(system=system, stage=stage, n=len(values), mean=sum(values) / len(values)))
        rows.append(FlopRow(system=system, stage="spent", n=len(own), mean=sum(row.spent for row in own) / len(own)))
    return rows


def sections(profile: Profile) -> list[Section]:
    """All tables that have rows."""
    made = [
        *_times(profile),
        _footprint(profile.footprints),
        _flops(profile.flops),
        _usage(profile.usage),
        _gates(profile.break_even),
        _points(profile.pareto),
    ]
    return [section for section in made if section.rows]


def _times(profile: Profile) -> list[Section]:
    timed = profile.timed
    if timed is None:
        return []
    how = (
        f"{timed.examples} of {timed.of} examples ({timed.questions} questions), {timed.batch_size} at a time, {timed.rounds} rounds after "
        f"{timed.warmup} batches of warm-up, all systems interleaved. The median is over examples, each with its own median over the rounds; mean "
        f"and p95 are over all calls. Intervals: 95 %, bootstrap by question, {timed.resamples} resamples, seed {timed.seed}."
    )
    latency = [
        (r.system, r.stage, f"{r.median:.1f}", f"{r.low:.1f} to {r.high:.1f}", f"{r.mean:.1f}", f"{r.p95:.1f}", str(r.n))
        for r in profile.latency
    ]
    speedups = [
        (r.system, r.baseline, f"{r.value:.2f}", f"{r.low:.2f} to {r.high:.2f}", str(r.n), str(r.questions)) for r in profile.speedups
    ]
    throughput = [
        (r.system, str(r.batch_size), f"{r.examples_per_second:.2f}", _megabytes(r.peak_bytes), str(r.calls), str(r.failed))
        for r in profile.throughput
    ]
    return [
        Section("Milliseconds per example", ("system", "stage", "median", "interval", "mean", "p95", "n"), latency, WORDS, notes=(how,)),
        Section(
            "Speedup: how many times as long the baseline takes",
            ("system", "baseline", "speedup", "interval", "n", "questions"),
            speedups,
            WORDS,
            notes=("Of the same examples in this run, resampled in pairs. Times of separate runs are not compared.",),
        ),
        Section(
            "Throughput",
            ("system", "batch size", "examples a second", "peak MiB above weights", "calls", "failed"),
            throughput,
            notes=(f"Peak memory: {TITLES.get(timed.memory, timed.memory)}.",),
        ),
    ]


def _footprint(rows: Sequence[Footprint]) -> Section:
    cells = [
        (
            row.name,
            ("RANDOM: " if row.random else "") + row.weights,
            _millions(row.parameters) + (f" (adapter {_millions(row.adapter_parameters)})" if row.adapter_parameters else ""),
            f"{row.weight_bytes / 2**30:.2f}",
            _megabytes(row.working_bytes),
            f"{row.sequences} x {row.tokens} + {row.new_tokens}",
            _tera(row.read_flops),
            _tera(row.read_closed),
            _ratio(row.read_flops, row.read_closed),
            _tera(row.write_flops),
            _ratio(row.write_flops, row.write_closed),
            f"{row.dtype}, {row.attention}, {row.device}",
        )
        for row in rows
    ]
    header: tuple[str, ...] = ("model", "weights", "parameters", "weights GiB", "working MiB", "batch x tokens + new", "TFLOPs read")
    header += ("closed form", "ratio", "TFLOPs written", "ratio", "dtype, attention, device")
    kinds = {
        "decoder" if row.family in DECODERS else "encoder" if row.family in ENCODERS else row.family: None
        for row in rows
        if row.read_closed is not None
    }
    formulas = " ".join(f"Closed form, {kind}: {FORMULAS[kind]}" for kind in kinds)
    how = "; ".join(dict.fromkeys(TITLES.get(row.memory, row.memory) for row in rows))
    return Section("Footprint", header, cells, WORDS | {len(header) - 1}, notes=(f"Working memory: {how}. {formulas}",))


def _flops(rows: Sequence[FlopRow]) -> Section:
    return Section(
        "Operations per example, counted on real ones",
        ("system", "stage", "GFLOPs", "n"),
        [(row.system, row.stage, f"{row.mean / 1e9:.2f}", str(row.n)) for row in rows],
        WORDS,
        notes=("`sage` is counted on every set, also where the gate kept it from the Sage; `spent` is what the run went through.",),
    )


def _usage(rows: Sequence[Usage]) -> Section:
    cells = []
    for row in rows:
        tokens = [f"{t.total:,} ({t.per_example:.0f}; {'n/a' if t.per_answer is None else f'{t.per_answer:.0f}'})" for t in row.tokens[:3]]
        others = "; ".join(f"{t.kind} {t.total:,}" for t in row.tokens[3:])
        cells.append((row.system, str(row.n), str(row.answered), str(row.sage_calls), str(row.sage_calls_saved), *tokens, others))
    header = (
        "system",
        "n",
        "answered",
        "Sage calls",
        "calls saved",
        "Sieve tokens in",
        "prompt tokens in",
        "completion tokens out",
        "other tokens",
    )
    return Section(
        "Calls and tokens of the whole run",
        header,
        cells,
        frozenset({0, 8}),
        notes=("In brackets: by example; by question that got an answer.",),
    )


def _gates(rows: Sequence[BreakEven]) -> Section:
    cells = []
    for row in rows:
        divisor, unit = (1.0, "ms") if row.unit == "milliseconds" else (1e9, "GFLOPs")
        costs = " / ".join(f"{value / divisor:.1f}" for value in (row.sieve, row.leave_one_out, row.sage))
        ends = " to ".join(dict.fromkeys("never" if end is None else f"{end:.0%}" for end in (row.low, row.high)))
        share = row.verdict if row.share is None else f"{row.verdict} {row.share:.1%}"
        cells.append(
            (
                row.system,
                f"{costs} {unit}",
                f"{row.true_positive_rate:.1%} / {row.false_positive_rate:.1%}",
                share,
                ends,
                f"{row.never:.0%}",
                f"{row.distracted_share:.0%}",
                f"{row.n} / {row.measured}",
            )
        )
    header = (
        "gate",
        "Sieve / leave-one-out / Sage",
        "distracted / other sets flagged",
        "pays",
        "interval",
        "never",
        "share here",
        "n / measured",
    )
    return Section(
        "From which share of distracted sets the Sieve pays for itself",
        header,
        cells,
        notes=(
            "Against the same Sage without a gate. "
            "`interval`: of the share from which on it pays; `never`: share of resamples in which it never does.",
        ),
    )


def _points(points: Sequence[ParetoPoint]) -> Section:
    cells = [
        (
            METRIC_TITLES[p.metric],
            p.system,
            _with_interval(p.quality.value, p.quality.low, p.quality.high, 3),
            _with_interval(p.milliseconds, p.low, p.high, 1),
            "yes" if p.front else "",
        )
        for p in points
    ]
    note = "Quality is that of the run's own report, on all its examples; time is of this run."
    return Section("Quality against time", ("metric", "system", "quality", "median ms", "on the front"), cells, WORDS, notes=(note,))


def _with_interval(value: float | None, low: float | None, high: float | None, digits: int) -> str:
    if value is None or low is None or high is None:
        return "n/a"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _megabytes(count: int | None) -> str:
    return "n/a" if count is None else f"{count / 2**20:.0f}"


def _millions(count: int) -> str:
    return f"{count / 1e9:.3f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"


def _tera(count: int | None) -> str:
    return "n/a" if count is None else f"{count / 1e12:.4f}"


def _ratio(count: int | None, closed: int | None) -> str:
    return "n/a" if not count or not closed else f"{count / closed:.4f}"


def show(profile: Profile, console: Console) -> None:
    """Print all tables."""
    console.print(render_sections(sections(profile)))
    for note in profile.notes:
        console.print(note, markup=False)


def write(folder: Path, profile: Profile, origin: Mapping[str, str], pictures: Mapping[str, str]) -> None:
    """Write profile.json and profile.md; `pictures` are titles by file name. Raises InputError when the disk refuses."""
    parts = {"": "\n\n".join(profile.notes)}
    parts |= {section.title: markdown_table(section) for section in sections(profile)}
    parts |= {title: f"![{title}]({name})" for name, title in pictures.items()}
    parts["Where the numbers come from"] = card.table(("", ""), list(origin.items()))
    content = {"provenance": dict(origin), "profile": profile.model_dump(mode="json")}
    try:
        (folder / PROFILE).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / PAGE).write_text(card.render("What the systems cost", parts), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: could not write the profile ({error.strerror}); the times are kept, run it again") from error
