"""Serve a trained Sieve: scores for sets of documents, and leave-one-out scores that show which document is to blame."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import PreTrainedTokenizerBase

from rag.checkpoint import read_manifest, require_same_base, require_same_settings
from rag.errors import InputError
from rag.models.base import Precision, pick_device, pick_dtype
from rag.records import Document
from rag.render import ranked
from rag.text import near_identical
from sieve.inputs import Encoding, InputSettings, collate, encode
from sieve.model import ModelSettings, load_backbone, load_weights
from sieve.settings import SieveSettings

__all__ = ["Removal", "Screening", "Sieve", "SieveSettings", "load"]


class Screening(NamedTuple):
    """What the Sieve says of one set."""

    score: float
    """P(distracted), from 0 to 1."""
    truncated: tuple[str, ...]
    """Ids of documents that were cut to fit the model."""
    tokens: int
    """Length of the encoded set."""


class Removal(NamedTuple):
    """A set without one document, or without one group of near-identical documents."""

    ids: tuple[str, ...]
    """What was left out, in rank order."""
    rank: int
    """Place of the best-ranked document among `ids`, counted from 1."""
    score: float
    """P(distracted) of what remains."""


class Sieve:
    """A trained Sieve in memory. `load` makes one from a checkpoint folder."""

    def __init__(
        self,
        model: torch.nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        inputs: InputSettings,
        *,
        model_type: str,
        threshold: float,
        batch_tokens: int = 16_384,
    ) -> None:
        """Serve `model` on the device it is on. A forward pass holds at most `batch_tokens` tokens, padding included."""
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.inputs = inputs
        self.model_type = model_type
        self.threshold = threshold
        self.batch_tokens = batch_tokens

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        """Score each question with its own set of documents. Raises InputError for a question that leaves no room for documents."""
        sets = list(zip(questions, documents, strict=True))
        encodings = [encode(question, docs, self.tokenizer, self.inputs) for question, docs in sets]
        scores = self.score(encodings)
        return [Screening(score, e.truncated, len(e.ids)) for score, e in zip(scores, encodings, strict=True)]

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        """For each set, score it without each of its units (paper 002, section 6). One call for all sets and variants.

        Near-identical documents are one unit: removing one copy of a false document leaves the other. A unit that is the whole set
        is not tried, so the list is empty when nothing would remain.
        """
        variants: list[tuple[int, tuple[str, ...], int, list[Document]]] = []
        for index, docs in enumerate(documents):
            order = ranked(docs)
            place = {document.id: position for position, document in enumerate(order, start=1)}
            for unit in units(order):
                rest = [document for document in order if document.id not in unit]
                if rest:
                    variants.append((index, unit, place[unit[0]], rest))
        screenings = self.screen([questions[index] for index, *_ in variants], [rest for *_, rest in variants])
        removals: list[list[Removal]] = [[] for _ in documents]
        for (index, unit, rank, _), screening in zip(variants, screenings, strict=True):
            removals[index].append(Removal(unit, rank, screening.score))
        return removals

    def score(self, encodings: Sequence[Encoding]) -> list[float]:
        """P(distracted) of encoded sets, each from 0 to 1, in order."""
        scores = [0.0] * len(encodings)
        for batch in batches([len(encoding.ids) for encoding in encodings], self.batch_tokens):
            inputs = collate(
                [encodings[i] for i in batch],
                int(self.tokenizer.pad_token_id),
                model_type=self.model_type,
                global_attention=self.inputs.global_attention,
            )
            device = next(self.model.parameters()).device
            with torch.inference_mode():
                logits = self.model(**{name: tensor.to(device) for name, tensor in inputs.items()}).logits
            for i, score in zip(batch, torch.sigmoid(logits.float()).squeeze(-1).tolist(), strict=True):
                scores[i] = score
        return scores


def units(documents: Sequence[Document]) -> list[tuple[str, ...]]:
    """Group near-identical documents; each group is a tuple of ids in the order given."""
    groups: list[list[Document]] = []
    for document in documents:
        home = next((group for group in groups if any(near_identical(document.text, other.text) for other in group)), None)
        if home is None:
            groups.append([document])
        else:
            home.append(document)
    return [tuple(document.id for document in group) for group in groups]


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Split indices into as few batches as fit `budget` tokens each, padding included; an item over the budget goes alone."""
    result: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if result and lengths[i] * (len(result[-1]) + 1) <= budget:
            result[-1].append(i)
        else:
            result.append([i])
    return result


TRAINED_AS = ("model.num_layers", "model.long_context", "inputs.global_attention")
"""Settings under which a checkpoint gives other scores than those it was trained for."""


def load(
    path: Path | str,
    *,
    expected: SieveSettings | None = None,
    device: str = "auto",
    precision: Precision | None = None,
    batch_tokens: int = 16_384,
) -> Sieve:
    """Load a checkpoint folder that `sieve.train` wrote.

    A folder with all weights serves alone; one with an adapter needs its base, which is loaded from where `expected` says, or else
    from where it was when the adapter was trained. `precision` overrides the one it was trained with. Raises InputError for a folder
    that is not a Sieve checkpoint, that was not trained as `expected`, or whose base is missing or another one.
    """
    folder = Path(path)
    manifest = read_manifest(folder, "sieve")
    settings = ModelSettings.model_validate(manifest.settings["model"])
    if expected is not None:
        require_same_settings(folder, manifest, expected.model_dump(mode="json"), TRAINED_AS)
        settings = settings.model_copy(update={"base": expected.model.base, "revision": expected.model.revision})
    inputs = InputSettings.model_validate(manifest.settings["inputs"])
    if manifest.threshold is None:
        raise InputError(f"{folder}: the manifest has no threshold; train the Sieve again")
    place = pick_device(device)
    dtype = pick_dtype(precision or settings.precision, place)
    if settings.lora is None:
        backbone = load_backbone(ModelSettings(base=str(folder)))
        model: torch.nn.Module = backbone.model
    else:
        backbone = load_backbone(settings)
        require_same_base(folder, manifest, backbone.fingerprint)
        model = load_weights(backbone.model, settings, folder, train=False)
    return Sieve(
        model.to(place, dtype),
        backbone.tokenizer,
        inputs,
        model_type=backbone.model.config.model_type,
        threshold=manifest.threshold,
        batch_tokens=batch_tokens,
    )
