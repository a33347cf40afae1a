"""Turn files of Examples into the reader's training rows: one for each window of each document of which it is known what it says."""

import logging
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

import torch
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.records import Document, DocumentLabel, Example
from sieve.extractive.answers import bare
from sieve.extractive.inputs import Encoding, InputSettings, Window, encode, pad, places

logger = logging.getLogger(__name__)

SILENT = (DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL)
"""Documents that give no answer to the question."""
SPEAKING = (DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT, DocumentLabel.NEGATED)
"""Documents that give one. Adversarial ones are for testing only, as in the paper (section 3.2)."""


class Row(TypedDict):
    """One training row."""

    window: Window
    starts: list[int]
    """Tokens at which an answer begins; the first token where the window holds none."""
    ends: list[int]
    """Tokens at which one ends."""
    input_ids: list[int]
    """Those of the window; rows of similar length share a batch."""


def speaks(document: Document) -> bool | None:
    """Whether a document answers its question; none where that is not known."""
    if document.label in SILENT:
        return False
    return True if document.label in SPEAKING and document.answer is not None else None


def wordings(example: Example, document: Document) -> tuple[str, ...]:
    """Spellings of what the document answers, one that is denied without its `not`."""
    own = bare(document.answer or "")
    return tuple(dict.fromkeys((own, *example.answers))) if document.label is DocumentLabel.ANSWERABLE else (own,)


def stretches(text: str, answers: Iterable[str]) -> list[tuple[int, int]]:
    """Where the answers stand in the text as whole words: characters from and to."""
    found: set[tuple[int, int]] = set()
    for answer in answers:
        words = answer.split()
        if words:
            pattern = r"\s+".join(map(re.escape, words))
            found |= {match.span() for match in re.finditer(rf"(?<!\w){pattern}(?!\w)", text)}
    return sorted(found)


def documents(examples: Iterable[Example], left_out: Counter[str]) -> Iterator[tuple[Example, Document]]:
    """Each different question and document of which it is known what it says, with the example that it is from."""
    seen: set[tuple[str, str, str]] = set()
    for example in examples:
        for document in example.documents:
            key = (example.question, document.title, document.text)
            if key in seen:
                continue
            seen.add(key)
            if not document.text.strip():
                left_out["blank"] += 1
            elif speaks(document) is None:
                left_out[f"label {document.label}" if document.label not in SPEAKING else "answer not known"] += 1
            else:
                yield example, document


def rows(
    examples: Iterable[Example], tokenizer: PreTrainedTokenizerBase, settings: InputSettings, *, limit: int | None, seed: int, name: str
) -> list[Row]:
    """The rows of all documents, or `limit` of them drawn by the seed; log how many were kept and left out, by reason.

    Of a document that answers, windows without the answer are silent rows. Raises InputError when rows of one of the two kinds are
    missing, and for a question that leaves no room for a document.
    """
    left_out: Counter[str] = Counter()
    usable = list(documents(examples, left_out))
    if limit is not None and limit < len(usable):
        usable = [usable[place] for place in sorted(random.Random(seed).sample(range(len(usable)), limit))]
    found: list[Row] = []
    encodings = encode(((example.question, document) for example, document in usable), tokenizer, settings)
    for (example, document), encoding in zip(usable, encodings, strict=True):
        if not speaks(document):
            found += [_row(window, []) for window in encoding.windows]
            continue
        of_document = _speaking(encoding, wordings(example, document), settings.max_answer_tokens)
        if of_document is None:
            left_out["answer not in what is read of the text"] += 1
        else:
            found += of_document
    speaking = sum(row["starts"] != [0] for row in found)
    logger.info(
        "%s: %d windows with an answer and %d without; not used: %s", name, speaking, len(found) - speaking, dict(left_out) or "none"
    )
    if speaking in (0, len(found)):
        raise InputError(
            f"{name} data: expected documents with a known `answer` and documents labelled unanswerable or neutral, found {speaking} windows with "
            f"and {len(found) - speaking} without; check data.{'train' if name == 'training' else name}"
        )
    return found


def _speaking(encoding: Encoding, answers: Sequence[str], max_answer_tokens: int) -> list[Row] | None:
    spans = stretches(encoding.text, answers)
    of_windows = [
        [(first, last) for first, last in places(window, spans) if last - first < max_answer_tokens] for window in encoding.windows
    ]
    if not any(of_windows):
        return None
    return [_row(window, held) for window, held in zip(encoding.windows, of_windows, strict=True)]


def _row(window: Window, held: Sequence[tuple[int, int]]) -> Row:
    starts, ends = sorted({first for first, _ in held}) or [0], sorted({last for _, last in held}) or [0]
    return Row(window=window, starts=starts, ends=ends, input_ids=window.ids)


class Collator:
    """Pads rows of a batch on the right."""

    def __init__(self, pad_id: int, *, segments: bool) -> None:
        """Pad with this id; `segments` says whether the encoder is told which tokens are the document's."""
        self.pad_id, self.segments = pad_id, segments

    def __call__(self, batch: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Collate rows into model inputs and `labels`, int8 [rows, longest, 2]: 1 at each start and end, 0 elsewhere, -1 where none can be."""
        inputs = pad([row["window"] for row in batch], self.pad_id, segments=self.segments)
        labels = torch.full((*inputs["input_ids"].shape, 2), -1, dtype=torch.int8)
        for number, row in enumerate(batch):
            window = row["window"]
            labels[number, 0] = 0
            labels[number, window.first : window.first + len(window.offsets)] = 0
            labels[number, row["starts"], 0] = 1
            labels[number, row["ends"], 1] = 1
        return {**inputs, "labels": labels}
