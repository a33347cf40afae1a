"""Turn a question and one document into windows of tokens, and answers in the text into places in them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
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

MIN_ROOM = 16
"""A window with room for fewer tokens of the document is not worth reading."""
_BATCH = 512


class InputSettings(Settings):
    """How a question and a document become windows."""

    max_length: int = Field(ge=32)
    """Tokens of a window, question and special tokens included."""
    stride: int = Field(ge=0)
    """Tokens of the document that two neighbouring windows share, so that an answer on a border is whole in one of them."""
    max_answer_tokens: int = Field(default=24, ge=1)
    """Longest span that counts as an answer."""
    max_windows: int = Field(default=16, ge=1)
    """Windows of one document that are read; what is left of a longer one is not, and counts as cut."""


class Window(NamedTuple):
    """A question with a part of a document, as the encoder reads it."""

    ids: list[int]
    segments: list[int]
    """0 for the question, 1 for the document, for encoders that tell them apart."""
    first: int
    """Place of the first token of the document."""
    offsets: list[tuple[int, int]]
    """Where each of the document's tokens stands in the text: characters from and to."""


class Encoding(NamedTuple):
    """A question with one document."""

    text: str
    """The document as the encoder reads it: title and text, without control tokens."""
    windows: list[Window]
    truncated: bool
    """Whether the document is longer than its windows."""


def encode(pairs: Iterable[tuple[str, Document]], tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> Iterator[Encoding]:
    """Encode questions, each with one document; lazily, in batches.

    The question is kept whole. Raises InputError for one that leaves no room for a document.
    """
    reserved = control_tokens(tokenizer)
    source = iter(pairs)
    while batch := list(islice(source, _BATCH)):
        yield from _encode(batch, reserved, tokenizer, settings)


def _encode(
    batch: Sequence[tuple[str, Document]], reserved: Sequence[str], tokenizer: PreTrainedTokenizerBase, settings: InputSettings
) -> Iterator[Encoding]:
    questions = [neutralise(" ".join(question.split()), reserved) for question, _ in batch]
    for question in dict.fromkeys(questions):
        asked = len(tokenizer(question, add_special_tokens=False)["input_ids"])
        room = settings.max_length - asked - tokenizer.num_special_tokens_to_add(pair=True)
        if room < max(MIN_ROOM, settings.stride + 1):
            raise InputError(
                f"question of {asked} tokens leaves no room for a document in {settings.max_length} tokens, of which {settings.stride} "
                "overlap; shorten it or set sieve.inputs.max_length"
            )
    texts = [document_text(document, settings.max_length * settings.max_windows, reserved) for _, document in batch]
    encoded = tokenizer(
        questions,
        [text for text, _ in texts],
        truncation="only_second",
        max_length=settings.max_length,
        stride=settings.stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )
    windows: list[list[Window]] = [[] for _ in batch]
    for row, owner in enumerate(encoded["overflow_to_sample_mapping"]):
        places = [place for place, part in enumerate(encoded.sequence_ids(row)) if part == 1]
        first, end = (places[0], places[-1] + 1) if places else (0, 0)
        ids, segments = encoded["input_ids"][row], encoded["token_type_ids"][row]
        windows[owner].append(Window(ids, segments, first, encoded["offset_mapping"][row][first:end]))
    for (text, cut), found in zip(texts, windows, strict=True):
        yield Encoding(text, found[: settings.max_windows], cut or len(found) > settings.max_windows)


def places(window: Window, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first and last token, counted in the window, of each span of characters that lies in it whole."""
    if not window.offsets:
        return []
    starts, ends = [start for start, _ in window.offsets], [end for _, end in window.offsets]
    inside = [(start, end) for start, end in spans if starts[0] <= start and end <= ends[-1]]
    return [(window.first + bisect_right(ends, start), window.first + bisect_left(starts, end) - 1) for start, end in inside]


def pad(windows: Sequence[Window], pad_id: int, *, segments: bool) -> dict[str, torch.Tensor]:
    """Windows as a batch padded on the right: `input_ids`, `attention_mask`, with `segments` `token_type_ids`; int64 [windows, longest]."""
    longest = max(len(window.ids) for window in windows)

    def filled(rows: Iterable[Sequence[int]], value: int) -> torch.Tensor:
        return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])

    told = {"token_type_ids": filled((window.segments for window in windows), 0)} if segments else {}
    return {
        "input_ids": filled((window.ids for window in windows), pad_id),
        "attention_mask": filled(([1] * len(window.ids) for window in windows), 0),
        **told,
    }
