"""Every yaml under conf/ composes and fits the settings of its job; the paper profile holds the paper's values."""

import functools
import re
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import pytest
import yaml
from omegaconf import OmegaConf

import conf
from conf.job import check
from data_gen.audit import AuditJob as DataAuditJob
from data_gen.build import BuildSettings
from data_gen.corpus import CorpusJob
from eval.certify import CertifyJob
from eval.compare import CompareJob as EvalCompareJob
from eval.cost.settings import ProfileJob
from eval.drift import DriftJob
from eval.html import HtmlJob
from eval.pipeline import EvalJob
from eval.reading import ReadingJob
from eval.retrieval import RetrievalJob
from eval.table import TableJob
from rag.errors import InputError
from rag.models import artifacts
from rag.settings import Component, Settings
from sage.merge import MergeJob
from sage.settings import TrainJob as SageTrainJob
from sieve.audit import AuditJob
from sieve.compare import CompareJob
from sieve.embed import EmbedJob
from sieve.operating import OperatingJob
from sieve.settings import TrainJob as SieveTrainJob
from sieve.transfer import TransferJob

FOLDER = Path(conf.__file__).parent
JOBS: dict[str, type[Settings]] = {
    "data_gen_audit": DataAuditJob,
    "data_gen_build": BuildSettings,
    "data_gen_corpus": CorpusJob,
    "eval_compare": EvalCompareJob,
    "eval_certify": CertifyJob,
    "eval_drift": DriftJob,
    "eval_html": HtmlJob,
    "eval_table": TableJob,
    "eval_pipeline": EvalJob,
    "eval_profile": ProfileJob,
    "eval_reading": ReadingJob,
    "eval_retrieval": RetrievalJob,
    "sage_merge": MergeJob,
    "sage_train": SageTrainJob,
    "sieve_audit": AuditJob,
    "sieve_compare": CompareJob,
    "sieve_embed": EmbedJob,
    "sieve_operating": OperatingJob,
    "sieve_train": SieveTrainJob,
    "sieve_transfer": TransferJob,
}
NO_JOB = "run_folder"
FILES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.yaml"))
ROOTS = [name for name in FILES if "/" not in name and name != NO_JOB]
LAUNCHERS = [name for name in FILES if name.startswith("hydra/launcher/")]
CHOICES = [name for name in FILES if "/" in name and name not in LAUNCHERS and not name.startswith("experiment/")]
"""Those of experiments are in test_experiments.py: each is for one job alone."""
FOR_ALL = "tracking"
"""The group that conf/run_folder.yaml gives to each job."""


@functools.cache
def compose(root: str, *overrides: str) -> dict[str, Any]:
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed = OmegaConf.to_container(hydra.compose(root, list(overrides)), resolve=True)
    assert isinstance(composed, dict)
    return composed


def filled(node: Any) -> Any:
    """The config with a path in place of each value that the user must set."""
    if isinstance(node, dict):
        return {key: filled(value) for key, value in node.items()}
    return "given.jsonl" if node == "???" else node


class Slot(NamedTuple):
    """A place in a job's config that takes a file of a group."""

    root: str
    group: str
    key: str
    """Where the file's content goes."""
    under: tuple[str, ...] = ()
    """Overrides that make the place."""
    plus: str = ""
    """`+` where the defaults list has no such place."""

    def choosing(self, name: str) -> str:
        return f"{self.group}={name}" if self.group == self.key else f"{self.plus}{self.group}@{self.key}={name}"


def slots_of(file: str, root: str, prefix: str = "", under: tuple[str, ...] = ()) -> list[Slot]:
    """What a yaml's defaults list leaves to choose: `chat@judge: null` takes a file of conf/chat at the key `judge`."""
    defaults = yaml.safe_load((FOLDER / f"{file}.yaml").read_text(encoding="utf-8"))["defaults"]
    named = [group.removeprefix("/").partition("@") for entry in defaults if isinstance(entry, dict) for group in entry]
    return [Slot(root, group, f"{prefix}{key or group}", under) for group, _, key in named]


SLOTS = [slot for root in ROOTS for slot in (*slots_of(root, root), Slot(root, FOR_ALL, FOR_ALL))]
WITH_PROFILE = [(slot.root, profile) for slot in SLOTS if slot.group == "profile" for profile in ("paper", "local")]
SLOTS += slots_of("dataset/pipeline", "data_gen_build", "dataset.", ("dataset=pipeline",))
for file in ("tuned", "output_judge", "sufficiency_judge"):
    SLOTS += slots_of(f"system/{file}", "eval_pipeline", "system.", (f"system={file}",))
SLOTS += [Slot("data_gen_build", "chat", "dataset.judge", ("dataset=pipeline",), "+")]
SLOTS += slots_of("system/recovery", "eval_pipeline", "system.", ("system=recovery",))
USES = [(choice, slot) for choice in CHOICES for slot in SLOTS if choice.partition("/")[0] == slot.group]
USES = [(choice, slot) for choice, slot in USES if slot.group != FOR_ALL or slot.root == "eval_pipeline"]


def test_each_job_has_a_root_yaml_and_each_choice_has_a_job_that_takes_it() -> None:
    assert sorted(JOBS) == ROOTS
    assert len(CHOICES) > 0
    assert {choice for choice, _ in USES} == set(CHOICES)


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_yaml_composes_and_fits_its_job(root: str) -> None:
    composed = compose(root)
    checked = check(filled(composed), JOBS[root], Path("/root"))
    assert checked.model_fields_set == set(composed)


