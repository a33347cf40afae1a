"""What trackers are told, and that none of them can cost a run its results."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from rag.errors import InputError
from rag.tracking import Run, Tracking, flat

RUN = Run("eval_pipeline", Path("/runs/ratio/10"), {"seed": 1}, {"commit": "abc"})


class Noting:
    """Notes all it is told; raises in the calls named."""

    def __init__(self, *breaks: str) -> None:
        self.breaks = breaks
        self.told: list[tuple[object, ...]] = []

    def _note(self, call: str, *what: object) -> None:
        if call in self.breaks:
            raise OSError(28, "No space left on device")
        self.told.append((call, *what))

    def start(self, run: Run) -> None:
        self._note("start", run)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._note("log", dict(metrics), step)

    def file(self, path: Path) -> None:
        self._note("file", path)

    def finish(self, finished: bool) -> None:
        self._note("finish", finished)


def test_each_tracker_is_told_everything_in_order() -> None:
    first, second = Noting(), Noting()
    tracking = Tracking({"first": lambda: first, "second": lambda: second})
    with tracking.running(RUN):
        tracking.log({"loss": 0.5}, 10)
        tracking.file(Path("report.json"))
    told = [("start", RUN), ("log", {"loss": 0.5}, 10), ("file", Path("report.json")), ("finish", True)]
    assert first.told == second.told == told


def test_a_run_that_fails_is_told_so_and_its_error_goes_on() -> None:
    noting = Noting()
    with pytest.raises(KeyboardInterrupt), Tracking({"it": lambda: noting}).running(RUN):
        raise KeyboardInterrupt
    assert noting.told == [("start", RUN), ("finish", False)]


@pytest.mark.parametrize("call", ["log", "file", "finish"])
def test_a_tracker_that_fails_later_ends_with_a_warning_and_neither_the_run_nor_another_tracker_with_it(
    call: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = Noting(call), Noting()
    tracking = Tracking({"bad": lambda: bad, "good": lambda: good})
    with tracking.running(RUN):
        for step in (1, 2):
            tracking.log({"loss": 0.5}, step)
            tracking.file(Path("a"))
    assert [what for what, *_ in good.told] == ["start", "log", "file", "log", "file", "finish"]
    [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.getMessage() == "tracking.bad ended, the run goes on without it: OSError: [Errno 28] No space left on device"


def test_one_that_cannot_start_is_named_before_the_work_begins_and_those_that_did_are_finished() -> None:
    good = Noting()
    tracking = Tracking({"good": lambda: good, "bad": lambda: Noting("start")})
    with pytest.raises(InputError, match=r"tracking\.bad could not start: OSError: .* set tracking=default"), tracking.running(RUN):
        raise AssertionError("the work must not begin")
    assert good.told == [("start", RUN), ("finish", False)]


def test_what_has_no_value_is_not_drawn() -> None:
    noting = Noting()
    tracking = Tracking({"it": lambda: noting})
    with tracking.running(RUN):
        tracking.log({"a": 1, "b": None, "c": math.nan, "d": math.inf}, 3)
        tracking.log({"b": None}, 4)
    assert noting.told[1:-1] == [("log", {"a": 1.0}, 3)]


def test_nobody_is_told_outside_of_a_run_or_by_a_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Noting()
    tracking = Tracking({"it": lambda: noting})
    tracking.log({"a": 1}, 1)
    monkeypatch.setenv("RANK", "1")
    with tracking.running(RUN):
        tracking.log({"a": 1}, 1)
    assert noting.told == []


def test_a_run_is_called_by_its_last_two_folders() -> None:
    assert RUN.name == "ratio/10"


def test_nested_settings_become_dotted_keys() -> None:
    assert flat({"a": {"b": 1, "c": {}}, "d": [1, {"e": 2}]}) == {"a.b": 1, "a.c": {}, "d": [1, {"e": 2}]}
