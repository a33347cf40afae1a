"""Serve a trained reader: what each document says, how far any two of them disagree, and which one to leave out."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rag.calibration import logit, probability
from rag.checkpoint import Manifest, require_same_base
from rag.models.base import Precision, pick_device, pick_dtype
from rag.records import Document
from rag.render import as_documents, ranked
from sieve.reader.agreement import AgreementSettings, Contest, Reading, compatible, set_score
from sieve.reader.inputs import Encoding, InputSettings, answer_ids, encode
from sieve.reader.model import ModelSettings, load_adapter, load_backbone
from sieve.reader.prefill import Prefill
from sieve.screening import Removal, Screening, batches, groups
from sieve.threshold import DEFAULT

BOTH_ANSWER = 0.05
"""Documents that both answer with a lower probability than this are not compared: they could not disagree with a higher one. A document
that answers with a lower one is not asked what."""


class Passage(NamedTuple):
    """All that the reading of a document depends on."""

    question: str
    title: str
    text: str


class _Set(NamedTuple):
    """One question's documents, near-identical ones together, best first, and the passage that stands for each group."""

    groups: list[list[Document]]
    passages: list[Passage]


class ReaderSieve:
    """A trained reader in memory, with the interface of `sieve.predict.Sieve`; `sieve.predict.load` makes either.

    Each document is read alone, so a score depends neither on the order of the documents nor on those that say nothing, and leaving
    one out costs no further reading. The score of a set is that of its worst disagreement (`agreement.set_score`), at the temperature;
    near-identical documents are read once. A single document scores the floor: it has nothing to disagree with.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        inputs: InputSettings,
        agreement: AgreementSettings,
        *,
        threshold: float,
        temperature: float = 1.0,
        batch_tokens: int = 16_384,
        remembered: int = 4_096,
    ) -> None:
        """Serve `model` on the device it is on.

        A forward pass holds at most `batch_tokens` tokens, padding included. When more than `remembered` readings have been kept, the next
        call begins with none.
        """
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.inputs = inputs
        self.agreement = agreement
        self.threshold = threshold
        self.temperature = temperature
        self.batch_tokens = batch_tokens
        self.remembered = remembered
        self._readings: dict[Passage, Reading] = {}
        self._log_likelihoods: dict[tuple[Passage, str], float] = {}

    def forget(self) -> None:
        """Remember no reading: the next call costs what it costs for documents that were never seen."""
        self._readings, self._log_likelihoods = {}, {}

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[Screening]:
        """Score each question with its own set of documents, best first. Plain texts get the ids `d1`, `d2`, ... in each set.

        Raises InputError for a question that leaves no room for documents, and for documents that are not text.
        """
        sets = _sets(questions, documents)
        encodings = self._encode(sets)
        contests = self._contests(sets, encodings)
        return [
            Screening(
                score=self._score(list(of_set.values())),
                truncated=tuple(
                    document.id
                    for group, passage in zip(item.groups, item.passages, strict=True)
                    for document in group
                    if encodings[passage].truncated
                ),
                tokens=sum(len(encodings[passage].ids) for passage in item.passages),
                readings={
                    document.id: self._said(passage)
                    for group, passage in zip(item.groups, item.passages, strict=True)
                    for document in group
                },
            )
            for item, of_set in zip(sets, contests, strict=True)
        ]

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[list[Removal]]:
        """For each set, score it without each of its groups of near-identical documents (paper 002, section 6).

        Documents are as `screen` takes them. A group that is the whole set is not tried. What was read for `screen` is remembered, so this
        costs nothing after it.
        """
        sets = _sets(questions, documents)
        removals: list[list[Removal]] = []
        for item, of_set in zip(sets, self._contests(sets, self._encode(sets)), strict=True):
            place = {document.id: n for n, document in enumerate(ranked([d for group in item.groups for d in group]), start=1)}
            removals.append(
                [
                    Removal(
                        ids=tuple(document.id for document in group),
                        rank=place[group[0].id],
                        score=self._score([contest for pair, contest in of_set.items() if left_out not in pair]),
                    )
                    for left_out, group in enumerate(item.groups)
                    if len(item.groups) > 1
                ]
            )
        return removals

    def contests(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[tuple[Document, Document, Contest]]]:
        """For each set, its pairs of documents whose answers cannot both be right; one document stands for all near-identical ones."""
        sets = _sets(questions, documents)
        return [
            [(item.groups[i][0], item.groups[j][0], contest) for (i, j), contest in of_set.items()]
            for item, of_set in zip(sets, self._contests(sets, self._encode(sets)), strict=True)
        ]

    def _score(self, contests: Sequence[Contest]) -> float:
        return probability(logit(set_score(contests, self.agreement)), self.temperature)

    def _said(self, passage: Passage) -> str:
        reading = self._readings[passage]
        return reading.answer if reading.silent < 0.5 else ""

    def _encode(self, sets: Sequence[_Set]) -> dict[Passage, Encoding]:
        first = {passage: group[0] for item in sets for group, passage in zip(item.groups, item.passages, strict=True)}
        return {passage: encode(passage.question, document, self.tokenizer, self.inputs) for passage, document in first.items()}

    def _contests(self, sets: Sequence[_Set], encodings: dict[Passage, Encoding]) -> list[dict[tuple[int, int], Contest]]:
        """Of each set, the contests by the places of the two groups. Reads what is not remembered."""
        if len(self._readings) > self.remembered:
            self.forget()
        return [of_set for part in self._parts(sets, encodings) for of_set in self._compare(part, encodings)]

    def _parts(self, sets: Sequence[_Set], encodings: dict[Passage, Encoding]) -> list[list[_Set]]:
        """The sets in parts of at most `batch_tokens` tokens each, since a part's prompts are kept until its answers have been compared."""
        parts: list[list[_Set]] = []
        room = 0
        for item in sets:
            tokens = sum(len(encodings[passage].ids) for passage in item.passages)
            if tokens > room or not parts:
                parts.append([])
                room = self.batch_tokens
            parts[-1].append(item)
            room -= tokens
        return parts

    def _compare(self, sets: Sequence[_Set], encodings: dict[Passage, Encoding]) -> list[dict[tuple[int, int], Contest]]:
        """Remember what each passage says, and how likely each would say what its rivals say; give the contests of each set."""
        unread = dict.fromkeys(passage for item in sets for passage in item.passages if passage not in self._readings)
        places = self._prefill(list(unread), encodings)
        for prefill in dict.fromkeys(prefill for prefill, _ in places.values()):
            self._read(prefill, [passage for passage, (home, _) in places.items() if home is prefill])
        rivals = [[pair for pair in combinations(range(len(item.passages)), 2) if self._may_disagree(item, pair)] for item in sets]
        unknown = dict.fromkeys(
            key for item, pairs in zip(sets, rivals, strict=True) for pair in pairs for key in self._crossed(item, pair)
            if key not in self._log_likelihoods
        )  # fmt: skip
        places |= self._prefill(list(dict.fromkeys(passage for passage, _ in unknown if passage not in places)), encodings)
        for prefill in dict.fromkeys(places[passage][0] for passage, _ in unknown):
            keys = [key for key in unknown if places[key[0]][0] is prefill]
            asked = [(places[passage][1], answer_ids(answer, self.tokenizer)) for passage, answer in keys]
            self._log_likelihoods |= zip(keys, prefill.log_likelihoods(asked), strict=True)
        return [{pair: self._contest(item, pair) for pair in pairs} for item, pairs in zip(sets, rivals, strict=True)]

    def _prefill(self, passages: Sequence[Passage], encodings: dict[Passage, Encoding]) -> dict[Passage, tuple[Prefill, int]]:
        """Where each passage has been read: in which batch, and in which row of it."""
        prompts = [encodings[passage].ids for passage in passages]
        pad_id, end_id = int(self.tokenizer.pad_token_id), int(self.tokenizer.eos_token_id)
        places: dict[Passage, tuple[Prefill, int]] = {}
        for batch in batches([len(prompt) + self.inputs.max_answer_tokens for prompt in prompts], self.batch_tokens):
            prefill = Prefill(self.model, [prompts[i] for i in batch], pad_id, end_id)
            places |= {passages[i]: (prefill, row) for row, i in enumerate(batch)}
        return places

    def _read(self, prefill: Prefill, passages: Sequence[Passage]) -> None:
        """Remember the readings of a batch's passages."""
        silent = prefill.silent
        self._readings |= {passage: Reading("", quiet, 0.0) for passage, quiet in zip(passages, silent, strict=True)}
        speaking = [row for row, quiet in enumerate(silent) if 1 - quiet >= BOTH_ANSWER]
        answers = prefill.answers(speaking, self.inputs.max_answer_tokens) if speaking else []
        for row, (ids, log_probability) in zip(speaking, answers, strict=True):
            answer = " ".join(str(self.tokenizer.decode(ids, skip_special_tokens=True)).split())
            self._readings[passages[row]] = Reading(answer, silent[row], log_probability)

    def _may_disagree(self, item: _Set, pair: tuple[int, int]) -> bool:
        first, second = (self._readings[item.passages[i]] for i in pair)
        return (1 - first.silent) * (1 - second.silent) >= BOTH_ANSWER and not compatible(first.answer, second.answer)

    def _crossed(self, item: _Set, pair: tuple[int, int]) -> tuple[tuple[Passage, str], tuple[Passage, str]]:
        """Each of two passages with the answer of the other."""
        first, second = (item.passages[i] for i in pair)
        return (first, self._readings[second].answer), (second, self._readings[first].answer)

    def _contest(self, item: _Set, pair: tuple[int, int]) -> Contest:
        crossed = self._crossed(item, pair)
        readings = [self._readings[passage] for passage, _ in crossed]
        quieter, louder = sorted(1 - reading.silent for reading in readings)
        return Contest(
            quieter=quieter,
            louder=louder,
            preference=min(reading.log_probability - self._log_likelihoods[key] for reading, key in zip(readings, crossed, strict=True)),
        )


