"""Which operating points keep two risks below their limits, both at once, with a stated confidence: learn then test (docs/certainty.md)."""

import math
from collections.abc import Sequence
from random import Random
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, betaincinv

from eval.certainty.replies import Point, Reply, one_each
from eval.tally import FloatArray

IntArray = npt.NDArray[np.int64]
_MOST = 2**16
"""Numbers up to which the smallest that suffices is looked for one by one; beyond, the normal approximation will do."""


class Limits(NamedTuple):
    """What is to be certified."""

    alpha: float
    """Largest share of wrong answers among the answers given."""
    beta: float
    """Largest share of answerable sets that get no answer."""
    delta: float
    """Largest chance that any certified point breaks a limit."""


class Counts(NamedTuple):
    """Events at each of several points, [points]."""

    answers: IntArray
    wrong: IntArray
    """Wrong ones among them; any answer to a set that is not answerable is wrong."""
    clean: IntArray
    """Answerable sets."""
    refused: IntArray
    """Those of them that get no answer, for whatever reason."""


class Certification(NamedTuple):
    """What the test says of each point, in the order in which points were tested."""

    limits: Limits
    points: list[Point]
    counts: Counts
    """On the questions that were not learnt from; answers on one set of each question, clean sets on one answerable set of each."""
    p_wrong: FloatArray
    p_refused: FloatArray
    certified: int
    """How many of the points, from the first, are certified."""
    learnt_on: int
    """Questions that gave the points and their order."""
    tested_on: int

    @property
    def p_values(self) -> FloatArray:
        """Of the union of both null hypotheses."""
        return np.maximum(self.p_wrong, self.p_refused)

    def chosen(self) -> int | None:
        """The certified point that refuses the fewest clean sets; among equals the fewest wrong answers, then the lower threshold."""
        if not self.certified:
            return None
        counts = self.counts

        def cost(i: int) -> tuple[int, int, float, float]:
            return int(counts.refused[i]), int(counts.wrong[i]), self.points[i].threshold, -(self.points[i].confidence or 0.0)

        return min(range(self.certified), key=cost)


class Need(NamedTuple):
    """What it would take to certify a point whose rates are those observed."""

    point: Point
    answers: int
    """Answers on distinct questions, at this point."""
    clean: int
    """Questions with an answerable set."""
    questions: int
    """Labelled questions in all, those to learn from among them."""


def tail(events: IntArray, n: IntArray, limit: float) -> FloatArray:
    """P(at most `events` of `n`) if each happens with chance `limit`: the exact p-value of "the rate is at least the limit"; 1 for n = 0."""
    return np.where(n > 0, bdtr(events.astype(np.float64), n, limit), 1.0)


def upper_bound(events: int, n: int, delta: float) -> float:
    """The one-sided Clopper-Pearson bound: the largest rate that `events` of `n` leave possible at 1 - delta; 1 where all or none count.

    None of 22 at delta 0.1: 1 - 0.1^(1/22) = 0.099.
    """
    return 1.0 if events >= n else float(betaincinv(events + 1, n - events, 1 - delta))


def count(points: Sequence[Point], drawn: Sequence[Reply], clean: Sequence[Reply]) -> Counts:
    """Events at each point: answers among `drawn`, needless abstentions among `clean`, which are answerable."""
    given, refused = _given(points, drawn), ~_given(points, clean)
    wrong = given & ~np.array([reply.correct for reply in drawn], dtype=bool)
    everything = np.full(len(points), len(clean), dtype=np.int64)
    return Counts(given.sum(axis=1), wrong.sum(axis=1), everything, refused.sum(axis=1))


def _given(points: Sequence[Point], replies: Sequence[Reply]) -> npt.NDArray[np.bool_]:
    """Which replies are given at each point, [points, replies]; `eval.certainty.replies.at` for many points."""
    score = np.array([-math.inf if reply.score is None else reply.score for reply in replies], dtype=np.float64)
    sure = np.array([-math.inf if reply.confidence is None else reply.confidence for reply in replies], dtype=np.float64)
    answered = np.array([reply.answered for reply in replies], dtype=bool)
    threshold = np.array([point.threshold for point in points], dtype=np.float64)[:, None]
    floor = np.array([-math.inf if point.confidence is None else point.confidence for point in points], dtype=np.float64)[:, None]
    return np.asarray(answered & (score < threshold) & (sure >= floor), dtype=bool)


def deal(replies: Sequence[Reply], share: float, seed: int) -> tuple[list[Reply], list[Reply]]:
    """Replies to learn from, of about this share of the questions, and replies to test on; all of a question's go to one side."""
    questions = sorted({reply.question_id for reply in replies})
    Random(f"{seed}:learn").shuffle(questions)
    learning = set(questions[: round(share * len(questions))])
    return [r for r in replies if r.question_id in learning], [r for r in replies if r.question_id not in learning]


