"""Compare Sieves on the same sets: what each kind of distraction they see, whom they blame, and what a decision costs.

python -m sieve.compare checkpoints=[runs/minilm,runs/reader] data=[data/demo/test.jsonl,data/rgb_audit/test.jsonl]
"""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pydantic import Field
from rich import box
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from conf.job import job
from rag import card
from rag.checkpoint import MANIFEST, Manifest, hashes, read_manifest, sha256
from rag.errors import InputError
from rag.jsonl import read_files
from rag.provenance import command, provenance
from rag.records import DocumentLabel, Example, Record, Text
from rag.settings import Files, JobSettings
from sieve.data import distinct, group_of
from sieve.measure.groups import should_flag
from sieve.measure.intervals import Draw, FloatArray, divide, f1, macro_f1, ratio, share
from sieve.measure.scores import Request, Scored, readable, request, require_same_inputs, score_all
from sieve.measure.settings import Measure, MeasureSettings
from sieve.predict import AnySieve, load

FALSE = frozenset((DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL))
"""Labels of documents that are to blame in a distracted set."""


class CompareJob(JobSettings, MeasureSettings):
    """Settings of this job; its documents are labelled."""

    checkpoints: Files
    """Folders that `sieve.train` wrote."""
    timed_sets: int = Field(ge=1)
    """Sets on which a decision is timed, one by one, and as many again before them that are not counted; operations are counted on the same."""


class Kind(Record):
    """One kind of distracted sets of one source, against all sets that are clean."""

    group: Text
    source: Text
    sets: int
    distract_f1: Measure


class Cost(Record):
    """Of one set, on the machine of `provenance`."""

    screen_ms: float
    """Median time of a decision, sets one by one."""
    leave_one_out_ms: float
    """Median time of finding the document to blame right after it."""
    screen_gflop: float
    """Mean floating-point operations of a decision, in billions, of torch's operators that its counter knows; a multiply-add counts as two."""
    leave_one_out_gflop: float


class Compared(Record):
    """One Sieve, at the threshold stored with it."""

    checkpoint: Text
    form: Text
    base: Text
    examples: int
    """Sets that its training drew from; a budget of time may have ended it before all were seen."""
    documents: int | None
    """Documents of these sets that a reader's training drew from, one by one; none for a joint form."""
    minutes: float | None
    """The time that its training was given."""
    parameters: int
    """Of the model that serves, in all."""
    kinds: tuple[Kind, ...]
    false_positive_rate: Measure
    """Share of the clean sets that it flags."""
    macro_f1: Measure
    blame_precision: Measure
    """Of the documents that it blames in distracted sets that it flags, the share that is false."""
    blame_recall: Measure
    """Of the false documents of all distracted sets, the share that it blames after flagging the set. One group of near-identical documents
    is blamed in each set, so sets with several others bound it."""
    cost: Cost


class Comparison(Record):
    """The content of `compare.json`."""

    sets: int
    distracted: int
    questions: int
    rows: tuple[Compared, ...]
    timed_sets: int
    resamples: int
    seed: int
    data: dict[str, Text]
    provenance: dict[str, Text]


def run(settings: CompareJob, out: Path) -> Comparison:
    """Score the sets with every checkpoint and without each of their documents, and write `compare.json` and `compare.md` to `out`.

    Scores are written as they come; repeated with the same `out`, the job scores nothing again, but takes the time anew. Raises
    InputError for checkpoints or examples that it cannot use.
    """
    names = distinct(settings.checkpoints, "checkpoints")
    data = hashes(settings.data)
    manifests = [read_manifest(path, "sieve") for path in settings.checkpoints]
    digests = {f"checkpoint {name}": sha256(path / MANIFEST) for name, path in zip(names, settings.checkpoints, strict=True)}
    require_same_inputs(out, {**digests, **data})
    examples = readable(read_files(settings.data)).examples
    if len({should_flag(example) for example in examples}) < 2:
        raise InputError("data: expected distracted sets and clean ones, found one kind alone")
    asked = [request(example.id, example.question, example.documents, blame=True) for example in examples]
    draw = Draw(settings.resamples, settings.seed)
    rows = []
    for number, (name, path, manifest) in enumerate(zip(names, settings.checkpoints, manifests, strict=True), start=1):
        sieve = load(path, device=settings.device)
        scored = score_all(sieve, asked, out / f"scores-{number}.jsonl", batch_size=settings.batch_size, title=name)
        price = cost(load(path, device=settings.device), load(path, device=settings.device), asked, settings.timed_sets)
        rows.append(compared(name, manifest, sieve, examples, scored, price, draw))
    result = Comparison(
        sets=len(examples),
        distracted=sum(map(should_flag, examples)),
        questions=len({example.question_id for example in examples}),
        rows=tuple(rows),
        timed_sets=settings.timed_sets,
        resamples=settings.resamples,
        seed=settings.seed,
        data=data,
        provenance={"command": command("sieve.compare"), **provenance()},
    )
    (out / "compare.json").write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (out / "compare.md").write_text(markdown(result), encoding="utf-8")
    for row in rows:
        kinds = {f"distract_f1/{kind.group}/{kind.source}": kind.distract_f1.value for kind in row.kinds}
        shares = {name: getattr(row, name).value for name in ("false_positive_rate", "blame_precision", "blame_recall")}
        costs = {f"cost/{name}": value for name, value in row.cost}
        settings.tracking.log({f"{row.checkpoint}/{name}": value for name, value in {**kinds, **shares, **costs}.items()}, result.sets)
    for name in ("compare.json", "compare.md"):
        settings.tracking.file(out / name)
    show(result, out)
    return result


