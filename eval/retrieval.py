"""Measure a retriever against gold documents: Recall@k and MRR with intervals by question.

python -m eval.retrieval retriever=bm25 corpus=data/gold_passages/corpus data=data/gold_passages/questions.jsonl
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field
from rich.console import Console

from conf.job import job
from eval.measured import Measured, measured, table
from eval.tally import Tally
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import Journal, iter_records
from rag.provenance import command, provenance
from rag.records import Id, Record, Text
from rag.retrieval.corpus import Corpus
from rag.retrieval.gold import GoldQuestion, read_questions
from rag.retrieval.retriever import Retriever, search_all
from rag.settings import InputPath, JobSettings, Target

RANKS = "ranks.jsonl"


class RetrievalJob(JobSettings):
    """Settings of this job."""

    corpus: InputPath
    """Folder of the corpus, for configs of retrievers to refer to; gold documents must be in it."""
    retriever: Target
    """A function or class that gives a `rag.retrieval.retriever.Retriever`."""
    data: InputPath
    """JSONL of `{"id", "question", "gold": [document ids]}`."""
    ks: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
    """Depths of Recall@k; the largest is how many documents are retrieved."""
    batch_size: int = Field(ge=1)
    """Questions searched for, and written to disk, at a time."""
    resamples: int = Field(ge=1)
    """Bootstrap resamples, by question."""


class Ranks(Record):
    """A line of `ranks.jsonl`: where a question's gold documents were found."""

    id: Id
    gold: dict[Id, int | None]
    """Rank of each gold document; none where it was not among the documents retrieved."""
    retrieved: tuple[Id, ...]
    """Ids of all documents retrieved, best first."""
    milliseconds: float
    """Time of the question's batch by question."""


class RetrievalReport(Record):
    """The content of `retrieval.json`."""

    retriever: Text
    """Kind and fingerprint."""
    corpus: Text
    """Fingerprint of the corpus."""
    documents: int
    questions: int
    gold_documents: int
    not_in_corpus: int
    """Gold documents that the corpus does not hold: they count as not found."""
    figures: tuple[Measured, ...]
    median_milliseconds: float
    """Of a question, on this machine; in a batch, the batch's time by question."""
    depth: int
    resamples: int
    seed: int
    data: dict[Text, Text]
    """Hash of the questions' file."""
    provenance: dict[Text, Text]


def recall(ranks: Sequence[Ranks], k: int) -> Tally:
    """Recall@k: gold documents at rank k or better / gold documents, by question, averaged over questions.

    With one gold document for each question this is the share of questions whose document was found (top-k accuracy). Two questions, one
    with its only document at rank 3, one with one of its two at rank 1: Recall@1 is (0 + 1/2) / 2 = 0.25, Recall@3 (1 + 1/2) / 2 = 0.75.
    """
    found = [sum(rank is not None and rank <= k for rank in row.gold.values()) / len(row.gold) for row in ranks]
    return Tally(tuple(row.id for row in ranks), tuple((share, 1.0) for share in found))


def reciprocal_rank(ranks: Sequence[Ranks]) -> Tally:
    """MRR: 1 / the best rank of a question's gold documents, 0 where none was retrieved, averaged over questions.

    The two questions of `recall`: (1/3 + 1) / 2 = 0.667.
    """
    best = [min((rank for rank in row.gold.values() if rank is not None), default=None) for row in ranks]
    return Tally(tuple(row.id for row in ranks), tuple((0.0 if rank is None else 1 / rank, 1.0) for rank in best))


def evaluate(settings: RetrievalJob, out: Path) -> RetrievalReport:
    """Retrieve for all questions, and write `ranks.jsonl` and `retrieval.json` to `out`.

    A run that was stopped goes on where it was when it is repeated with the same `out`. Raises InputError where the corpus holds none of
    the gold documents.
    """
    questions = read_questions(settings.data)
    corpus = Corpus.open(settings.corpus)
    gold = {name for question in questions for name in question.gold}
    missing = sorted(name for name in gold if corpus.find(name) is None)
    if len(missing) == len(gold):
        raise InputError(f"data={settings.data}: none of its gold documents, such as '{missing[0]}', is in corpus={settings.corpus}")
    retriever: Retriever = settings.retriever.build()
    depth = max(settings.ks)
    ranks = retrieve(retriever, questions, depth, settings.batch_size, out / RANKS)
    tallies = {f"Recall@{k}": recall(ranks, k) for k in sorted(set(settings.ks))} | {f"MRR@{depth}": reciprocal_rank(ranks)}
    report = RetrievalReport(
        retriever=retriever.name,
        corpus=corpus.fingerprint,
        documents=len(corpus),
        questions=len(questions),
        gold_documents=len(gold),
        not_in_corpus=len(missing),
        figures=tuple(measured(name, tally, settings.resamples, settings.seed) for name, tally in tallies.items()),
        median_milliseconds=sorted(row.milliseconds for row in ranks)[len(ranks) // 2],
        depth=depth,
        resamples=settings.resamples,
        seed=settings.seed,
        data={str(settings.data): sha256(settings.data)},
        provenance={"command": command("eval.retrieval"), **provenance()},
    )
    (out / "retrieval.json").write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    settings.tracking.log({figure.name: figure.value for figure in report.figures}, report.questions)
    settings.tracking.file(out / "retrieval.json")
    show(report, out)
    return report


def retrieve(retriever: Retriever, questions: Sequence[GoldQuestion], depth: int, batch_size: int, path: Path) -> list[Ranks]:
    """Ranks of all questions in their order; those in `path` are read, the others made and written batch by batch."""
    journal = Journal(path)
    ranks = list(iter_records(path, Ranks)) if path.exists() else []
    if [row.id for row in ranks] != [question.id for question in questions[: len(ranks)]]:
        raise InputError(f"{path}: holds ranks of other questions; set out to a new folder")
    todo = questions[len(ranks) :]
    began = time.perf_counter()
    for found in search_all(retriever, [question.question for question in todo], depth, batch_size):
        spent = (time.perf_counter() - began) * 1000 / len(found)
        start = len(ranks)
        made = [
            _ranks(question, [document.id for document in documents], spent)
            for question, documents in zip(questions[start : start + len(found)], found, strict=True)
        ]
        journal.append(made)
        ranks += made
        began = time.perf_counter()
    return ranks


def _ranks(question: GoldQuestion, retrieved: Sequence[str], milliseconds: float) -> Ranks:
    places = {name: rank for rank, name in enumerate(retrieved, start=1)}
    gold = {name: places.get(name) for name in question.gold}
    return Ranks(id=question.id, gold=gold, retrieved=tuple(retrieved), milliseconds=round(milliseconds, 3))


def show(report: RetrievalReport, out: Path) -> None:
    """Print the figures as a table."""
    console = Console(width=120)
    console.print(
        f"{report.retriever} over {report.documents} documents, {report.median_milliseconds:.1f} ms a question",
        table(report.figures),
        markup=False,
    )
    if report.not_in_corpus:
        console.print(f"{report.not_in_corpus} of {report.gold_documents} gold documents are not in the corpus and count as not found")
    console.print(f"written to {out}", soft_wrap=True, markup=False)


main = job(evaluate, RetrievalJob, config_name="eval_retrieval")

if __name__ == "__main__":
    main()
