"""Each tracker, read back by the library that it writes for."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rag.errors import InputError
from rag.jsonl import iter_records
from rag.trackers.json_lines import METRICS, JsonLines, Line
from rag.trackers.mlflow import Mlflow
from rag.trackers.tensorboard import FOLDER, TensorBoard
from rag.trackers.wandb import Wandb
from rag.tracking import Run, Tracker, Tracking

SETTINGS = {"seed": 1, "sieve": {"base": "tiny", "long": "x" * 7000}, **{f"key{n}": n for n in range(150)}}
PROVENANCE = {"commit": "abc", "inputs": {"a.jsonl": "00ff"}}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    return Run("eval_pipeline", folder, SETTINGS, PROVENANCE)


def track(tracker: Tracker, run: Run, steps: range, finished: bool = True) -> None:
    """A run of training: a loss and a rate at each step, and a report at the end."""
    report = run.folder / "report.json"
    report.write_text(json.dumps({"steps": len(steps)}), encoding="utf-8")
    tracker.start(run)
    for step in steps:
        tracker.log({"train/loss": 1 / (step + 1), "train/learning_rate": 0.1}, step)
    tracker.log({"Recall@5": 0.25}, steps[-1])
    tracker.file(report)
    tracker.finish(finished)


def losses(read: EventAccumulator) -> dict[int, float]:
    return {event.step: event.value for event in read.Scalars("train/loss")}


def test_json_lines_hold_each_report_with_its_step_and_time(run: Run) -> None:
    track(JsonLines(), run, range(3))
    track(JsonLines(), run, range(2, 4))
    lines = list(iter_records(run.folder / METRICS, Line))
    assert [line.step for line in lines] == [0, 1, 2, 2, 2, 3, 3]
    assert lines[1].metrics == {"train/loss": 0.5, "train/learning_rate": 0.1}
    assert lines[-1].metrics == {"Recall@5": 0.25}
    assert all(line.time.endswith("+00:00") for line in lines)


def test_tensorboard_reads_scalars_settings_and_versions(run: Run) -> None:
    track(TensorBoard(), run, range(3))
    read = EventAccumulator(str(run.folder / FOLDER)).Reload()
    assert losses(read) == {0: 1.0, 1: 0.5, 2: pytest.approx(1 / 3)}
    assert [event.value for event in read.Scalars("Recall@5")] == [0.25]
    assert set(read.Tags()["tensors"]) == {"settings", "provenance"}
    [told] = read.Tensors("provenance")
    assert '"a.jsonl": "00ff"' in told.tensor_proto.string_val[0].decode()


def test_of_steps_that_a_resumed_run_repeats_tensorboard_shows_the_later_ones(run: Run) -> None:
    track(TensorBoard(), run, range(5), finished=False)
    resumed = TensorBoard()
    resumed.start(run)
    for step in (3, 4, 5):
        resumed.log({"train/loss": 7.0}, step)
    resumed.finish(True)
    read = EventAccumulator(str(run.folder / FOLDER)).Reload()
    assert losses(read) == {0: 1.0, 1: 0.5, 2: pytest.approx(1 / 3), 3: 7.0, 4: 7.0, 5: 7.0}
    assert len(read.Scalars("train/loss")) == 6


@pytest.mark.parametrize("tracker", [JsonLines(), TensorBoard()])
def test_a_run_that_measured_nothing_leaves_no_file(tracker: Tracker, run: Run) -> None:
    """Its folder can be used again for other settings."""
    tracker.start(run)
    tracker.finish(False)
    assert list(run.folder.iterdir()) == []


def test_mlflow_holds_settings_versions_metrics_and_files_and_goes_on_with_the_run_of_a_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_LOGGING", "true")
    store = tmp_path / "store"
    track(Mlflow("trial", store), run, range(3), finished=False)
    client = MlflowClient(tracking_uri=store.as_uri())
    experiment = client.get_experiment_by_name("trial")
    assert experiment is not None
    [failed] = client.search_runs([experiment.experiment_id])
    assert failed.info.status == "FAILED"
    track(Mlflow("trial", store), run, range(2, 5))
    [kept] = client.search_runs([experiment.experiment_id])
    assert (kept.info.run_id, kept.info.run_name, kept.info.status) == (failed.info.run_id, "runs/one", "FINISHED")
    assert (kept.data.params["seed"], kept.data.params["sieve.base"], kept.data.params["provenance.inputs.a.jsonl"]) == (
        "1",
        "tiny",
        "00ff",
    )
    assert len([key for key in kept.data.params if key.startswith("key")]) == 150
    assert [(m.step, m.value) for m in client.get_metric_history(kept.info.run_id, "train/loss")][-1] == (4, 0.2)
    assert kept.data.metrics["Recall_5"] == 0.25
    assert [file.path for file in client.list_artifacts(kept.info.run_id)] == ["report.json"]


def wandb_records(path: Path) -> list[Any]:
    """What a file of W&B holds: a log in LevelDB's format, whose blocks of 32 KiB cut a record into parts where it does not fit."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, records, record = path.read_bytes(), len(b":W&B") + 3, [], b""
    while at + 7 <= len(data):
        if (left := 0x8000 - at % 0x8000) < 7:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            records.append(Record.FromString(record))
            record = b""
    return records


