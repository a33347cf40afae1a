"""What systems cost, and whether the gate pays for itself (paper 002, table 8 and figure 3).

`python -m eval.profile profile=local 'runs=[runs/a,runs/b]' 'baseline=[runs/b]'`, or without runs the footprint of the profile's models.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from rich.console import Console

from conf.job import job, saved
from eval.cost import parts
from eval.cost.footprint import Batch, Footprint, footprint, of_names, of_profile
from eval.cost.gates import STAGES, gates
from eval.cost.latency import speedup, stage_rows, throughput_rows
from eval.cost.memory import PeakMemory
from eval.cost.pareto import METRICS, ParetoPoint, pareto
from eval.cost.report import PAGE, PROFILE, Profile, Timed, flop_rows, show, write
from eval.cost.runs import StoredRun, drawn, of_baselines, read_runs
from eval.cost.settings import ProfileJob
from eval.cost.stage_flops import stage_flops
from eval.cost.timing import Pass, Timing, measure
from eval.cost.usage import usage
from eval.report import METRIC_TITLES
from eval.settings import EvalJob
from eval.side_by_side import Average
from rag.errors import InputError
from rag.provenance import command, provenance
from rag.records import Example
from rag.settings import Component
from serve.clock import Clock, now
from serve.systems import System


def profile(settings: ProfileJob, out: Path, *, clock: Clock = now) -> Profile:
    """Time, count and compare; write `profile.json`, `profile.md` and pictures. A run that was stopped goes on with the times that it has.

    Raises InputError for runs on other examples, runs that scored predictions again, and names that are neither checkpoint nor shape.
    """
    if settings.runs is None:
        if settings.baseline is not None or settings.names is not None:
            raise InputError("runs: expected folders of eval.pipeline for the names and the baseline, got none; set runs=[...]")
        made = Profile(timed=None, footprints=tuple(_footprints(settings, {})))
    else:
        made = _of_runs(settings, settings.runs, out, clock)
    console = Console(width=180)
    pictures = _pictures(made, out, console)
    write(out, made, {"command": command("eval.profile"), **provenance(), "device": _device()}, pictures)
    settings.tracking.log(_figures(made), 0 if made.timed is None else made.timed.examples)
    for name in (PROFILE, PAGE, *pictures):
        settings.tracking.file(out / name)
    show(made, console)
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return made


def _figures(made: Profile) -> dict[str, float | None]:
    """What a tracker draws of a profile."""
    return {
        **{f"median_milliseconds/{row.system}/{row.stage}": row.median for row in made.latency},
        **{f"speedup/{row.system}/{row.baseline}": row.value for row in made.speedups},
        **{f"examples_per_second/{row.system}/{row.batch_size}": row.examples_per_second for row in made.throughput},
        **{f"parameters/{row.name}": row.parameters for row in made.footprints},
        **{f"flops/{row.system}/{row.stage}": row.mean for row in made.flops},
        **{f"break_even/{row.system}/{row.unit}": row.share for row in made.break_even},
    }


def _of_runs(settings: ProfileJob, folders: Sequence[Path], out: Path, clock: Clock) -> Profile:
    examples, runs = read_runs(folders, settings.names)
    baselines = of_baselines(settings.baseline, runs)
    systems = _systems(runs)
    chosen = drawn(examples, settings.limit, settings.seed)
    sizes = [size for size in dict.fromkeys(settings.batch_sizes) if size != settings.batch_size]
    passes = [Pass(settings.batch_size, settings.repeats), *(Pass(size, 1) for size in sizes)]
    timings = measure(systems, chosen, passes, out, warmup=settings.warmup, seed=settings.seed, clock=clock)
    counted = drawn(chosen, settings.flop_examples, settings.seed) if settings.flop_examples else []
    counts = stage_flops(systems, {run.name: run.predictions for run in runs}, counted, out)
    one_size = [timing for timing in timings if timing.batch_size == settings.batch_size]
    questions = {example.id: example.question_id for example in chosen}
    resampling = {"resamples": settings.resamples, "seed": settings.seed}
    latency = stage_rows(one_size, questions, **resampling)
    pays, notes = gates(runs, examples, one_size, counts, **resampling)
    return Profile(
        timed=Timed(
            examples=len(chosen),
            of=len(examples),
            questions=len(set(questions.values())),
            batch_size=settings.batch_size,
            rounds=settings.repeats,
            warmup=settings.warmup,
            memory=PeakMemory().how,
            **resampling,
        ),
        latency=tuple(latency),
        speedups=tuple(
            speedup(one_size, run.name, baseline, questions, **resampling) for baseline in baselines for run in runs if run.name != baseline
        ),
        throughput=tuple(throughput_rows(timings)),
        footprints=tuple(_footprints(settings, systems)),
        flops=tuple(flop_rows(counts)),
        usage=tuple(
            usage(run.name, [run.predictions[e.id] for e in examples if e.id in run.predictions]) for run in runs if run.predictions
        ),
        break_even=tuple(pays),
        pareto=tuple(_points(runs, {row.system: (row.median, row.low, row.high) for row in latency if row.stage == "total"})),
        notes=(*_failures(timings), *_unfinished(runs, examples), *_uncounted(runs), *notes),
    )


def _systems(runs: Sequence[StoredRun]) -> dict[str, System]:
    """Build the system of each run as its own config says."""
    stored = {run.name: saved(run.folder, EvalJob, Path.cwd()) for run in runs}
    if scored := [run.folder for run in runs if stored[run.name].predictions is not None]:
        raise InputError(f"runs: {scored[0]} scored predictions again and ran no system; give the run that they came from")
    return {name: _without_stores(settings.system).build() for name, settings in stored.items()}


def _without_stores(system: Component) -> Component:
    """The system, and those within it, without the results that a sweep keeps: there would be no time to measure."""
    own = {key: _without_stores(value) if isinstance(value, Component) else value for key, value in system.arguments.items()}
    return Component(system.target, {key: None if key == "store" else value for key, value in own.items()})


def _footprints(settings: ProfileJob, systems: Mapping[str, System]) -> list[Footprint]:
    batch = Batch(sequences=settings.sequences, tokens=settings.tokens, new_tokens=settings.new_tokens)
    if settings.models is not None:
        named = of_names(settings.models, batch, precision=settings.precision, device=settings.device)
    elif systems:
        named = []
    else:
        stages = {"sieve": settings.sieve, "sage": settings.sage}
        named = of_profile(settings.checkpoint_folder, stages, batch, precision=settings.precision, device=settings.device)
    return [
        *(
            footprint(f"{name}: {part}", model, batch, "as the run loads it")
            for name, system in systems.items()
            for part, model in parts.models(system).items()
        ),
        *named,
    ]


def _points(runs: Sequence[StoredRun], times: dict[str, tuple[float, float, float]]) -> list[ParetoPoint]:
    points = []
    for metric in METRICS:
        quality = [(run.name, row) for run in runs if run.report is not None for row in run.report.metrics if row.name == metric]
        points += pareto(metric, quality, times)
    return points


def _failures(timings: Sequence[Timing]) -> list[str]:
    failed = {system: sum(timing.failed for timing in timings if timing.system == system) for system in {t.system for t in timings}}
    return [
        f"{name}: on {count} timed examples a stage failed, and what fails may be fast: these times are not of the system at work."
        for name, count in sorted(failed.items())
        if count
    ]


def _unfinished(runs: Sequence[StoredRun], examples: Sequence[Example]) -> list[str]:
    return [
        f"{run.name}: {len(run.predictions)} of {len(examples)} examples were predicted; its tokens and rates are of those."
        for run in runs
        if len(run.predictions) < len(examples)
    ]


def _uncounted(runs: Sequence[StoredRun]) -> list[str]:
    """Stages whose operations are not counted, since only those of the Sieve and the Sage are."""
    others = {run.name: sorted({stage for p in run.predictions.values() for stage in p.timings} - {*STAGES, "total"}) for run in runs}
    return [f"{name}: the operations of {', '.join(stages)} are not counted." for name, stages in others.items() if stages]


def _pictures(made: Profile, out: Path, console: Console) -> dict[str, str]:
    """Draw what there is to draw: titles by file name."""
    if not made.break_even and not made.pareto:
        return {}
    try:
        from eval import figures
        from eval.cost.figures import plot_break_even
    except ImportError:
        console.print("no pictures: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
        return {}
    pictures = {}
    if made.break_even:
        plot_break_even(made.break_even, out / "break_even.png")
        pictures["break_even.png"] = "Where the gate pays for itself"
    if made.pareto:
        panels = {
            METRIC_TITLES[metric]: [
                figures.Point(p.system, Average(value=p.milliseconds, low=p.low, high=p.high, runs=1), p.quality)
                for p in made.pareto
                if p.metric == metric
            ]
            for metric in dict.fromkeys(point.metric for point in made.pareto)
        }
        drawn = figures.pareto(panels, {}, "milliseconds per example (median)")
        (out / "pareto.png").write_bytes(figures.png(drawn))
        pictures["pareto.png"] = "Quality against time, with the Pareto front"
    return pictures


def _device() -> str:
    if torch.cuda.is_initialized():
        return torch.cuda.get_device_name()
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return f"cpu, {torch.get_num_threads()} threads" if accelerator is None else accelerator.type


main = job(profile, ProfileJob, config_name="eval_profile")

if __name__ == "__main__":
    main()
