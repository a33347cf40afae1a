"""Encode Examples as training rows, and say what was left out."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypedDict

import torch
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.records import Example
from sieve.data import Classes, draw, group_of, titles
from sieve.joint.inputs import Encoding, InputSettings, collate, encode

logger = logging.getLogger(__name__)


class Row(TypedDict):
    """One training row."""

    encoding: Encoding
    label: int
    """Its class."""
    group: str
    """How the set was put together."""


def rows(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    settings: InputSettings,
    learnt: Classes,
    name: Literal["training", "validation"],
    *,
    limit: int | None = None,
    seed: int = 0,
) -> list[Row]:
    """Encode the examples the Sieve learns from; log how many of each class were kept, what was left out and why, and what was cut.

    With `inputs.pooling=pairs` those are sets of one or two documents: nothing says which pairs of a larger set disagree. Of the
    rest, `limit` keeps as many as it says (see `draw`). Raises InputError when a class is absent, and for an example whose question
    leaves no room for documents.
    """
    left_out = Counter(reason for example in examples if (reason := _unused(example, settings, learnt)))
    kept = [example for example in examples if not _unused(example, settings, learnt)]
    if limit is not None and limit < len(kept):
        left_out["over data.limit"] = len(kept) - limit
        kept = draw(kept, learnt, limit, seed)
    result: list[Row] = [
        {"encoding": _encode(example, tokenizer, settings), "label": learnt[example.condition], "group": group_of(example)}
        for example in kept
    ]
    cut = sum(bool(row["encoding"].truncated) for row in result)
    counts = {title: sum(row["label"] == number for row in result) for number, title in enumerate(titles(learnt))}
    found = ", ".join(f"{count} {title}" for title, count in counts.items())
    logger.info("%s: %s; %d cut to %d tokens; not used: %s", name, found, cut, settings.max_length, dict(left_out) or "none")
    if 0 in counts.values():
        key = "data.train" if name == "training" else "data.validation"
        raise InputError(
            f"{name} data: expected examples of each class, found {found} (not used: {dict(left_out) or 'none'}); check {key} and objective"
        )
    return result


def _unused(example: Example, settings: InputSettings, learnt: Classes) -> str | None:
    if example.condition not in learnt:
        return str(example.condition)
    if settings.pooling == "pairs" and len(example.documents) > 2:
        return "more than two documents"
    return None


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
        """Collate rows into model inputs and `labels`, int64 [batch]."""
        inputs = collate(
            [row["encoding"] for row in batch], self.pad_id, model_type=self.model_type, global_attention=self.settings.global_attention
        )
        return {**inputs, "labels": torch.tensor([row["label"] for row in batch])}
