"""Audit the simulated documents of a data folder: their ranks, their relation to the truth, their effect, and a sheet to look through.

python -m data_gen.audit data=data/medqa reranker=bge_reranker_large chat@judge=openai_server chat@answerer=openai_server
"""

from pathlib import Path

from pydantic import Field
from rich.console import Console

from conf.job import job
from data_gen.measure import sheet
from data_gen.measure.effect import affect
from data_gen.measure.folder import drawn, gold, read
from data_gen.measure.ranking import rank
from data_gen.measure.relation import relate
from data_gen.measure.report import Audit, markdown, render, yields_of
from rag.checkpoint import sha256
from rag.models.cached_chat import Price, load
from rag.provenance import command, provenance
from rag.settings import CachePath, InputPath, JobSettings, Target

AUDIT = "audit.json"
REPORT = "audit.md"
SHEET = "sheet.html"
RANKED = "ranked.jsonl"


class AuditJob(JobSettings):
    """Settings of this job."""

    data: InputPath
    """Folder that `data_gen.build` wrote from question-answer pairs, with its `steps`."""
    splits: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Splits to audit; all of the folder where it is none."""
    reranker: Target | None = None
    """A `rag.models.rerank.Reranker`; without one, nothing is ranked."""
    judge: Target | None = None
    """A `rag.models.chat.ChatModel`; without one, no relation is judged."""
    answerer: Target | None = None
    """A `rag.models.chat.ChatModel`; without one, no question is answered."""
    replies: CachePath | None = None
    """Folder that keeps every reply of the two, so that none is paid for twice; none is kept where it is none."""
    price: Price | None = None
    """What a million of their tokens cost."""
    limit: int | None = Field(default=None, ge=1)
    """Questions that the models are asked about, drawn by the seed; all where it is none."""
    max_prompt_characters: int = Field(default=100_000, ge=1000)
    """Longest prompt to the answerer; documents that do not fit are cut or left out by rank, and counted."""
    sheet: int = Field(default=60, ge=1)
    """Simulated documents on the sheet."""
    resamples: int = Field(default=1000, ge=1)
    """Bootstrap resamples, drawn by question."""


def run(settings: AuditJob, out: Path) -> Audit:
    """Audit the folder and write `sheet.html`, `audit.json` and `audit.md` to `out`.

    The reranker's scores are written as they come: a run that was stopped goes on when it is repeated with the same `out`. Replies of
    chat models are kept in `replies`. Raises InputError for a folder that no build with its steps is in.
    """
    built = read(settings.data, settings.splits)
    out.mkdir(parents=True, exist_ok=True)
    (out / SHEET).write_text(sheet.page(built.cases, settings.sheet, settings.seed), encoding="utf-8")
    asked = drawn(built.cases, settings.limit, settings.seed)
    resamples, seed = settings.resamples, settings.seed
    audit = Audit(
        questions=len(built.cases),
        answerable=sum(gold(case) is not None for case in built.cases),
        asked=len(asked),
        yields=yields_of((str(s.kind), s.rejected or "used") for case in built.cases for s in case.simulations),
        ranking=rank(asked, settings.reranker.build(), out / RANKED, resamples=resamples, seed=seed) if settings.reranker else None,
        relation=relate(asked, load(settings.judge, settings.replies, settings.price), resamples=resamples, seed=seed)
        if settings.judge
        else None,
        effect=affect(
            asked,
            built.examples,
            load(settings.answerer, settings.replies, settings.price),
            budget=settings.max_prompt_characters,
            resamples=resamples,
            seed=seed,
        )
        if settings.answerer
        else None,
        resamples=resamples,
        seed=seed,
        data={name: sha256(path) for name, path in built.files.items()},
        provenance={"command": command("data_gen.audit"), **provenance()},
    )
    (out / AUDIT).write_text(audit.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (out / REPORT).write_text(markdown(audit), encoding="utf-8")
    console = Console(width=120)
    console.print(render(audit))
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return audit


main = job(run, AuditJob, config_name="data_gen_audit")

if __name__ == "__main__":
    main()