def test_wandb_writes_a_run_that_can_be_sent_later(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}.items():
        monkeypatch.setenv(name, value)
    track(Wandb("trial", mode="offline"), run, range(3))
    [folder] = (run.folder / "wandb").glob("offline-run-*")
    name = (run.folder / "wandb" / "run_id.txt").read_text(encoding="utf-8").strip()
    records = wandb_records(folder / f"run-{name}.wandb")
    [begun] = [record.run for record in records if record.HasField("run")]
    config = {item.key: json.loads(item.value_json) for item in begun.config.update}
    assert (begun.run_id, begun.display_name, begun.job_type) == (name, "runs/one", "eval_pipeline")
    assert (config["sieve"]["base"], config["provenance"]) == ("tiny", PROVENANCE)
    history = [{item.nested_key[0] or item.key: item.value_json for item in r.history.item} for r in records if r.HasField("history")]
    assert [(row["step"], row.get("train/loss"), row.get("Recall@5")) for row in history] == [
        ("0", "1", None),
        ("1", "0.5", None),
        ("2", "0.3333333333333333", None),
        ("2", None, "0.25"),
    ]
    assert any(file.path == "report.json" for record in records if record.HasField("files") for file in record.files.files)
    assert [record.exit.exit_code for record in records if record.HasField("exit")] == [0]
    # The same run where it goes on, though W&B itself is asked for nothing without a server.
    track(Wandb("trial", mode="offline"), run, range(3))
    # Where both began in one second, W&B numbers the second folder at its end.
    assert [path.name.split("-")[3] for path in (run.folder / "wandb").glob("offline-run-*")] == [name, name]


def test_wandb_without_a_login_says_what_to_do(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "WANDB_CONFIG_DIR", "NETRC"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(InputError, match=r"tracking\.wandb: .*log in with `wandb login`, or set tracking\.wandb\.mode=offline"):
        Wandb("trial").start(run)


@pytest.mark.parametrize(("module", "tracker"), [("wandb", Wandb("trial")), ("mlflow", Mlflow("trial", Path("store")))])
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    module: str, tracker: Tracker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"tracking={module} needs .*pip install 'sieve-and-sage\[{module}\]'"):
        tracker.start(run)


def test_a_full_disk_ends_a_tracker_and_keeps_the_run(run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    tracking = Tracking({"jsonl": JsonLines, "tensorboard": TensorBoard})

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with tracking.running(run):
        tracking.log({"a": 1}, 1)
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr("rag.jsonl.os.fsync", full)
            tracking.log({"a": 2}, 2)
        tracking.log({"a": 3}, 3)
    assert "tracking.jsonl ended, the run goes on without it: InputError" in caplog.text
    assert [event.step for event in EventAccumulator(str(run.folder / FOLDER)).Reload().Scalars("a")] == [1, 2, 3]
