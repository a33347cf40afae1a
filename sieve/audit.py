"""Audit a Sieve: what it flags by group, what order changes, and what style alone tells.

python -m sieve.audit checkpoint=checkpoints/local/sieve data.audit=[a.jsonl,b.jsonl]
"""

import logging
from pathlib import Path

from rich.console import Console

from conf.job import job
from rag import card
from rag.checkpoint import MANIFEST, hashes, read_manifest, sha256
from rag.jsonl import read_files
from rag.provenance import command, provenance
from rag.settings import Files, InputPath, JobSettings, Settings
from sieve.card import write_card
from sieve.measure.audit import AUDIT, Audit, AuditSettings, audit
from sieve.measure.audit_report import markdown, render, write_json
from sieve.measure.scores import require_same_inputs
from sieve.predict import load

logger = logging.getLogger(__name__)


class AuditData(Settings):
    """Files of Examples."""

    audit: Files
    """What the Sieve is audited on; shares no question with its training data."""
    train: Files | None = None
    """What it was trained on: the classifier of style runs on it too."""


class AuditJob(JobSettings):
    """Settings of this job."""

    checkpoint: InputPath
    """Folder that `sieve.train` wrote."""
    data: AuditData
    audit: AuditSettings
    write_to_checkpoint: bool = False
    """Store the figures in the checkpoint's folder and write its card again."""
    device: str = "auto"


def run(settings: AuditJob, out: Path) -> Audit:
    """Audit the checkpoint and write `audit.json` and `audit.md` to `out`. A failed audit is a result, not an error.

    Scores are written as they come: a run that was stopped goes on when it is repeated with the same `out`, and a complete one is
    computed again without a model's forward pass. Raises InputError for a checkpoint or examples that cannot be audited.
    """
    manifest = read_manifest(settings.checkpoint, "sieve")
    data = hashes(settings.data.audit)
    require_same_inputs(out, {MANIFEST: sha256(settings.checkpoint / MANIFEST), **data})
    examples = read_files(settings.data.audit)
    training = read_files(settings.data.train or ())
    sieve = load(settings.checkpoint, device=settings.device)
    figures = audit(sieve, examples, settings.audit, out / "scores.jsonl", seed=settings.seed, training=training)
    origin = {"command": command("sieve.audit"), "checkpoint": settings.checkpoint.name, **provenance()}
    figures = figures.model_copy(update={"data": data, "provenance": origin})
    write_json(out, figures)
    (out / "audit.md").write_text(markdown(figures), encoding="utf-8")
    if settings.write_to_checkpoint:
        write_json(settings.checkpoint, figures)
        card.write(settings.checkpoint, write_card(manifest, figures))
    settings.tracking.log(
        {
            "auc": figures.auc,
            **{f"flagged/{group.group}/{group.source or 'all'}": group.flagged for group in figures.groups},
            **{f"probe_auc/{probe.name}/{probe.source or 'all'}": probe.auc for probe in figures.probes},
            "decisions_changed_by_order": figures.flips.decision,
        },
        figures.sets,
    )
    for name in (AUDIT, "audit.md"):
        settings.tracking.file(out / name)
    console = Console(width=120)
    console.print(render(figures))
    console.print(f"written to {out}", soft_wrap=True, markup=False)
    return figures


main = job(run, AuditJob, config_name="sieve_audit")

if __name__ == "__main__":
    main()
