"""The import rules of the rooms, read from the source; and that importing any module does nothing but define things."""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("conf", "data_gen", "eval", "rag", "sage", "serve", "sieve")
STAGES = ("sage", "sieve")
PUBLIC_FACE = "sieve_and_sage"
JOB = "conf.job"

MAY_IMPORT = {
    "conf": {"rag"},
    "rag": set(),
    "sieve": {"rag"},
    "sage": {"rag"},
    "data_gen": {"rag"},
    "serve": {"rag", "sieve", "sage"},
    "eval": {"rag", "sieve", "sage", "serve"},
    PUBLIC_FACE: {"rag", "sieve", "sage", "serve"},
}
"""Rooms that the modules of a room may import beside their own; a job imports `conf.job` as well."""

HEAVY_ROOMS = ("rag.models", "rag.retrieval", "rag.trackers", "rag.cluster")
"""Rooms and modules of `rag` that are there for a library: models, indexes, trackers, Ray."""
LIGHT = {*sys.stdlib_module_names, "pydantic", "rag"}


def _files() -> dict[str, Path]:
    paths = [*(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))), ROOT / f"{PUBLIC_FACE}.py"]
    return {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path for path in paths}


MODULES = _files()


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str) -> frozenset[str]:
    """Modules that a module imports, wherever in it; `from sage import predict` imports `sage.predict`."""
    found: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            found.update(f"{node.module}.{a.name}" if f"{node.module}.{a.name}" in MODULES else str(node.module) for a in node.names)
    return frozenset(found)


def room(module: str) -> str:
    return module.partition(".")[0]


def is_in(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def is_job(module: str) -> bool:
    return any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree_of(module).body)


JOBS = sorted(module for module in MODULES if is_job(module))


def test_the_rules_see_the_whole_project() -> None:
    assert {room(module) for module in MODULES} == set(MAY_IMPORT)
    assert {"data_gen.build", "eval.pipeline", "sage.train", "sieve.train"} <= set(JOBS)
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(ROOMS)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_from_the_rooms_below_its_own_only(module: str) -> None:
    foreign = {name for name in imports_of(module) if room(name) in MAY_IMPORT and room(name) != room(module)}
    if module in JOBS:
        foreign.discard(JOB)
    assert {name for name in foreign if room(name) not in MAY_IMPORT[room(module)]} == set()


@pytest.mark.parametrize("module", MODULES)
def test_of_a_stage_others_import_prediction_and_threshold_only(module: str) -> None:
    of_stages = {name for name in imports_of(module) if room(name) in STAGES and room(name) != room(module)}
    assert {name for name in of_stages if name.partition(".")[2] not in ("predict", "threshold")} == set()


@pytest.mark.parametrize("module", [module for module in MODULES if room(module) == "rag" and not is_in(module, *HEAVY_ROOMS)])
def test_the_ground_floor_needs_the_standard_library_and_pydantic(module: str) -> None:
    assert {name for name in imports_of(module) if room(name) not in LIGHT or is_in(name, *HEAVY_ROOMS)} == set()


@pytest.mark.parametrize("module", [module for module in MODULES if room(module) != "conf"])
def test_hydra_stays_in_one_room(module: str) -> None:
    assert {name for name in imports_of(module) if room(name) in ("hydra", "omegaconf")} == set()


@pytest.mark.parametrize("module", MODULES)
def test_a_job_is_a_leaf(module: str) -> None:
    assert imports_of(module).isdisjoint(JOBS)


@pytest.mark.parametrize("module", MODULES)
def test_a_job_and_nothing_else_imports_what_makes_a_job(module: str) -> None:
    assert (JOB in imports_of(module)) == (module in JOBS)
    assert module in JOBS or room(module) == "conf" or not any(is_in(name, "conf") for name in imports_of(module))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_in_its_docstring_what_it_is_and_a_job_how_it_is_run(module: str) -> None:
    docstring = ast.get_docstring(tree_of(module)) or ""
    assert docstring
    assert module not in JOBS or f"python -m {module}" in docstring


PROBE = """
import json, logging, os, socket, sys
import random, numpy, torch, transformers
import rich.style  # draws a random number itself when it is imported

def refuse(*_, **__):
    raise OSError("an import opened a socket")

def state():
    root = logging.getLogger()
    return {
        "arguments": list(sys.argv),
        "log handlers": [repr(handler) for handler in root.handlers],
        "log level": root.level,
        "gradients": torch.is_grad_enabled(),
        "dtype": str(torch.get_default_dtype()),
        "torch's random state": torch.random.initial_seed(),
        "random state": hash(random.getstate()),
        "numpy's random state": numpy.random.get_state()[1].tolist(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "verbosity": transformers.logging.get_verbosity(),
        "progress bars": transformers.logging.is_progress_bar_enabled(),
        "folder": os.getcwd(),
    }

socket.socket.__init__ = refuse
before = state()
for module in MODULES:
    __import__(module)
after = state()
changed = {name: [before[name], after[name]] for name in before if before[name] != after[name]}
print(json.dumps({"changed": changed, "files": sorted(os.listdir("."))}))
"""


def in_a_new_process(program: str, folder: Path) -> str:
    command = [sys.executable, "-c", f"MODULES = {list(MODULES)}\n{program}", "--no-such-option", "out=x"]
    environment = {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "HOME": str(folder / "home")}
    folder = folder / "here"
    folder.mkdir()
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=True).stdout


def test_importing_every_module_changes_nothing(tmp_path: Path) -> None:
    """It reads no arguments, opens no socket, writes no file, and leaves logging, torch, transformers and the random states alone."""
    assert json.loads(in_a_new_process(PROBE, tmp_path).splitlines()[-1]) == {"changed": {}, "files": []}


def test_reading_and_scoring_need_no_model_library(tmp_path: Path) -> None:
    """Rescoring a file of predictions starts at once, also where torch is not needed for anything else."""
    program = "import eval.pipeline, data_gen.build, sys; print(sorted({'torch', 'transformers', 'peft', 'trl'} & set(sys.modules)))"
    assert in_a_new_process(program, tmp_path) == "[]\n"
