"""How far a job is shows in a log too."""

import logging

import pytest

from eval import progress
from eval.progress import Progress


def test_a_log_says_now_and_then_how_far_a_job_is_and_trackers_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    told = []
    with caplog.at_level(logging.INFO), Progress("predicted", 400, lambda metrics, step: told.append((step, dict(metrics)))) as shown:
        for _ in range(4):
            clock[0] += 20
            shown.advance(100)
    assert [record.getMessage() for record in caplog.records] == [
        "200 of 400 predicted in 40 s, 5 a second, about 40 s left",
        "400 of 400 predicted in 80 s, 5 a second",
    ]
    assert told[0] == (200, {"predicted/seconds": 40.0, "predicted/per_second": 5.0})
    assert [step for step, _ in told] == [200, 400]


def test_nothing_is_said_where_nothing_was_done(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(RuntimeError), Progress("predicted", 4, lambda *_: None):
        raise RuntimeError
    assert caplog.records == []
