"""How a Sieve carries over to other data, and what a few examples of it add (paper 002, appendix B: table 5 and figure 6).

python -m sieve.transfer checkpoints=[runs/nq,runs/astro-100,runs/astro-200,runs/bio] data=[data/astro/test.jsonl,data/bio/test.jsonl]
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from conf.job import job
from rag import card
from rag.checkpoint import MANIFEST, Manifest, hashes, read_manifest, sha256
from rag.jsonl import read_examples
from rag.provenance import command, provenance
from rag.records import Condition, Record, RetrievalState, Text
from rag.settings import Files, JobSettings
from sieve.data import distinct
from sieve.measure.intervals import Figure, f1, macro_f1, ratio, share
from sieve.measure.scores import Readable, readable, request, require_same_inputs, score_all
from sieve.measure.settings import Measure, MeasureSettings
from sieve.predict import load

COLUMNS = {
    "respond@answerable": Condition.ANSWERABLE,
    "respond@unanswerable": Condition.UNANSWERABLE,
    "abstain@conflict": Condition.CONFLICT,
    "abstain@negated": Condition.NEGATED,
    "abstain@adversarial": Condition.ADVERSARIAL,
}
"""The columns of table 5: share of the condition's sets that passed, of clean ones, or were flagged, of distracted ones."""
F1 = {"respond_f1": "Respond F1", "abstain_f1": "Abstain F1", "macro_f1": "Macro-F1"}


class TransferJob(JobSettings, MeasureSettings):
    """Settings of this job; each file of `data` is a data set of its own."""

    checkpoints: Files
    """Folders that `sieve.train` wrote."""


class Row(Record):
    """One checkpoint on one data set, at the threshold stored with it."""

    checkpoint: Text
    data: Text
    seen: bool
    """Whether the checkpoint was trained or validated on this very file, so that the row flatters."""
    examples: int
    """Sets that the checkpoint was trained on; of a reader, those whose documents it was."""
    measures: dict[str, Measure]
    """The columns of table 5, then F1 of the clean class (`respond_f1`), of the distracted one (`abstain_f1`) and their mean."""


class CurvePoint(Record):
    """One checkpoint of a learning curve."""

    checkpoint: Text
    examples: int
    """Sets of the new data that it was trained on, as above; 0 for the checkpoint that training went on from."""


class Curve(Record):
    """Checkpoints that were adapted from one start to one set, by number of sets."""

    name: Text
    points: tuple[CurvePoint, ...]


