"""Means and their intervals by question."""

from hypothesis import given
from hypothesis import strategies as st

from data_gen.measure.intervals import Figure, mean

NUMBERS = st.floats(-100, 100, allow_nan=False)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from("abcd")), min_size=1, max_size=20)


def test_values_of_one_question_are_drawn_together() -> None:
    """Of two questions a resample has the mean 0 (first twice), 1/4 (each once) or 1 (second twice), with chances 1/4, 1/2, 1/4."""
    assert mean([0, 0, 0, 1], ["a", "a", "a", "b"], resamples=500, seed=0) == Figure(value=0.25, low=0.0, high=1.0)


def test_without_values_nothing_is_claimed_and_one_question_has_no_spread() -> None:
    assert mean([], [], resamples=10, seed=0) == Figure(value=None, low=None, high=None)
    assert mean([1, 2], ["a", "a"], resamples=10, seed=0) == Figure(value=1.5, low=1.5, high=1.5)


def test_the_interval_of_many_questions_is_that_of_the_normal_approximation() -> None:
    """A share of 1/2 over 400 questions: 1.96 * sqrt(0.25 / 400) = 0.049."""
    figure = mean([n % 2 for n in range(400)], [str(n) for n in range(400)], resamples=4000, seed=1)
    assert figure.value == 0.5
    assert figure.low is not None and abs(figure.low - 0.451) < 0.005
    assert figure.high is not None and abs(figure.high - 0.549) < 0.005


@given(ROWS)
def test_the_order_of_values_does_not_matter(rows: list[tuple[float, float, str]]) -> None:
    first, second = ([(here, name) for here, _, name in given_rows] for given_rows in (rows, sorted(rows)))
    a, b = (mean([v for v, _ in pairs], [q for _, q in pairs], resamples=5, seed=3) for pairs in (first, second))
    assert a == b


@given(ROWS)
def test_the_mean_of_paired_differences_is_the_difference_of_means(rows: list[tuple[float, float, str]]) -> None:
    questions = [name for _, _, name in rows]
    both, here, there = (
        mean(values, questions, resamples=5, seed=0).value
        for values in ([a - b for a, b, _ in rows], [a for a, _, _ in rows], [b for _, b, _ in rows])
    )
    assert both is not None and here is not None and there is not None
    assert abs(both - (here - there)) < 1e-9
