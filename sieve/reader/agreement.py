"""Compare what two documents say: do they give answers that cannot both be right?"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import torch
from pydantic import Field

from rag.calibration import logit, probability
from rag.settings import Settings
from rag.text import contains, normalize, token_f1

DENIAL = "not "
"""How a reading of a document begins that denies an answer."""
SAME_WORDS = 0.6
"""Token F1 from which two answers count as two wordings of one."""


class AgreementSettings(Settings):
    """Weights of `disagreement` and `set_score`; fitted on validation sets, stored with the checkpoint."""

    quieter: float = 1.0
    """Weight of the log-odds that the less likely speaker of two documents gives an answer at all."""
    louder: float = 1.0
    """The same of the more likely one."""
    preference: float = 0.05
    """Weight of a nat by which each document prefers its own answer."""
    intercept: float = 0.0
    """Log-odds of a disagreement where all of these are zero."""
    slope: float = 1.0
    """Log-odds of a distracted set for each unit of log-odds of its worst disagreement."""
    offset: float = 0.0
    """Log-odds of a distracted set whose worst disagreement is as likely as not."""
    floor: float = Field(default=0.05, ge=0, lt=1)
    """Score of a set in which no two answers contradict each other: how often such a set is distracted all the same."""


class Reading(NamedTuple):
    """What a reader makes of one document."""

    answer: str
    """The answer that it most likely gives, `not X` where it denies X; blank where it so surely gives none that it was not asked."""
    silent: float
    """Probability that it gives none, from 0 to 1."""
    log_probability: float
    """Of the whole answer and its end, in nats; at most 0."""


def compatible(first: str, second: str) -> bool:
    """Whether two short answers can both be right as text alone can tell: equal, one within the other, or mostly the same words.

    Answers that each have a number which the other lacks cannot both be right. `not X` contradicts X and nothing else.
    """
    denied = [answer.casefold().startswith(DENIAL) for answer in (first, second)]
    bare = [answer[len(DENIAL) :] if negative else answer for answer, negative in zip((first, second), denied, strict=True)]
    same = _same(*bare)
    return not same if denied[0] != denied[1] else same or all(denied)


def _same(first: str, second: str) -> bool:
    if normalize(first) == normalize(second):
        return True
    numbers = [set(re.findall(r"[0-9]+(?:[.,:/][0-9]+)*", normalize(answer))) for answer in (first, second)]
    if numbers[0] - numbers[1] and numbers[1] - numbers[0]:
        return False  # the 12th of May 1999 is nearly all words of the 12th of May 1998
    return contains(first, second) or contains(second, first) or token_f1(first, second) >= SAME_WORDS


class Contest(NamedTuple):
    """Two documents whose answers cannot both be right."""

    quieter: float
    """Probability that the less likely speaker of the two gives an answer at all, from 0 to 1."""
    louder: float
    """The same of the other."""
    preference: float
    """By how many nats each prefers its own answer to the other's; the smaller of the two."""


def disagreement(contest: Contest, settings: AgreementSettings) -> float:
    """Log-odds that two documents disagree: they must both answer, and each must prefer its own answer.

    Where one of them would as well say what the other says, they do not disagree.
    """
    weights = (settings.quieter, settings.louder, settings.preference)
    return settings.intercept + math.fsum(weight * value for weight, value in zip(weights, _evidence(contest), strict=True))


def set_score(contests: Sequence[Contest], settings: AgreementSettings) -> float:
    """P(distracted) of a set, from `settings.floor` to 1: its worst disagreement, if it has one that says more than having none."""
    if not contests:
        return settings.floor
    worst = max(disagreement(contest, settings) for contest in contests)
    return max(settings.floor, probability(settings.offset + settings.slope * worst))


class Pair(NamedTuple):
    """Two documents whose answers cannot both be right, with the truth."""

    contest: Contest
    disagree: bool | None
    """Whether they do disagree; none where it is not known what one of them says."""


def fit(pairs: Sequence[Sequence[Pair]], distracted: Sequence[bool]) -> AgreementSettings:
    """Fit the weights on sets, given by their pairs, of which it is known whether they are distracted.

    What makes a disagreement is fitted on the pairs: there are many of them, and the truth of each is known. How likely a set is
    distracted, given its worst disagreement, is fitted on the sets (Platt 1999). The floor is the share of distracted sets among those
    without a pair, with one of each kind added. What has only one class to be fitted on keeps its default.
    """
    quiet = [label for of_set, label in zip(pairs, distracted, strict=True) if not of_set]
    settings = AgreementSettings(floor=(sum(quiet) + 1) / (len(quiet) + 2))
    known = [pair for of_set in pairs for pair in of_set if pair.disagree is not None]
    weights = _logistic([_evidence(pair.contest) for pair in known], [bool(pair.disagree) for pair in known])
    if weights is not None:
        names = ("quieter", "louder", "preference", "intercept")
        settings = settings.model_copy(update=dict(zip(names, weights, strict=True)))
    worst = [(max(disagreement(pair.contest, settings) for pair in of_set),) for of_set in pairs if of_set]
    scale = _logistic(worst, [label for of_set, label in zip(pairs, distracted, strict=True) if of_set])
    # A fit on a few sets may come out upside down, and then says nothing.
    return settings if scale is None or scale[0] <= 0 else settings.model_copy(update={"slope": scale[0], "offset": scale[1]})


def _evidence(contest: Contest) -> tuple[float, float, float]:
    return _log_odds(contest.quieter), _log_odds(contest.louder), contest.preference


def _log_odds(chance: float) -> float:
    return logit(min(max(chance, _LEAST), 1 - _LEAST))


def _logistic(rows: Sequence[Sequence[float]], labels: Sequence[bool]) -> list[float] | None:
    """Coefficients and intercept of a logistic regression with unit ridge; none unless both classes are there."""
    if len(set(labels)) < 2:
        return None
    x, y = torch.tensor(rows, dtype=torch.float64), torch.tensor(labels, dtype=torch.float64)
    weights = torch.zeros(x.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = x @ weights[:-1] + weights[-1]
        value = torch.nn.functional.binary_cross_entropy_with_logits(logits, y, reduction="sum") + weights[:-1].square().sum() / 2
        value.backward()
        return value

    optimizer.step(loss)
    return [float(weight) for weight in weights.detach()]


_LEAST = 0.001
"""Least probability that is told apart from none, and most from certainty."""
