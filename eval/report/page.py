"""A page that needs nothing else: HTML with its style, script, pictures and examples inside; opens from a folder, without a network."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eval.records import MetricRow
from eval.report.content import Run, always_abstaining, write_text
from eval.report.curves import NONE
from eval.report.explorer import ENDINGS, explorer
from eval.report.tables import sections, summary
from eval.report.words import GROUP_ENDS, HEADLINES, METRIC_TITLES, REASON_TITLES
from rag.errors import InputError
from rag.records import Condition, Reason, RetrievalState

if TYPE_CHECKING:
    from eval.report.pictures import Picture

PAGE: Final = "report.html"
FIGURES: Final = "figures"
TEMPLATES: Final = "templates"
RATES: Final = ("coverage", "answered_when_it_should_not", "abstained_when_it_could_answer")
"""Shown under the headlines: the two ways to be wrong about abstaining stand side by side."""
COMPARED: Final = (
    *("system_accuracy", "system_accuracy_strict", "macro_f1", "distracted_f1", "coverage", "selective_accuracy"),
    *("answered_when_it_should_not", "abstained_when_it_could_answer"),
)
"""Metrics of the table that sets runs side by side."""
UNTIMED: Final = "milliseconds per example (mean, each run's own hour); no measure of speed between runs"


def write_page(folder: Path, run: Run, limit: int) -> None:
    """Write report.html, and figures/*.png beside it, for one run; documents of at most `limit` examples are in the page.

    Without matplotlib the page comes without pictures and says so. The same run gives the same bytes. Raises InputError when the disk refuses.
    """
    pictures = _draw(lambda module: module.run_pictures(run.report, run.details.curves))
    _write_figures(folder, pictures)
    write_text(folder / PAGE, run_page(run, limit, pictures))


def write_comparison(folder: Path, runs: Sequence[Run], time: str) -> None:
    """Write report.html, and figures/*.png beside it, for several runs side by side; `time` says how their milliseconds were measured."""
    pictures = _draw(lambda module: module.comparison_pictures(runs, time))
    _write_figures(folder, pictures)
    write_text(folder / PAGE, comparison_page(runs, time, pictures))


def run_page(run: Run, limit: int, pictures: "Sequence[Picture] | None") -> str:
    """The page of one run; without pictures where they are none."""
    report = run.report
    metrics = {row.name: row for row in report.metrics}
    data = explorer(run.rows, limit)
    return _render(
        "run.html",
        run=run,
        title=run.details.title,
        summary=summary(report),
        headlines=[metrics[name] for name in HEADLINES],
        rates=[metrics[name] for name in RATES],
        always=always_abstaining(report),
        ends=[(key, title, report.counts.model_dump()[key]) for key, title in ENDINGS.items()],
        sections=[section for section in sections(report) if section.title != "Metrics"],
        states=[state.value for state in RetrievalState],
        named=[*(state.value for state in RetrievalState), NONE],
        pictures=_by_name(pictures),
        data=data,
        conditions=[condition.value for condition in Condition],
        reasons={reason.value: REASON_TITLES[reason] for reason in Reason},
        without=report.n - len(data["texts"]),
    )


def comparison_page(runs: Sequence[Run], time: str, pictures: "Sequence[Picture] | None") -> str:
    """The page of several runs; without pictures where they are none."""
    always = [always_abstaining(run.report) for run in runs]
    return _render(
        "runs.html",
        runs=runs,
        title=f"{len(runs)} runs side by side",
        time=time,
        summary=summary(runs[0].report),
        rows={run.name: {row.name: row for row in run.report.metrics} for run in runs},
        compared=[name for name in COMPARED if all(name in {row.name for row in run.report.metrics} for run in runs)],
        always=always if len(set(always)) > 1 else always[:1],
        conditions=list(dict.fromkeys((row.condition.value, row.state.value) for run in runs for row in run.report.conditions)),
        by_condition={run.name: {(row.condition.value, row.state.value): row for row in run.report.conditions} for run in runs},
        pictures=_by_name(pictures),
    )


def script_json(value: Any) -> Markup:
    """JSON that stays data inside a script element, whatever text it holds: no character of it can end the element or a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - the characters that mean anything to HTML are gone


def _draw(draw: Any) -> "list[Picture] | None":
    try:
        from eval.report import pictures
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return None
    drawn: list[Picture] = draw(pictures)
    return drawn


def _by_name(pictures: "Sequence[Picture] | None") -> "Mapping[str, Picture] | None":
    return None if pictures is None else {picture.name: picture for picture in pictures}


def _write_figures(folder: Path, pictures: "Sequence[Picture] | None") -> None:
    try:
        for picture in pictures or ():
            (folder / FIGURES).mkdir(parents=True, exist_ok=True)
            (folder / FIGURES / f"{picture.name}.png").write_bytes(picture.png)
    except OSError as error:
        raise InputError(f"{folder / FIGURES}: could not write the pictures ({error.strerror}); the predictions are kept") from error


def _render(template: str, **values: Any) -> str:
    environment = Environment(
        loader=PackageLoader("eval.report", TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"script_json": script_json, "image": _image, "number": _number, "percent": _percent, "place": _place}
    environment.globals |= {"metric_titles": METRIC_TITLES, "group_ends": GROUP_ENDS, "endings": ENDINGS}
    script = _own("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = {"style": _own("page.css"), "script": script, "script_digest": f"sha256-{digest}"}
    return environment.get_template(template).render(**values, **own) + "\n"


def _own(name: str) -> Markup:
    """A file of ours, to stand in the page as it is."""
    return Markup(files("eval.report").joinpath(TEMPLATES, name).read_text(encoding="utf-8"))  # noqa: S704 - no text from outside


def _image(picture: "Picture") -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(picture.svg.encode()).decode()


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f}%"


def _place(row: MetricRow) -> dict[str, str]:
    """Where an interval of 0 to 1 lies, in CSS."""
    low, high = row.low or 0.0, row.high or 0.0
    return {"left": _percent(low), "width": _percent(high - low), "at": _percent(row.value or 0.0)}
