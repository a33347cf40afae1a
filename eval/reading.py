"""How well a Sieve that reads documents reads them: answers against gold answers, and silence against none.

python -m eval.reading checkpoint=checkpoints/local/sieve data=data/reading_validation/validation.jsonl
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import Field
from rich.console import Console

from conf.job import job
from eval.measured import Measured, measured, table
from eval.tally import Tally
from rag.checkpoint import MANIFEST, sha256
from rag.errors import InputError
from rag.jsonl import Journal, iter_records, read_examples
from rag.provenance import command, provenance
from rag.records import Example, Id, Record, RetrievalState, Text
from rag.settings import InputPath, JobSettings
from rag.text import squad_exact_match, squad_f1
from sieve import predict

READINGS = "readings.jsonl"


class ReadingJob(JobSettings):
    """Settings of this job."""

    checkpoint: InputPath
    """Folder of a Sieve that says what each document answers."""
    data: InputPath
    """JSONL of Examples with one document each; the gold answers of one whose document gives none do not count."""
    batch_size: int = Field(ge=1)
    """Documents read, and written to disk, at a time."""
    resamples: int = Field(ge=1)
    """Bootstrap resamples, by question."""
    device: str = "auto"


class Said(Record):
    """A line of `readings.jsonl`."""

    id: Id
    answer: Text
    """What the document was read to answer; blank where it was read to give none."""


class ReadingReport(Record):
    """The content of `reading.json`."""

    figures: tuple[Measured, ...]
    resamples: int
    seed: int
    data: dict[Text, Text]
    """Hashes of data and checkpoint."""
    provenance: dict[Text, Text]


def evaluate(settings: ReadingJob, out: Path) -> ReadingReport:
    """Read all documents, and write `readings.jsonl` and `reading.json` to `out`.

    A run that was stopped goes on where it was when it is repeated with the same `out`. Raises InputError for sets of more than one
    document, and for a Sieve that reads sets as a whole.
    """
    examples = read_examples(settings.data)
    if several := next((example.id for example in examples if len(example.documents) != 1), None):
        raise InputError(f"data={settings.data}: expected examples of one document each, got another number in '{several}'")
    said = _read(settings, examples, out / READINGS)
    report = ReadingReport(
        figures=tuple(measured(name, tally, settings.resamples, settings.seed) for name, tally in figures(examples, said).items()),
        resamples=settings.resamples,
        seed=settings.seed,
        data={str(settings.data): sha256(settings.data), str(settings.checkpoint): sha256(settings.checkpoint / MANIFEST)},
        provenance={"command": command("eval.reading"), **provenance()},
    )
    (out / "reading.json").write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    settings.tracking.log({figure.name: figure.value for figure in report.figures}, len(examples))
    settings.tracking.file(out / "reading.json")
    console = Console(width=120)
    console.print(f"{settings.checkpoint} on {settings.data}", table(report.figures), markup=False)
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return report


def figures(examples: Sequence[Example], said: Sequence[str]) -> dict[str, Tally]:
    """Exact match and F1 by the rules of SQuAD 2.0 (Rajpurkar et al. 2018): where the document gives no answer, saying none is 1.

    F1 over all questions, and of the two kinds apart: `F1 with an answer`, and `silent without`, the share of the others left unanswered.
    """
    gold = [example.answers if example.state is RetrievalState.ANSWERABLE else () for example in examples]

    def tally(score: Callable[[str, Sequence[str]], float], kind: bool | None = None) -> Tally:
        kept = [i for i in range(len(examples)) if kind is None or bool(gold[i]) is kind]
        values = [score(said[i], gold[i]) if gold[i] else float(not said[i]) for i in kept]
        return Tally(tuple(examples[i].question_id for i in kept), tuple((value, 1.0) for value in values))

    found = {"F1": tally(squad_f1), "exact match": tally(squad_exact_match)}
    kinds = {"F1 with an answer": True, "silent without": False}
    return found | {name: tally(squad_f1, kind) for name, kind in kinds.items() if any(bool(answers) is kind for answers in gold)}


def _read(settings: ReadingJob, examples: Sequence[Example], path: Path) -> list[str]:
    """What each document was read to answer; what is in `path` is read from there, the rest made and written batch by batch."""
    journal = Journal(path)
    said = [line.answer for line in iter_records(path, Said)] if path.exists() else []
    todo = examples[len(said) :]
    sieve = predict.load(settings.checkpoint, device=settings.device) if todo else None
    for start in range(0, len(todo), settings.batch_size):
        batch = todo[start : start + settings.batch_size]
        assert sieve is not None
        screenings = sieve.screen([example.question for example in batch], [example.documents for example in batch])
        if not all(screening.readings for screening in screenings):
            raise InputError(f"checkpoint={settings.checkpoint}: it reads sets as a whole and says of no document what it answers")
        made = [Said(id=e.id, answer=next(iter(s.readings.values()))) for e, s in zip(batch, screenings, strict=True)]
        journal.append(made)
        said += [line.answer for line in made]
    return said


main = job(evaluate, ReadingJob, config_name="eval_reading")

if __name__ == "__main__":
    main()
