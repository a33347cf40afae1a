"""What a report says beside its metrics, and report.json: everything that the page shows except the examples' texts."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from eval.records import Report
from eval.report.curves import Curves, Row, curves
from eval.report.tables import markdown
from rag.errors import InputError
from rag.jsonl import describe, read_json
from rag.records import Outcome, Record, RetrievalState
from rag.settings import Component

REPORT: Final = "report.json"
FORMAT: Final = 1
"""Of report.json; a reader of another format refuses it by name. Files without the key came before it."""


class Part(Record):
    """A system or a data set: a short name, and the settings it was loaded with."""

    name: str
    settings: dict[str, str]


class Details(Record):
    """What was run, what its pictures are drawn from, and how each example ended."""

    system: Part
    dataset: Part
    curves: Curves
    outcomes: dict[str, Outcome]
    """By example id."""

    @property
    def title(self) -> str:
        """What ran on what; a data set that comes from a file by the file's name."""
        return f"{self.system.name} on {Path(self.dataset.settings.get('path', self.dataset.name)).stem}"


class Run(NamedTuple):
    """One evaluation with everything that a page shows of it."""

    name: str
    report: Report
    provenance: Mapping[str, str]
    details: Details
    rows: Sequence[Row]
    milliseconds: float | None
    """Mean time of the whole system for an example; none where it was not measured."""


def details(rows: Sequence[Row], system: Component | Part, dataset: Component | Part) -> Details:
    """Put them together."""
    outcomes = {row.example.id: row.judged.outcome for row in rows}
    ran, on = (given if isinstance(given, Part) else part(given) for given in (system, dataset))
    return Details(system=ran, dataset=on, curves=curves(rows), outcomes=outcomes)


def named_parts(content: Mapping[str, Any]) -> tuple[Part, Part] | None:
    """The system and the data set that a report's content names; none in one from before it named them."""
    if "system" not in content or "dataset" not in content:
        return None
    return Part.model_validate(content["system"]), Part.model_validate(content["dataset"])


def total_milliseconds(report: Report) -> float | None:
    """Mean time of the whole system in the run itself."""
    return next((row.mean for row in report.latency if row.stage == "total"), None)


def always_abstaining(report: Report) -> float:
    """System Accuracy of a system that always abstains: the share of sets that are not answerable."""
    return sum(row.n for row in report.conditions if row.state is not RetrievalState.ANSWERABLE) / report.n


def part(component: Component) -> Part:
    """A component by the module that its `_target_` lies in, with its plain settings; of a path, the last two parts."""
    name = component.target.__module__.rpartition(".")[2]
    given = {key: value for key, value in component.arguments.items() if isinstance(value, (str, int, float, Path))}
    return Part(name=name, settings={key: "/".join(v.parts[-2:]) if isinstance(v, Path) else str(v) for key, v in given.items()})


def read_report(path: Path) -> tuple[Report, dict[str, Any]]:
    """The report in report.json, and the whole content. Raises InputError for a file that `write_report` did not write, or another version's."""
    content = read_json(path)
    if not isinstance(content, dict) or "report" not in content:
        raise InputError(f"{path}: expected a report that eval.pipeline wrote")
    if content.get("format", FORMAT) != FORMAT:
        raise InputError(f"{path}: expected a report of format {FORMAT}, got format {content['format']}; score its predictions again")
    try:
        return Report.model_validate_json(json.dumps(content["report"])), content
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error, Report)}") from error


def write_report(folder: Path, report: Report, provenance: Mapping[str, str], more: Details | None = None) -> None:
    """Write report.json and report.md into `folder`, each complete or not at all.

    `provenance` says where the numbers come from: commit, machine, command. Raises InputError when the disk refuses.
    """
    content = {"format": FORMAT, "provenance": dict(provenance), "report": report.model_dump(mode="json")}
    if more is not None:
        content |= more.model_dump(mode="json")
    write_text(folder / REPORT, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "report.md", markdown(report, provenance, "" if more is None else more.title))


def write_text(path: Path, content: str) -> None:
    """Write one file of a report, complete or not at all. Raises InputError when the disk refuses."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_text(content, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: could not write the report ({error.strerror}); the predictions are kept, score them again") from error
