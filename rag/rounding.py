"""How far two computations of one number may lie apart: its last bits differ by processor, number of threads, alignment and batch.

Nothing may rest on these bits: no comparison, no certificate, no check that content is unchanged.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

Precision = Literal["float64", "float32", "float16", "bfloat16"]
"""What a number was computed in, or what the numbers that it was computed from were kept in."""

TOLERANCE: Final[Mapping[Precision, float]] = MappingProxyType({"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2})
"""Largest difference that counts as rounding, by precision: of numbers up to 1 as it is, of larger ones as a share of them."""


def same(one: float | None, other: float | None, precision: Precision = "float32") -> bool:
    """Whether two numbers are one but for rounding; none is the same as none alone."""
    if one is None or other is None:
        return one is other
    tolerance = TOLERANCE[precision]
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def settle(values: Sequence[float], known: Sequence[float], precision: Precision = "float32") -> list[float]:
    """Values with the nearest known number in the place of each that is the same; known numbers that are the same count as the least of them.

    So `settle([0.30000001, 0.4], [0.3])` is 0.3 and 0.4.
    """
    marks: list[float] = []
    for number in sorted(known):
        if not marks or not same(number, marks[-1], precision):
            marks.append(number)
    return [_nearest(value, marks, precision) for value in values]


def _nearest(value: float, marks: Sequence[float], precision: Precision) -> float:
    place = bisect_left(marks, value)
    nearest = min(marks[max(0, place - 1) : place + 1], key=lambda mark: abs(mark - value), default=value)
    return nearest if same(value, nearest, precision) else value
