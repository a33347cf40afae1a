"""Run a job's command line in this process, from a folder of its own."""

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conf.job import job


class Ran(NamedTuple):
    """What a job was run with."""

    settings: Any
    out: Path


@pytest.fixture
def root_logger() -> Iterator[None]:
    """Hydra configures logging for the process; this takes it back."""
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    yield
    root.level, root.handlers[:] = before


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_logger: None) -> Callable[..., Ran]:
    """Run the command line of a job in `tmp_path`; in place of its function, one that keeps what it is given."""
    monkeypatch.chdir(tmp_path)

    def run(settings: Any, config_name: str, *arguments: str) -> Ran:
        ran: list[Ran] = []
        monkeypatch.setattr(sys, "argv", ["job", *arguments])
        job(lambda checked, out: ran.append(Ran(checked, out)), settings, config_name)()
        [only] = ran
        return only

    return run


@pytest.fixture
def refusal(command: Callable[..., Ran], capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The message of a command that must be refused, without a traceback and before its job begins."""

    def run(settings: Any, config_name: str, *arguments: str) -> str:
        with pytest.raises(SystemExit) as exit_:
            command(settings, config_name, *arguments)
        assert exit_.value.code in (1, 2), "1 where Hydra itself refuses, 2 where the project does"
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said

    return run
