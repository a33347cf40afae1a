"""Where a gate pays for itself: worked by hand, and against a search over shares."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.cost.break_even import Gate, GateSet, break_even


def gate(sieve, loo, sage, tpr, fpr, on_d=0.0, on_c=0.0) -> Gate:
    return Gate(*(np.asarray(float(value)) for value in (sieve, loo, sage, tpr, fpr, on_d, on_c)))


def sets(distracted: Sequence[bool], flagged: Sequence[bool], sieve: float = 10, sage: float = 100, **fields) -> list[GateSet]:
    """The Sage's cost is known where it was called."""
    base = {"passed_on": False, "leave_one_out": None, **fields}
    return [
        GateSet(question_id=f"q{n}", distracted=d, flagged=f, sieve=sieve, sage=None if f else sage, **base)
        for n, (d, f) in enumerate(zip(distracted, flagged, strict=True))
    ]


def test_the_crossing_worked_by_hand() -> None:
    """The gate costs 30 and saves 100 on each flagged set, so it pays where 30 % are flagged: 0.1 + 0.8 p = 0.3."""
    assert float(gate(30, 0, 100, 0.9, 0.1).crossing()) == pytest.approx(0.25)
    assert float(gate(30, 0, 100, 0.9, 0.1).cost(0.25)) == pytest.approx(100)
    # After a flag, 20 for leaving documents out, and half of the flagged sets reach the Sage all the same: a flag saves 30, not 100.
    assert math.isinf(float(gate(30, 20, 100, 0.9, 0.1, 0.5, 0.5).crossing()))
    assert float(gate(15, 20, 100, 0.9, 0.1, 0.5, 0.5).crossing()) == pytest.approx(0.5)


amounts, rates = st.floats(0, 1000), st.floats(0, 1)


@given(amounts, amounts, st.floats(1, 1000), rates, rates, rates, rates)
def test_from_the_crossing_on_it_never_costs_more_and_just_before_it_does(sieve, loo, sage, tpr, fpr, on_d, on_c) -> None:
    item = gate(sieve, loo, sage, tpr, fpr, on_d, on_c)
    at = float(item.crossing())
    slack = 1e-6 * (sieve + loo + sage)
    if math.isinf(at):
        assert float(item.cost(1.0)) > sage
        return
    assert 0 <= at <= 1
    assert all(float(item.cost(p)) <= sage + slack for p in np.linspace(at, 1, 7))
    if at > 0:
        assert float(item.cost(at)) == pytest.approx(sage, abs=slack)
        assert float(item.cost(0.0)) > sage


@given(amounts, st.floats(1, 1000), rates, rates)
def test_a_dearer_sieve_never_pays_earlier(sieve, sage, tpr, fpr) -> None:
    assert float(gate(sieve, 0, sage, tpr, fpr).crossing()) <= float(gate(sieve + 1, 0, sage, tpr, fpr).crossing())


@given(st.floats(1, 1000), rates, rates)
def test_a_sieve_as_dear_as_the_sage_never_pays(sage, tpr, fpr) -> None:
    assert math.isinf(float(gate(1.01 * sage, 0, sage, tpr, fpr).crossing()))


def test_rates_and_costs_come_from_the_sets() -> None:
    """3 of 4 distracted and 1 of 4 others are flagged; 0.25 + 0.5 p = 0.5."""
    row = break_even(
        "s", "milliseconds", sets([True] * 4 + [False] * 4, [True] * 3 + [False] * 4 + [True], sieve=50), resamples=300, seed=0
    )
    assert row is not None
    assert (row.true_positive_rate, row.false_positive_rate, row.sieve, row.sage, row.leave_one_out) == (0.75, 0.25, 50, 100, 0)
    assert (row.verdict, row.share, row.distracted_share) == ("from", pytest.approx(0.5), 0.5)
    assert row.low is not None and row.low <= 0.5
    assert row.high is None and 0 < row.never < 0.5  # few sets: some resamples never pay
    assert (row.curve[0].cost, row.curve[-1].cost) == pytest.approx((125, 75))
    assert all(point.low <= point.cost <= point.high for point in row.curve[::10])
    again = break_even(
        "s", "milliseconds", sets([True] * 4 + [False] * 4, [True] * 3 + [False] * 4 + [True], sieve=50), resamples=300, seed=0
    )
    assert row == again


@pytest.mark.parametrize(
    ("flagged", "sieve", "verdict", "share"),
    [
        ([True, True, False, False], 200, "never", None),
        ([True, True, True, False], 0, "always", None),
        ([False, False, True, False], 20, "until", 0.6),  # 100 (1 - p) / 2 saved, 20 spent
    ],
)
def test_verdicts(flagged: list[bool], sieve: float, verdict: str, share: float | None) -> None:
    row = break_even("s", "flops", sets([True, True, False, False], flagged, sieve=sieve), resamples=50, seed=0)
    assert row is not None
    assert (row.verdict, row.share) == (verdict, share if share is None else pytest.approx(share))
    if verdict == "never":
        assert (row.low, row.high, row.never) == (None, None, 1.0)


def test_filtering_costs_what_follows_a_flag() -> None:
    """All flagged distracted sets pass after filtering at a cost of 40, so a flag there saves nothing."""
    of = sets([True, True, False, False], [True, True, True, False], passed_on=False)
    of = [s._replace(passed_on=True, leave_one_out=40.0, sage=80.0) if s.distracted else s for s in of]
    row = break_even("s", "milliseconds", of, resamples=50, seed=0)
    assert row is not None
    assert (row.passed_on_distracted, row.passed_on_clean, row.leave_one_out) == (1.0, 0.0, 40.0)
    assert row.sage == pytest.approx(260 / 3)
    assert row.curve[-1].cost == pytest.approx(10 + 40 + 260 / 3)


def test_without_distracted_sets_or_costs_nothing_is_told() -> None:
    assert break_even("s", "flops", sets([False] * 3, [True, False, False]), resamples=10, seed=0) is None
    assert break_even("s", "flops", sets([True, False], [True, True]), resamples=10, seed=0) is None
