"""Look into a system, whatever its class: the models it holds, and what it remembers from one call to the next."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, cast, runtime_checkable

import torch

LIBRARIES = frozenset({"builtins", "numpy", "peft", "pydantic", "tokenizers", "torch", "transformers"})
"""Of their objects the attributes are none of ours."""
DEPTH = 6
"""Attributes of attributes that are looked into; systems within systems are less deep."""


@runtime_checkable
class Forgetful(Protocol):
    """A part that remembers what it has read. One that replays stored results must raise InputError: there is no time to measure."""

    def forget(self) -> None:
        """Make the next call cost what a first call costs."""
        ...


def forget(system: object) -> None:
    """Let each part of a system forget, so that repeating a question measures it anew."""
    for _, part in _parts(system):
        if isinstance(part, Forgetful):
            part.forget()


def models(system: object) -> dict[str, torch.nn.Module]:
    """The models in a system by the attribute that leads to them, each once: `sieve` for `system.sieve.model`."""
    found: dict[str, torch.nn.Module] = {}
    for path, part in _parts(system):
        if isinstance(part, torch.nn.Module) and not any(part is other for other in found.values()):
            names = [name for name in path if name != "model"] or ["model"]
            found[".".join(names)] = part
    return found


def _parts(system: object) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A system and all below it with the path to it, those nearer to it first, each once."""
    seen: set[int] = set()
    level: list[tuple[tuple[str, ...], Any]] = [((), system)]
    for _ in range(DEPTH):
        below: list[tuple[tuple[str, ...], Any]] = []
        for path, part in level:
            if id(part) not in seen:
                seen.add(id(part))
                yield path, part
                below += [((*path, name), attribute) for name, attribute in _attributes(part)]
        level = below


def _attributes(whole: object) -> Iterator[tuple[str, Any]]:
    """What can hold a model or a memory; of a model itself nothing."""
    if isinstance(whole, torch.nn.Module):
        return
    if type(whole) in (list, tuple):
        inside = [(str(place), part) for place, part in enumerate(cast(Iterable[Any], whole))]
    elif type(whole) is dict:
        inside = [(str(name), part) for name, part in whole.items()]
    elif type(whole).__module__.partition(".")[0] in LIBRARIES:
        return
    else:
        inside = [(name.strip("_"), part) for name, part in getattr(whole, "__dict__", {}).items()]
    yield from ((name, part) for name, part in inside if type(part) in (list, tuple, dict) or hasattr(part, "__dict__"))
