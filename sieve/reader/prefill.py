"""Prompts that a causal model reads once, to go on from any number of times."""

import math
from collections.abc import Sequence
from typing import cast

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from sieve.reader.inputs import left_pad


class Prefill:
    """A batch of prompts that the model has read, and its keys and values of them."""

    @torch.inference_mode()
    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], pad_id: int, end_id: int) -> None:
        """Read the prompts, padded on the left; `end_id` ends an answer. Raises RuntimeError when the model's logits are not numbers."""
        self.model = model
        self.end_id = end_id
        inputs = {name: tensor.to(model.device) for name, tensor in left_pad(prompts, pad_id).items()}
        output = model(**inputs, use_cache=True, logits_to_keep=1)
        self._mask = inputs["attention_mask"]
        self._first = output.logits[:, -1].float().log_softmax(-1)
        self._cache: DynamicCache = output.cache
        self._layers = cast(list[DynamicLayer], self._cache.layers)
        self._kept = [(cast(torch.Tensor, layer.keys), cast(torch.Tensor, layer.values)) for layer in self._layers]
        if not self._first[:, end_id].isfinite().all():
            raise RuntimeError("the reader's logits are not numbers")

    @property
    def silent(self) -> list[float]:
        """For each prompt, the probability that its answer ends before it begins."""
        return [float(value) for value in self._first[:, self.end_id].exp()]

    @torch.inference_mode()
    def answers(self, rows: Sequence[int], max_tokens: int) -> list[tuple[list[int], float]]:
        """Go on greedily from the prompts of `rows`: at most `max_tokens` ids without the end, and their log probability with it, in nats.

        The first token is made to be another than the end: how likely a prompt is to have no answer is a figure of its own. Rows that
        have ended leave the batch, once they are half of it.
        """
        cache, mask = self._copy(rows)
        log_probabilities = self._first[list(rows)]
        allowed = log_probabilities.index_fill(1, torch.tensor([self.end_id], device=mask.device), -math.inf)
        answers: list[list[int]] = [[] for _ in rows]
        totals = [0.0] * len(answers)
        running = list(range(len(answers)))  # of the rows in the batch, which answer each continues
        ended: set[int] = set()
        for _ in range(max_tokens):
            chosen = allowed.argmax(-1)
            gained = log_probabilities.gather(1, chosen[:, None])[:, 0].tolist()
            for answer, token, more in zip(running, chosen.tolist(), gained, strict=True):
                if answer not in ended:
                    totals[answer] += more
                    if token == self.end_id:
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
            logits = self._logits(chosen[:, None], mask, cache)
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            allowed = log_probabilities = logits[:, -1]
        return list(zip(answers, totals, strict=True))

    @torch.inference_mode()
    def log_likelihoods(self, asked: Sequence[tuple[int, Sequence[int]]]) -> list[float]:
        """Log probability, in nats, of answers, each given by the row of its prompt and its ids, the end included.

        A forward pass has no more rows than there are prompts.
        """
        found: list[float] = []
        for start in range(0, len(asked), len(self._mask)):
            rows, answers = zip(*asked[start : start + len(self._mask)], strict=True)
            width = max(map(len, answers))
            ids = torch.tensor([[*answer, *[self.end_id] * (width - len(answer))] for answer in answers], device=self._mask.device)
            given = torch.tensor([[1] * len(answer) + [0] * (width - len(answer)) for answer in answers], device=self._mask.device)
            log_probabilities = self._first[list(rows)][:, None]
            if width > 1:
                cache, mask = self._copy(rows)
                # What pads an answer follows all of it, so nothing that counts attends to it.
                log_probabilities = torch.cat([log_probabilities, self._logits(ids[:, :-1], mask, cache)], dim=1)
            found += (log_probabilities.gather(2, ids[..., None])[..., 0] * given).sum(1).tolist()
        return found

    def _copy(self, rows: Sequence[int]) -> tuple[DynamicCache, torch.Tensor]:
        """The model's memory of some of the prompts, and their mask. There is one at a time."""
        index = torch.tensor(list(rows), device=self._mask.device)
        for layer, (keys, values) in zip(self._layers, self._kept, strict=True):
            layer.keys, layer.values = keys[index], values[index]
        return self._cache, self._mask[index]

    def _logits(self, ids: torch.Tensor, mask: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        """Log probabilities after each of `ids`, [rows, ids, vocabulary], which follow what is in the cache; they are added to it."""
        output = self.model(
            input_ids=ids,
            attention_mask=torch.cat([mask, mask.new_ones(ids.shape)], dim=1),
            position_ids=mask.sum(-1, keepdim=True) + torch.arange(ids.shape[1], device=mask.device),
            cache=cache,
            use_cache=True,
        )
        return cast(torch.Tensor, output.logits).float().log_softmax(-1)
