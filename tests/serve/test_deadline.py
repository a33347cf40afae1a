"""A deadline ends the wait, not the program."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from serve.deadline import within


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_a_call_that_ends_in_time_gives_its_value(seconds: float | None) -> None:
    assert within(seconds, lambda: 7) == 7


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_the_call_s_own_error_reaches_the_caller(seconds: float | None) -> None:
    with pytest.raises(ZeroDivisionError):
        within(seconds, lambda: 1 // 0)


def test_a_call_that_hangs_is_left_behind() -> None:
    """It would end only after the wait for it has: a wait that does not end first would never do so."""
    release = threading.Event()
    with pytest.raises(TimeoutError):
        within(0.05, release.wait)
    release.set()


def test_a_call_that_hangs_does_not_keep_the_program_from_ending() -> None:
    """Threads of a pool are joined at exit: with one of them this program would take a minute."""
    program = "import time\nfrom serve.deadline import within\ntry:\n    within(0.05, lambda: time.sleep(60))\nexcept TimeoutError:\n    print('late')"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "late\n"
