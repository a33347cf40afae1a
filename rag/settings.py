"""Typed settings: what the jobs check a composed config against before any work begins."""

import importlib
import inspect
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from rag.errors import nearest
from rag.tracking import Tracking


class Settings(BaseModel):
    """Base of all settings: frozen, unknown keys refused, text never converted from numbers or booleans."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def _resolve(path: Path, info: ValidationInfo) -> Path:
    root = (info.context or {}).get("root")
    return path if root is None else Path(root) / path.expanduser()


def _resolve_input(path: Path, info: ValidationInfo) -> Path:
    resolved = _resolve(path, info)
    if "inputs" in (info.context or {}):
        info.context["inputs"].add(resolved)  # type: ignore[index]  # there is a context, it was looked into
    return resolved


InputPath = Annotated[Path, AfterValidator(_resolve_input)]
"""A path to read. A relative one is resolved against the root in the validation context, not the working directory.

Where the context has a set of `inputs`, the path is added to it."""

CachePath = Annotated[Path, AfterValidator(_resolve)]
"""A folder that a job both reads and writes, resolved in the same way: no input, since it changes with every run."""

Files = Annotated[
    tuple[InputPath, ...], Field(min_length=1), BeforeValidator(lambda value: value if isinstance(value, (list, tuple)) else (value,))
]
"""One file, or several as `[a.jsonl,b.jsonl]`; always a tuple once it is checked."""


class Component:
    """A callable named by a config's `_target_`, with its arguments checked against its signature but not yet called."""

    def __init__(self, target: Callable[..., Any], arguments: dict[str, Any]) -> None:
        """Keep a callable and its checked keyword arguments."""
        self.target = target
        self.arguments = arguments

    def build(self) -> Any:
        """Call the target."""
        return self.target(**self.arguments)


def _bind(node: Any, info: ValidationInfo) -> Component:
    if isinstance(node, Component):
        return node
    if not isinstance(node, dict) or not isinstance(node.get("_target_"), str):
        raise ValueError(f"expected a mapping with a `_target_` such as 'package.module.function', got {node!r}")
    given = {key: value for key, value in node.items() if key != "_target_"}
    target = locate(node["_target_"])
    parameters = inspect.signature(target).parameters
    hints = typing.get_type_hints(inspect.unwrap(_function(target)), include_extras=True)
    problems = [f"unknown key '{key}'{nearest(key, parameters)}" for key in given if key not in parameters]
    problems += [
        f"'{name}' is required"
        for name, p in parameters.items()
        if p.default is p.empty and name not in given and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    arguments = {}
    for key, value in given.items():
        if value == "???":
            problems.append(f"'{key}' must be set")
        elif key in parameters:
            try:
                arguments[key] = TypeAdapter(hints.get(key, Any)).validate_python(value, context=info.context)
            except ValidationError as error:
                problems += [
                    f"'{'.'.join(map(str, (key, *item['loc'])))}': {item['msg'].removeprefix('Value error, ')}" for item in error.errors()
                ]
    if problems:
        raise ValueError("; ".join(problems))
    return Component(target, arguments)


def _function(target: Callable[..., Any]) -> Callable[..., Any]:
    return target.__init__ if inspect.isclass(target) else getattr(target, "__func__", target)


def locate(path: str) -> Callable[..., Any]:
    """The callable that a dotted path names. Raises ValueError where there is none."""
    parts = path.split(".")
    for split in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:split])
        try:
            found: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise
            continue
        for part in parts[split:]:
            if not hasattr(found, part):
                raise ValueError(f"`_target_` {path}: '{name}' has no '{part}'")
            found = getattr(found, part)
        if not callable(found):
            raise ValueError(f"`_target_` {path}: expected something to call, found a {type(found).__name__}")
        return typing.cast(Callable[..., Any], found)
    raise ValueError(f"`_target_` {path}: no such module")


Target = Annotated[Component, PlainValidator(_bind)]
"""A settings field that holds `_target_: package.module.function` and its keyword arguments."""


def _track(node: Any, info: ValidationInfo) -> Tracking:
    if isinstance(node, Tracking):
        return node
    if not isinstance(node, dict):
        raise ValueError(f"expected trackers by name, each a mapping with a `_target_`, got {node!r}; choose a file of conf/tracking")
    makers = {}
    for name, tracker in node.items():
        try:
            makers[name] = _bind(tracker, info).build
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return Tracking(makers)


Trackers = Annotated[Tracking, PlainValidator(_track)]
"""A settings field that holds a `Target` for each tracker, by name."""


class RunSettings(Settings):
    """Keys that every job has."""

    out: str | None = None
    """Folder of the run; a new one under `runs/` where it is none."""
    tracking: Trackers = Field(default_factory=lambda: Tracking({}))
    """Where the run is reported to: a file of conf/tracking."""


class JobSettings(RunSettings):
    """Keys of a job that measures or trains."""

    seed: int = 0
    """Seed of everything random in the job."""
    checkpoint_folder: str = "checkpoints/paper"
    """Where the profile's checkpoints are, for configs to refer to."""