def propose(learning: Sequence[Reply], reach: float, thresholds: int, confidences: int) -> list[Point]:
    """Points to test: thresholds and confidences at which the replies learnt from part, evenly by rank; the highest threshold always."""
    cuts = _spread([reply.score for reply in learning if reply.score is not None and reply.score < reach], thresholds - 1)
    floors = _spread([reply.confidence for reply in learning if reply.answered and reply.confidence is not None], confidences)
    return [Point(cut, floor) for cut in (*cuts, reach) for floor in (None, *floors)]


def _spread(values: Sequence[float], most: int) -> list[float]:
    distinct = sorted(set(values))
    if len(distinct) <= most:
        return distinct
    return [distinct[round(i * (len(distinct) - 1) / max(1, most - 1))] for i in range(most)]


def in_order(points: Sequence[Point], learning: Sequence[Reply], limits: Limits) -> list[Point]:
    """The points, those first that the replies learnt from speak for most; all sets count, for nothing is certified on them."""
    counts = count(points, learning, [reply for reply in learning if reply.answerable])
    p = np.maximum(tail(counts.wrong, counts.answers, limits.alpha), tail(counts.refused, counts.clean, limits.beta))
    return [points[i] for i in np.argsort(p, kind="stable")]


def run_tests(points: Sequence[Point], testing: Sequence[Reply], limits: Limits, seed: int, learnt_on: int) -> Certification:
    """Test the points in their order, each at level delta, until the first that fails; those before it are certified.

    The order must not come from `testing`. At each point two hypotheses are tested together, "more than alpha of the answers are wrong" and
    "more than beta of the answerable sets get no answer": the larger of two exact binomial p-values rejects both. Answers are counted on one
    set of each question and clean sets on one answerable set of each, drawn by the seed, since the sets of a question are not independent.
    """
    drawn = one_each(testing, seed, "any")
    clean = one_each([reply for reply in testing if reply.answerable], seed, "clean")
    counts = count(points, drawn, clean)
    p_wrong, p_refused = tail(counts.wrong, counts.answers, limits.alpha), tail(counts.refused, counts.clean, limits.beta)
    failed = np.flatnonzero(np.maximum(p_wrong, p_refused) > limits.delta)
    certified = int(failed[0]) if len(failed) else len(points)
    return Certification(limits, list(points), counts, p_wrong, p_refused, certified, learnt_on, len(drawn))


def needed(events: int, n: int, limit: float, delta: float) -> int | None:
    """The smallest number at which the observed rate would be certified below the limit; none where no number will do.

    None of 10 at 0.1 and delta 0.1: 22, since 0.9^22 < 0.1. A rate at or above the limit, or none observed: none.
    """
    if n == 0 or events / n >= limit:
        return None
    rate = events / n
    most = 64
    while most <= _MOST:
        sizes = np.arange(1, most + 1, dtype=np.int64)
        enough = np.flatnonzero(tail(np.ceil(sizes * rate - 1e-9).astype(np.int64), sizes, limit) <= delta)
        if len(enough):
            return int(sizes[enough[0]])
        most *= 4
    return math.ceil(NormalDist().inv_cdf(1 - delta) ** 2 * limit * (1 - limit) / (limit - rate) ** 2)


def plan(points: Sequence[Point], replies: Sequence[Reply], limits: Limits, seed: int, learn: float) -> Need | None:
    """The point that needs the fewest labelled questions if its rates are those of all replies; none where every point breaks a limit.

    A plan and no promise: the rates are estimates, and the best of many looks better than it is.
    """
    drawn = one_each(replies, seed, "any")
    clean = one_each([reply for reply in replies if reply.answerable], seed, "clean")
    counts = count(points, drawn, clean)
    found: dict[tuple[int, int, int, int], tuple[int, int, int] | None] = {}
    needs = []
    for point, answers, wrong, of, refused in zip(points, *(column.tolist() for column in counts), strict=True):
        key = (answers, wrong, of, refused)
        if key not in found:
            some, sets = needed(wrong, answers, limits.alpha, limits.delta), needed(refused, of, limits.beta, limits.delta)
            if some is None or sets is None:
                found[key] = None
            else:
                testing = max(some * len(drawn) / answers, sets * len(drawn) / of)
                found[key] = some, sets, math.ceil(testing / (1 - learn))
        if (need := found[key]) is not None:
            needs.append(Need(point, *need))
    return min(needs, key=lambda need: need.questions, default=None)
