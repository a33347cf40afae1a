"""Each file of conf/experiment: its first comment is its command, and its runs compose and fit its job under both profiles."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

import conf
from conf.job import check
from conf.overrides import check_overrides
from conf.sweep import RUN_FILE, AfterSweep, Swept, swept
from data_gen.build import BuildSettings
from eval.cost.settings import ProfileJob
from eval.html import HtmlJob
from eval.pipeline import main as eval_main
from eval.settings import EvalJob
from eval.table import TableJob
from rag.errors import InputError
from rag.settings import Settings
from sage.settings import TrainJob as SageTrainJob
from sieve.embed import EmbedJob
from sieve.settings import TrainJob as SieveTrainJob
from sieve.transfer import TransferJob

FOLDER = Path(conf.__file__).parent / "experiment"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
SETTINGS: dict[str, type[Settings]] = {
    "data_gen.build": BuildSettings,
    "eval.html": HtmlJob,
    "eval.pipeline": EvalJob,
    "eval.profile": ProfileJob,
    "eval.table": TableJob,
    "sage.train": SageTrainJob,
    "sieve.embed": EmbedJob,
    "sieve.train": SieveTrainJob,
    "sieve.transfer": TransferJob,
}
OF_THE_PAPER = [f"table{n}" for n in (2, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17)] + [f"figure{n}" for n in (3, 4, 5, 6)]


def lines(name: str) -> list[str]:
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines()


def job_of(name: str) -> str:
    """The module that runs an experiment, by its own command."""
    [own] = [line for line in lines(name) if line.startswith("# python -m ") and line.endswith(f"experiment={name} profile=local")]
    return own.split()[3]


class Composed(NamedTuple):
    """One run of an experiment."""

    overrides: list[str]
    values: dict[str, Any]
    folder: str


def covering(runs: list[list[str]]) -> list[list[str]]:
    """As few runs of a sweep as hold each value of each key."""
    seen: set[str] = set()
    chosen = []
    for texts in runs:
        if not seen.issuperset(texts):
            seen.update(texts)
            chosen.append(texts)
    return chosen


def runs_of(name: str, profile: str) -> Iterator[Composed]:
    given = [f"experiment={name}", f"profile={profile}"]
    config_name = job_of(name).replace(".", "_")
    with hydra.initialize_config_module("conf", version_base="1.3"):
        whole = hydra.compose(config_name, given, return_hydra_config=True)
        HydraConfig.instance().set_config(whole)
        params = [f"{key}={value}" for key, value in (whole.hydra.sweeper.params or {}).items()]
        parsed = OverridesParser.create().parse_overrides([*params, *given])
        for texts in covering(BasicSweeper.split_arguments(parsed, None)[0]):
            one = hydra.compose(config_name, texts, return_hydra_config=True)
            HydraConfig.instance().set_config(one)
            values = OmegaConf.to_container(one, resolve=False)
            assert isinstance(values, dict)
            values.pop("hydra")
            bare = OmegaConf.to_container(OmegaConf.create(values), resolve=True)
            assert isinstance(bare, dict)
            yield Composed(texts, bare, str(whole.hydra.sweep.dir))


@pytest.fixture(autouse=True)
def hydra_forgets() -> Iterator[None]:
    yield
    HydraConfig.instance().cfg = None


def test_the_tables_and_figures_of_the_paper_are_there() -> None:
    assert set(OF_THE_PAPER) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_comments_are_the_commands_in_the_order_they_are_run(name: str) -> None:
    assert lines(name)[0] == "# @package _global_"
    commands = [line for line in lines(name) if line.startswith(("# python -m ", "# local: python -m ", "# paper: python -m "))]
    assert lines(name)[1 : 1 + len(commands)] == commands
    assert commands[-1].startswith("# python -m ") and f"experiment={name} " in commands[-1]
    assert any(line.startswith("# local: ") and not line.startswith("# local: python") for line in lines(name)), "states its size"


@pytest.mark.parametrize("name", NAMES)
def test_commands_before_its_own_are_jobs_of_this_project(name: str) -> None:
    for line in lines(name):
        if line.startswith(("# python -m ", "# local: python -m ", "# paper: python -m ")):
            module = line.partition("python -m ")[2].split()[0]
            assert callable(importlib.import_module(module).main)


@pytest.mark.parametrize("profile", ["local", "paper"])
@pytest.mark.parametrize("name", NAMES)
def test_its_runs_compose_and_fit_its_job(name: str, profile: str) -> None:
    runs = list(runs_of(name, profile))
    assert runs
    for run in runs:
        check(run.values, SETTINGS[job_of(name)], Path("/root"))
    if len(runs) > 1:
        assert runs[0].folder == f"runs/{name}/{profile}"


def test_an_experiment_of_another_job_is_refused_with_its_command() -> None:
    with pytest.raises(
        InputError, match=r"experiment=table5 is one of another job: .*python -m sieve.transfer experiment=table5 profile=local"
    ):
        check_overrides(["experiment=table5"], EvalJob, "eval_pipeline")


@pytest.mark.parametrize("name", NAMES)
def test_its_own_job_takes_it(name: str) -> None:
    check_overrides([f"experiment={name}"], SETTINGS[job_of(name)], job_of(name).replace(".", "_"))


def test_the_domain_sets_resolve_to_the_papers_models() -> None:
    """Paper 002, section 4.2: Med42-8B for MedQA and BioASQ, AstroSage-8B for AstroQA."""
    for domain, base in (
        ("medqa", "m42-health/Llama3-Med42-8B"),
        ("bioasq", "m42-health/Llama3-Med42-8B"),
        ("astroqa", "AstroMLab/AstroSage-8B"),
    ):
        for run in runs_of(f"table15_{domain}", "paper"):
            assert run.values["dataset"]["path"] == f"data/{domain}/test.jsonl"
            assert run.values["sage"]["model"]["base"] == base
            assert run.values["sieve_checkpoint"] == f"checkpoints/paper/sieve_{domain}"


def test_after_a_sweep_its_runs_are_found_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hydra.initialize_config_module("conf", version_base="1.3"):
        config = hydra.compose(
            "eval_pipeline", ["experiment=table7", "profile=local", f"hydra.sweep.dir={tmp_path}"], return_hydra_config=True
        )
    config.hydra.overrides.task = ["experiment=table7", "profile=local"]
    found = list(swept(tmp_path, config))
    assert [run.folder.name for run in found][:2] == [
        "dataset-demo__dataset.k-3__dataset.seed-0",
        "dataset-demo__dataset.k-3__dataset.seed-1",
    ]
    for run in found[1:3]:
        run.folder.mkdir()
        (run.folder / RUN_FILE).write_text("{}")
    called: list[tuple[Path, list[Swept], Any]] = []
    monkeypatch.setattr("eval.sweep.tabulate", lambda *given: called.append(given))
    AfterSweep("eval.sweep.tabulate", "table").on_multirun_end(config)
    [(folder, there, table)] = called
    assert (folder, [run.overrides["dataset.k"] for run in there]) == (tmp_path, ["3", "5"])
    assert table["title"] == "Number of documents (table 7)"


VARIANT = "all__system-always_abstain__dataset.limit-5"
"""Where the table of an experiment goes whose runs were all given something else than it says: not into the experiment's own."""


