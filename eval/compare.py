"""Say what changed between runs, example by example: `python -m eval.compare runs/before runs/after`; more runs give one row for each change.

Runs whose examples, index or decoding differ are refused, by name of what differs: `allow=[decoding]` compares them all the same.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field
from rich.console import Console

from conf.job import RUN_FILE, job, saved_values
from eval.comparison import tables
from eval.comparison.comparable import (
    Difference,
    Ground,
    Print,
    config_differences,
    dataset_differences,
    decoding_differences,
    index_differences,
    is_left_to_the_processor,
    print_of,
    processor_note,
    some,
)
from eval.comparison.tables import Row
from eval.comparison.transfers import Comparison, Ended, compare_runs, counts, on_the_edge
from eval.outcomes import Match, judge
from eval.pairs import pairs
from eval.predict import EXAMPLES, PREDICTIONS
from eval.report.words import one_line
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import iter_records, read_json
from rag.provenance import command, provenance
from rag.records import Example, Prediction, Text
from rag.settings import Files, JobSettings

_SHOWN = ("name", "show", "html", "html_examples", "table", "tracking", "resamples", "seed")
NO_DIFFERENCE = frozenset(("out", "sieve", "sage", "predictions", *_SHOWN))
"""Keys of a run that say nothing of its system or its data: how it is shown, and what stands elsewhere in its config."""


class CompareJob(JobSettings):
    """Settings of this job."""

    runs: Files
    """Folders of `eval.pipeline`, the baseline first, then one for each change."""
    names: tuple[Text, ...] | None = None
    """What to call them; the folders' names where it is none."""
    allow: tuple[Ground, ...] = ()
    """What may differ. Where the examples may, those that all runs have are compared."""
    match: Match | None = None
    """Judge all runs by this rule; where it is none, each by its own, and a difference counts as one of decoding."""
    resamples: int = Field(ge=1)
    """Bootstrap resamples, drawn by question."""
    show: int = Field(ge=0)
    """Moved examples of a kind to show in the terminal."""


class _Run(NamedTuple):
    name: str
    folder: Path
    config: dict[str, Any]
    versions: dict[str, str]
    inputs: Mapping[str, str]
    """Hashes of the files and folders that it read, by path."""
    ended: dict[str, Ended]
    prints: dict[str, Print]


class Comparisons(NamedTuple):
    """What the job gives beside the files it writes."""

    rows: list[Row]
    steps: list[Comparison]
    """Each run against the one before it."""
    from_first: list[Comparison]
    """Each run from the third on against the first."""


