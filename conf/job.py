"""Run a plain function as a Hydra job: compose and check its config, make its run folder, save what it was run with; sweeps, and what follows."""

import dataclasses
import difflib
import functools
import hashlib
import json
import logging
import re
import secrets
import sys
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from pydantic import ValidationError

from rag.errors import InputError, nearest
from rag.inputs import hash_inputs
from rag.jsonl import describe, read_json
from rag.processes import rank, world_size
from rag.provenance import provenance
from rag.settings import RunSettings, Settings, locate
from rag.tracking import KEPT_FROM_THE_START, Run

SettingsT = TypeVar("SettingsT", bound=Settings)
JobT = TypeVar("JobT", bound=RunSettings)

CONFIG_FILE = "config.yaml"
RUN_FILE = "run.json"
FOLDER = Path(__file__).parent
UNBOUND = frozenset({"out", "tracking", "engine", "table"})
"""Keys that decide no result: a run that goes on may change them."""
UNNAMED = frozenset({"experiment", "profile", "out", "tracking", "engine"})
"""Keys that the name of a run in a sweep leaves out: they are the same in all of them."""


def _by_profile(choices: DictConfig, *, _root_: DictConfig) -> Any:
    """What a config says under the chosen profile: `${by_profile:{local: 3, paper: 5}}`."""
    chosen = OmegaConf.select(_root_, "hydra.runtime.choices.profile") or HydraConfig.get().runtime.choices["profile"]
    if chosen not in choices:
        raise InputError(f"profile={chosen}: expected one of {', '.join(map(str, choices))} here")
    return choices[chosen]


OmegaConf.register_new_resolver("by_profile", _by_profile, replace=True)


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
            _fail(str(error))

    @functools.wraps(run)
    def main() -> None:
        try:
            check_overrides(sys.argv[1:], settings, config_name)
        except InputError as error:
            _fail(str(error))
        under_hydra()

    return main


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def _run(run: Callable[[JobT, Path], Any], settings: type[JobT], cfg: DictConfig, config_name: str) -> None:
    root = Path(HydraConfig.get().runtime.cwd)
    values = cast(dict[str, Any], OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False))
    context = HydraConfig.get()
    if context.mode is RunMode.MULTIRUN and values.get("out") is None:
        values["out"] = str(Path(context.sweep.dir) / _name([_parse(text) for text in context.overrides.task]))
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


class Swept(NamedTuple):
    """One run of a sweep."""

    folder: Path
    overrides: dict[str, str]
    """What the sweep gave it and the command line, by key."""


class AfterSweep(Callback):
    """Hydra's callback for what is made of all runs of a sweep when the last one is done, such as a table of them."""

    def __init__(self, call: str, key: str) -> None:
        """Call the function that `call` names with the sweep's folder, its runs in order, and the config's node `key`."""
        self.call = call
        self.key = key

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Runs whose folders the user chose by `out=` are not the sweep's to find; without any there is nothing to do."""
        folder = Path(config.hydra.sweep.dir)
        runs = [run for run in _swept(folder, config) if (run.folder / RUN_FILE).is_file()]
        if not runs:
            return
        try:
            locate(self.call)(folder, runs, OmegaConf.to_container(config[self.key], resolve=True))
        except InputError as error:
            _fail(str(error))
        except Exception:
            # Hydra would turn it into a warning, and the command would seem to have succeeded.
            traceback.print_exc()
            sys.exit(1)


def _swept(folder: Path, config: DictConfig) -> Iterator[Swept]:
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    wanted = OverridesParser.create().parse_overrides([*params, *config.hydra.overrides.task])
    for chunk in BasicSweeper.split_arguments(wanted, max_batch_size=None):
        for texts in chunk:
            overrides = [_parse(text) for text in texts]
            named = {o.get_key_element(): o.get_value_element_as_str() for o in overrides}
            yield Swept(folder / _name(overrides), named)


def _name(overrides: Sequence[Override]) -> str:
    """A run's folder within its sweep: what was given to it, in characters that no file system and no command line minds."""
    kept = [o for o in overrides if o.get_key_element() not in UNNAMED and not o.get_key_element().startswith("hydra")]
    name = "__".join(f"{o.get_key_element().lstrip('+')}-{o.get_value_element_as_str()}" for o in kept)
    plain = re.sub(r"[^\w.-]+", "_", name) or "run"
    return plain if len(plain) <= 120 else f"{plain[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


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


def check_overrides(arguments: Sequence[str], settings: type[Settings], config_name: str) -> None:
    """Refuse a misspelt key before Hydra runs, with the nearest valid one; also with `+`, which Hydra would accept and ignore.

    Raises InputError for the first such key, and for an argument that Hydra cannot read.
    """
    overrides = [_parse(argument) for argument in arguments if "=" in argument and not argument.startswith("-")]
    choices = [override.input_line or "" for override in overrides if override.key_or_group in _groups()]
    for override in overrides:
        if override.key_or_group == "experiment" and (problem := _of_another_job(str(override.value()), config_name)):
            raise InputError(problem)
        if problem := _unknown(override, settings, config_name, choices):
            raise InputError(problem)


