"""What is made of the runs of a sweep when the last one is done: one table, its rows named by what the sweep varied, seeds averaged."""

import re
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field, ValidationError

from eval import side_by_side
from eval.side_by_side import Row
from rag.errors import InputError
from rag.jsonl import describe
from rag.records import Text
from rag.settings import Settings


class SweptRun(Protocol):
    """One run of a sweep."""

    @property
    def folder(self) -> Path:
        """Its run folder."""
        ...

    @property
    def overrides(self) -> dict[str, str]:
        """What it was given, by key."""
        ...


class SweepTable(Settings):
    """How the runs of a sweep become a table."""

    title: Text = "Runs of a sweep"
    columns: tuple[Text, ...] = Field(min_length=1)
    """Metrics of the reports."""
    average: tuple[Text, ...] = ()
    """Keys of seeds: runs that differ in these alone make one row, their mean with its spread."""
    plot: tuple[Text, Text] | None = None
    """Two metrics, the first along and the second up; no picture where it is none."""
    note: Text = ""
    """What a reader of the table should know, such as how much smaller than the paper's it is."""


def tabulate(folder: Path, runs: Sequence[SweptRun], table: Mapping[str, Any]) -> list[Row]:
    """Write `table.json`, `table.md` and, where asked for, `table.png` into the sweep's folder.

    A sweep may change the data, so rows are not required to be on the same examples; the matching rule must be the same.
    Raises InputError for a metric that no report has.
    """
    try:
        settings = SweepTable.model_validate(table)
    except ValidationError as error:
        raise InputError(f"table: {describe(error, SweepTable)}") from error
    alike = ", ".join(f"{key}={value}" for key, value in _alike([run.overrides for run in runs]).items())
    told = f"Given to all runs: {alike}." if alike else ""
    return side_by_side.tabulate(
        [run.folder for run in runs],
        names([run.overrides for run in runs], settings.average),
        folder,
        columns=settings.columns,
        plot=settings.plot,
        same_examples=False,
        title=settings.title,
        note=" ".join(part for part in (settings.note, told) if part),
        made_by="eval.pipeline",
    )


def names(overrides: Sequence[Mapping[str, str]], average: Sequence[str]) -> list[str]:
    """A name for each run: the values that vary between the runs, but for those of `average`; `K=3`, or `demo, K=3` where two keys vary.

    A key is named by its last part where its value alone would say nothing, which is where it is a number, a list, nothing or true or false.
    """
    varying = [
        key
        for key in dict.fromkeys(key for given in overrides for key in given)
        if key not in average and len({given.get(key) for given in overrides}) > 1
    ]
    values = {key: _short([given.get(key, "unset") for given in overrides]) for key in varying}
    return [", ".join(_named(key, values[key][place]) for key in varying) or "all" for place in range(len(overrides))]


def _short(values: Sequence[str]) -> Sequence[str]:
    """Paths without what they have in common before and after, up to a character that parts names; other values as they are."""
    if not all("/" in value for value in values):
        return values
    before = re.sub(r"[^/_.=-]+$", "", commonprefix(list(values)))  # noqa: RUF071 - by character is what is wanted
    rest = [value[len(before) :] for value in values]
    after = re.sub(r"[^/_.=-]+$", "", commonprefix([value[::-1] for value in rest]))  # noqa: RUF071 - as above
    short = [value[: len(value) - len(after)] for value in rest]
    return short if all(short) else values


def _alike(overrides: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What all runs were given alike."""
    return {key: value for key, value in overrides[0].items() if all(given.get(key) == value for given in overrides)}


def _named(key: str, value: str) -> str:
    tells = value[:1].isalpha() and value not in ("null", "true", "false", "unset")
    return value if tells else f"{key.rpartition('.')[2]}={value}"