@pytest.mark.parametrize(("root", "profile"), WITH_PROFILE)
def test_a_root_yaml_composes_under_both_profiles(root: str, profile: str) -> None:
    composed = compose(root, f"profile={profile}")
    check(filled(composed), JOBS[root], Path("/root"))
    assert composed["checkpoint_folder"] == f"checkpoints/{profile}"


@pytest.mark.parametrize(("choice", "slot"), USES, ids=[f"{slot.root}-{slot.key}-{choice}" for choice, slot in USES])
def test_a_choice_composes_and_its_targets_bind(choice: str, slot: Slot) -> None:
    composed = compose(slot.root, *slot.under, slot.choosing(choice.partition("/")[2]))
    bound: Any = check(filled(composed), JOBS[slot.root], Path("/root"))
    if slot.group == "profile":
        return
    node: Any = composed
    for part in slot.key.split("."):
        node = node[part]
        bound = bound.arguments[part] if isinstance(bound, Component) else getattr(bound, part)
    if "_target_" in node:
        assert isinstance(bound, Component)
        assert f"{bound.target.__module__}.{bound.target.__qualname__}" == node["_target_"]
        assert set(bound.arguments) == set(node) - {"_target_"}


@pytest.mark.parametrize("name", ["medqa", "bioasq", "astroqa", "nq_wiki", "nq_google", "webq", "rag_bench", "gold_passages"])
def test_a_data_set_of_the_paper_names_its_own_questions_and_every_setting_of_the_steps(name: str) -> None:
    dataset = compose("data_gen_build", f"dataset={name}")["dataset"]
    assert (
        dataset["questions"] == compose("data_gen_build", "dataset=pipeline", f"questions@dataset.questions={name}")["dataset"]["questions"]
    )
    assert set(dataset) == set(compose("data_gen_build", "dataset=pipeline")["dataset"])
    assert (dataset["retriever"] is None) == (name in ("nq_wiki", "nq_google", "webq", "rag_bench"))


@pytest.mark.parametrize("root", ROOTS)
def test_a_key_has_the_name_of_a_group_only_where_it_takes_a_file_of_it(root: str) -> None:
    """Hydra takes `questions=FILE` for a choice wherever there is a group of that name."""
    groups = {choice.partition("/")[0] for choice in CHOICES}
    assert set(JOBS[root].model_fields) & groups <= {slot.key for slot in SLOTS if slot.root == root}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_is_one_of_hydra_s_with_our_values(launcher: str) -> None:
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed = hydra.compose(
            "eval_pipeline", [f"{launcher.rpartition('/')[0]}={launcher.rpartition('/')[2]}"], return_hydra_config=True
        )
    assert composed.hydra.launcher._target_.startswith("hydra_plugins.")


def test_hydra_itself_writes_nothing() -> None:
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed = hydra.compose(NO_JOB, return_hydra_config=True)
    assert (composed.hydra.output_subdir, composed.hydra.run.dir) == (None, ".")
    assert all("filename" not in handler for handler in composed.hydra.job_logging.handlers.values())


def test_what_the_user_must_choose_is_named_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        check(compose("sage_train"), SageTrainJob, Path("/root"))
    assert str(caught.value) == (
        "'data.train' must be set: add data.train=... to the command; 'data.validation' must be set: add data.validation=... to the command"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.base", "allenai/longformer-base-4096"),
        ("model.lora", None),
        ("inputs.max_length", 4096),
        ("train.learning_rate", 2e-4),
        ("train.epochs", 15),
        ("train.warmup_ratio", 0.05),
        ("train.best_metric", "loss"),
    ],
)
def test_the_paper_profile_holds_the_paper_s_sieve(key: str, value: Any) -> None:
    """Paper 002, appendix C."""
    assert OmegaConf.select(OmegaConf.create(compose("sieve_train")["sieve"]), key) == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.base", "meta-llama/Meta-Llama-3-8B-Instruct"),
        ("model.precision", "bf16"),
        ("model.lora.r", 8),
        ("model.lora.alpha", 16),
        ("train.epochs", 3),
        ("train.learning_rate", 2e-5),
        ("train.warmup_ratio", 0.05),
        ("train.optimizer", "paged_adamw_32bit"),
        ("train.max_answerable", 8000),
        ("train.answerable_per_unanswerable", 10),
        ("inputs.abstention", "unanswerable"),
        ("inputs.instruction", "unanswerable"),
    ],
)
def test_the_paper_profile_holds_the_paper_s_sage(key: str, value: Any) -> None:
    """Paper 002, appendix C."""
    assert OmegaConf.select(OmegaConf.create(compose("sage_train")["sage"]), key) == value


def test_the_paper_profile_is_the_default() -> None:
    for root in ("sieve_train", "sage_train", "eval_pipeline"):
        assert compose(root) == compose(root, "profile=paper")


def test_the_local_profile_has_bases_that_make_setup_fetches() -> None:
    [fetched] = re.findall(r"^WEIGHTS := (.*)$", (FOLDER.parent / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    bases = {compose(root, "profile=local")[stage]["model"]["base"] for root, stage in (("sieve_train", "sieve"), ("sage_train", "sage"))}
    assert bases <= {f"artifact:{name}" for name in fetched.split()}


def test_each_base_that_is_an_artifact_is_a_known_one() -> None:
    named = {name for path in FOLDER.rglob("*.yaml") for name in re.findall(r"artifact:([a-z0-9.-]+)", path.read_text(encoding="utf-8"))}
    assert named
    assert named <= set(artifacts.read(artifacts.KNOWN))
