"""Sweeps: a folder for each run, named by what it was given; what is made of all of them; values that a profile chooses."""

import hashlib
import logging
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from conf.overrides import parse
from rag.errors import InputError
from rag.settings import locate

logger = logging.getLogger(__name__)

RUN_FILE = "run.json"
"""What a job leaves in its run's folder at once."""
UNNAMED = frozenset({"experiment", "profile", "out", "tracking", "engine", "html", "html_examples", "show"})
"""Keys that the name of a run in a sweep leaves out: they decide no result, or are the same in all of them."""


def _by_profile(choices: DictConfig, *, _root_: DictConfig) -> Any:
    """What a config says under the chosen profile: `${by_profile:{local: 3, paper: 5}}`."""
    chosen = OmegaConf.select(_root_, "hydra.runtime.choices.profile") or HydraConfig.get().runtime.choices["profile"]
    if chosen not in choices:
        raise InputError(f"profile={chosen}: expected one of {', '.join(map(str, choices))} here")
    return choices[chosen]


def _in_sweep(name: str) -> str | None:
    """A path that the runs of a sweep share, `${in_sweep:store}`; nothing in a single run."""
    if not HydraConfig.initialized() or HydraConfig.get().mode is not RunMode.MULTIRUN:
        return None
    return str(Path(HydraConfig.get().sweep.dir) / name)


def _sweep_folder(experiment: str | None, profile: str | None, now: str) -> str:
    """An experiment goes on where it was; any other sweep begins anew."""
    return f"runs/{experiment}/{profile}" if experiment else f"runs/sweeps/{now}"


OmegaConf.register_new_resolver("by_profile", _by_profile, replace=True)
OmegaConf.register_new_resolver("in_sweep", _in_sweep, replace=True)
OmegaConf.register_new_resolver("sweep_folder", _sweep_folder, replace=True)


def fail(message: str) -> None:
    """End the process with one clean message, as a user's mistake does."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


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
        runs = [run for run in swept(folder, config) if (run.folder / RUN_FILE).is_file()]
        if not runs:
            logger.warning("no table is made of runs in folders of their own (out=...): python -m eval.table 'runs=[...]' makes one")
            return
        if given := given_to_all(config):
            # A variant of an experiment does not take the place of its table.
            folder = folder / f"all__{run_name(given)}"
            folder.mkdir(exist_ok=True)
        try:
            locate(self.call)(folder, runs, OmegaConf.to_container(config[self.key], resolve=True))
        except InputError as error:
            fail(str(error))
        except Exception:
            # Hydra would turn it into a warning, and the command would seem to have succeeded.
            traceback.print_exc()
            sys.exit(1)


def given_to_all(config: DictConfig) -> list[Override]:
    """What the command line gave to all runs alike, beside the choice of an experiment and a profile; nothing outside an experiment."""
    if not OmegaConf.select(config, "hydra.runtime.choices.experiment"):
        return []
    given = OverridesParser.create().parse_overrides(list(config.hydra.overrides.task))
    return [
        o for o in given if not o.is_sweep_override() and o.get_key_element() not in UNNAMED and not o.get_key_element().startswith("hydra")
    ]


def swept(folder: Path, config: DictConfig) -> Iterator[Swept]:
    """The runs of a sweep in the order in which they are run, by its config; their folders need not be there."""
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    wanted = OverridesParser.create().parse_overrides([*params, *config.hydra.overrides.task])
    for chunk in BasicSweeper.split_arguments(wanted, max_batch_size=None):
        for texts in chunk:
            overrides = [parse(text) for text in texts]
            named = {o.get_key_element(): o.get_value_element_as_str() for o in overrides}
            yield Swept(folder / run_name(overrides), named)


def run_name(overrides: Sequence[Override]) -> str:
    """A run's folder within its sweep: what was given to it, in characters that no file system and no command line minds."""
    kept = [o for o in overrides if o.get_key_element() not in UNNAMED and not o.get_key_element().startswith("hydra")]
    name = "__".join(f"{o.get_key_element().lstrip('+')}-{o.get_value_element_as_str()}" for o in kept)
    plain = re.sub(r"[^\w.-]+", "_", name) or "run"
    return plain if len(plain) <= 120 else f"{plain[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
