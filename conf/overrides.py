"""Check the command line of a job before Hydra reads it: a misspelt key is refused with the nearest valid one."""

import dataclasses
import difflib
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import hydra
from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf

from rag.errors import InputError, nearest
from rag.settings import Settings

FOLDER = Path(__file__).parent


def check_overrides(arguments: Sequence[str], settings: type[Settings], config_name: str) -> None:
    """Refuse a misspelt key before Hydra runs, with the nearest valid one; also with `+`, which Hydra would accept and ignore.

    Raises InputError for the first such key, and for an argument that Hydra cannot read.
    """
    overrides = [parse(argument) for argument in arguments if "=" in argument and not argument.startswith("-")]
    choices = [override.input_line or "" for override in overrides if override.key_or_group in _groups()]
    for override in overrides:
        if override.key_or_group == "experiment" and (problem := _of_another_job(str(override.value()), config_name)):
            raise InputError(problem)
        if problem := _unknown(override, settings, config_name, choices):
            raise InputError(problem)


def _of_another_job(experiment: str, config_name: str) -> str | None:
    """An experiment says in its first lines which job it is of."""
    path = FOLDER / "experiment" / f"{experiment}.yaml"
    wanted = f"# python -m {'.'.join(config_name.rsplit('_', 1))} experiment={experiment} "
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    if not lines or any(line.startswith(wanted) for line in lines):
        return None
    own = next(line for line in lines if f"experiment={experiment} " in line)
    return f"experiment={experiment} is one of another job: {own.removeprefix('# ')}"


def parse(argument: str) -> Override:
    """Read one `key=value`. Raises InputError for what Hydra cannot read."""
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
            hint = nearest(part, names).replace("'", f"'{above}.", 1)
            return f"unknown key '{key}'{hint or f'; {above} has the keys ' + ', '.join(names)}"
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