def compare(settings: CompareJob, out: Path) -> Comparisons:
    """Write `compare.json` and `compare.md`.

    Raises InputError for a folder that holds no finished run, and for runs whose examples, index or decoding differ where that is not allowed.
    """
    if len(settings.runs) < 2:
        raise InputError(f"runs: expected two folders or more, the baseline first, got {settings.runs[0]} alone")
    runs = [_read(name, folder, settings.match) for name, folder in zip(_names(settings), settings.runs, strict=True)]
    notes = _require_comparable(runs, settings.allow)
    common = set.intersection(*(set(run.ended) for run in runs))
    if not common:
        raise InputError("runs: expected runs that have examples in common, found none")
    kept = [{name: ended for name, ended in run.ended.items() if name in common} for run in runs]
    rows = [
        Row(
            name=run.name,
            folder=str(run.folder),
            commit=str(run.versions.get("commit", "unknown")),
            counts=counts(list(ended.values())),
            left_out=len(run.ended) - len(ended),
        )
        for run, ended in zip(runs, kept, strict=True)
    ]
    notes += [f"Left out of {row.name}, because not all runs have them: {row.left_out} examples." for row in rows if row.left_out]

    for before, after in pairwise(range(len(runs))):
        notes += _rounding_notes((runs[before], kept[before]), (runs[after], kept[after]))

    def against(before: int, after: int) -> Comparison:
        first, second = (runs[before].name, kept[before]), (runs[after].name, kept[after])
        return compare_runs(first, second, resamples=settings.resamples, seed=settings.seed)

    steps = [against(place - 1, place) for place in range(1, len(runs))]
    from_first = [against(0, place) for place in range(2, len(runs))]
    differences = [(before.name, after.name, _settings_differences(before, after)) for before, after in pairwise(runs)]
    origin = {"command": command("eval.compare"), **provenance()}
    notes.append(
        f"Intervals: 95%, bootstrap by question, {settings.resamples} resamples, seed {settings.seed}; a difference is the later run minus the "
        "earlier one on the same resamples."
    )
    content = {
        "provenance": origin,
        "examples": {run.name: f"sha256:{sha256(run.folder / EXAMPLES)}" for run in runs},
        "runs": [row.model_dump(mode="json") for row in rows],
        "comparisons": [step.model_dump(mode="json", by_alias=True) for step in (*steps, *from_first)],
        "settings": [
            {"before": before, "after": after, "differences": [d.model_dump(mode="json") for d in found]}
            for before, after, found in differences
        ],
        "notes": notes,
    }
    (out / "compare.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "compare.md").write_text(tables.markdown(rows, steps, from_first, differences, notes, list(origin.items())), encoding="utf-8")
    for step in (*steps, *from_first):
        settings.tracking.log(_figures(step), len(common))
    for name in ("compare.json", "compare.md"):
        settings.tracking.file(out / name)
    _show(rows, steps, differences, notes, settings.show)
    Console().print(f"written to {out}", soft_wrap=True, markup=False)
    return Comparisons(rows, steps, from_first)


def _figures(step: Comparison) -> dict[str, float | None]:
    """What a tracker draws of a comparison: differences of the metrics, and how many examples moved."""
    name = f"{step.after} against {step.before}"
    moved = {"moved": step.moved, "gains": step.gains, "losses": step.losses}
    return {f"{name}/{key}": value for key, value in {**{row.name: row.difference for row in step.metrics}, **moved}.items()}


def _names(settings: CompareJob) -> tuple[str, ...]:
    if len({folder.resolve() for folder in settings.runs}) != len(settings.runs):
        raise InputError(f"runs: expected each run once, got {', '.join(map(str, settings.runs))}")
    folders = tuple(folder.name for folder in settings.runs)
    names = settings.names or (folders if len(set(folders)) == len(folders) else tuple(map(str, settings.runs)))
    if len(names) != len(settings.runs) or len(set(names)) != len(names):
        raise InputError(
            f"names: expected one name for each of {len(settings.runs)} runs, all different, got {list(names)}; set names=[...]"
        )
    return names


def _read(name: str, folder: Path, match: Match | None) -> _Run:
    config = saved_values(folder)
    record = read_json(folder / RUN_FILE)
    made_by = record.get("job") if isinstance(record, dict) else None
    if not isinstance(record, dict) or made_by != "eval_pipeline":
        raise InputError(f"{folder}: expected the folder of a run of eval.pipeline, it is one of {made_by}")
    if config.get("predictions") is not None:
        config = _of_another_system(config)
    for file in (EXAMPLES, PREDICTIONS):
        if not (folder / file).is_file():
            raise InputError(f"{folder}: expected a finished run of eval.pipeline, found no {file} in it")
    ended, prints = {}, {}
    try:
        for example, prediction in pairs(iter_records(folder / EXAMPLES, Example), iter_records(folder / PREDICTIONS, Prediction)):
            question = one_line(example.question, tables.QUESTION)
            judged = judge(example, prediction, match or config["match"])
            ended[example.id] = Ended(example.question_id, question, judged, prediction.sieve_score, prediction.threshold)
            prints[example.id] = print_of(example)
    except InputError as error:
        raise InputError(f"{folder}: {error}; a run that was stopped goes on when its command is repeated") from error
    # A rule that is given here takes the place of the runs' own.
    return _Run(
        name, folder, {**config, "match": match or config["match"]}, record.get("versions", {}), record.get("inputs", {}), ended, prints
    )


def _of_another_system(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a run that scored predictions again, with the system that made them where its folder tells, else without one."""
    made_in = Path(str(config["predictions"])).parent
    kept = {key: value for key, value in config.items() if key not in ("system", "sieve", "sage", "batch_size")}
    try:
        made_by = saved_values(made_in)
    except InputError:
        return kept
    return {**kept, **{key: made_by[key] for key in ("system", "batch_size") if key in made_by}}


def _require_comparable(runs: Sequence[_Run], allow: Sequence[Ground]) -> list[str]:
    """Notes on what differs and may. Raises InputError that names everything that differs and may not."""
    first, found = runs[0], []
    for run in runs[1:]:
        differing: dict[Ground, list[str]] = {
            "dataset": dataset_differences(first.prints, run.prints),
            "index": index_differences(first.prints, run.prints),
            "decoding": decoding_differences(first.config, run.config),
        }
        found += [(ground, f"{ground} of {first.name} and {run.name}: {'; '.join(said)}") for ground, said in differing.items() if said]
        if moved := [n for n, e in run.ended.items() if n in first.ended and first.ended[n].question_id != e.question_id]:
            raise InputError(
                f"runs: {first.name} and {run.name} give example '{moved[0]}' to different questions; they are no runs of one data set"
            )
    if refused := [said for ground, said in found if ground not in allow]:
        grounds = ",".join(dict.fromkeys(ground for ground, _ in found))
        raise InputError(
            f"runs: expected runs that differ in the system alone, found other differences: {'. '.join(refused)}. "
            f"Add allow=[{grounds}] to compare all the same"
        )
    return [f"Differs and was allowed to: {said}." for _, said in found]


def _rounding_notes(before: tuple[_Run, Mapping[str, Ended]], after: tuple[_Run, Mapping[str, Ended]]) -> list[str]:
    """What of a comparison another processor, or a bit, may account for."""
    (first, ended), (second, ended_after) = before, after
    processor = processor_note((first.name, first.versions), (second.name, second.versions), is_left_to_the_processor(first.config))
    edge = on_the_edge(ended, ended_after)
    told = f"On the edge: {some(edge)} moved from {first.name} to {second.name} with the same Sieve score but for rounding, across the threshold."
    return [*([processor] if processor else []), *([told] if edge else [])]


def _settings_differences(before: _Run, after: _Run) -> tuple[Difference, ...]:
    """What differs in the system, in the data set's settings, in versions and in the content of files and checkpoints that were read.

    A stage's settings are in the system that has it.
    """
    return config_differences(_informative(before), _informative(after))


def _informative(run: _Run) -> Mapping[str, Any]:
    own = {key: value for key, value in run.config.items() if key not in NO_DIFFERENCE}
    return {**own, "versions": run.versions, "inputs": run.inputs}


def _show(
    rows: Sequence[Row],
    steps: Sequence[Comparison],
    differences: Sequence[tuple[str, str, Sequence[Difference]]],
    notes: Sequence[str],
    show: int,
) -> None:
    console = Console(width=140)
    # What moved follows, run by run: beside the counts it has no room.
    ended = [row[:-1] for row in tables.counts_rows(rows, steps)]
    console.print(tables.terminal(tables.counts_header()[:-1], ended), tables.LEGEND)
    for step, (before, after, found) in zip(steps, differences, strict=True):
        console.print(f"\n{after} against {before}: {tables.headline(step)}", markup=False)
        if step.transfers:
            console.print(tables.terminal(tables.TRANSFER_HEADER, tables.transfer_rows(step.transfers, show), range(5)))
        if len(steps) == 1:
            console.print(tables.terminal(tables.METRIC_HEADER, tables.metric_rows(step.metrics), (0, 5)))
        for difference in found[:show]:
            console.print(
                f"  {difference.key}: {difference.before or 'none'} -> {difference.after or 'none'}", markup=False, soft_wrap=True
            )
        if len(found) > show:
            console.print(f"  and {len(found) - show} more keys that differ, in compare.md")
    for note in notes:
        console.print(note, markup=False)


def with_runs(arguments: Sequence[str]) -> list[str]:
    """The command line as Hydra takes it: the paths it begins with become `runs=[...]`; a folder whose name has a `=` counts as a path."""
    leading = 0
    while leading < len(arguments) and _is_path(arguments[leading]):
        leading += 1
    if not leading:
        return list(arguments)
    quoted = ",".join('"' + path.replace('"', '\\"') + '"' for path in arguments[:leading])
    return [f"runs=[{quoted}]", *arguments[leading:]]


def _is_path(argument: str) -> bool:
    return not argument.startswith("-") and ("=" not in argument or Path(argument).is_dir())


_main = job(compare, CompareJob, config_name="eval_compare")


def main() -> None:
    """Run the job on the paths that the command line begins with."""
    sys.argv[1:] = with_runs(sys.argv[1:])
    _main()


if __name__ == "__main__":
    main()
