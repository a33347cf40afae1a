"""Turn files of Examples into the reader's training rows: one for each document of which it is known what it says."""

import logging
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

import torch
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.records import Document, DocumentLabel, Example
from rag.text import contains
from sieve.reader.agreement import DENIAL, compatible
from sieve.reader.inputs import InputSettings, answer_ids, encode, left_pad

logger = logging.getLogger(__name__)

SILENT = (DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL)
"""Documents that give no answer to the question."""
SPEAKING = (DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT, DocumentLabel.NEGATED)
"""Documents that give one. Adversarial ones are for testing only, as in paper 002, section 3.2."""


def disagree(first: Document, second: Document) -> bool | None:
    """Whether two documents give answers that cannot both be right; none where it is not known what one of them says."""
    said = ["" if document.label in SILENT else document.answer for document in (first, second)]
    if None in said:
        return None
    return all(said) and not compatible(str(said[0]), str(said[1]))


class Row(TypedDict):
    """One training row."""

    input_ids: list[int]
    """Prompt and answer."""
    answer_length: int
    """How many of the last ids are the answer and its end."""
    group: str
    """The document's label."""
    length: int
    """Of `input_ids`; rows of similar length share a batch."""


def rows(
    examples: Iterable[Example],
    tokenizer: PreTrainedTokenizerBase,
    settings: InputSettings,
    *,
    silent_per_answer: float | None,
    seed: int,
    name: str,
) -> list[Row]:
    """One row for each different question and document; log how many were kept and left out, by reason.

    At most `silent_per_answer` rows without an answer are kept for each row with one (all where it is none), drawn by the seed.
    Raises InputError when rows of one of the two kinds are missing, and for a question that leaves no room for a document.
    """
    left_out: Counter[str] = Counter()
    speaking: list[Row] = []
    silent: list[Row] = []
    seen: set[tuple[str, str, str]] = set()
    for example in examples:
        for document in example.documents:
            key = (example.question, document.title, document.text)
            if key in seen:
                continue
            seen.add(key)
            if reason := _unusable(document, tokenizer, settings):
                left_out[reason] += 1
                continue
            row = _row(example, document, tokenizer, settings)
            if row is None:
                left_out["answer may stand in the part that was cut"] += 1
            else:
                (silent if document.label in SILENT else speaking).append(row)
    if silent_per_answer is not None and len(silent) > (most := round(len(speaking) * silent_per_answer)):
        left_out["more documents without an answer than silent_per_answer"] = len(silent) - most
        silent = random.Random(seed).sample(silent, most)
    logger.info("%s: %d documents with an answer and %d without; not used: %s", name, len(speaking), len(silent), dict(left_out) or "none")
    if not speaking or not silent:
        raise InputError(
            f"{name} data: expected documents with a known `answer` and documents labelled unanswerable or neutral, found {len(speaking)} "
            f"and {len(silent)}; build the data with a source that fills `answer`, and check data.{'train' if name == 'training' else name}"
        )
    return [*speaking, *silent]


def _unusable(document: Document, tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> str | None:
    if not document.text.strip():
        return "blank"
    if document.label in SILENT:
        return None
    if document.label not in SPEAKING:
        return f"label {document.label}"
    if document.answer is None:
        return "answer not known"
    if not contains(document.text, document.answer.removeprefix(DENIAL)):
        return "answer not in the text"
    if len(answer_ids(document.answer, tokenizer)) > settings.max_answer_tokens:
        return "answer longer than max_answer_tokens"
    return None


def _row(example: Example, document: Document, tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> Row | None:
    try:
        prompt = encode(example.question, document, tokenizer, settings)
    except InputError as error:
        raise InputError(f"example '{example.id}': {error}") from error
    if prompt.truncated and document.label in SPEAKING:
        return None
    answer = answer_ids(document.answer if document.label in SPEAKING else None, tokenizer)
    return Row(input_ids=[*prompt.ids, *answer], answer_length=len(answer), group=str(document.label), length=len(prompt.ids) + len(answer))


class Collator:
    """Pads rows of a batch on the left, so that all answers end at the right edge."""

    def __init__(self, pad_id: int) -> None:
        """Pad with this id."""
        self.pad_id = pad_id

    def __call__(self, batch: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Collate rows into model inputs, `labels` int64 [batch, longest answer] (-100 is no label) and `logits_to_keep`.

        The last `logits_to_keep` positions are the answers and the one before: no other logits are computed.
        """
        longest = max(row["answer_length"] for row in batch)
        labels = [[-100] * (longest - row["answer_length"]) + row["input_ids"][-row["answer_length"] :] for row in batch]
        inputs = left_pad([row["input_ids"] for row in batch], self.pad_id)
        return {**inputs, "labels": torch.tensor(labels), "logits_to_keep": torch.arange(-longest - 1, -1)}
