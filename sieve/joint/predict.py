"""Serve a trained Sieve of the paper's form."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import torch
from peft import PeftModel
from transformers import PreTrainedTokenizerBase

from rag.calibration import probability
from rag.checkpoint import Manifest, require_same_base, require_same_settings
from rag.errors import InputError
from rag.models.base import Precision, pick_device, pick_dtype
from rag.records import Document
from rag.render import as_documents, ranked
from sieve.data import Objective, outputs
from sieve.joint.inputs import Encoding, InputSettings, collate, encode
from sieve.joint.model import ModelSettings, load_backbone, load_weights
from sieve.joint.settings import SieveSettings
from sieve.screening import Removal, Screening, batches, groups, units


class Embedding(NamedTuple):
    """What the classification head reads of a set, and what it makes of it."""

    score: float
    """P(distracted), from 0 to 1."""
    vector: tuple[float, ...]
    """The backbone's last hidden state at `<cls>`, or at the last token of a decoder: as many numbers as the model is wide."""


PartKey = tuple[float, str, tuple[tuple[str, str], ...]]
"""What the score of a part depends on: the temperature, the question, and title and text of its documents in rank order."""


class Sieve:
    """A trained Sieve in memory. `load` makes one from a checkpoint folder.

    It scores sets by parts. With `inputs.pooling=set` the only part is the whole set. With `pairs` each pair of documents is one, in
    rank order, near-identical documents standing in it as one; a set of fewer than two different documents is one part as it is,
    scored by the model as a set of one. The score of a set is the highest of its parts': documents disagree when any two do. A set
    has K(K-1)/2 pairs.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        inputs: InputSettings,
        *,
        model_type: str,
        threshold: float,
        temperature: float = 1.0,
        batch_tokens: int = 16_384,
    ) -> None:
        """Serve `model` on the device it is on. A forward pass holds at most `batch_tokens` tokens, padding included."""
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.inputs = inputs
        self.model_type = model_type
        self.threshold = threshold
        self.temperature = temperature
        self.batch_tokens = batch_tokens
        self._screened: dict[PartKey, float] = {}

    @property
    def models(self) -> tuple[torch.nn.Module, ...]:
        """The models that a decision takes."""
        return (self.model,)

    def forget(self) -> None:
        """Remember nothing of the last screening: the next call costs what it costs for a set that was never seen."""
        self._screened = {}

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[Screening]:
        """Score each question with its own set of documents, best first. Plain texts get the ids `d1`, `d2`, ... in each set.

        Raises InputError for a question that leaves no room for documents, and for documents that are not text.
        """
        sets = [(question, self.parts(as_documents(docs))) for question, docs in zip(questions, documents, strict=True)]
        encodings = [[encode(question, part, self.tokenizer, self.inputs) for part in parts] for question, parts in sets]
        scores = iter(self.score([encoding for of_set in encodings for encoding in of_set]))
        screenings: list[Screening] = []
        screened: dict[PartKey, float] = {}
        for (question, parts), of_set in zip(sets, encodings, strict=True):
            of_parts = {self._key(question, part): next(scores) for part in parts}
            cut = dict.fromkeys(name for encoding in of_set for name in encoding.truncated)
            screenings.append(Screening(pooled(list(of_parts.values())), tuple(cut), sum(len(encoding.ids) for encoding in of_set)))
            screened |= of_parts
        self._screened = screened
        return screenings

    def embed(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Embedding]:
        """Score each set and give what its classification head reads; of a set in several parts, that of the highest one.

        Raises InputError as `screen` does.
        """
        sets = [(question, self.parts(docs)) for question, docs in zip(questions, documents, strict=True)]
        encodings = [encode(question, part, self.tokenizer, self.inputs) for question, parts in sets for part in parts]
        found = [Embedding(0.0, ())] * len(encodings)
        hidden: list[torch.Tensor] = []
        classifier: Any = self.model.get_base_model() if isinstance(self.model, PeftModel) else self.model
        hook = classifier.base_model.register_forward_hook(lambda _, args, output: hidden.append(output[0]))
        try:
            for batch, inputs, odds in self._forward(encodings):
                vectors = hidden.pop()
                # The first token of an encoder is `<cls>`; a decoder, which has none, is read at the last token.
                last = (inputs["attention_mask"].sum(1) - 1).tolist() if self.tokenizer.cls_token_id is None else [0] * len(batch)
                read = vectors[list(range(len(batch))), last].float().cpu()
                for i, score, vector in zip(batch, odds.tolist(), read.tolist(), strict=True):
                    found[i] = Embedding(probability(score, self.temperature), tuple(vector))
        finally:
            hook.remove()
        of_parts = iter(found)
        return [max((next(of_parts) for _ in parts), key=lambda embedding: embedding.score) for _, parts in sets]

    def parts(self, documents: Sequence[Document]) -> list[list[Document]]:
        """What the model reads of a set, a sequence for each part: at least one."""
        if self.inputs.pooling == "set":
            return [list(documents)]
        first = [group[0] for group in groups(ranked(documents))]
        return [list(pair) for pair in combinations(first, 2)] or [first]

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[list[Removal]]:
        """For each set, score it without each of its units (paper 002, section 6). One call for all sets and variants.

        Documents are as `screen` takes them. Near-identical ones are one unit: removing one copy of a false document leaves the other. A
        unit that is the whole set is not tried, so the list is empty when nothing would remain.

        With `inputs.pooling=pairs`, a set of three documents or more that was in the last call of `screen` costs no forward pass:
        what remains holds no pair that was not scored. Of a set of two, either document is left alone and scored so.
        """
        variants: list[tuple[int, tuple[str, ...], int, list[Document]]] = []
        for index, docs in enumerate(documents):
            order = ranked(as_documents(docs))
            place = {document.id: position for position, document in enumerate(order, start=1)}
            for unit in units(order):
                rest = [document for document in order if document.id not in unit]
                if rest:
                    variants.append((index, unit, place[unit[0]], rest))
        scores = self._rescore([questions[index] for index, *_ in variants], [rest for *_, rest in variants])
        removals: list[list[Removal]] = [[] for _ in documents]
        for (index, unit, rank, _), score in zip(variants, scores, strict=True):
            removals[index].append(Removal(unit, rank, score))
        return removals

    def _rescore(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> Iterator[float]:
        """Scores of sets, of which only those parts are read that occur for the first time since the last screening."""
        sets = [(question, self.parts(docs)) for question, docs in zip(questions, documents, strict=True)]
        known = dict(self._screened)
        new = {key: part for question, parts in sets for part in parts if (key := self._key(question, part)) not in known}
        encodings = [encode(question, part, self.tokenizer, self.inputs) for (_, question, _), part in new.items()]
        known |= zip(new, self.score(encodings), strict=True)
        return (pooled([known[self._key(question, part)] for part in parts]) for question, parts in sets)

    def _key(self, question: str, part: Sequence[Document]) -> PartKey:
        return self.temperature, question, tuple((document.title, document.text) for document in ranked(part))

    def score(self, encodings: Sequence[Encoding]) -> list[float]:
        """P(distracted) of encoded sequences, each from 0 to 1, in order."""
        scores = [0.0] * len(encodings)
        for batch, _, odds in self._forward(encodings):
            for i, score in zip(batch, odds.tolist(), strict=True):
                scores[i] = probability(score, self.temperature)
        return scores

    def _forward(self, encodings: Sequence[Encoding]) -> Iterator[tuple[list[int], dict[str, torch.Tensor], torch.Tensor]]:
        """Run the model in batches: which of the encodings are in one, what it read, and the log-odds that it gave."""
        for batch in batches([len(encoding.ids) for encoding in encodings], self.batch_tokens):
            inputs = collate(
                [encodings[i] for i in batch],
                int(self.tokenizer.pad_token_id),
                model_type=self.model_type,
                global_attention=self.inputs.global_attention,
            )
            device = next(self.model.parameters()).device
            inputs = {name: tensor.to(device) for name, tensor in inputs.items()}
            with torch.inference_mode():
                odds = log_odds(self.model(**inputs).logits)
            yield batch, inputs, odds


def log_odds(logits: torch.Tensor) -> torch.Tensor:
    """Log-odds of class 1, float32 [batch], from one logit a row (binary objectives) or one for each of three classes.

    The sigmoid of it is P(distracted): of three classes, the softmax of the class `conflict`.
    """
    logits = logits.float()
    if logits.shape[-1] == 1:
        return logits.squeeze(-1)
    return logits[:, 1] - torch.logsumexp(logits[:, [0, 2]], dim=-1)


def pooled(scores: Sequence[float]) -> float:
    """The score of a set from those of its parts: the highest, or no number where one of them is none, so that the set is not passed."""
    return math.nan if any(map(math.isnan, scores)) else max(scores)


TRAINED_AS = ("model.num_layers", "model.long_context", "inputs.global_attention", "inputs.pooling")
"""Settings under which a checkpoint gives other scores than those it was trained for."""


def load(
    folder: Path,
    manifest: Manifest,
    *,
    expected: SieveSettings | None,
    device: str,
    precision: Precision | None,
    batch_tokens: int,
    gate: bool,
) -> Sieve:
    """Load a checkpoint of this form, see `sieve.predict.load`.

    Raises InputError when it is no gate where one is wanted or was not trained as `expected`, and when its base is missing or another one.
    """
    if manifest.threshold is None:
        raise InputError(f"{folder}: the manifest has no threshold; train the Sieve again")
    objective: Objective = manifest.settings.get("objective", "conflict")
    if gate and objective == "unanswerable":
        raise InputError(
            f"{folder}: trained with objective=unanswerable, so its scores are P(unanswerable) and it cannot screen for distracted sets; "
            "use a checkpoint that was trained with objective=conflict or objective=threeway"
        )
    settings = ModelSettings.model_validate(manifest.settings["model"])
    inputs = InputSettings.model_validate(manifest.settings["inputs"])
    if expected is not None:
        trained = {"model": settings.model_dump(mode="json"), "inputs": inputs.model_dump(mode="json")}
        require_same_settings(folder, manifest.model_copy(update={"settings": trained}), expected.model_dump(mode="json"), TRAINED_AS)
        settings = settings.model_copy(update={"base": expected.model.base, "revision": expected.model.revision})
    place = pick_device(device)
    dtype = pick_dtype(precision or settings.precision, place)
    if settings.lora is None:
        backbone = load_backbone(ModelSettings(base=str(folder)), outputs(objective))
        model: torch.nn.Module = backbone.model
    else:
        backbone = load_backbone(settings, outputs(objective))
        require_same_base(folder, manifest, backbone.fingerprint)
        model = load_weights(backbone.model, settings, folder, train=False)
    return Sieve(
        model.to(place, dtype),
        backbone.tokenizer,
        inputs,
        model_type=backbone.model.config.model_type,
        threshold=manifest.threshold,
        temperature=manifest.temperature,
        batch_tokens=batch_tokens,
    )
