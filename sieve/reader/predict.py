"""Serve a trained reader: what each document says, how far any two of them disagree, and which one to leave out."""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from rag.checkpoint import Manifest, require_same_base
from rag.models.base import Precision, pick_device, pick_dtype
from rag.records import Document
from rag.render import ranked
from sieve.calibration import logit, probability
from sieve.reader.agreement import AgreementSettings, Contest, Reading, compatible, set_score
from sieve.reader.inputs import Encoding, InputSettings, answer_ids, encode, left_pad
from sieve.reader.model import ModelSettings, load_adapter, load_backbone
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

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        """Score each question with its own set of documents. Raises InputError for a question that leaves no room for documents."""
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

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        """For each set, score it without each of its groups of near-identical documents (paper 002, section 6).

        A group that is the whole set is not tried. What was read for `screen` is remembered, so this costs nothing after it.
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
            self._readings, self._log_likelihoods = {}, {}
        unread = [passage for passage in encodings if passage not in self._readings]
        self._readings |= zip(unread, self._read([encodings[passage].ids for passage in unread]), strict=True)
        rivals = [[pair for pair in combinations(range(len(item.passages)), 2) if self._may_disagree(item, pair)] for item in sets]
        unknown: dict[Passage, dict[str, None]] = {}
        for item, pairs in zip(sets, rivals, strict=True):
            for passage, answer in (key for pair in pairs for key in self._crossed(item, pair) if key not in self._log_likelihoods):
                unknown.setdefault(passage, {})[answer] = None
        asked = [
            (encodings[passage].ids, [answer_ids(answer, self.tokenizer) for answer in answers]) for passage, answers in unknown.items()
        ]
        for (passage, answers), found in zip(unknown.items(), self._likelihoods_of(asked), strict=True):
            self._log_likelihoods |= {(passage, answer): value for answer, value in zip(answers, found, strict=True)}
        return [{pair: self._contest(item, pair) for pair in pairs} for item, pairs in zip(sets, rivals, strict=True)]

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

    @torch.inference_mode()
    def _read(self, prompts: Sequence[list[int]]) -> list[Reading]:
        readings: dict[int, Reading] = {}
        for batch in batches([len(prompt) + self.inputs.max_answer_tokens for prompt in prompts], self.batch_tokens):
            padded = left_pad([prompts[i] for i in batch], int(self.tokenizer.pad_token_id))
            inputs = {name: tensor.to(self.model.device) for name, tensor in padded.items()}
            output = self.model(**inputs, use_cache=True, logits_to_keep=1)
            log_probabilities = output.logits[:, -1].float().log_softmax(-1)
            silent = log_probabilities[:, self.tokenizer.eos_token_id].exp()
            if not silent.isfinite().all():
                raise RuntimeError("the reader's logits are not numbers")
            readings |= {i: Reading("", quiet, 0.0) for i, quiet in zip(batch, silent.tolist(), strict=True)}
            speaking = (1 - silent >= BOTH_ANSWER).nonzero()[:, 0]
            answers = self._answers(log_probabilities[speaking], speaking, output.cache, inputs["attention_mask"])
            for row, (ids, log_probability) in zip(speaking.tolist(), answers, strict=True):
                answer = " ".join(str(self.tokenizer.decode(ids, skip_special_tokens=True)).split())
                readings[batch[row]] = Reading(answer, readings[batch[row]].silent, log_probability)
        return [readings[i] for i in range(len(prompts))]

    def _answers(
        self, log_probabilities: torch.Tensor, rows: torch.Tensor, cache: DynamicCache, mask: torch.Tensor
    ) -> list[tuple[list[int], float]]:
        """Go on greedily from the prompts of `rows`: ids without the end, and the log probability with it.

        `log_probabilities`, [rows, vocabulary], are those of the first token, which is made to be another than the end: how likely a
        document is to say nothing is a figure of its own. Rows that have ended leave the batch, once they are half of it.
        """
        end = int(self.tokenizer.eos_token_id)
        answers: list[list[int]] = [[] for _ in rows]
        totals = [0.0] * len(answers)
        running = list(range(len(answers)))  # of the rows in the batch, which answer each continues
        ended: set[int] = set()
        cache.batch_select_indices(rows)
        mask = mask[rows]
        allowed = log_probabilities.index_fill(1, torch.tensor([end], device=mask.device), -math.inf)
        for _ in range(self.inputs.max_answer_tokens):
            chosen = allowed.argmax(-1)
            gained = log_probabilities.gather(1, chosen[:, None])[:, 0].tolist()
            for answer, token, more in zip(running, chosen.tolist(), gained, strict=True):
                if answer not in ended:
                    totals[answer] += more
                    if token == end:
                        ended.add(answer)
                    else:
                        answers[answer].append(token)
            if len(ended) == len(answers):
                break
            going = [row for row, answer in enumerate(running) if answer not in ended]
            if 2 * len(going) <= len(running):
                keep = torch.tensor(going, device=mask.device)
                cache.batch_select_indices(keep)
                running, chosen, mask = [running[row] for row in going], chosen[keep], mask[keep]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            output = self.model(
                input_ids=chosen[:, None],
                attention_mask=mask,
                position_ids=mask.sum(-1, keepdim=True) - 1,
                cache=cache,
                use_cache=True,
            )
            allowed = log_probabilities = output.logits[:, -1].float().log_softmax(-1)
        return list(zip(answers, totals, strict=True))

    @torch.inference_mode()
    def _likelihoods_of(self, asked: Sequence[tuple[list[int], list[list[int]]]]) -> list[list[float]]:
        """Log probability, in nats, of each of the answers to a prompt, which is read once."""
        found: list[list[float]] = [[] for _ in asked]
        for batch in batches([len(prompt) + max(map(len, answers)) for prompt, answers in asked], self.batch_tokens):
            rows = sorted(batch, key=lambda i: -len(asked[i][1]))
            padded = left_pad([asked[i][0] for i in rows], int(self.tokenizer.pad_token_id))
            inputs = {name: tensor.to(self.model.device) for name, tensor in padded.items()}
            output = self.model(**inputs, use_cache=True, logits_to_keep=1)
            first, cache, mask = output.logits.float().log_softmax(-1), output.cache, inputs["attention_mask"]
            for nth in range(len(asked[rows[0]][1])):
                rows = [i for i in rows if len(asked[i][1]) > nth]
                cache.batch_select_indices(torch.arange(len(rows), device=mask.device))
                totals = self._continued([asked[i][1][nth] for i in rows], first[: len(rows)], cache, mask[: len(rows)])
                for i, total in zip(rows, totals, strict=True):
                    found[i].append(total)
        return found

    def _continued(self, answers: Sequence[list[int]], first: torch.Tensor, cache: DynamicCache, mask: torch.Tensor) -> list[float]:
        """Log probability of one answer after each prompt in the cache, which is left as it was.

        `first`, [rows, 1, vocabulary], are the log probabilities of an answer's first token.
        """
        width = max(map(len, answers)) - 1
        ids = torch.tensor([[*answer, *[0] * (width + 1 - len(answer))] for answer in answers], device=mask.device)
        given = torch.tensor([[1] * len(answer) + [0] * (width + 1 - len(answer)) for answer in answers], device=mask.device)
        log_probabilities = first
        if width:
            output = self.model(
                input_ids=ids[:, :-1],
                attention_mask=torch.cat([mask, mask.new_ones(len(answers), width)], dim=1),  # what pads an answer follows all of it
                position_ids=mask.sum(-1, keepdim=True) + torch.arange(width, device=mask.device),
                cache=cache,
                use_cache=True,
            )
            log_probabilities = torch.cat([first, output.logits.float().log_softmax(-1)], dim=1)
            cache.crop(-width)
        return [float(total) for total in (log_probabilities.gather(2, ids[..., None])[..., 0] * given).sum(1)]


def _sets(questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[_Set]:
    sets = []
    for question, docs in zip(questions, documents, strict=True):
        together = groups(ranked(docs))
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
