"""From the reader's logits to spans of text, each with its probability, and the probability that there is none."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from sieve.extractive.inputs import Encoding, Window

BEST = 5
"""Spans of a document that are looked at beside its best one."""


class Span(NamedTuple):
    """A possible answer in a document."""

    start: int
    """First character in the text."""
    end: int
    """The character after the last one."""
    probability: float
    """Among all spans of the document, from 0 to 1, given that it answers at all."""


class Reading(NamedTuple):
    """What a document says to a question."""

    silent: float
    """Probability that it gives no answer, from 0 to 1."""
    spans: tuple[Span, ...]
    """Possible answers, the most probable first; none overlaps a better one."""


def window_scores(logits: torch.Tensor, window: Window, max_answer_tokens: int) -> tuple[float, torch.Tensor]:
    """Logit of no answer and of each span [tokens of the document, length], from logits [tokens, 2] of one window.

    No answer is a span of the first token, as in BERT's form of SQuAD 2.0 (Devlin et al. 2019, section 4.3).
    """
    count = len(window.offsets)
    start, end = logits[window.first : window.first + count].float().unbind(-1)
    width = min(max_answer_tokens, count)
    ends = torch.cat([end, end.new_full((width,), -torch.inf)])
    spans = start[:, None] + ends.unfold(0, width, 1)[:count]
    return float(logits[0].float().sum()), spans


def read(encoding: Encoding, logits: Sequence[torch.Tensor], max_answer_tokens: int) -> Reading:
    """What a document says, from the logits of its windows.

    It is silent as far as all of its windows are; its spans compete with one another. Raises RuntimeError when logits are not numbers.
    """
    silent, found, total = 1.0, list[tuple[float, int, int]](), list[torch.Tensor]()
    for window, of_window in zip(encoding.windows, logits, strict=True):
        if not of_window.isfinite().all():
            raise RuntimeError("the reader's logits are not numbers")
        if not window.offsets:
            continue
        none, spans = window_scores(of_window, window, max_answer_tokens)
        some = spans.logsumexp((0, 1))
        silent *= float(torch.sigmoid(none - some))
        # A window that is silent has no say in what the document answers.
        spans = spans - torch.logaddexp(some, torch.tensor(none))
        total.append(spans.logsumexp((0, 1)))
        best = spans.flatten().topk(min(4 * BEST, spans.numel()))
        for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            first, length = divmod(place, spans.shape[1])
            if value > -torch.inf:
                found.append((value, window.offsets[first][0], window.offsets[first + length][1]))
    if not found:
        return Reading(1.0, ())
    norm = float(torch.stack(total).logsumexp(0))
    chosen: list[Span] = []
    for value, begin, end in sorted(found, key=lambda item: (-item[0], item[1], item[2])):
        if len(chosen) < BEST and all(end <= other.start or begin >= other.end for other in chosen):
            chosen.append(Span(begin, end, min(1.0, float(torch.tensor(value - norm).exp()))))
    return Reading(silent, tuple(chosen))
