"""Bootstrap intervals: the inputs of pitfall F5, known distributions and agreement with plain index resampling."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval import bootstrap
from eval.bootstrap import difference, interval
from eval.metrics import SIEVE_CLASSES, macro_f1
from eval.tally import Tally


def rate(groups: list[str], hits: list[float], counted: list[bool] | None = None) -> Tally:
    kept = counted or [True] * len(groups)
    return Tally(tuple(groups), tuple((hit, 1.0) if keep else (0.0, 0.0) for hit, keep in zip(hits, kept, strict=True)))


def numbered(count: int) -> list[str]:
    return [f"q{index}" for index in range(count)]


@pytest.mark.parametrize("value", [1.0, 0.0, 1 / 3])
def test_constant_data_give_a_point(value: float) -> None:
    """Pitfall F5: 50 rows all alike give [x, x], not NaN."""
    assert interval(rate(numbered(50), [value] * 50)) == pytest.approx((value, value, 0))


def test_one_row_does_not_crash() -> None:
    """Pitfall F5."""
    assert interval(rate(["q"], [1.0])) == (1.0, 1.0, 0)


def test_same_seed_same_numbers_and_the_global_generator_plays_no_part() -> None:
    """Pitfall F5."""
    tally = rate(numbered(40), [float(index % 3 == 0) for index in range(40)])
    before = interval(tally, seed=7)
    np.random.seed(1)
    assert interval(tally, seed=7) == before
    assert interval(tally, seed=8) != before


@given(st.randoms(use_true_random=False))
def test_row_order_does_not_matter(random: Random) -> None:
    """Pitfall F5. Hits such as 0.1 and 0.7 make float sums depend on their order unless rows are sorted."""
    rows = [(f"q{index % 7}", (0.1, 0.2, 0.7, 1.0)[index % 4]) for index in range(30)]
    shuffled = random.sample(rows, len(rows))
    expected = interval(rate([group for group, _ in rows], [hit for _, hit in rows]), resamples=50)
    assert interval(rate([group for group, _ in shuffled], [hit for _, hit in shuffled]), resamples=50) == expected


def test_a_policy_against_itself_differs_by_nothing() -> None:
    """Pitfall F5."""
    tally = rate(numbered(30), [float(index % 4 == 0) for index in range(30)])
    assert difference(tally, tally) == (0.0, 0.0, 0)


def test_a_difference_uses_the_same_resamples_on_both_sides() -> None:
    """One side is always one hit in ten above the other, question by question, so that pairing leaves no spread."""
    lower = [float(index % 2 == 0) * 0.9 for index in range(60)]
    first, second = rate(numbered(60), [hit + 0.1 for hit in lower]), rate(numbered(60), lower)
    low, high, _ = difference(first, second)
    assert (low, high) == pytest.approx((0.1, 0.1))


def test_a_difference_over_other_questions_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"expected the same questions on both sides, only one has: q2 \(1 in all\)"):
        difference(rate(["q1", "q2"], [1.0, 1.0]), rate(["q1"], [1.0]))


def test_variants_of_a_question_move_together() -> None:
    """Ten questions with ten equal variants carry the information of ten rows, not of a hundred."""
    hits = [float(index < 5) for index in range(10)]
    single = interval(rate(numbered(10), hits))
    repeated = interval(rate([group for group in numbered(10) for _ in range(10)], [hit for hit in hits for _ in range(10)]))
    independent = interval(rate(numbered(100), [hit for hit in hits for _ in range(10)]))
    assert repeated == single
    assert single.low is not None and single.high is not None and independent.low is not None and independent.high is not None
    assert independent.high - independent.low < (single.high - single.low) / 2


def test_interval_of_a_proportion_is_that_of_the_binomial() -> None:
    """50 of 100: the 2.5 % and 97.5 % points of Binomial(100, 0.5) / 100 are 0.40 and 0.60."""
    low, high, _ = interval(rate(numbered(100), [float(index % 2) for index in range(100)]), resamples=20_000)
    assert low == pytest.approx(0.40, abs=0.011)
    assert high == pytest.approx(0.60, abs=0.011)


def test_agrees_with_resampling_question_by_question() -> None:
    """Unequal numbers of rows by question, macro-F1: the same interval as drawing question indices one by one."""
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 5, size=60)
    groups = [f"q{index:02}" for index, size in enumerate(sizes) for _ in range(size)]
    gold = [SIEVE_CLASSES[index] for index in generator.integers(0, 2, len(groups))]
    predicted = [label if generator.random() < 0.8 else SIEVE_CLASSES[0] for label in gold]
    tally = macro_f1(groups, gold, predicted, SIEVE_CLASSES)
    rows = np.array(tally.counts)
    by_question = np.array([rows[np.array(groups) == group].sum(axis=0) for group in sorted(set(groups))])
    drawn = by_question[generator.integers(0, 60, size=(4000, 60))].sum(axis=1)
    expected = np.quantile((drawn[:, 0] / drawn[:, 1] + drawn[:, 2] / drawn[:, 3]) / 2, [0.025, 0.975])
    found = interval(tally, resamples=4000)
    assert [found.low, found.high] == pytest.approx(list(expected), abs=0.01)


def test_undefined_resamples_are_left_out_and_counted() -> None:
    """Two of four questions count; a resample that draws neither, 1 in 16, has no denominator."""
    low, high, undefined = interval(rate(numbered(4), [1.0] * 4, [True, True, False, False]), resamples=1600)
    assert (low, high) == (1.0, 1.0)
    assert 60 < undefined < 140


def plain_interval(tally: Tally, resamples: int) -> list[float]:
    """A reference: rows sorted, summed by question with a loop, distinct sums drawn in the order of `np.unique`."""
    sums: dict[str, list[float]] = {}
    for group, row in sorted(zip(tally.groups, tally.counts.tolist(), strict=True)):
        sums[group] = [a + b for a, b in zip(sums.get(group, [0.0] * len(row)), row, strict=True)]
    patterns, sizes = np.unique(np.array([sums[group] for group in sorted(sums)]), axis=0, return_counts=True)
    drawn = np.random.default_rng(0).multinomial(len(sums), sizes / len(sums), size=resamples) @ patterns
    ratios = [row[0] / row[1] for row in drawn if row[1] > 0]
    return list(np.quantile(ratios, [0.025, 0.975])) if ratios else []


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (2.0, 3.0)]), st.booleans()), min_size=1
    ),
    st.sampled_from([1.0, 0.1, 1 / 3]),
)
def test_an_interval_is_exactly_that_of_a_plain_reference(rows: list[tuple[str, tuple[float, float], bool]], unit: float) -> None:
    """Whole counts take a short way, fractions a long one; both draw what they always drew."""
    tally = Tally([group for group, _, _ in rows], [(n * unit if part else n, d) for _, (n, d), part in rows])
    if tally.defined:
        low, high, _ = interval(tally, resamples=200)
        assert [low, high] == pytest.approx(plain_interval(tally, 200), abs=1e-12)


def test_counts_too_large_to_be_digits_of_one_number_are_drawn_all_the_same() -> None:
    large = Tally(numbered(6), [(float(n) * 2**30, 2.0**30) for n in range(6)])
    low, high, _ = interval(large, resamples=200)
    assert [low, high] == pytest.approx(plain_interval(large, 200))


def test_a_wider_level_contains_a_narrower_one() -> None:
    tally = rate(numbered(40), [float(index % 3 == 0) for index in range(40)])
    narrow, wide = interval(tally, level=0.5), interval(tally, level=0.99)
    assert wide.low is not None and wide.high is not None and narrow.low is not None and narrow.high is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_blocks_do_not_change_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = rate(numbered(40), [float(index % 3 == 0) for index in range(40)])
    whole = interval(tally, resamples=101)
    monkeypatch.setattr(bootstrap, "_BLOCK", 8)
    assert interval(tally, resamples=101) == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [({"resamples": 0}, "resamples: expected at least 1, got 0"), ({"level": 95}, "level: expected a share between 0 and 1, got 95")],
)
def test_impossible_settings_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        interval(rate(["q"], [1.0]), **change)


def test_no_rows_raise() -> None:
    with pytest.raises(ValueError, match="expected at least one row"):
        interval(rate(["q"], [1.0], [False]))
    with pytest.raises(ValueError, match="expected at least one row"):
        difference(rate(["q"], [1.0]), rate(["q"], [1.0], [False]))
