"""Compare what two documents say: do they give answers that cannot both be right?"""

import math
import re
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from pydantic import Field

from rag.settings import Settings
from rag.text import contains, normalize, token_f1
from sieve.calibration import probability

DENIAL = "not "
"""How a reading of a document begins that denies an answer."""
SAME_WORDS = 0.6
"""Token F1 from which two answers count as two wordings of one."""


class AgreementSettings(Settings):
    """Weights of `set_score`; fitted on validation sets, stored with the checkpoint."""

    preference: float = Field(default=0.3, gt=0)
    """Weight of a nat by which documents prefer their own answers, beside a nat of the probability that both answer at all."""
    slope: float = Field(default=1.0, gt=0)
    """Log-odds of a disagreement for each nat of evidence."""
    offset: float = 0.0
    """Nats of evidence at which a disagreement is as likely as not."""
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

    both_answer: float
    """Probability that both give an answer at all, from 0 to 1."""
    preference: float
    """By how many nats each prefers its own answer to the other's; the smaller of the two."""


def disagreement(contest: Contest, settings: AgreementSettings) -> float:
    """Probability, from 0 to 1, that two documents disagree: a logistic function of two kinds of evidence, both in nats.

    One is that both answer at all; the other, that each prefers its own answer. Where one of them would as well say what the other
    says, they do not disagree.
    """
    evidence = math.log(max(contest.both_answer, _LEAST)) + settings.preference * contest.preference
    return probability(settings.slope * (evidence - settings.offset))


def set_score(contests: Sequence[Contest], settings: AgreementSettings) -> float:
    """P(distracted) of a set, from `settings.floor` to 1: its worst disagreement, if it has one that says more than having none."""
    return max([settings.floor, *(disagreement(contest, settings) for contest in contests)])


def fit(contests: Sequence[Sequence[Contest]], distracted: Sequence[bool]) -> AgreementSettings:
    """The weights with the lowest cross-entropy of the sets' scores.

    The floor is the share of distracted sets among those without a contest, with one of each kind added. The other three weights are the
    best of a grid, which depends on no starting point; among equals the first wins.
    """
    quiet = [label for of_set, label in zip(contests, distracted, strict=True) if not of_set]
    floor = (sum(quiet) + 1) / (len(quiet) + 2)

    def loss(settings: AgreementSettings) -> float:
        scores = (set_score(of_set, settings) for of_set in contests)
        likelihoods = (score if label else 1 - score for score, label in zip(scores, distracted, strict=True))
        return -math.fsum(math.log(max(likelihood, _LEAST)) for likelihood in likelihoods)

    grid = product(_PREFERENCES, _SLOPES, _OFFSETS)
    return min((AgreementSettings(preference=p, slope=s, offset=o, floor=floor) for p, s, o in grid), key=loss)


_PREFERENCES = (0.1, 0.2, 0.3, 0.5, 1.0)
_SLOPES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
_OFFSETS = tuple(half / 2 for half in range(-12, 25))
_LEAST = 0.001
"""Least probability that is told apart from none; without it one set that is wholly wrong would outweigh all others."""
