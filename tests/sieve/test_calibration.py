"""Temperature and threshold together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sieve.calibration import calibrate
from sieve.threshold import ThresholdSettings, rates

logits = st.floats(-25, 25, allow_nan=False)
labelled = st.lists(st.tuples(logits, st.booleans()), min_size=2, max_size=30).filter(lambda rows: len({y for _, y in rows}) == 2)


@given(labelled.map(lambda rows: [(float(round(z / 8)), y) for z, y in rows]))
def test_calibration_changes_scores_and_no_decision(rows: list[tuple[float, bool]]) -> None:
    values, labels = [z for z, _ in rows], [y for _, y in rows]
    point = calibrate(values, labels, ThresholdSettings())
    plain = calibrate(values, labels, ThresholdSettings(calibrate=False))
    assert plain.temperature == 1.0
    best = rates(point.scores, labels, point.threshold).macro_f1
    assert best == pytest.approx(rates(plain.scores, labels, plain.threshold).macro_f1)
