"""Compare what two documents say: do they give answers that cannot both be right?"""

import math
import re
from collections.abc import Sequence
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
    """Weights of `disagreement`; fitted on training sets, stored with the checkpoint."""

    slope: float = Field(default=1.0, gt=0)
    """Weight of one nat by which the documents prefer their own answers."""
    offset: float = 2.0
    """Nats of preference at which a disagreement is as likely as not."""


class Reading(NamedTuple):
    """What a reader makes of one document."""

    answer: str
    """The answer that it most likely gives, `not X` where it denies X."""
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
    """Probability, from 0 to 1, that two documents answer and disagree.

    Both must prefer their own answer: where one of them would as well say what the other says, they do not disagree.
    """
    return contest.both_answer * probability(settings.slope * (contest.preference - settings.offset))


def fit(contests: Sequence[Sequence[Contest]], distracted: Sequence[bool]) -> AgreementSettings:
    """The weights with the lowest cross-entropy of the sets' scores, each the highest disagreement of its contests.

    Two weights and some hundred sets: a grid says all there is to know, and depends on no starting point. Among equals the first wins.
    """

    def loss(settings: AgreementSettings) -> float:
        scores = (max((disagreement(contest, settings) for contest in of_set), default=0.0) for of_set in contests)
        likelihoods = (score if label else 1 - score for score, label in zip(scores, distracted, strict=True))
        return -math.fsum(math.log(max(likelihood, _LEAST)) for likelihood in likelihoods)

    grid = [AgreementSettings(slope=slope, offset=offset) for slope in _SLOPES for offset in _OFFSETS]
    return min(grid, key=loss)


_SLOPES = (0.25, 0.5, 1.0, 2.0)
_OFFSETS = tuple(range(-2, 13))
_LEAST = 0.01
"""Likelihood that the fit counts for a set it gets wholly wrong; without a floor one mislabelled set would outweigh all others."""
