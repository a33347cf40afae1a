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
from data_gen.card import CARD, DATA_CARD, BuildReport, by_condition, by_variant, data_card, mean_words
from data_gen.split import shared_documents
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Example
from rag.settings import Component, InputPath, RunSettings, Target
from rag.splits import require_disjoint

logger = logging.getLogger(__name__)

Split = Literal["train", "validation", "test"]


class BuildSettings(RunSettings):
    """Settings of `data_gen.build`."""

    dataset: Target
    """The source: a function of `data_gen.sources` that returns Examples."""
    splits: tuple[Split, ...] = Field(default=("train", "validation", "test"), min_length=1)
    """Splits to write. A source without splits takes exactly one: all of its examples go there."""
    corpus: InputPath = Path("data/corpus")
    """Corpus for configs of retrievers to refer to."""
    out: str | None = None
    """Folder for the files."""
    checkpoint_folder: str = "checkpoints/paper"
    """Of the profile, which experiments choose sizes by; a build has no use for it."""
    seed: int | None = None
    """Replaces the source's own seed where it is set."""


def build(settings: BuildSettings, out: Path) -> BuildReport:
    """Write `{split}.jsonl` for each split, then `card.json`.

    Raises InputError, before anything is written, when a question is in two splits or a split is empty.
    """
    source = _seeded(settings.dataset, settings.seed)
    dropped: dict[str, Counter[str]] = {split: Counter() for split in settings.splits}
    yields: Counter[tuple[str, str]] = Counter()
    given = {"splits": settings.splits, "folder": out, "yields": yields}
    splits: dict[str, list[Example]] = {split: _read(source, split, dropped[split], given) for split in settings.splits}
    require_disjoint(splits)
    for split, examples in splits.items():
        write_records(out / f"{split}.jsonl", examples)
    report = BuildReport(
        source=_name(source),
        arguments={key: _plain(value) for key, value in source.arguments.items() if key != "split"},
        questions={split: len({example.question_id for example in examples}) for split, examples in splits.items()},
        examples={split: by_condition(examples) for split, examples in splits.items()},
        variants={split: by_variant(examples) for split, examples in splits.items()},
        dropped={split: dict(sorted(reasons.items())) for split, reasons in dropped.items()},
        yields={kind: {reason: n for (of, reason), n in sorted(yields.items()) if of == kind} for kind in sorted({k for k, _ in yields})},
        words={split: round(mean_words(examples), 1) for split, examples in splits.items()},
        shared_documents=shared_documents(splits),
        sha256={f"{split}.jsonl": sha256(out / f"{split}.jsonl") for split in splits},
    )
    (out / CARD).write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (out / DATA_CARD).write_text(data_card(report, splits), encoding="utf-8")
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


def _read(source: Component, split: Split, dropped: Counter[str], given: dict[str, Any]) -> list[Example]:
    """The source's examples of one split; it is handed what it has parameters for."""
    extra: dict[str, Any] = {name: value for name, value in {**given, "split": split, "dropped": dropped}.items() if _takes(source, name)}
    if "split" not in extra and len(given["splits"]) > 1:
        raise InputError(f"splits: the source {source.target.__module__} has no splits; name the one to write it to, such as splits=[test]")
    examples: list[Example] = Component(source.target, {**source.arguments, **extra}).build()
    if not examples:
        why = "; ".join(f"{count} {reason}" for reason, count in dropped.most_common(5))
        raise InputError(
            f"splits: the source {source.target.__module__} has no examples for '{split}'; leave it out of splits"
            + (f", or look at what was left out: {why}" if why else "")
        )
    return examples


def _takes(source: Component, name: str) -> bool:
    return name in inspect.signature(source.target).parameters


def _name(source: Component) -> str:
    return f"{source.target.__module__}.{source.target.__qualname__}"


def _plain(value: Any) -> Any:
    if isinstance(value, Component):
        return {"_target_": _name(value), **{key: _plain(item) for key, item in value.arguments.items()}}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, (Path, StrEnum)) else value


main = job(build, BuildSettings, config_name="data_gen_build")

if __name__ == "__main__":
    main()