class Transfer(Record):
    """The content of `transfer.json`."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]
    without_documents: dict[str, int]
    """By data set, examples left out because none of their documents holds text."""
    resamples: int
    seed: int
    data: dict[str, Text]
    provenance: dict[str, Text]


class _Checkpoint(NamedTuple):
    name: str
    path: Path
    manifest: Manifest
    digest: str
    """SHA-256 of its manifest, by which a later checkpoint says what it went on from."""


def run(settings: TransferJob, out: Path) -> Transfer:
    """Score every data set with every checkpoint, and write `transfer.json`, `transfer.md` and, where there is a curve, `transfer.png`.

    A curve is drawn from checkpoints that were trained with `data.limit` or `init`, the one that they went on from being its start if
    it is among `checkpoints`. Scores are written as they come; repeated with the same `out`, the job calls no model for those it has.
    Raises InputError for checkpoints or examples it cannot use.
    """
    checkpoints = [
        _read(path, name) for path, name in zip(settings.checkpoints, distinct(settings.checkpoints, "checkpoints"), strict=True)
    ]
    distinct(settings.data, "data")
    data = hashes(settings.data)
    require_same_inputs(out, {**{f"checkpoint {c.name}": c.digest for c in checkpoints}, **data})
    sets = {name: readable(read_examples(path)) for name, path in zip(data, settings.data, strict=True)}
    rows = tuple(row for number, c in enumerate(checkpoints, start=1) for row in _rows(c, sets, data, settings, out, number))
    result = Transfer(
        rows=rows,
        curves=tuple(curves(checkpoints)),
        without_documents={name: of.without_documents for name, of in sets.items()},
        resamples=settings.resamples,
        seed=settings.seed,
        data=data,
        provenance={"command": command("sieve.transfer"), **provenance()},
    )
    (out / "transfer.json").write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (out / "transfer.md").write_text(markdown(result), encoding="utf-8")
    settings.tracking.log(
        {f"{row.data}/{row.checkpoint}/{name}": measure.value for row in rows for name, measure in row.measures.items()}, 0
    )
    for name in ("transfer.json", "transfer.md"):
        settings.tracking.file(out / name)
    show(result, out)
    return result


def _read(path: Path, name: str) -> _Checkpoint:
    return _Checkpoint(name, path, read_manifest(path, "sieve"), sha256(path / MANIFEST))


def _rows(
    checkpoint: _Checkpoint, sets: dict[str, Readable], data: dict[str, str], settings: TransferJob, out: Path, number: int
) -> list[Row]:
    sieve = load(checkpoint.path, device=settings.device)
    rows = []
    for place, (name, of) in enumerate(sets.items(), start=1):
        asked = [request(example.id, example.question, example.documents) for example in of.examples]
        title = f"{checkpoint.name} on {name}"
        scored = score_all(sieve, asked, out / f"scores-{number}-{place}.jsonl", batch_size=settings.batch_size, title=title)
        flagged = [scored[example.id].score >= sieve.threshold for example in of.examples]
        rows.append(
            Row(
                checkpoint=checkpoint.name,
                data=name,
                seen=data[name] in checkpoint.manifest.data.values(),
                examples=_examples(checkpoint.manifest),
                measures=measures(of, flagged, resamples=settings.resamples, seed=settings.seed),
            )
        )
    return rows


def _examples(manifest: Manifest) -> int:
    return int(manifest.settings.get("data", {}).get("examples", 0))


def measures(sets: Readable, flagged: Sequence[bool], *, resamples: int, seed: int) -> dict[str, Measure]:
    """The columns of table 5 and the F1 of both classes, where a set of any distracted condition is of the second."""
    examples = sets.examples
    questions = [example.question_id for example in examples]
    distracted = [example.state is RetrievalState.DISTRACTED for example in examples]
    found: dict[str, Measure] = {}
    for name, condition in COLUMNS.items():
        those = [i for i, example in enumerate(examples) if example.condition is condition]
        hits = [flagged[i] == name.startswith("abstain") for i in those]
        found[name] = Measure.of(share(hits, [questions[i] for i in those], resamples=resamples, seed=seed), len(those))
    for name, positive in (("respond_f1", False), ("abstain_f1", True)):
        counts = [(float(f == y == positive), float(f != y)) for f, y in zip(flagged, distracted, strict=True)]
        figure = ratio(counts, questions, f1, resamples=resamples, seed=seed) if any(map(any, counts)) else Figure(None, None, None)
        found[name] = Measure.of(figure, len(examples))
    found["macro_f1"] = Measure.of(macro_f1(flagged, distracted, questions, resamples=resamples, seed=seed), len(examples))
    return found


def curves(checkpoints: Sequence[_Checkpoint]) -> list[Curve]:
    """Learning curves: adapted checkpoints of one start and one set of data files, two points at least."""
    start = {checkpoint.digest: checkpoint for checkpoint in checkpoints}
    groups: dict[tuple[str, tuple[str, ...]], list[_Checkpoint]] = {}
    for checkpoint in checkpoints:
        trained = checkpoint.manifest.settings
        if trained.get("init") is not None or trained.get("data", {}).get("limit") is not None:
            key = str(trained.get("init") or ""), tuple(sorted(checkpoint.manifest.data.values()))
            groups.setdefault(key, []).append(checkpoint)
    found = []
    for (init, _), members in groups.items():
        points = [CurvePoint(checkpoint=c.name, examples=_examples(c.manifest)) for c in members]
        if init in start:
            points.append(CurvePoint(checkpoint=start[init].name, examples=0))
        points.sort(key=lambda point: point.examples)
        if len(points) > 1:
            found.append(Curve(name=", ".join(point.checkpoint for point in points), points=tuple(points)))
    return found


def summary(result: Transfer) -> str:
    """How to read the tables."""
    flattering = " Rows marked * are on a file that the checkpoint was trained or validated on." if any(r.seen for r in result.rows) else ""
    return (
        "Each checkpoint at the threshold stored with it; a score equal to it is flagged. Respond: clean sets that passed; abstain: distracted "
        f"sets that were flagged. Intervals: 95 %, bootstrap by question, {result.resamples} resamples, seed {result.seed}.{flattering}"
    )


def markdown(result: Transfer) -> str:
    """The tables as a Markdown document."""
    header = ("data", "checkpoint", *COLUMNS, *F1.values())
    cells = [(row.data, _starred(row), *(_cell(row.measures[name]) for name in (*COLUMNS, *F1))) for row in _by_data(result)]
    of_curves = [
        (curve.name, row.data, str(point.examples), _cell(row.measures["macro_f1"]), _cell(row.measures["abstain_f1"]))
        for curve in result.curves
        for data in result.data
        for point in curve.points
        for row in [_row(result, point.checkpoint, data)]
    ]
    sections = {"": summary(result), "Transfer (paper 002, table 5)": card.table(header, cells)}
    if of_curves:
        sections["Learning curve (paper 002, figure 6)"] = card.table(("curve", "data", "sets", "Macro-F1", "Abstain F1"), of_curves)
    sections["Where the numbers come from"] = card.table(("", ""), [*result.provenance.items(), *result.data.items()])
    return card.render("Transfer of a Sieve to other data", sections)


def _by_data(result: Transfer) -> list[Row]:
    return [row for data in result.data for row in result.rows if row.data == data]


def _row(result: Transfer, checkpoint: str, data: str) -> Row:
    return next(row for row in result.rows if (row.checkpoint, row.data) == (checkpoint, data))


def _starred(row: Row) -> str:
    return f"{row.checkpoint} *" if row.seen else row.checkpoint


def _cell(measure: Measure) -> str:
    return f"{measure.cell}, n = {measure.n}" if measure.cell else f"n = {measure.n}"


def show(result: Transfer, out: Path) -> None:
    """Print the table without its intervals, and draw the curves."""
    console = Console(width=140)
    table = Table("data", "checkpoint", *(name.replace("@", "\n@") for name in COLUMNS), *F1.values(), box=box.SIMPLE_HEAD, pad_edge=False)
    for row in _by_data(result):
        values = [row.measures[name].value for name in (*COLUMNS, *F1)]
        table.add_row(row.data, _starred(row), *("" if value is None else f"{value:.3f}" for value in values))
    console.print(summary(result), table)
    if result.curves:
        try:
            from sieve.measure.figures import plot_curves
        except ImportError:
            console.print("no picture: matplotlib is not installed; pip install 'sieve-and-sage\\[figures]'")
        else:
            plot_curves({data: {c.name: _drawn(result, c, data) for c in result.curves} for data in result.data}, out / "transfer.png")
    console.print(f"written to {out}", soft_wrap=True, markup=False)


def _drawn(result: Transfer, curve: Curve, data: str) -> list[tuple[int, Figure, Figure]]:
    rows = [(point.examples, _row(result, point.checkpoint, data).measures) for point in curve.points]
    return [(examples, of["macro_f1"].figure, of["abstain_f1"].figure) for examples, of in rows]


main = job(run, TransferJob, config_name="sieve_transfer")

if __name__ == "__main__":
    main()