def compared(
    name: str, manifest: Manifest, sieve: AnySieve, examples: Sequence[Example], scored: dict[str, Scored], price: Cost, draw: Draw
) -> Compared:
    """The figures of one checkpoint."""
    questions = [example.question_id for example in examples]
    flagged = [scored[example.id].score >= sieve.threshold for example in examples]
    distracted = [should_flag(example) for example in examples]
    clean = [i for i, positive in enumerate(distracted) if not positive]
    kinds = []
    for group, source in dict.fromkeys((group_of(e), e.source) for e in examples if should_flag(e)):
        of_kind = [i for i, e in enumerate(examples) if distracted[i] and (group_of(e), e.source) == (group, source)]
        rows = [*of_kind, *clean]
        counts = [(float(flagged[i] and distracted[i]), float(flagged[i] != distracted[i])) for i in rows]
        figure = ratio(counts, [questions[i] for i in rows], f1, resamples=draw.resamples, seed=draw.seed)
        kinds.append(Kind(group=group, source=source, sets=len(of_kind), distract_f1=Measure.of(figure, len(of_kind))))
    alarms = share([flagged[i] for i in clean], [questions[i] for i in clean], resamples=draw.resamples, seed=draw.seed)
    precision, recall = blame(examples, flagged, scored)
    both = macro_f1(flagged, distracted, questions, resamples=draw.resamples, seed=draw.seed)
    form = str(manifest.settings.get("form", "joint"))
    return Compared(
        checkpoint=name,
        form=form,
        base=manifest.base.id,
        examples=int(manifest.settings.get("data", {}).get("examples", 0)),
        documents=sum(manifest.counts.get("train", {}).values()) if form == "extractive" else None,
        minutes=manifest.settings.get("train", {}).get("minutes"),
        parameters=sum(parameter.numel() for model in sieve.models for parameter in model.parameters()),
        kinds=tuple(kinds),
        false_positive_rate=Measure.of(alarms, len(clean)),
        macro_f1=Measure.of(both, len(examples)),
        blame_precision=Measure.of(ratio(precision, questions, _share, resamples=draw.resamples, seed=draw.seed), _total(precision)),
        blame_recall=Measure.of(ratio(recall, questions, _share, resamples=draw.resamples, seed=draw.seed), _total(recall)),
        cost=price,
    )


Counts = list[tuple[float, float]]


def blame(examples: Sequence[Example], flagged: Sequence[bool], scored: dict[str, Scored]) -> tuple[Counts, Counts]:
    """For each set, counts whose sums make precision and recall of blame: false documents blamed, of those blamed and of those there are."""
    precision: Counts = []
    recall: Counts = []
    for example, flag in zip(examples, flagged, strict=True):
        false = {document.id for document in example.documents if document.label in FALSE} if should_flag(example) else set()
        blamed = set(scored[example.id].blamed) if flag and false else set()
        precision.append((float(len(blamed & false)), float(len(blamed))))
        recall.append((float(len(blamed & false)), float(len(false))))
    return precision, recall


def cost(timed: AnySieve, counted: AnySieve, asked: Sequence[Request], sets: int) -> Cost:
    """Time and operations of a decision on single sets, and of leave-one-out right after it.

    `counted` is another instance of the same Sieve, which remembers nothing of the sets that were timed. The first sets of `asked` warm
    up; the next ones are measured, the first ones again where there are no more.
    """
    warm, measured = asked[:sets], asked[sets : 2 * sets] or asked[:sets]
    if measured is not asked[:sets]:
        for one in warm:
            _decide(timed, one)
    times = [_decide(timed, one) for one in measured]
    flops = [_count(counted, one) for one in measured]
    return Cost(
        screen_ms=1000 * median(first for first, _ in times),
        leave_one_out_ms=1000 * median(second for _, second in times),
        screen_gflop=sum(first for first, _ in flops) / len(flops) / 1e9,
        leave_one_out_gflop=sum(second for _, second in flops) / len(flops) / 1e9,
    )