def _sets(questions: Sequence[str], documents: Sequence[Sequence[Document | str]]) -> list[_Set]:
    sets = []
    for question, docs in zip(questions, documents, strict=True):
        together = groups(ranked(as_documents(docs)))
        sets.append(_Set(together, [Passage(question, group[0].title, group[0].text) for group in together]))
    return sets


def load(
    folder: Path, manifest: Manifest, *, base: tuple[str, str | None] | None, device: str, precision: Precision | None, batch_tokens: int
) -> ReaderSieve:
    """Load a reader's checkpoint; `base` is where to find its base, id and revision, instead of where it was in training.

    Raises InputError when the base is missing or another one than the adapter was trained on.
    """
    settings = ModelSettings.model_validate(manifest.settings["model"])
    if base is not None:
        settings = settings.model_copy(update={"base": base[0], "revision": base[1]})
    place = pick_device(device)
    backbone = load_backbone(settings, pick_dtype(precision or settings.precision, place))
    require_same_base(folder, manifest, backbone.fingerprint)
    return ReaderSieve(
        load_adapter(backbone, folder, place),
        backbone.tokenizer,
        InputSettings.model_validate(manifest.settings["inputs"]),
        AgreementSettings.model_validate(manifest.settings["agreement"]),
        threshold=DEFAULT if manifest.threshold is None else manifest.threshold,
        temperature=manifest.temperature,
        batch_tokens=batch_tokens,
    )
