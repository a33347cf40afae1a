"""Learn then test: binomial tails by hand and against scipy and MAPIE, and that what is certified breaks its limits as rarely as said."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from eval.certainty.learn_then_test import Limits, count, deal, in_order, needed, plan, propose, run_tests, tail, upper_bound
from eval.certainty.replies import Point, Reply, at, one_each


def reply(question: int, score: float, *, answerable: bool = True, answered: bool = True, correct: bool = True, variant: int = 0) -> Reply:
    return Reply(f"{question:05d}-{variant}", f"q{question:05d}", answerable, answered, answered and answerable and correct, score, 0.5)


def one_tail(events: int, n: int, limit: float) -> float:
    return float(tail(np.array([events]), np.array([n]), limit)[0])


def test_tails_and_bounds_by_hand() -> None:
    """None of 22 at a limit of 0.1: 0.9^22 = 0.0985; one of 2 at 0.5: 3/4."""
    assert one_tail(0, 22, 0.1) == pytest.approx(0.9**22)
    assert one_tail(1, 2, 0.5) == pytest.approx(0.75)
    assert one_tail(0, 0, 0.1) == 1 and one_tail(5, 5, 0.1) == 1
    assert upper_bound(0, 22, 0.1) == pytest.approx(1 - 0.1 ** (1 / 22))
    assert upper_bound(0, 0, 0.1) == upper_bound(3, 3, 0.1) == 1


@settings(max_examples=40)
@given(st.integers(1, 3000), st.floats(0, 1), st.floats(0.01, 0.99), st.floats(0.01, 0.5))
def test_tails_and_bounds_are_scipys_and_agree_with_one_another(n: int, share: float, limit: float, delta: float) -> None:
    events = round(share * n)
    assert one_tail(events, n, limit) == pytest.approx(binom.cdf(events, n, limit), rel=1e-8, abs=1e-12)
    bound = upper_bound(events, n, delta)
    expected = binomtest(events, n, alternative="less").proportion_ci(1 - delta, "exact").high
    assert bound == pytest.approx(expected)
    if events < n and abs(bound - limit) > 1e-6:
        assert (bound < limit) == (one_tail(events, n, limit) < delta)


def test_how_many_it_takes_by_hand() -> None:
    """Without a wrong answer 22 do at 0.1 and delta 0.1; a rate at the limit, and no observation, are past help."""
    assert needed(0, 10, 0.1, 0.1) == 22
    assert needed(1, 10, 0.1, 0.1) is None and needed(0, 0, 0.1, 0.1) is None
    some = needed(1, 20, 0.1, 0.1)
    assert some is not None
    enough = [one_tail(math.ceil(n / 20), n, 0.1) <= 0.1 for n in range(1, some + 1)]
    assert enough.index(True) == some - 1
    close = needed(995, 10_000, 0.1, 0.1)
    assert close == pytest.approx(1.2816**2 * 0.1 * 0.9 / 0.0005**2, rel=0.01)


def test_counts_are_those_of_the_run_at_each_point() -> None:
    replies = [reply(n, (n % 10) / 10, answerable=n % 3 > 0, answered=n % 5 > 0, correct=n % 2 > 0) for n in range(60)]
    points = [Point(threshold, floor) for threshold in (0.0, 0.3, 0.95, 1.0) for floor in (None, 0.5, 0.6)]
    clean = [r for r in replies if r.answerable]
    counts = count(points, replies, clean)
    for i, point in enumerate(points):
        given_ = at(replies, point)
        assert counts.answers[i] == sum(given_)
        assert counts.wrong[i] == sum(g and not r.correct for g, r in zip(given_, replies, strict=True))
        assert (counts.clean[i], counts.refused[i]) == (40, 40 - sum(at(clean, point)))


def test_a_perfect_system_is_certified_by_hand() -> None:
    """40 questions, all answered rightly: 0.9^40 and 0.8^40 are below delta at a threshold of 1, and nothing is answered at 0."""
    limits = Limits(0.1, 0.2, 0.1)
    found = run_tests([Point(1.0), Point(0.0), Point(0.9)], [reply(n, 0.5) for n in range(40)], limits, 0, 0)
    assert found.p_wrong == pytest.approx([0.9**40, 1, 0.9**40]) and found.p_refused == pytest.approx([0.8**40, 1, 0.8**40])
    assert (found.certified, found.chosen(), found.tested_on) == (1, 0, 40), "the first that fails ends the test, whatever follows"
    small = run_tests([Point(1.0)], [reply(n, 0.5) for n in range(21)], limits, 0, 0)
    assert (small.certified, small.chosen()) == (0, None), "21 answers do not do, 22 would"
    assert plan([Point(1.0)], [reply(n, 0.5) for n in range(21)], limits, 0, 0.0) == (Point(1.0), 22, 11, 22)


def test_a_set_of_each_question_counts_once() -> None:
    """Nine right variants beside a wrong one are no ten observations."""
    replies = [reply(n, 0.5, variant=v, correct=v > 0) for n in range(50) for v in range(10)]
    found = run_tests([Point(1.0)], replies, Limits(0.5, 0.5, 0.1), 0, 0)
    assert (found.counts.answers[0], found.counts.clean[0]) == (50, 50)


def test_the_chosen_point_refuses_fewest_then_errs_least() -> None:
    replies = [reply(n, n / 100, correct=n < 90) for n in range(100)]
    limits = Limits(0.3, 0.5, 0.1)
    found = run_tests([Point(0.8), Point(0.95), Point(0.9), Point(1.0)], replies, limits, 0, 0)
    assert found.certified == 4 and found.chosen() == 3


def test_a_plan_says_none_where_a_risk_is_above_its_limit_everywhere() -> None:
    bad = [reply(n, n / 100, correct=n % 2 == 0) for n in range(100)]
    assert plan([Point(i / 10) for i in range(11)], bad, Limits(0.1, 0.2, 0.1), 0, 0.3) is None
    fair = [reply(n, n / 100, correct=n % 20 > 0) for n in range(100)]
    need = plan([Point(1.0)], fair, Limits(0.1, 0.2, 0.1), 0, 0.3)
    assert need is not None and need.questions == math.ceil(need.answers / 0.7)


def test_questions_are_dealt_whole_and_points_are_learnt_from_one_side() -> None:
    replies = [reply(n, (7 * n % 50) / 50, variant=v) for n in range(50) for v in range(3)]
    learning, testing = deal(replies, 0.3, 0)
    assert {r.question_id for r in learning}.isdisjoint(r.question_id for r in testing) and len(learning) == 45
    points = propose(learning, 1.0, 100, 0)
    assert {p.threshold for p in points} == {r.score for r in learning} | {1.0}
    assert len(propose(learning, 1.0, 5, 0)) == 5 and max(p.threshold for p in propose(learning, 0.4, 100, 0)) == 0.4
    assert {p.confidence for p in propose(learning, 1.0, 5, 3)} == {None, 0.5}
    shuffled = Random(1).sample(learning, len(learning))
    assert in_order(points, shuffled, Limits(0.1, 0.2, 0.1)) == in_order(points, learning, Limits(0.1, 0.2, 0.1))


# ---------------------------------------------------------------------------
# A world in which the true risks are known: scores are uniform; a set is answerable with chance 3/4, and then answered
# rightly with chance 1 - (score / 2)^2; any other set is answered with chance score. Both risks of a threshold t follow
# by integration, and the sets of a question are copies of one another.


def world(seed: int, questions: int) -> list[Reply]:
    random = Random(f"world:{seed}")
    replies = []
    for n in range(questions):
        score, answerable = random.random(), random.random() < 0.75
        answered = answerable or random.random() < score
        correct = random.random() < 1 - (score / 2) ** 2
        replies += [reply(n, score, answerable=answerable, answered=answered, correct=correct, variant=v) for v in range(2)]
    return replies


def true_risks(threshold: float) -> tuple[float, float]:
    """(Wrong among answers, answerable sets refused)."""
    answers = 0.75 * threshold + 0.25 * threshold**2 / 2
    wrong = 0.75 * threshold**3 / 12 + 0.25 * threshold**2 / 2
    return wrong / answers, 1 - threshold


def test_the_world_has_the_risks_that_were_computed() -> None:
    replies = one_each(world(0, 15_000), 0, "any")
    for threshold in (0.5, 0.9):
        counts = count([Point(threshold)], replies, [r for r in replies if r.answerable])
        wrong, refused = true_risks(threshold)
        assert counts.wrong[0] / counts.answers[0] == pytest.approx(wrong, abs=0.012)
        assert counts.refused[0] / counts.clean[0] == pytest.approx(refused, abs=0.012)


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        (0.15, 0.35),  # thresholds from 0.65 to 0.738 are right
        (0.13, 0.35),  # from 0.65 to 0.652: next to none, and most certificates are errors
    ],
)
def test_certificates_break_their_limits_as_rarely_as_said(alpha: float, beta: float) -> None:
    """300 seeded data sets: the share with any false certificate is at most delta, with 3 standard errors of slack."""
    limits = Limits(alpha, beta, 0.2)
    false = some = 0
    for seed in range(300):
        learning, testing = deal(world(seed, 150), 0.3, seed)
        found = run_tests(in_order(propose(learning, 1.0, 40, 0), learning, limits), testing, limits, seed, 45)
        risks = [true_risks(point.threshold) for point in found.points[: found.certified]]
        false += any(wrong > alpha or refused > beta for wrong, refused in risks)
        some += bool(risks)
    assert false / 300 <= limits.delta + 3 * math.sqrt(limits.delta * (1 - limits.delta) / 300)
    assert some >= false > 0, "a test that never errs would certify next to nothing"


def test_it_finds_the_right_thresholds_where_there_are_enough_data() -> None:
    limits = Limits(0.2, 0.4, 0.1)
    learning, testing = deal(world(1, 4000), 0.3, 1)
    found = run_tests(in_order(propose(learning, 1.0, 60, 0), learning, limits), testing, limits, 1, 1200)
    chosen = found.chosen()
    assert found.certified > 3 and chosen is not None
    wrong, refused = true_risks(found.points[chosen].threshold)
    assert wrong <= 0.2 and refused <= 0.4


def test_p_values_and_certified_points_are_those_of_mapie() -> None:
    """The same two risks, points and order given to MAPIE's learn-then-test controller; sets of one question each.

    Its p-value is taken at ceil(n * (events / n)), which rounding can make events + 1: there it is the larger one.
    """
    from mapie.risk_control import BinaryClassificationController, BinaryRisk, control_fwer

    limits = Limits(0.2, 0.5, 0.2)
    replies = one_each(world(5, 1500), 0, "any")
    learning, testing = deal(replies, 0.3, 0)
    points = in_order(propose(learning, 1.0, 40, 0), learning, limits)
    ours = run_tests(points, testing, limits, 0, 450)
    table = np.array([(r.score, r.answered) for r in testing])
    labels = np.array([2 * r.answerable + r.correct for r in testing])
    controller = BinaryClassificationController(
        predict_function=lambda rows, threshold: ((rows[:, 0] < threshold) & (rows[:, 1] == 1)).astype(int),
        risk=[
            BinaryRisk(lambda true, given: (given == 1) & (true % 2 == 0), lambda true, given: given == 1, higher_is_better=False),
            BinaryRisk(lambda true, given: given == 0, lambda true, given: true >= 2, higher_is_better=False),
        ],
        target_level=[limits.alpha, limits.beta],
        confidence_level=1 - limits.delta,
        list_predict_params=np.array([[point.threshold] for point in points]),
        fwer_method="bonferroni_holm",
    ).calibrate(table, labels)
    theirs = controller.p_values[:, 0]
    rounded = np.zeros(len(points), dtype=bool)
    for events, n in ((ours.counts.wrong, ours.counts.answers), (ours.counts.refused, ours.counts.clean)):
        rounded |= np.ceil(n * (events / n)) > events
    assert (~rounded).sum() > 20
    assert ours.p_values[~rounded] == pytest.approx(theirs[~rounded], abs=1e-12)
    assert np.all(ours.p_values <= theirs + 1e-12)
    assert 0 < ours.certified < len(points)
    assert control_fwer(ours.p_values, limits.delta, "fixed_sequence").tolist() == list(range(ours.certified))
