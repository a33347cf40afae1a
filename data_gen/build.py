"""Write a source's Examples to disk, one JSONL file for each split, with a card that says what is in them.

python -m data_gen.build dataset=demo out=data/demo
"""

import inspect
import logging
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from conf.job import job
from data_gen.split import shared_documents
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Example, Record
from rag.settings import Component, Settings, Target
from rag.splits import require_disjoint

CARD = "card.json"
logger = logging.getLogger(__name__)

Split = Literal["train", "validation", "test"]


class BuildSettings(Settings):
    """Settings of `data_gen.build`."""

    dataset: Target
    """The source: a function of `data_gen.sources` that returns Examples."""
    splits: tuple[Split, ...] = Field(default=("train", "validation", "test"), min_length=1)
    """Splits to write. A source without splits takes exactly one: all of its examples go there."""
    out: str | None = None
    """Folder for the files."""
    seed: int | None = None
    """Replaces the source's own seed where it is set."""


class BuildReport(Record):
    """What was written: the content of `card.json`."""

    source: str
    """The function that made the examples."""
    arguments: dict[str, Any]
    """Its arguments, without the split."""
    questions: dict[str, int]
    """Questions by split."""
    examples: dict[str, dict[str, int]]
    """Examples by split and condition."""
    variants: dict[str, dict[str, int]]
    """Examples by split and variant, where the source names variants."""
    dropped: dict[str, dict[str, int]]
    """What the source left out, by split and reason."""
    shared_documents: int
    """Document texts that occur in more than one split; questions never do."""
    sha256: dict[str, str]
    """Hash of each file."""


def build(settings: BuildSettings, out: Path) -> BuildReport:
    """Write `{split}.jsonl` for each split, then `card.json`.

    Raises InputError, before anything is written, when a question is in two splits or a split is empty.
    """
    source = _seeded(settings.dataset, settings.seed)
    dropped: dict[str, Counter[str]] = {split: Counter() for split in settings.splits}
    splits: dict[str, list[Example]] = {split: _read(source, split, settings.splits, dropped[split]) for split in settings.splits}
    require_disjoint(splits)
    for split, examples in splits.items():
        write_records(out / f"{split}.jsonl", examples)
    report = BuildReport(
        source=f"{source.target.__module__}.{source.target.__qualname__}",
        arguments={key: _plain(value) for key, value in source.arguments.items() if key != "split"},
        questions={split: len({example.question_id for example in examples}) for split, examples in splits.items()},
        examples={split: _by_condition(examples) for split, examples in splits.items()},
        variants={split: _by_variant(examples) for split, examples in splits.items()},
        dropped={split: dict(sorted(reasons.items())) for split, reasons in dropped.items()},
        shared_documents=shared_documents(splits),
        sha256={f"{split}.jsonl": sha256(out / f"{split}.jsonl") for split in splits},
    )
    (out / CARD).write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    for split in splits:
        counts = ", ".join(f"{count} {name}" for name, count in report.examples[split].items())
        logger.info("%s: %d questions: %s", out / f"{split}.jsonl", report.questions[split], counts)
    return report


def _seeded(source: Component, seed: int | None) -> Component:
    if seed is None:
        return source
    if not _takes(source, "seed"):
        raise InputError(f"seed={seed}: the source {source.target.__module__} draws nothing at random; leave seed out")
    return Component(source.target, {**source.arguments, "seed": seed})


def _read(source: Component, split: Split, wanted: tuple[Split, ...], dropped: Counter[str]) -> list[Example]:
    extra: dict[str, Any] = {}
    if _takes(source, "split"):
        extra["split"] = split
    elif len(wanted) > 1:
        raise InputError(f"splits: the source {source.target.__module__} has no splits; name the one to write it to, such as splits=[test]")
    if _takes(source, "dropped"):
        extra["dropped"] = dropped
    examples: list[Example] = Component(source.target, {**source.arguments, **extra}).build()
    if not examples:
        raise InputError(f"splits: the source {source.target.__module__} has no examples for '{split}'; leave it out of splits")
    return examples


def _takes(source: Component, name: str) -> bool:
    return name in inspect.signature(source.target).parameters


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, (Path, StrEnum)) else value


def _by_condition(examples: list[Example]) -> dict[str, int]:
    return dict(sorted(Counter(str(example.condition) for example in examples).items()))


def _by_variant(examples: list[Example]) -> dict[str, int]:
    return dict(sorted(Counter(example.variant for example in examples if example.variant).items()))


main = job(build, BuildSettings, config_name="data_gen_build")

if __name__ == "__main__":
    main()
