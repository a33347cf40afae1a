"""Turn a question and its documents into token ids: one encoding for training, evaluation and serving."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import control_tokens
from rag.records import Document
from rag.render import neutralise, ranked
from rag.settings import Settings
from sieve.screening import document_text


class InputSettings(Settings):
    """How a set becomes one sequence."""

    max_length: int = Field(ge=16)
    """Tokens of the whole sequence, special tokens included; at most what the model has positions for."""
    global_attention: Literal["first", "question"] = "first"
    """Longformer only: global attention on the first token, or on the question too."""
    pooling: Literal["set", "pairs"] = "set"
    """Score the whole set as one sequence, or each pair of its documents as a set of two, the set's score being the highest of them."""


class Encoding(NamedTuple):
    """One set as the Sieve reads it."""

    ids: list[int]
    """Token ids, without padding."""
    question_end: int
    """Number of leading tokens that hold the first token and the question."""
    truncated: tuple[str, ...]
    """Ids of the documents that were cut."""


def shares(lengths: Sequence[int], budget: int) -> list[int]:
    """Divide `budget` tokens among documents of these lengths.

    Each is granted an equal share; what a short document leaves goes to the longer ones, so nothing is cut while there is room.
    """
    granted = [0] * len(lengths)
    waiting = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    for position, i in enumerate(waiting):
        granted[i] = min(lengths[i], budget // (len(waiting) - position))
        budget -= granted[i]
    return granted


def encode(question: str, documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> Encoding:
    """Encode documents in rank order after the question.

    The layout is `<cls> question <sep> document <sep> ... document <sep>`. Decoder-only tokenizers have no `<cls>`, and their end of
    sequence stands for `<sep>`: a causal model pools its last token, which is then the same in every set.
    The question is kept whole and each document gets its share of what is left. Raises InputError when nothing is left.
    """
    reserved = control_tokens(tokenizer)
    asked = _ids(tokenizer, neutralise(question, reserved))
    separator = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    head = asked if tokenizer.cls_token_id is None else [tokenizer.cls_token_id, *asked]
    budget = settings.max_length - len(head) - 1 - len(documents)
    if budget < len(documents):
        raise InputError(
            f"question of {len(asked)} tokens leaves no room for {len(documents)} documents in {settings.max_length} tokens; "
            "shorten it or set sieve.inputs.max_length"
        )
    order = ranked(documents)
    texts = [document_text(document, settings.max_length, reserved) for document in order]
    bodies = [_ids(tokenizer, text) for text, _ in texts]
    granted = shares([len(body) for body in bodies], budget)
    ids = [*head, separator]
    for body, share in zip(bodies, granted, strict=True):
        ids += [*body[:share], separator]
    cut = [share < len(body) or shortened for body, share, (_, shortened) in zip(bodies, granted, texts, strict=True)]
    return Encoding(ids, len(head), tuple(document.id for document, was_cut in zip(order, cut, strict=True) if was_cut))


def _ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def collate(
    encodings: Sequence[Encoding], pad_id: int, *, model_type: str, global_attention: Literal["first", "question"]
) -> dict[str, torch.Tensor]:
    """Pad a batch on the right: `input_ids` and `attention_mask`, each [batch, longest], int64.

    Longformer models also get `global_attention_mask` of the same shape: 1 on the first token (and on the question where
    `global_attention` says so), 0 on documents and padding. Other models do not know the argument and do not get it.
    """
    longest = max(len(encoding.ids) for encoding in encodings)
    batch = {
        "input_ids": torch.tensor([e.ids + [pad_id] * (longest - len(e.ids)) for e in encodings]),
        "attention_mask": torch.tensor([[1] * len(e.ids) + [0] * (longest - len(e.ids)) for e in encodings]),
    }
    if model_type == "longformer":
        reach = [1 if global_attention == "first" else e.question_end for e in encodings]
        batch["global_attention_mask"] = torch.tensor([[1] * n + [0] * (longest - n) for n in reach])
    return batch
