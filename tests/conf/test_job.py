"""The command line: which keys and values it takes, where it reads and writes, and what it leaves behind."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import conf.job
from conf.job import run_folder
from conf.overrides import check_overrides
from data_gen.audit import AuditJob as DataAuditJob
from data_gen.build import BuildSettings
from eval.pipeline import EvalJob
from rag.errors import InputError
from sage.settings import TrainJob as SageTrainJob
from sieve.settings import TrainJob as SieveTrainJob

SIEVE = (SieveTrainJob, "sieve_train", "data.train=a.jsonl", "data.validation=b.jsonl")
SAGE = (SageTrainJob, "sage_train", "data.train=a.jsonl", "data.validation=b.jsonl")
EVAL = (EvalJob, "eval_pipeline", "system=always_abstain")
BUILD = (BuildSettings, "data_gen_build")
AUDIT = (DataAuditJob, "data_gen_audit", "data=folder")


class TestKeys:
    """Pitfall D1."""

    @pytest.mark.parametrize(
        ("job", "arguments", "message"),
        [
            (EVAL, ["batch_sise=3"], "unknown key 'batch_sise'; did you mean 'batch_size'?"),
            (EVAL, ["+seeed=1"], "unknown key 'seeed'; did you mean 'seed'?"),
            (EVAL, ["++seeed=1"], "unknown key 'seeed'; did you mean 'seed'?"),
            (EVAL, ["qqqqqqq=1"], "unknown key 'qqqqqqq'; see the keys with --cfg job (eval_pipeline)"),
            (SIEVE, ["data.trian=x"], "unknown key 'data.trian'; did you mean 'data.train'?"),
            (SIEVE, ["sieve.train.learning_rat=1"], "unknown key 'sieve.train.learning_rat'; did you mean 'sieve.train.learning_rate'?"),
            (SIEVE, ["+sieve.max_length=9"], "unknown key 'sieve.max_length'; did you mean 'sieve.inputs.max_length'?"),
            (SAGE, ["sage.max_seq_length=2048"], "unknown key 'sage.max_seq_length'; did you mean 'sage.train.max_length'?"),
        ],
    )
    def test_a_misspelt_key_names_the_nearest(self, job: Any, arguments: list[str], message: str) -> None:
        with pytest.raises(InputError) as caught:
            check_overrides(arguments, job[0], job[1])
        assert str(caught.value) == message

    @pytest.mark.parametrize("plus", ["", "+"])
    def test_a_key_of_another_room_names_the_right_one(self, plus: str) -> None:
        with pytest.raises(InputError, match=r"unknown key 'sieve\.treshold'; did you mean 'system\.threshold'\?"):
            check_overrides([f"{plus}sieve.treshold=0.4"], EvalJob, "eval_pipeline")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["dataset.qestions=4"], "unknown key 'dataset.qestions'; did you mean 'dataset.questions'?"),
            (["system.treshold=0.4"], "unknown key 'system.treshold'; did you mean 'system.threshold'?"),
            (["system=always_abstain", "system.treshold=0.4"], "unknown key 'system.treshold'; system has the keys state"),
            (["dataset.pth=x", "dataset=realtimeqa"], "unknown key 'dataset.pth'; did you mean 'dataset.path'?"),
        ],
    )
    def test_a_misspelt_key_of_a_component_names_the_nearest_of_the_one_chosen(self, arguments: list[str], message: str) -> None:
        with pytest.raises(InputError) as caught:
            check_overrides(arguments, EvalJob, "eval_pipeline")
        assert str(caught.value) == message

    def test_so_does_one_with_a_plus(self, refusal: Callable[..., str]) -> None:
        assert refusal(*EVAL, "+dataset.qestions=4") == "error: config: dataset: unknown key 'qestions'; did you mean 'questions'?\n"

    @pytest.mark.parametrize(
        ("job", "arguments", "message"),
        [
            (
                BUILD,
                ["dataset=gold_passages", "dataset.chat.temprature=1"],
                "unknown key 'dataset.chat.temprature'; did you mean 'dataset.chat.temperature'?",
            ),
            (
                BUILD,
                ["dataset=medqa", "chat@dataset.chat=llama_cpp", "dataset.chat.timeout=1"],
                "dataset.chat has the keys path, context, max_tokens",
            ),
            (
                BUILD,
                ["dataset=medqa", "dataset.questions.shares.trian=1"],
                "unknown key 'dataset.questions.shares.trian'; did you mean 'dataset.questions.shares.train'?",
            ),
            (BUILD, ["dataset=medqa", "dataset.retreiver.k1=1"], "unknown key 'dataset.retreiver.k1'; did you mean 'dataset.retriever'?"),
            (BUILD, ["dataset=medqa", "chat.base_url=x"], "unknown key 'chat.base_url'; did you mean 'dataset.chat.base_url'?"),
            (AUDIT, ["chat@judge=smollm2", "judge.max_token=9"], "unknown key 'judge.max_token'; did you mean 'judge.max_tokens'?"),
        ],
    )
    def test_a_misspelt_key_below_a_component_of_a_component_names_the_nearest_there(
        self, job: Any, arguments: list[str], message: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            check_overrides(arguments, job[0], job[1])
        assert message in str(caught.value)

    def test_a_component_of_a_component_is_chosen_and_set_on_the_command_line(self, command: Callable[..., Any], tmp_path: Path) -> None:
        ran = command(
            *BUILD, "dataset=gold_passages", "dataset.limit=3", "nli@dataset.nli=lexical", "dataset.nli.overlap=0.7", "dataset.chat.temperature=1.0",
            "dataset.questions.path=gold.json", "retriever@dataset.retriever=hybrid", "dataset.retriever.retrievers.bm25.k1=0.9", "corpus=c",
            "+chat@dataset.judge=openai_server", "dataset.judge.model=j", "dataset.price={prompt: 1}",
        )  # fmt: skip
        steps = ran.settings.dataset.arguments
        assert (steps["nli"].target.__name__, steps["nli"].arguments) == ("LexicalNli", {"overlap": 0.7})
        assert (steps["limit"], steps["chat"].arguments["temperature"], steps["judge"].arguments["model"]) == (3, 1.0, "j")
        assert steps["questions"].arguments["path"] == tmp_path / "gold.json"
        bm25 = steps["retriever"].arguments["retrievers"]["bm25"].arguments
        assert (bm25["k1"], bm25["corpus"]) == (0.9, tmp_path / "c")
        assert steps["price"].prompt == 1.0

    def test_sets_that_take_long_to_make_are_built_before_they_are_evaluated_on(self, command: Callable[..., Any]) -> None:
        ran = command(*EVAL, "dataset=medqa")
        with pytest.raises(InputError, match=r"write them with `python -m data_gen\.build`, then read them with dataset=jsonl"):
            ran.settings.dataset.build()

    @pytest.mark.parametrize(
        ("argument", "message"),
        [
            ("hydra.verbos=true", "unknown key 'hydra.verbos'; did you mean 'verbose'?"),
            ("+hydra.job.chdri=true", "unknown key 'hydra.job.chdri'; did you mean 'chdir'?"),
        ],
    )
    def test_a_misspelt_key_of_hydra_s_own_is_refused_too(self, argument: str, message: str) -> None:
        """With `+`, Hydra takes it and does nothing."""
        with pytest.raises(InputError) as caught:
            check_overrides([argument], EvalJob, "eval_pipeline")
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("job", "arguments"),
        [
            (
                EVAL,
                [
                    "system=always_abstain",
                    "dataset=realtimeqa",
                    "dataset.path=x.json",
                    "dataset.limit=3",
                    "system.state=distracted",
                    "seed=1",
                    "profile=local",
                ],
            ),
            (EVAL, ["+dataset.k=3", "dataset._target_=data_gen.sources.demo.load", "hydra.job.chdir=true", "hydra/job_logging=none"]),
            (EVAL, ["+hydra.job.env_set.TOKENIZERS_PARALLELISM=false", "--cfg", "job", "-m", "seed=1,2"]),
            (SIEVE, ["sieve=minilm", "sieve.model.long_context.max_positions=512", "+init=x", "data.train=[a,b]"]),
        ],
    )
    def test_right_keys_pass(self, job: Any, arguments: list[str]) -> None:
        check_overrides(arguments, job[0], job[1])

    def test_a_choice_that_does_not_exist_lists_those_that_do(self, refusal: Callable[..., str]) -> None:
        said = refusal(*EVAL, "dataset=demmo", "dataset.limit=3")
        assert "Could not find 'dataset/demmo'" in said
        assert all(name in said for name in ("demo", "jsonl", "realtimeqa"))


class TestValues:
    """Pitfall D1 and promise 14."""

    @pytest.mark.parametrize("argument", ["dataset.name=a=b", "match=(none)"])
    def test_a_value_that_hydra_cannot_read_is_quoted_back(self, argument: str, refusal: Callable[..., str]) -> None:
        said = refusal(*EVAL, argument)
        assert said.startswith(f"error: cannot read '{argument}': ")
        assert said.endswith("put a value with = , ( or spaces in quotes: 'key=\"value\"'\n")

    def test_a_quoted_comma_belongs_to_the_value(self, command: Callable[..., Any]) -> None:
        ran = command(*SAGE, "sage.inputs.abstention='not known, sorry'")
        assert ran.settings.sage.inputs.abstention == "not known, sorry"

    @pytest.mark.parametrize("argument", ["sage.inputs.abstention=not known, sorry", "data.validation=a.jsonl,b.jsonl"])
    def test_a_bare_comma_is_no_sweep(self, argument: str, refusal: Callable[..., str]) -> None:
        said = refusal(*SAGE[:3], argument)
        assert "Ambiguous value for argument" in said and "quote the value" in said and "[value1,value2]" in said

    def test_a_list_value_is_a_list_of_files(self, command: Callable[..., Any], tmp_path: Path) -> None:
        ran = command(*SAGE[:2], "data.train=[a.jsonl,b.jsonl]", "data.validation=v.jsonl")
        assert ran.settings.data.train == (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
        assert ran.settings.data.validation == (tmp_path / "v.jsonl",)

    def test_a_bare_value_for_a_list_says_how_to_write_one(self, refusal: Callable[..., str]) -> None:
        assert refusal(*BUILD, "splits=test") == "error: config: splits: Input should be a valid tuple; write a list as [a,b]\n"

    @pytest.mark.parametrize("value", ["no", "007", "12:30", "on", "1_000_", "2024-01-01", "0x1f"])
    def test_text_stays_as_written(self, value: str, command: Callable[..., Any]) -> None:
        ran = command(*SAGE, f"sage.inputs.abstention={value}")
        assert ran.settings.sage.inputs.abstention == value
        assert yaml.safe_load((ran.out / "config.yaml").read_text(encoding="utf-8"))["sage"]["inputs"]["abstention"] == value

    @pytest.mark.parametrize(("value", "kind"), [("true", "bool True"), ("7", "int 7"), ("1.50", "float 1.5")])
    def test_text_that_hydra_reads_as_something_else_is_refused_by_name(self, value: str, kind: str, refusal: Callable[..., str]) -> None:
        said = refusal(*SAGE, f"sage.inputs.abstention={value}")
        assert f"sage.inputs.abstention: expected text, got {kind}; write it in quotes" in said

    @pytest.mark.parametrize("key", ["dataset.split", "dataset.path", "out"])
    def test_so_is_a_number_for_the_other_text_keys(self, key: str, refusal: Callable[..., str]) -> None:
        choice = ["dataset=jsonl"] if key == "dataset.path" else []
        assert key.rpartition(".")[2] in refusal(*EVAL, *choice, f"{key}=7")

    @pytest.mark.parametrize(
        ("argument", "message"),
        [
            ("seed=abc", "seed: Input should be a valid integer"),
            ("batch_size=0", "batch_size: Input should be greater than or equal to 1"),
            ("dataset.limit=abc", "dataset: 'limit': Input should be a valid integer"),
            ("match=fuzzy", "match: Input should be 'exact', 'squad' or 'contains'"),
            ("system.state=lost", "system: 'state': Input should be 'answerable', 'unanswerable' or 'distracted'"),
        ],
    )
    def test_a_value_of_another_type_is_refused_by_name(self, argument: str, message: str, refusal: Callable[..., str]) -> None:
        assert refusal(*EVAL, argument).startswith(f"error: config: {message}")

    def test_problems_are_reported_together(self, refusal: Callable[..., str]) -> None:
        said = refusal(*EVAL, "seed=abc", "match=fuzzy", "dataset.k=x")
        assert "seed:" in said and "match:" in said and "dataset: 'k'" in said

    def test_a_user_s_mistake_in_the_job_is_one_line_and_a_bug_keeps_its_traceback(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, root_logger: None
    ) -> None:
        def run(settings: EvalJob, out: Path) -> None:
            raise InputError("no such file") if settings.seed == 1 else RuntimeError("a bug")

        monkeypatch.chdir(tmp_path)
        main = conf.job.job(run, EvalJob, "eval_pipeline")
        monkeypatch.setattr(sys, "argv", ["job", "seed=1"])
        with pytest.raises(SystemExit) as exit_:
            main()
        assert exit_.value.code == 2
        assert capsys.readouterr().err.endswith("error: no such file\n")
        monkeypatch.setattr(sys, "argv", ["job", "seed=2"])
        monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
        with pytest.raises(RuntimeError, match="a bug"):
            main()


class TestPaths:
    """Pitfall D2: paths are relative to the folder the command was started from."""

    def test_also_when_hydra_changes_the_working_directory(self, command: Callable[..., Any], tmp_path: Path) -> None:
        ran = command(*SAGE, "out=here", "hydra.job.chdir=true", "hydra.run.dir=elsewhere")
        assert (tmp_path / "elsewhere").is_dir()
        assert (ran.out, ran.settings.data.train) == (tmp_path / "here", (tmp_path / "a.jsonl",))

    def test_paths_inside_a_component_too(self, command: Callable[..., Any], tmp_path: Path) -> None:
        ran = command(*EVAL[:2], "hydra.job.chdir=true", "hydra.run.dir=elsewhere")
        assert ran.settings.system.arguments["sieve"] == tmp_path / "checkpoints" / "paper" / "sieve"
        assert ran.out.parent == tmp_path / "runs" / "eval_pipeline"

    def test_an_absolute_path_stays(self, command: Callable[..., Any], tmp_path: Path) -> None:
        ran = command(*SAGE[:3], f"data.validation={tmp_path}/v/b.jsonl", f"out={tmp_path}/there")
        assert (ran.settings.data.validation, ran.out) == ((tmp_path / "v" / "b.jsonl",), tmp_path / "there")

    def test_the_command_works_from_another_folder(self, tmp_path: Path) -> None:
        run_module(tmp_path, "dataset.limit=5", "hydra.job.chdir=true", "hydra.run.dir=elsewhere", "out=here")
        assert {path.name for path in (tmp_path / "here").iterdir()} >= {"config.yaml", "run.json", "predictions.jsonl", "report.json"}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "here"]


def start_module(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(Path(conf.job.__file__).parents[1])}
    command = [sys.executable, "-m", "eval.pipeline", "system=always_abstain", "resamples=20", *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_module(folder: Path, *arguments: str) -> None:
    process = start_module(folder, *arguments)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


VALUES = {"out": None, "seed": 0, "sage": {"inputs": {"abstention": "no"}}, "data": {"train": ["a", "b"]}}


def with_value(**changes: Any) -> dict[str, Any]:
    return {**VALUES, **changes}


class TestRunFolder:
    """Pitfall D3."""

    def test_two_runs_of_the_same_second_get_two_folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Stopped(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> "Stopped":
                return cls(2026, 1, 2, 3, 4, 5)

        monkeypatch.setattr(conf.job, "datetime", Stopped)
        first, second = (run_folder(VALUES, tmp_path, "job", []) for _ in range(2))
        assert first != second
        assert first.name[:19] == second.name[:19] == "2026-01-02_03-04-05"

    def test_two_evaluations_at_once_leave_two_complete_result_sets(self, tmp_path: Path) -> None:
        started = [start_module(tmp_path, "dataset.limit=5", f"seed={seed}") for seed in (1, 2)]
        for process in started:
            _, said = process.communicate(timeout=60)
            assert process.returncode == 0, said
        folders = list((tmp_path / "runs" / "eval_pipeline").iterdir())
        assert len(folders) == 2
        reports = [json.loads((folder / "report.json").read_text(encoding="utf-8"))["report"] for folder in folders]
        assert sorted(report["seed"] for report in reports) == [1, 2]
        assert [report["n"] for report in reports] == [5, 5]
        assert all(len((folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()) == 5 for folder in folders)

    def test_the_saved_config_is_resolved_and_needs_no_hydra_to_load(self, command: Callable[..., Any], tmp_path: Path) -> None:
        ran = command(*EVAL[:2], "profile=local", "checkpoint_folder=no", "system.threshold=2e-5", "dataset.limit=5")
        text = (ran.out / "config.yaml").read_text(encoding="utf-8")
        assert "${" not in text
        saved = yaml.safe_load(text)
        assert saved["system"].pop("sieve_settings") == saved["sieve"]
        assert saved["system"].pop("sage_settings") == saved["sage"]
        assert saved["system"] == {
            "_target_": "serve.systems.sieve_and_sage.load",
            "sieve": "no/sieve",
            "sage": "no/sage",
            "on_flag": "abstain",
            "max_removals": 1,
            "prompt": None,
            "store": None,
            "threshold": 2e-5,
            "sieve_deadline": None,
            "sage_deadline": None,
            "device": "auto",
        }
        components = {"dataset", "system", "engine", "tracking"}
        again = conf.job.check(saved, EvalJob, tmp_path)
        assert again.model_dump(exclude=components) == ran.settings.model_dump(exclude=components)
        run = json.loads((ran.out / "run.json").read_text(encoding="utf-8"))
        assert run["overrides"] == ["profile=local", "checkpoint_folder=no", "system.threshold=2e-5", "dataset.limit=5"]
        assert {"commit", "python", "torch", "transformers"} <= set(run["versions"])

    def test_the_saved_values_equal_the_composed_ones(self, tmp_path: Path) -> None:
        values = with_value(texts=["no", "007", "12:30", "1e5", "null", "é", "a: b", "~"], numbers=[1e-5, 3, True, None])
        out = run_folder(values, tmp_path, "job", [])
        assert yaml.safe_load((out / "config.yaml").read_text(encoding="utf-8")) == values

    def test_a_folder_that_no_job_wrote_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
        with pytest.raises(InputError, match="the folder is not empty and no job wrote it; set out to a new folder"):
            run_folder(with_value(out="."), tmp_path, "job", [])
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("", encoding="utf-8")
        with pytest.raises(InputError, match="expected a folder, found a file"):
            run_folder(with_value(out="x"), tmp_path, "job", [])
        with pytest.raises(InputError, match="could not write the run's folder"):
            run_folder(with_value(out="x/y"), tmp_path, "job", [])

    def test_the_same_settings_go_on_in_the_same_folder(self, tmp_path: Path) -> None:
        out = run_folder(with_value(out="x"), tmp_path, "job", ["first"])
        (out / "predictions.jsonl").write_text("row\n", encoding="utf-8")
        assert run_folder(with_value(out=str(tmp_path / "x")), tmp_path, "job", ["second"]) == out
        assert (out / "predictions.jsonl").read_text(encoding="utf-8") == "row\n"
        assert json.loads((out / "run.json").read_text(encoding="utf-8"))["overrides"] == ["first"]

    def test_a_folder_of_a_job_that_failed_before_it_wrote_anything_can_be_used_again(self, tmp_path: Path) -> None:
        out = run_folder(with_value(out="x", seed=1), tmp_path, "job", [])
        assert run_folder(with_value(out="x", seed=2), tmp_path, "job", []) == out
        assert yaml.safe_load((out / "config.yaml").read_text(encoding="utf-8"))["seed"] == 2

    def test_other_settings_are_refused_and_named(self, tmp_path: Path) -> None:
        run_folder(with_value(out="x"), tmp_path, "job", [])
        other = with_value(out="x", seed=1, sage={"inputs": {"abstention": "none"}}, new=3)
        (tmp_path / "x" / "predictions.jsonl").touch()
        with pytest.raises(InputError, match=r"holds results of other settings \(new, sage\.inputs\.abstention, seed\); set out to a new"):
            run_folder(other, tmp_path, "job", [])
        with pytest.raises(InputError, match="holds results of the job job"):
            run_folder(with_value(out="x"), tmp_path, "other", [])

    def test_a_full_disk_leaves_a_folder_that_can_be_used_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def write(path: Path, *_: Any, **__: Any) -> int:
            path.touch()
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_text", write)
            with pytest.raises(InputError, match=r"could not write the run's folder \(No space left on device\)"):
                run_folder(with_value(out="x"), tmp_path, "job", [])
        assert (run_folder(with_value(out="x"), tmp_path, "job", []) / "run.json").is_file()

    def test_a_record_that_was_edited_by_hand_is_named(self, tmp_path: Path) -> None:
        out = run_folder(with_value(out="x"), tmp_path, "job", [])
        (out / "run.json").write_text("{", encoding="utf-8")
        (out / "predictions.jsonl").touch()
        with pytest.raises(InputError, match=r"run\.json:1:2: not JSON"):
            run_folder(with_value(out="x"), tmp_path, "job", [])
