"""The judge of contested answers: a cross-encoder that says whether a text states that this is the answer to exactly this question."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rag.models.base import control_tokens
from rag.render import neutralise
from sieve.extractive.inputs import Window, pad
from sieve.screening import batches

LABELS = ("states", "contradicts", "neither")
"""What a text says of an answer: it is the answer to the question; another one is, or this one is denied; it answers another question."""
MAX_LENGTH = 160
"""Tokens of a question, an answer and a text together; the text is cut."""


class Claim(NamedTuple):
    """An answer to a question, and a text that may state it."""

    question: str
    answer: str
    text: str


class Verdict(NamedTuple):
    """How likely a text says each of an answer; the three sum to 1."""

    states: float
    contradicts: float
    neither: float


class Judge:
    """A trained judge in memory."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, segments: bool, batch_tokens: int = 16_384) -> None:
        """Serve `model` on the device it is on; a forward pass holds at most `batch_tokens` tokens, padding included."""
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.segments = segments
        self.batch_tokens = batch_tokens

    @torch.inference_mode()
    def judge(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Judge each claim, in order. Raises RuntimeError when the model's logits are not numbers."""
        rows = encode(claims, self.tokenizer)
        found: dict[int, Verdict] = {}
        for batch in batches([len(row["input_ids"]) for row in rows], self.batch_tokens):
            inputs = collate([rows[i] for i in batch], int(self.tokenizer.pad_token_id), segments=self.segments)
            logits = self.model(**{name: tensor.to(self.model.device) for name, tensor in inputs.items()}).logits.float()
            if not logits.isfinite().all():
                raise RuntimeError("the judge's logits are not numbers")
            found |= {i: Verdict(*row) for i, row in zip(batch, logits.softmax(-1).tolist(), strict=True)}
        return [found[i] for i in range(len(claims))]


def encode(claims: Sequence[Claim], tokenizer: PreTrainedTokenizerBase) -> list[dict[str, list[int]]]:
    """`question answer` and the text, as two segments; the question is never cut, the text is where both are too long."""
    if not claims:
        return []
    reserved = control_tokens(tokenizer)
    asked = [neutralise(" ".join(f"{claim.question} {claim.answer}".split()), reserved) for claim in claims]
    texts = [neutralise(" ".join(claim.text.split()), reserved) for claim in claims]
    encoded = tokenizer(asked, texts, truncation="longest_first", max_length=MAX_LENGTH, return_token_type_ids=True)
    return [
        {"input_ids": ids, "token_type_ids": segments}
        for ids, segments in zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
    ]


def collate(rows: Sequence[dict[str, list[int]]], pad_id: int, *, segments: bool) -> dict[str, torch.Tensor]:
    """Pad rows on the right: `input_ids`, `attention_mask` and, with `segments`, `token_type_ids`, each int64 [rows, longest]."""
    return pad([Window(row["input_ids"], row["token_type_ids"], 0, []) for row in rows], pad_id, segments=segments)
