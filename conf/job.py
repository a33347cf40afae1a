"""Run a plain function as a Hydra job: compose and check its config, make its run folder, save what it was run with."""

import functools
import hashlib
import json
import logging
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from pydantic import ValidationError

from conf import sweep
from conf.overrides import check_overrides, parse
from conf.sweep import fail, run_name
from rag.errors import InputError
from rag.inputs import hash_inputs
from rag.jsonl import describe, read_json
from rag.processes import rank, world_size
from rag.provenance import provenance
from rag.settings import RunSettings, Settings
from rag.tracking import KEPT_FROM_THE_START, Run

SettingsT = TypeVar("SettingsT", bound=Settings)
JobT = TypeVar("JobT", bound=RunSettings)

CONFIG_FILE = "config.yaml"
RUN_FILE = sweep.RUN_FILE
UNBOUND = frozenset({"out", "tracking", "engine", "table"})
"""Keys that decide no result: a run that goes on may change them."""


def job(run: Callable[[JobT, Path], Any], settings: type[JobT], config_name: str) -> Callable[[], None]:
    """Turn `run(settings, out)` into a command-line entry point.

    The config composed from `config_name` is checked against `settings`; all its problems are reported together, each with the
    nearest valid name. Paths in it are relative to the folder that the command was started from. `out` is the run's folder:
    the key `out`, or a new one under `runs/`. A folder with results of other settings is refused; the same settings resume.
    A user's mistake ends in one clean message and exit code 2; a bug keeps its traceback.
    """

    @hydra.main(version_base="1.3", config_path="pkg://conf", config_name=config_name)
    def under_hydra(cfg: DictConfig) -> None:
        try:
            _run(run, settings, cfg, config_name)
        except InputError as error:
            fail(str(error))

    @functools.wraps(run)
    def main() -> None:
        try:
            check_overrides(sys.argv[1:], settings, config_name)
        except InputError as error:
            fail(str(error))
        under_hydra()

    return main


def _run(run: Callable[[JobT, Path], Any], settings: type[JobT], cfg: DictConfig, config_name: str) -> None:
    root = Path(HydraConfig.get().runtime.cwd)
    values = cast(dict[str, Any], OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False))
    context = HydraConfig.get()
    if context.mode is RunMode.MULTIRUN and values.get("out") is None:
        values["out"] = str(Path(context.sweep.dir) / run_name([parse(text) for text in context.overrides.task]))
    read: set[Path] = set()
    checked = check(values, settings, root, read)
    inputs = hash_inputs(read, root) if rank() == 0 else {}
    out = run_folder(values, root, config_name, list(context.overrides.task), inputs)
    logging.getLogger(__name__).info("run folder: %s", out)
    with _own_command(), checked.tracking.running(Run(config_name, out, values, {**provenance(), "inputs": inputs})):
        run(checked, out)


@contextmanager
def _own_command() -> Iterator[None]:
    """Within a sweep, make this job's command line that of the process: a sweep's is not, and on a cluster's machine it is submitit's."""
    before = sys.argv
    if HydraConfig.get().mode is RunMode.MULTIRUN:
        sys.argv = [before[0], *HydraConfig.get().overrides.task]
    try:
        yield
    finally:
        sys.argv = before


def saved(folder: Path, settings: type[SettingsT], root: Path) -> SettingsT:
    """The settings that a job's run folder was made with, read back and checked. Raises InputError for a folder that no job wrote."""
    return check(saved_values(folder), settings, root)