def test_a_sweep_ends_in_a_table_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root_logger: None
) -> None:
    """The command of table 7 itself, with a system that needs no model; a second time nothing is predicted again."""
    monkeypatch.chdir(tmp_path)
    argv = ["job", "experiment=table7", "profile=local", "system=always_abstain", "dataset.limit=5", "tracking=none", "html=false"]
    tables = []
    for _ in range(2):
        monkeypatch.setattr("sys.argv", argv)
        eval_main()
        tables.append((tmp_path / "runs/table7/local" / VARIANT / "table.json").read_bytes())
    rows = json.loads(tables[1])["rows"]
    assert [(row["name"], row["metrics"]["system_accuracy"]["value"], len(row["runs"])) for row in rows] == [
        ("k=3", 0.8, 2),
        ("k=5", 0.8, 2),
        ("k=7", 0.8, 2),
    ]
    assert tables[0] == tables[1]
    assert not (tmp_path / "runs/table7/local/table.md").exists()
    assert "Given to all runs: dataset=demo, " in (tmp_path / "runs/table7/local" / VARIANT / "table.md").read_text(encoding="utf-8")
    assert "Number of documents (table 7)" in capsys.readouterr().out
    journal = tmp_path / "runs/table7/local" / Path(rows[0]["runs"][0]["folder"]).name / "predictions.jsonl"
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 5


def test_the_runs_of_a_sweep_share_what_stages_say_and_a_single_run_keeps_nothing(tmp_path: Path) -> None:
    with hydra.initialize_config_module("conf", version_base="1.3"):
        for mode, store in (("MULTIRUN", f"{tmp_path}/store"), ("RUN", None)):
            given = [f"hydra.sweep.dir={tmp_path}", f"hydra.mode={mode}"]
            whole = hydra.compose("eval_pipeline", given, return_hydra_config=True)
            HydraConfig.instance().set_config(whole)
            assert OmegaConf.to_container(whole.system, resolve=True)["store"] == store  # type: ignore[call-overload,index]