def _of_another_job(experiment: str, config_name: str) -> str | None:
    """An experiment says in its first lines which job it is of."""
    path = FOLDER / "experiment" / f"{experiment}.yaml"
    wanted = f"# python -m {config_name.replace('_', '.', 1)} experiment={experiment} "
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    if not lines or any(line.startswith(wanted) for line in lines):
        return None
    own = next(line for line in lines if f"experiment={experiment} " in line)
    return f"experiment={experiment} is one of another job: {own.removeprefix('# ')}"


def _parse(argument: str) -> Override:
    try:
        return OverridesParser.create().parse_override(argument)
    except HydraException as error:
        raise InputError(f"cannot read '{argument}': {error}; put a value with = , ( or spaces in quotes: 'key=\"value\"'") from error


def _groups() -> set[str]:
    return {path.name for path in FOLDER.iterdir() if path.is_dir() and any(path.glob("*.yaml"))}


def _unknown(override: Override, settings: type[Settings], config_name: str, choices: Sequence[str]) -> str | None:
    key = override.key_or_group
    name, _, rest = key.replace("/", ".").partition(".")
    if name == "hydra":
        return _unknown_of_hydra(key, rest)
    valid = _keys(settings)
    if key in _groups() or key in valid:
        return None
    components, choices_keys = _composed(config_name, choices)
    if name in choices_keys and any(_same_branch(key, leaf) for leaf in choices_keys[name]):
        return None
    if name in choices_keys or not any(free.endswith(".*") and key.startswith(free[:-1]) for free in valid):
        valid += [*_groups(), *(branch for part, node in components.items() for branch in _branches(node, part))]
        valid += [leaf for leaves in choices_keys.values() for leaf in leaves]
        return f"unknown key '{key}'{_closest(key, valid) or f'; see the keys with --cfg job ({config_name})'}"
    # With `+` the signature of the component decides, when its arguments are bound to it.
    if override.is_add() or name not in components:
        return None
    return _unknown_of_component(key, name, rest.split("."), components[name])


def _unknown_of_component(key: str, name: str, path: Sequence[str], node: Any) -> str | None:
    """What is wrong with a key below a component, or below one of its own components; nothing where a value that is no mapping ends the search."""
    for place, part in enumerate(path):
        if not isinstance(node, dict) or not node:
            return None
        if part not in node:
            names = [argument for argument in node if argument != "_target_"]
            above = ".".join([name, *path[:place]])
            return f"unknown key '{key}'{nearest(part, names) or f'; {above} has the keys ' + ', '.join(names)}"
        node = node[part]
    return None


def _same_branch(key: str, leaf: str) -> bool:
    return key == leaf or key.startswith(f"{leaf}.") or leaf.startswith(f"{key}.")


def _closest(key: str, valid: Sequence[str]) -> str:
    """As `nearest`, but a name whose last part is nearly the key's comes first: the right name in a wrong place."""
    names = [name for name in valid if not name.endswith(".*")]
    close = difflib.get_close_matches(key.rpartition(".")[2], {name.rpartition(".")[2] for name in names}, n=1, cutoff=0.8)
    alike = [name for name in names if name.rpartition(".")[2] in close]
    best = difflib.get_close_matches(key, alike, n=1, cutoff=0.0)
    return f"; did you mean '{best[0]}'?" if best else nearest(key, names)


def _unknown_of_hydra(key: str, path: str) -> str | None:
    schema: Any = HydraConf
    for part in path.split(".") if path else ():
        if not dataclasses.is_dataclass(schema):
            return None
        names = [field.name for field in dataclasses.fields(schema)]
        if part not in names:
            return f"unknown key '{key}'{nearest(part, names)}"
        schema = typing.get_type_hints(schema)[part]
    return None


def _composed(config_name: str, choices: Sequence[str]) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """Under the chosen groups: each component as it is written, and the dotted keys of each other group.

    Nothing where there is no such choice, since Hydra then says what there is.
    """
    try:
        with hydra.initialize_config_module("conf", version_base="1.3"):
            composed = cast(dict[str, Any], OmegaConf.to_container(hydra.compose(config_name, list(choices))))
    except HydraException:
        return {}, {}
    nodes = {name: node for name, node in composed.items() if isinstance(node, dict)}
    components = {name: node for name, node in nodes.items() if "_target_" in node}
    return components, {name: list(_leaves(node, name)) for name, node in nodes.items() if name in _groups() and name not in components}


def _leaves(node: Any, prefix: str) -> Iterator[str]:
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from _leaves(value, f"{prefix}.{name}")
    else:
        yield prefix


def _branches(node: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, value in node.items():
        if name != "_target_":
            yield f"{prefix}.{name}"
            if isinstance(value, dict):
                yield from _branches(value, f"{prefix}.{name}")


def _keys(settings: type[Settings], prefix: str = "") -> list[str]:
    """Dotted names of all keys; `name.*` where the schema leaves the rest to a component's own signature or to a mapping."""
    names = []
    for name, field in settings.model_fields.items():
        path = f"{prefix}{name}"
        names.append(path)
        inner = _inner_settings(field.annotation)
        names += _keys(inner, f"{path}.") if inner else [f"{path}.*"]
    return names


def _inner_settings(annotation: Any) -> type[Settings] | None:
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, Settings):
            return candidate
    return None