def _decide(sieve: AnySieve, one: Request) -> tuple[float, float]:
    """Seconds of `screen` and of `leave_one_out`. Both give numbers, so a device has finished when they return."""
    began = time.perf_counter()
    sieve.screen([one.question], [one.documents])
    between = time.perf_counter()
    sieve.leave_one_out([one.question], [one.documents])
    return between - began, time.perf_counter() - between


def _count(sieve: AnySieve, one: Request) -> tuple[int, int]:
    with FlopCounterMode(display=False) as screening:
        sieve.screen([one.question], [one.documents])
    with FlopCounterMode(display=False) as leaving_out:
        sieve.leave_one_out([one.question], [one.documents])
    return screening.get_total_flops(), leaving_out.get_total_flops()


def _total(counts: Counts) -> int:
    """Documents that a share of counts is of."""
    return int(sum(of for _, of in counts))


def _share(sums: FloatArray) -> FloatArray:
    return divide(sums[:, 0], sums[:, 1])


HEADER = ("Sieve", "form", "training data", "parameters", "Macro-F1", "clean flagged", "blame precision", "blame recall")
COSTS = ("Sieve", "screen ms", "leave-one-out ms", "screen GFLOP", "leave-one-out GFLOP")


def summary(result: Comparison) -> str:
    """How to read the tables."""
    return (
        f"{result.distracted} distracted sets and {result.sets - result.distracted} others of {result.questions} questions, each Sieve at the "
        "threshold stored with it. Distract F1 of a kind: its sets against all clean ones. Blame: the document whose removal lowers the score "
        f"most. Intervals: 95 %, bootstrap by question, {result.resamples} resamples, seed {result.seed}. Costs: median milliseconds and mean "
        f"operations of one set, over {result.timed_sets} sets one by one, after as many to warm up."
    )


def table_rows(result: Comparison) -> list[tuple[str, ...]]:
    """Cells of the first table under `HEADER`."""
    return [
        (
            row.checkpoint,
            row.form,
            _training_data(row),
            f"{row.parameters / 1e6:.0f} M",
            *(measure.cell for measure in (row.macro_f1, row.false_positive_rate, row.blame_precision, row.blame_recall)),
        )
        for row in result.rows
    ]


def _training_data(row: Compared) -> str:
    """What training drew from, and the time it was given: how much of it was seen in that time is not recorded."""
    documents = "" if row.documents is None else f"{row.documents} documents of "
    minutes = "" if row.minutes is None else f", {row.minutes:g} min"
    return f"{documents}{row.examples} sets{minutes}"


def kind_rows(result: Comparison) -> list[tuple[str, ...]]:
    """Cells of the table by kind: a row for each Sieve, a column for each kind."""
    return [(row.checkpoint, *(kind.distract_f1.cell for kind in row.kinds)) for row in result.rows]


def kind_header(result: Comparison) -> tuple[str, ...]:
    """Its header, with the number of sets of each kind."""
    return ("Sieve", *(" ".join(filter(None, (kind.group, kind.source, f"(n = {kind.sets})"))) for kind in result.rows[0].kinds))


def cost_rows(result: Comparison) -> list[tuple[str, ...]]:
    """Cells of the table of costs under `COSTS`."""
    return [
        (row.checkpoint, *(f"{value:.3g}" for value in (c.screen_ms, c.leave_one_out_ms, c.screen_gflop, c.leave_one_out_gflop)))
        for row in result.rows
        for c in [row.cost]
    ]


def _tables(result: Comparison) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    return [
        ("Decisions and blame", HEADER, table_rows(result)),
        ("Distract F1 by kind", kind_header(result), kind_rows(result)),
        ("Cost of one set", COSTS, cost_rows(result)),
    ]


def markdown(result: Comparison) -> str:
    """The tables as a Markdown document."""
    sections = {"": summary(result), **{title: card.table(header, rows) for title, header, rows in _tables(result)}}
    sections["Where the numbers come from"] = card.table(("", ""), [*result.provenance.items(), *result.data.items()])
    return card.render("Sieves compared", sections)


def show(result: Comparison, out: Path) -> None:
    """Print the tables."""
    console = Console(width=160)
    console.print(summary(result))
    for title, header, rows in _tables(result):
        table = Table(*header, title=title, box=box.SIMPLE_HEAD, pad_edge=False)
        for cells in rows:
            table.add_row(*cells)
        console.print(table)
    console.print(f"written to {out}", soft_wrap=True, markup=False)


main = job(run, CompareJob, config_name="sieve_compare")

if __name__ == "__main__":
    main()
