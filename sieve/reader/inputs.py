"""Turn a question and one document into the prompt that a reader completes with the answer the document gives."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import control_tokens
from rag.records import Document
from rag.render import neutralise
from rag.settings import Settings
from sieve.screening import document_text

MIN_PASSAGE = 8
"""A document of which fewer tokens fit is not worth reading."""


class InputSettings(Settings):
    """How a question and a document become one sequence."""

    max_length: int = Field(ge=32)
    """Tokens of the prompt; at most what the model has positions for, less the answer."""
    max_answer_tokens: int = Field(default=16, ge=1)
    """Tokens of an answer: longer ones are not taught, and reading stops there."""


class Encoding(NamedTuple):
    """A question with one document, as the reader reads it."""

    ids: list[int]
    """Token ids up to where the answer begins."""
    truncated: bool
    """Whether the document was cut."""


def encode(question: str, document: Document, tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> Encoding:
    """Encode `Question, Passage, Question, Answer:`; a model that reads from left to right needs the question on both sides.

    The question is kept whole and the passage is cut to what is left. Raises InputError when that is next to nothing.
    """
    reserved = control_tokens(tokenizer)
    asked = neutralise(" ".join(question.split()), reserved)
    text, shortened = document_text(document, settings.max_length, reserved)
    head = [*first_tokens(tokenizer), *ids(tokenizer, f"Question: {asked}\nPassage:")]
    body = ids(tokenizer, f" {text}")
    tail = ids(tokenizer, f"\nQuestion: {asked}\nAnswer:")
    room = settings.max_length - len(head) - len(tail)
    if room < min(MIN_PASSAGE, len(body)):
        raise InputError(
            f"question of {len(ids(tokenizer, asked))} tokens, read twice, leaves no room for a document in {settings.max_length} tokens; "
            "shorten it or set sieve.inputs.max_length"
        )
    return Encoding([*head, *body[:room], *tail], shortened or room < len(body))


def first_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The token that a text begins with, for tokenizers that put one there."""
    alone: list[int] = tokenizer("")["input_ids"]
    return alone if alone == [tokenizer.bos_token_id] else []


def ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Ids of a text without special tokens."""
    found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


def answer_ids(answer: str | None, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids of what the reader says: the answer and the end of sequence, or the end alone where the document gives no answer."""
    return [*(ids(tokenizer, f" {neutralise(answer, control_tokens(tokenizer))}") if answer else []), int(tokenizer.eos_token_id)]


def left_pad(rows: Sequence[Sequence[int]], pad_id: int) -> dict[str, torch.Tensor]:
    """Pad on the left, where generation needs it: `input_ids`, `attention_mask` and `position_ids`, each [rows, longest], int64."""
    longest = max(len(row) for row in rows)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return {
        "input_ids": torch.tensor([[pad_id] * (longest - len(row)) + list(row) for row in rows]),
        "attention_mask": mask,
        "position_ids": (mask.cumsum(-1) - 1).clamp(min=0),
    }
