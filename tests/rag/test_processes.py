"""A launcher's environment, and what follows from it."""

from pathlib import Path

import pytest
import torch

from conf.job import run_folder
from rag.errors import InputError
from rag.models.base import pick_device
from rag.processes import local_rank, rank, world_size


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `torchrun --nproc_per_node 2` starts its second process."""
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)


def test_without_a_launcher_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (rank(), local_rank(), world_size()) == (0, 0, 1)


@pytest.mark.usefixtures("second_of_two")
def test_a_launcher_numbers_its_processes() -> None:
    assert (rank(), local_rank(), world_size()) == (1, 1, 2)


@pytest.mark.usefixtures("second_of_two")
def test_several_processes_need_an_out_to_agree_on(tmp_path: Path) -> None:
    """Each would make up a name of its own."""
    with pytest.raises(
        InputError, match=r"out must be set where a job runs in several processes \(2 here\): add out=\.\.\. to the command"
    ):
        run_folder({"seed": 0}, tmp_path, "sieve_train", [])


def test_the_first_process_alone_writes_the_run_s_record(second_of_two: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"seed": 0, "out": "here"}
    assert run_folder(values, tmp_path, "sieve_train", []) == tmp_path / "here"
    assert not (tmp_path / "here").exists()
    monkeypatch.setenv("RANK", "0")
    assert run_folder(values, tmp_path, "sieve_train", []) == tmp_path / "here"
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"config.yaml", "run.json"}


@pytest.mark.usefixtures("second_of_two")
def test_each_process_has_the_accelerator_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert pick_device("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    assert pick_device("auto") == torch.device("cuda:1")
    assert pick_device("cuda:0") == torch.device("cuda:0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert pick_device("auto") == torch.device("cuda")