def saved_values(folder: Path) -> dict[str, Any]:
    """As `saved`, but as they were written: also those of an earlier version of the code, whose keys may have had other names."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise InputError(f"{folder}: expected the folder of a run, found no {CONFIG_FILE} in it")
    return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.load(path)))


def check(values: Any, settings: type[SettingsT], root: Path, inputs: set[Path] | None = None) -> SettingsT:
    """Check composed values against a settings class, and add what they say to read to `inputs`. Raises InputError that lists every problem."""
    missing = sorted(_missing(values))
    if missing:
        raise InputError("; ".join(f"'{key}' must be set: add {key}=... to the command" for key in missing))
    try:
        return settings.model_validate(values, context={"root": root, "inputs": set() if inputs is None else inputs})
    except ValidationError as error:
        hint = "; write a list as [a,b]" if any(item["type"] == "tuple_type" for item in error.errors()) else ""
        raise InputError(f"config: {describe(error, settings)}{hint}") from error


def _missing(values: Any, prefix: str = "") -> list[str]:
    if values == "???":
        return [prefix]
    if isinstance(values, dict):
        return [key for name, value in values.items() for key in _missing(value, f"{prefix}.{name}" if prefix else str(name))]
    return []


def run_folder(
    values: dict[str, Any], root: Path, config_name: str, overrides: Sequence[str], inputs: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Make the run's folder and save the resolved config, overrides, versions and the inputs' hashes in it; a run that goes on keeps its own.

    Of a run's processes the first one does so; the others get the path alone. Raises InputError when the folder is in use by other
    settings or by other content of the same input files, holds files that no job wrote, or cannot be written, and when several
    processes have no `out` to agree on.
    """
    if values.get("out") is None:
        if world_size() > 1:
            raise InputError(f"out must be set where a job runs in several processes ({world_size()} here): add out=... to the command")
        # Two runs that start in the same second must not share a folder.
        stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        out = root / "runs" / config_name / f"{stamp}_{secrets.token_hex(3)}"
    else:
        out = root / Path(str(values["out"])).expanduser()
    if rank() != 0:
        return out
    settings = {key: value for key, value in values.items() if key not in UNBOUND}
    record = {"job": config_name, "settings": _digest(settings), "overrides": list(overrides), "versions": provenance()}
    record["inputs"] = dict(inputs)
    if _is_empty(out):
        _save(out, values, record)
    else:
        _require_same(out, record, settings)
    return out


def _is_empty(out: Path) -> bool:
    if out.is_file():
        raise InputError(f"out={out}: expected a folder, found a file")
    # A job that found fault with its input before it did anything has left its record and no more: nothing would be lost.
    return not out.is_dir() or {path.name for path in out.iterdir()} <= {CONFIG_FILE, RUN_FILE, *KEPT_FROM_THE_START}


def _save(out: Path, values: dict[str, Any], record: dict[str, Any]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            (out / CONFIG_FILE).write_text(OmegaConf.to_yaml(OmegaConf.create(values)), encoding="utf-8")
            (out / RUN_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        except OSError:
            # Half of a record would make the next run take the folder for a stranger's.
            (out / CONFIG_FILE).unlink(missing_ok=True)
            (out / RUN_FILE).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"out={out}: could not write the run's folder ({error.strerror}); set out to another place") from error


def _digest(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _require_same(out: Path, record: dict[str, Any], settings: dict[str, Any]) -> None:
    if not (out / RUN_FILE).is_file() or not (out / CONFIG_FILE).is_file():
        raise InputError(f"out={out}: the folder is not empty and no job wrote it; set out to a new folder")
    earlier: Any = read_json(out / RUN_FILE)
    if (earlier["job"], earlier["settings"]) == (record["job"], record["settings"]):
        before = earlier.get("inputs", {})
        # A folder such as a checkpoint's may get a new card or picture; what a file holds is what the run has read.
        edited = sorted(name for name, hash_ in record["inputs"].items() if not name.endswith("/") and before.get(name, hash_) != hash_)
        if edited:
            raise InputError(f"{edited[0]}: has changed since the run in {out} began; set out to a new folder")
        return
    before = OmegaConf.to_container(OmegaConf.load(out / CONFIG_FILE))
    changed = sorted(_differences(before, settings)) if isinstance(before, dict) else []
    what = f"other settings ({', '.join(changed)})" if earlier["job"] == record["job"] else f"the job {earlier['job']}"
    raise InputError(f"out={out}: the folder holds results of {what}; set out to a new folder, or repeat those settings to resume")


def _differences(before: Any, after: Any, prefix: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        names = (set(before) | set(after)) - (UNBOUND if not prefix else set())
        return [key for n in names for key in _differences(before.get(n), after.get(n), f"{prefix}.{n}" if prefix else str(n))]
    return [] if before == after else [prefix]
