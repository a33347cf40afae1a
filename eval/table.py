"""Set runs of `eval.pipeline` side by side in the columns of paper 002, table 15, and plot one metric against another; no model is called.

`python -m eval.table 'runs=[runs/ratio/eval-10,runs/ratio/eval-3,runs/ratio/eval-1]' 'names=["10:1","3:1","1:1"]'`
"""

from pathlib import Path

from pydantic import Field

from conf.job import job
from eval import side_by_side
from eval.side_by_side import Row
from rag.errors import InputError
from rag.records import Text
from rag.settings import Files, JobSettings


class TableJob(JobSettings):
    """Settings of this job."""

    runs: Files
    """Folders of `eval.pipeline`, in the order of the table."""
    names: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """What to call them; the folders' names where it is none. Runs of one name, such as those of several seeds, are averaged."""
    columns: tuple[Text, ...] = Field(min_length=1)
    """Metrics of the reports."""
    same_examples: bool = True
    """Whether to refuse runs on different examples; those of a sweep over K or over neutral documents differ on purpose."""
    plot: tuple[Text, Text] | None = None
    """Two metrics, the first along and the second up; no picture where it is none."""


def tabulate(settings: TableJob, out: Path) -> list[Row]:
    """Write `table.json` and `table.md`, and `table.png` where there is something to plot and matplotlib is installed.

    Raises InputError for a folder without a report, for a metric that no report has, and for runs whose matching rule differs or, where
    they should be the same, their examples.
    """
    names = settings.names or tuple(folder.name for folder in settings.runs)
    if settings.names is None and len(set(names)) != len(names):
        raise InputError(f"names: the folders have equal names, {list(names)}; set names=[...]. Runs that are given one name are averaged")
    if len(names) != len(settings.runs):
        raise InputError(f"names: expected one name for each of {len(settings.runs)} runs, got {list(names)}; set names=[...]")
    rows = side_by_side.tabulate(
        settings.runs,
        names,
        out,
        columns=settings.columns,
        plot=settings.plot,
        same_examples=settings.same_examples,
        title="Runs side by side",
        made_by="eval.table",
    )
    settings.tracking.log({f"{row.name}/{name}": figure.value for row in rows for name, figure in row.metrics.items()}, 0)
    for name in ("table.json", "table.md"):
        settings.tracking.file(out / name)
    return rows


main = job(tabulate, TableJob, config_name="eval_table")

if __name__ == "__main__":
    main()
