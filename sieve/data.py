"""Turn files of Examples into the Sieve's training rows, and say what was left out."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.jsonl import read_examples
from rag.records import Condition, Example
from rag.settings import InputPath, Settings
from sieve.inputs import Encoding, InputSettings, collate, encode

logger = logging.getLogger(__name__)

LABELS = {Condition.ANSWERABLE: 0.0, Condition.CONFLICT: 1.0}
"""The Sieve learns conflict against answerable and is tested on every condition (paper 002, section 3.2)."""


class DataSettings(Settings):
    """Files of Examples, already split by question."""

    train: tuple[InputPath, ...] | InputPath
    validation: tuple[InputPath, ...] | InputPath
    limit: int | None = Field(default=None, ge=1)
    """Use the first N training examples."""


class Row(TypedDict):
    """One training row."""

    encoding: Encoding
    label: float
    """1.0 for a distracted set."""


def paths(setting: tuple[Path, ...] | Path) -> tuple[Path, ...]:
    """One file or several, as a tuple."""
    return (setting,) if isinstance(setting, Path) else setting


def read(files: Sequence[Path]) -> list[Example]:
    """Read Examples from several files, in order."""
    return [example for path in files for example in read_examples(path)]


def rows(examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, settings: InputSettings, name: str) -> list[Row]:
    """Encode the examples the Sieve learns from; log how many were kept, left out by condition, and cut.

    Raises InputError when one of the two classes is absent, and for an example whose question leaves no room for documents.
    """
    kept = [example for example in examples if example.condition in LABELS]
    left_out = Counter(str(example.condition) for example in examples if example.condition not in LABELS)
    result: list[Row] = [{"encoding": _encode(example, tokenizer, settings), "label": LABELS[example.condition]} for example in kept]
    positive = sum(row["label"] == 1.0 for row in result)
    cut = sum(bool(row["encoding"].truncated) for row in result)
    logger.info(
        "%s: %d conflict and %d answerable sets, %d of them cut to %d tokens; not used: %s",
        name, positive, len(result) - positive, cut, settings.max_length, dict(left_out) or "none",
    )  # fmt: skip
    if positive in (0, len(result)):
        raise InputError(
            f"{name} data: expected both `answerable` and `conflict` examples, found {len(result) - positive} and {positive}; "
            f"check data.{'train' if name == 'training' else 'validation'}"
        )
    return result


def _encode(example: Example, tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> Encoding:
    try:
        return encode(example.question, example.documents, tokenizer, settings)
    except InputError as error:
        raise InputError(f"example '{example.id}': {error}") from error


class Collator:
    """Pads rows of a batch and adds their labels."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, settings: InputSettings, model_type: str) -> None:
        """Use the same padding and attention masks as serving does."""
        self.pad_id = int(tokenizer.pad_token_id)
        self.settings = settings
        self.model_type = model_type

    def __call__(self, batch: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Collate rows into model inputs and `labels`, float32 [batch]."""
        inputs = collate(
            [row["encoding"] for row in batch], self.pad_id, model_type=self.model_type, global_attention=self.settings.global_attention
        )
        return {**inputs, "labels": torch.tensor([row["label"] for row in batch])}
