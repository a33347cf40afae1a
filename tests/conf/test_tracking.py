"""A job and its trackers: what they are given, what a run's record holds, and which changes a run that goes on may bring."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hydra
import pytest

import conf.job
from eval.settings import EvalJob
from rag.errors import InputError
from rag.trackers.json_lines import METRICS
from rag.tracking import Run

EVAL = (EvalJob, "eval_pipeline", "system=always_abstain", "dataset=jsonl", "dataset.path=a.jsonl")
DATA = '{"id": "e1"}\n'
HASH = hashlib.sha256(DATA.encode()).hexdigest()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text(DATA, encoding="utf-8")
    return tmp_path / "a.jsonl"


class Fake:
    """Stands where a tracker does and keeps what it is given."""

    told: list[Any]

    def start(self, run: Run) -> None:
        Fake.told = [run]

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        Fake.told.append((dict(metrics), step))

    def file(self, path: Path) -> None:
        Fake.told.append(path)

    def finish(self, finished: bool) -> None:
        Fake.told.append(finished)


def test_a_run_s_record_names_what_it_reads_by_its_hash(command: Callable[..., Any], data: Path) -> None:
    ran = command(*EVAL, "out=x")
    record = json.loads((ran.out / "run.json").read_text(encoding="utf-8"))
    assert record["inputs"] == {"a.jsonl": HASH}
    assert {"commit", "machine", "python"} <= set(record["versions"])


def test_trackers_get_the_resolved_config_versions_and_hashes(command: Callable[..., Any], data: Path) -> None:
    command(*EVAL, "out=x", "tracking=none", f"+tracking.own._target_={__name__}.Fake", "batch_size=3")
    run, finished = Fake.told
    assert (run.job, run.name, finished) == ("eval_pipeline", f"{data.parent.name}/x", True)
    assert (run.settings["batch_size"], run.settings["dataset"]["path"]) == (3, "a.jsonl")
    assert run.provenance["inputs"] == {"a.jsonl": HASH}
    assert "commit" in run.provenance


@pytest.mark.parametrize(("choice", "beside"), [("default", []), ("wandb", ["wandb"]), ("mlflow", ["mlflow"])])
def test_files_in_the_run_s_folder_are_the_default_and_others_come_beside_them(choice: str, beside: list[str]) -> None:
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed = {name: hydra.compose("sage_train", [f"tracking={name}"])["tracking"] for name in (choice, "none")}
    assert list(composed[choice]) == ["jsonl", "tensorboard", *beside]
    assert list(composed["none"]) == []


def test_a_misspelt_key_of_a_tracker_names_the_nearest(refusal: Callable[..., str], data: Path) -> None:
    said = refusal(*EVAL, "tracking=wandb", "tracking.wandb.mod=offline")
    assert said == "error: unknown key 'tracking.wandb.mod'; did you mean 'tracking.wandb.mode'?\n"
    assert "project" in refusal(*EVAL, "tracking=wandb", "+tracking.wandb.projct=x")


def test_a_wrong_value_names_the_tracker(refusal: Callable[..., str], data: Path) -> None:
    said = refusal(*EVAL, "tracking=wandb", "tracking.wandb.mode=later")
    assert said.startswith("error: config: tracking: wandb: 'mode': Input should be 'online', 'offline' or 'disabled'")


def test_a_run_goes_on_with_another_tracking_and_another_engine(command: Callable[..., Any], data: Path) -> None:
    first = command(*EVAL, "out=x")
    (first.out / "predictions.jsonl").touch()
    second = command(*EVAL, "out=x", "tracking=none", "engine=ray", "engine.workers=7")
    assert second.out == first.out
    with pytest.raises(SystemExit):
        command(*EVAL, "out=x", "tracking=none", "batch_size=99")


def test_a_run_does_not_go_on_with_other_content_of_its_files(command: Callable[..., Any], refusal: Callable[..., str], data: Path) -> None:
    out = command(*EVAL, "out=x").out
    (out / "predictions.jsonl").touch()
    data.write_text(DATA * 2, encoding="utf-8")
    assert f"a.jsonl: has changed since the run in {out} began; set out to a new folder" in refusal(*EVAL, "out=x")


def test_a_folder_of_a_run_that_ended_before_it_did_anything_can_be_used_again(tmp_path: Path) -> None:
    """W&B keeps files of its own from the start."""
    values = {"out": "x", "seed": 0}
    out = conf.job.run_folder(values, tmp_path, "job", [])
    (out / "wandb").mkdir()
    assert conf.job.run_folder({**values, "seed": 1}, tmp_path, "job", []) == out
    (out / METRICS).touch()
    with pytest.raises(InputError, match="other settings"):
        conf.job.run_folder({**values, "seed": 2}, tmp_path, "job", [])
