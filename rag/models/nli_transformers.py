"""Natural language inference by any three-way sequence classifier of transformers."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from transformers import AutoModelForSequenceClassification, BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import Precision, fingerprint, load_model, load_tokenizer, max_positions, pick_device, pick_dtype
from rag.models.nli import NEUTRAL, Entailment, pool
from rag.records import Text

Relation = Literal["entailment", "neutral", "contradiction"]


class TransformersNli:
    """Reads a long document in overlapping windows, the hypothesis whole in each, and pools them by `rag.models.nli.pool`.

    In float32 a judgement does not depend on its batch mates; in bfloat16 rounding may change it a little.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        relations: Sequence[Relation],
        name: str,
        *,
        max_length: int,
        overlap: int,
        batch_size: int,
    ) -> None:
        """Keep a classifier whose outputs are `relations` in this order, as `relations_of` reads them; the lengths are those of `load`."""
        self.model = model
        self.tokenizer = tokenizer
        self.places = [relations.index(relation) for relation in Entailment._fields]
        self.name = name
        self.max_length = max_length
        self.overlap = overlap
        self.batch_size = batch_size

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """One judgement for each pair of a document and a sentence, in order; a document without text is neutral and not asked about.

        Raises InputError for a blank hypothesis, and for one so long that a window has no room for more of the document than the overlap.
        """
        windows: list[dict[str, list[int]]] = []
        owners: list[int] = []
        for place, (premise, hypothesis) in enumerate(pairs):
            self._require_room(hypothesis)
            if premise.strip():
                found = self._windows(premise, hypothesis)
                windows += found
                owners += [place] * len(found)
        parts: list[list[Entailment]] = [[] for _ in pairs]
        for place, part in zip(owners, self._classify(windows), strict=True):
            parts[place].append(part)
        return [pool(found) if found else NEUTRAL for found in parts]

    def _require_room(self, hypothesis: str) -> None:
        if not hypothesis.strip():
            raise InputError("hypothesis: expected a sentence to judge the document by, got blank text")
        taken = len(self.tokenizer("", hypothesis)["input_ids"])
        if self.max_length - taken <= self.overlap:
            raise InputError(
                f"hypothesis '{hypothesis[:60]}...': it takes {taken} of the {self.max_length} tokens of a window, which leaves no room for "
                f"more than the overlap of {self.overlap}; raise nli.max_length, lower nli.overlap, or give a shorter sentence"
            )

    def _windows(self, premise: str, hypothesis: str) -> list[dict[str, list[int]]]:
        encoded: BatchEncoding = self.tokenizer(
            [premise],
            [hypothesis],
            truncation="only_first",
            max_length=self.max_length,
            stride=self.overlap,
            return_overflowing_tokens=True,
        )
        names = [name for name in self.tokenizer.model_input_names if name in encoded]
        return [{name: encoded[name][window] for name in names} for window in range(len(encoded["input_ids"]))]

    @torch.inference_mode()
    def _classify(self, windows: Sequence[dict[str, list[int]]]) -> list[Entailment]:
        order = sorted(range(len(windows)), key=lambda place: (len(windows[place]["input_ids"]), place))
        judged: dict[int, Entailment] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            padded = self.tokenizer.pad([windows[place] for place in batch], padding_side="right", return_tensors="pt")
            logits = self.model(**padded.to(self.model.device)).logits
            probabilities = logits.float().softmax(-1)[:, self.places].tolist()
            judged.update((place, Entailment(*row)) for place, row in zip(batch, probabilities, strict=True))
        return [judged[place] for place in range(len(windows))]


def relations_of(id2label: Mapping[int, str], base: str, labels: Sequence[Relation] | None = None) -> list[Relation]:
    """What each output of a classifier means, in order, by the names in its own config, in any case and order (pitfall: orders differ).

    `labels` names them where the config does not. Raises InputError where neither gives the three relations, and where both do but differ.
    """
    named = [str(id2label[place]).strip().casefold() for place in sorted(id2label)]
    by_name: dict[str, Relation] = {"entailment": "entailment", "neutral": "neutral", "contradiction": "contradiction"}
    own = [by_name[name] for name in named] if sorted(named) == sorted(by_name) else None
    if labels is not None:
        if sorted(labels) != sorted(by_name) or len(named) != len(by_name):
            raise InputError(
                f"nli.labels: expected entailment, neutral and contradiction, once each, got {list(labels)} for {len(named)} outputs"
            )
        if own is not None and own != list(labels):
            raise InputError(f"nli.labels: {list(labels)} is not what {base} itself says, {own}; leave it out")
        return list(labels)
    if own is not None:
        return own
    found = f"nli.base: {base} names its outputs {', '.join(map(repr, named))}"
    if len(named) == len(by_name) and all(name.startswith("label_") for name in named):
        raise InputError(f"{found}; look up their meaning and set nli.labels, such as [contradiction, entailment, neutral]")
    raise InputError(f"{found}; expected entailment, neutral and contradiction, since what is not entailed is not yet contradicted")


def load(
    base: Text,
    revision: Text | None = None,
    labels: tuple[Relation, ...] | None = None,
    max_length: Annotated[int, Field(ge=16)] = 512,
    overlap: Annotated[int, Field(ge=0)] = 128,
    batch_size: Annotated[int, Field(ge=1)] = 16,
    precision: Precision = "auto",
    device: Text = "auto",
) -> TransformersNli:
    """Load a hub id, a folder, or `artifact:NAME`.

    `max_length` is the window in tokens, with hypothesis and special tokens; `overlap` is how many tokens of a document two windows share, more
    than a sentence has, so that each sentence is whole in one of them. `labels` as in `relations_of`.

    Raises InputError for a base that cannot be found, reads fewer tokens, or does not tell the three relations.
    """
    on = pick_device(device)
    tokenizer = load_tokenizer(base, revision)
    model = load_model(AutoModelForSequenceClassification, base, revision, dtype=pick_dtype(precision, on))
    named: dict[int, str] = dict(model.config.id2label)  # type: ignore[arg-type]
    relations = relations_of(named, base, labels)
    limit = max_positions(model)
    if limit is not None and max_length > limit:
        raise InputError(f"nli.max_length={max_length}: {base} reads at most {limit} tokens; lower it")
    model.to(on)  # type: ignore[arg-type]
    dtype = str(model.dtype).removeprefix("torch.")
    name = f"{base}@{fingerprint(model)} {dtype} max_length={max_length} overlap={overlap}"
    return TransformersNli(model, tokenizer, relations, name, max_length=max_length, overlap=overlap, batch_size=batch_size)
