"""Numbers from timings, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.cost.latency import median_interval, speedup, stage_rows, throughput_rows, weighted_medians
from eval.cost.timing import Timing


def timing(system: str, example: str, milliseconds: float, number: int = 0, stages: dict[str, float] | None = None, **fields) -> Timing:
    values = {"batch_size": 1, "round": number, "place": 0, "failed": 0, "peak_bytes": None}
    return Timing(
        **{**values, **fields}, system=system, examples=(example,), milliseconds=milliseconds, stages=({} if stages is None else stages,)
    )


QUESTIONS = {f"e{n}": f"q{n}" for n in range(20)}


def test_stages_have_the_median_over_examples_of_each_ones_median_over_rounds() -> None:
    """e0 takes 10, 12, 50 (median 12), e1 takes 20, 21, 22 (21): the median is 16.5, the mean that of all six calls, 22.5."""
    timings = [timing("s", "e0", ms, n, {"sieve": 1.0}) for n, ms in enumerate((10, 50, 12))]
    timings += [timing("s", "e1", ms, n, {"sieve": 3.0, "sage": 9.0, "judge": 2.0}) for n, ms in enumerate((20, 21, 22))]
    rows = {row.stage: row for row in stage_rows(timings, QUESTIONS, resamples=200, seed=0)}
    assert list(rows) == ["sieve", "judge", "sage", "total"]
    total = rows["total"]
    assert (total.n, total.median, total.mean) == (2, 16.5, 22.5)
    assert total.p95 == pytest.approx(43.0)  # of 10 12 20 21 22 50: a quarter of the way between 22 and 50 from the fifth
    assert (total.low, total.high) == (12.0, 21.0)
    assert (rows["sage"].n, rows["sage"].median, rows["sieve"].median) == (1, 9.0, 2.0)


def test_a_speedup_is_resampled_in_pairs() -> None:
    """The examples take from 1 to 400 ms; the baseline takes twice as long on each, so no resample says anything else."""
    timings = [timing("a", f"e{n}", (n + 1) ** 2) for n in range(20)] + [timing("b", f"e{n}", 2 * (n + 1) ** 2) for n in range(20)]
    row = speedup(timings, "a", "b", QUESTIONS, resamples=300, seed=0)
    assert (row.value, row.low, row.high, row.n, row.questions) == pytest.approx((2.0, 2.0, 2.0, 20, 20))
    # By hand: 3 + 4 against 2 + 8; a resample holds the first pair only (1.5), the second only (0.5), or both (0.7).
    odd = [timing("a", "e0", 2), timing("b", "e0", 3), timing("a", "e1", 8), timing("b", "e1", 4)]
    row = speedup(odd, "a", "b", QUESTIONS, resamples=300, seed=0)
    assert (row.value, row.low, row.high) == pytest.approx((0.7, 0.5, 1.5))


def test_variants_of_a_question_move_together() -> None:
    """Two questions of ten sets each: a resample's median can only be one of theirs, or lie between them."""
    values = {f"e{n}": float(n % 2) for n in range(20)}
    questions = {name: f"q{int(value)}" for name, value in values.items()}
    assert median_interval(values, questions, resamples=400, seed=0) == (0.0, 1.0)
    assert median_interval(values, dict.fromkeys(values, "one"), resamples=400, seed=0) == (0.5, 0.5)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 4)), min_size=1, max_size=12).filter(lambda rows: any(w for _, w in rows)))
def test_weighted_medians_are_medians_of_repeated_values(rows: list[tuple[float, int]]) -> None:
    rows = sorted(rows)
    expected = np.median(np.repeat([value for value, _ in rows], [weight for _, weight in rows]))
    [found] = weighted_medians(np.array([value for value, _ in rows]), np.array([[float(weight) for _, weight in rows]]))
    assert found == pytest.approx(expected)


def test_throughput_is_examples_by_seconds_at_each_batch_size() -> None:
    two = {"batch_size": 2, "peak_bytes": 7}
    batch = Timing(round=0, place=0, system="s", examples=("e0", "e1"), milliseconds=500, stages=({}, {}), failed=1, **two)
    rows = throughput_rows([timing("s", "e0", 400), timing("s", "e1", 600), batch, batch.model_copy(update={"peak_bytes": 9})])
    found = [(row.batch_size, row.examples_per_second, row.peak_bytes, row.calls, row.failed) for row in rows]
    assert found == [(1, 2.0, None, 2, 0), (2, 4.0, 9, 2, 2)]
