"""What counts as rounding, by precision."""

import pytest

from rag.rounding import TOLERANCE, Precision, same, settle

BITS: dict[Precision, int] = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("number", [1.0, 0.75, 300.0])
def test_the_last_bits_are_rounding_and_a_few_more_bits_are_not(precision: Precision, number: float) -> None:
    unit = number * 2.0 ** -BITS[precision]
    assert same(number, number + 2 * unit, precision)
    assert not same(number, number * (1 + 3 * TOLERANCE[precision]) + 3 * TOLERANCE[precision], precision)


def test_none_is_the_same_as_none_alone() -> None:
    assert same(None, None)
    assert not same(None, 0.0) and not same(0.0, None)
    assert not same(float("nan"), float("nan")), "a number that is none is not settled by rounding"


def test_values_are_settled_on_the_nearest_known_number() -> None:
    assert settle([0.3 + 1e-7, 0.3 - 1e-7, 0.4, 0.9], [0.9, 0.3]) == [0.3, 0.3, 0.4, 0.9]
    assert settle([0.3 + 4e-7], [0.3, 0.3 + 3e-7]) == [0.3], "known numbers that are the same are one"
    assert settle([0.5], []) == [0.5]
    assert settle([], [0.5]) == []
