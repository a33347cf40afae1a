"""Run a plain function as a Hydra job: compose and check its config, make its run folder, save what it was run with."""

import difflib
import functools
import hashlib
import json
import logging
import secrets
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import hydra
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from omegaconf import DictConfig, OmegaConf
from pydantic import ValidationError

from rag.errors import InputError, nearest
from rag.jsonl import describe
from rag.provenance import provenance
from rag.settings import Settings

SettingsT = TypeVar("SettingsT", bound=Settings)

CONFIG_FILE = "config.yaml"
RUN_FILE = "run.json"
FOLDER = Path(__file__).parent


def job(run: Callable[[SettingsT, Path], Any], settings: type[SettingsT], config_name: str) -> Callable[[], None]:
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


def _run(run: Callable[[SettingsT, Path], Any], settings: type[SettingsT], cfg: DictConfig, config_name: str) -> None:
    root = Path(HydraConfig.get().runtime.cwd)
    values = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)
    checked = check(values, settings, root)
    out = run_folder(values, root, config_name, list(HydraConfig.get().overrides.task))
    logging.getLogger(__name__).info("run folder: %s", out)
    run(checked, out)


def check(values: Any, settings: type[SettingsT], root: Path) -> SettingsT:
    """Check composed values against a settings class. Raises InputError that lists every problem."""
    missing = sorted(_missing(values))
    if missing:
        raise InputError("; ".join(f"'{key}' must be set: add {key}=... to the command" for key in missing))
    try:
        return settings.model_validate(values, context={"root": root})
    except ValidationError as error:
        raise InputError(f"config: {describe(error, settings)}") from error


def _missing(values: Any, prefix: str = "") -> list[str]:
    if values == "???":
        return [prefix]
    if isinstance(values, dict):
        return [key for name, value in values.items() for key in _missing(value, f"{prefix}.{name}" if prefix else str(name))]
    return []


def run_folder(values: dict[str, Any], root: Path, config_name: str, overrides: Sequence[str]) -> Path:
    """Make the run's folder and save the resolved config, the overrides and the versions in it.

    Raises InputError when the folder is in use by other settings or holds files that no job wrote.
    """
    if values.get("out") is None:
        # Two runs that start in the same second must not share a folder.
        stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        out = root / "runs" / config_name / f"{stamp}_{secrets.token_hex(3)}"
    else:
        out = root / Path(str(values["out"])).expanduser()
    settings = {key: value for key, value in values.items() if key != "out"}
    record = {"job": config_name, "settings": _digest(settings), "overrides": list(overrides), "versions": provenance()}
    _require_same(out, record, settings)
    out.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(OmegaConf.create(values), out / CONFIG_FILE)
    (out / RUN_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return out


def _digest(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _require_same(out: Path, record: dict[str, Any], settings: dict[str, Any]) -> None:
    if out.is_file():
        raise InputError(f"out={out}: expected a folder, found a file")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not (out / RUN_FILE).is_file() or not (out / CONFIG_FILE).is_file():
        raise InputError(f"out={out}: the folder is not empty and no job wrote it; set out to a new folder")
    earlier = json.loads((out / RUN_FILE).read_text(encoding="utf-8"))
    if (earlier["job"], earlier["settings"]) == (record["job"], record["settings"]):
        return
    before = OmegaConf.to_container(OmegaConf.load(out / CONFIG_FILE))
    changed = sorted(_differences(before, settings)) if isinstance(before, dict) else []
    what = f"other settings ({', '.join(changed)})" if earlier["job"] == record["job"] else f"the job {earlier['job']}"
    raise InputError(f"out={out}: the folder holds results of {what}; set out to a new folder, or repeat those settings to resume")


def _differences(before: Any, after: Any, prefix: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        names = (set(before) | set(after)) - ({"out"} if not prefix else set())
        return [key for n in names for key in _differences(before.get(n), after.get(n), f"{prefix}.{n}" if prefix else str(n))]
    return [] if before == after else [prefix]


def check_overrides(arguments: Sequence[str], settings: type[Settings], config_name: str) -> None:
    """Refuse a misspelt key before Hydra runs, with the nearest valid one; also with `+`, which Hydra would accept and ignore."""
    parser = OverridesParser.create()
    for argument in arguments:
        if "=" not in argument or argument.startswith("-"):
            continue
        try:
            override = parser.parse_override(argument)
        except OverrideParseException as error:
            raise InputError(f"cannot read '{argument}': {error}; put a value with = , ( or spaces in quotes: 'key=\"value\"'") from error
        key = override.key_or_group
        if problem := _unknown(key, settings, config_name):
            raise InputError(problem)


def _unknown(key: str, settings: type[Settings], config_name: str) -> str | None:
    if key.startswith("hydra"):
        first, _, rest = key.replace("/", ".").partition(".")
        names = set(HydraConf.__dataclass_fields__)
        name = rest.partition(".")[0]
        return None if not rest or name in names else f"unknown key '{key}'{nearest(name, names)}"
    groups = {path.name for path in FOLDER.iterdir() if path.is_dir() and any(path.glob("*.yaml"))}
    if key.partition("@")[0] in groups:
        return None
    valid = _keys(settings)
    if any(key == name or (name.endswith(".*") and key.startswith(name[:-1])) for name in valid):
        return None
    plain = sorted({name.removesuffix(".*") for name in valid} | groups)
    close = difflib.get_close_matches(key, plain, n=1, cutoff=0.6)
    hint = f"; did you mean '{close[0]}'?" if close else f"; see the keys with --cfg job ({config_name})"
    return f"unknown key '{key}'{hint}"


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
