"""From what documents say to a decision on their set: how likely two of them disagree, and how likely the set is distracted."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from rag.calibration import logit, probability
from rag.settings import Settings
from sieve.extractive.answers import Relation
from sieve.extractive.judge import Verdict

LEAST = 0.001
"""Least probability that is told apart from none, and most from certainty."""


class Statement(NamedTuple):
    """What one document says, as far as the reader and the judge can tell."""

    answer: str
    """Its most likely answer."""
    speaks: float
    """Probability that it gives one, from 0 to 1."""
    verdict: Verdict
    """Of the judge, on the document's own answer and the sentences around it."""


class Contest(NamedTuple):
    """What speaks for two documents contradicting each other."""

    speaks: float
    """Probability that the less likely speaker of the two gives an answer at all."""
    states: float
    """Probability that the sentences of the less certain one state its answer to exactly this question."""
    contradicts: float
    """Probability that the sentences of one contradict the answer of the other; the larger of both directions."""
    support: float
    """How far the readings of the one also hold the answer of the other; the larger of both directions, from 0 to 1."""
    relation: Relation
    """What rules say of the two answers."""
    denied: float
    """Where both name one answer: probability that one document states it and the other denies it."""
    confusable: bool
    """Whether one of the documents is about a subject that is easily taken for the one asked about."""


class DecisionSettings(Settings):
    """Weights of `disagreement` and `set_score`; fitted on validation sets, stored with the checkpoint."""

    speaks: float = 1.0
    """Weight of the log-odds of `Contest.speaks`, and so on for the others."""
    states: float = 0.5
    contradicts: float = 0.5
    support: float = -2.0
    different: float = 1.0
    """Weight of rules that say that the answers cannot both be right, which is 1 or 0."""
    same: float = -4.0
    """The same for answers that are one."""
    denied: float = 1.0
    confusable: float = 0.0
    intercept: float = 0.0
    """Log-odds of a disagreement where all of these are zero."""
    slope: float = 1.0
    """Log-odds of a distracted set for each unit of log-odds of its worst disagreement."""
    crowd: float = 0.0
    """The same for the logarithm of the number of pairs that both may speak: of many pairs one looks bad by chance."""
    offset: float = 0.0
    """Log-odds of a distracted set whose worst disagreement is as likely as not."""
    floor: float = 0.05
    """Score of a set in which no two documents contradict each other: how often such a set is distracted all the same."""


PAIR_WEIGHTS = ("speaks", "states", "contradicts", "support", "different", "same", "denied", "confusable")


def evidence(contest: Contest) -> tuple[float, ...]:
    """The numbers that `PAIR_WEIGHTS` weigh."""
    return (
        log_odds(contest.speaks),
        log_odds(contest.states),
        log_odds(contest.contradicts),
        contest.support,
        float(contest.relation is Relation.DIFFERENT),
        float(contest.relation is Relation.SAME),
        log_odds(contest.denied) if contest.relation is Relation.SAME else 0.0,
        float(contest.confusable),
    )


def disagreement(contest: Contest, settings: DecisionSettings) -> float:
    """Log-odds that two documents give answers that cannot both be right."""
    weights = [getattr(settings, name) for name in PAIR_WEIGHTS]
    return settings.intercept + math.fsum(weight * value for weight, value in zip(weights, evidence(contest), strict=True))


def set_score(contests: Sequence[Contest], settings: DecisionSettings) -> float:
    """P(distracted) of a set, from `settings.floor` to 1: its worst disagreement, if it has one that says more than having none.

    Not a number where one of the contests is none, so that whoever reads it sees that nothing was decided.
    """
    if not contests:
        return settings.floor
    values = [disagreement(contest, settings) for contest in contests]
    if not all(map(math.isfinite, values)):
        return math.nan
    return max(settings.floor, probability(settings.offset + settings.slope * max(values) + settings.crowd * math.log(len(values))))


class Pair(NamedTuple):
    """Two documents, with the truth."""

    contest: Contest
    disagree: bool | None
    """Whether they do; none where it is not known what one of them says."""


def fit(pairs: Sequence[Sequence[Pair]], distracted: Sequence[bool]) -> DecisionSettings:
    """Fit the weights on sets, given by their pairs, of which it is known whether they are distracted.

    What makes a disagreement is fitted on the pairs: there are many of them, and the truth of each is known. How likely a set is
    distracted, given its worst one, is fitted on the sets (Platt 1999). The floor is the share of distracted sets among those
    without a pair, with one of each kind added. What has only one class to be fitted on keeps its default.
    """
    quiet = [label for of_set, label in zip(pairs, distracted, strict=True) if not of_set]
    settings = DecisionSettings(floor=(sum(quiet) + 1) / (len(quiet) + 2))
    known = [pair for of_set in pairs for pair in of_set if pair.disagree is not None]
    weights = logistic([evidence(pair.contest) for pair in known], [bool(pair.disagree) for pair in known])
    if weights is not None:
        settings = settings.model_copy(update=dict(zip((*PAIR_WEIGHTS, "intercept"), weights, strict=True)))
    worst = [(max(disagreement(pair.contest, settings) for pair in of_set), math.log(len(of_set))) for of_set in pairs if of_set]
    scale = logistic(worst, [label for of_set, label in zip(pairs, distracted, strict=True) if of_set])
    # A fit on a few sets may come out upside down, and then says nothing.
    if scale is None or scale[0] <= 0:
        return settings
    return settings.model_copy(update={"slope": scale[0], "crowd": scale[1], "offset": scale[2]})


def log_odds(chance: float) -> float:
    """Log-odds of a probability, kept away from certainty. Not a number where the probability is none."""
    return logit(min(max(chance, LEAST), 1 - LEAST)) if math.isfinite(chance) else math.nan


def logistic(rows: Sequence[Sequence[float]], labels: Sequence[bool]) -> list[float] | None:
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
