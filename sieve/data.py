"""Turn files of Examples into the Sieve's training rows, and say what was left out."""

import logging
import random
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from pydantic import Field

from rag.errors import InputError, nearest
from rag.records import Condition, Example
from rag.settings import Files, InputPath, Settings

logger = logging.getLogger(__name__)

Objective = Literal["conflict", "unanswerable", "threeway"]
"""What the Sieve learns to tell apart (paper 002, section 3.2 and figure 5); the paper's own is `conflict`."""

Clean = Literal["answerable", "unanswerable"]

Distracted = Literal["conflict", "negated", "adversarial"]

Classes = Mapping[Condition, int]
"""The class of each condition that is learnt from. Class 1 is the one whose probability is the Sieve's score."""


class DataSettings(Settings):
    """Files of Examples, already split by question."""

    train: Files
    validation: Files
    limit: int | None = Field(default=None, ge=1)
    """Train on N examples, drawn by the seed and as many of each class as there are. A smaller draw is part of a larger one."""
    clean: tuple[Clean, ...] = Field(default=("answerable",), min_length=1)
    """Objective `conflict`: conditions of the clean class; those of the paper are answerable sets alone."""
    distracted: tuple[Distracted, ...] = Field(default=("conflict",), min_length=1)
    """Objective `conflict`: conditions of the distracted class; those of the paper are conflict sets alone."""
    pairs: InputPath | None = None
    """Pairs of sentences with their relation, for the judge of `form: extractive`: JSON lines of `first`, `second`, `relation`."""
    leave_out: tuple[str, ...] = ()
    """Variants (`Example.variant`, or the condition where it is blank) and sources that are left out of training and validation, such
    as those of one generator; an audit of the left-out ones then says whether the Sieve learnt more than that generator."""
    audit: Files | tuple[()] = ()
    """What the checkpoint is audited on after training, with the settings of `audit`; shares no question with the training files."""


def group_of(example: Example) -> str:
    """How the set was put together: its variant, or its condition where that is blank."""
    return example.variant or example.condition.value


def leave_out(splits: Mapping[str, Sequence[Example]], names: Sequence[str]) -> list[list[Example]]:
    """Each split without the examples of these variants or sources; log how many were left out of it.

    Raises InputError for a name that no example has.
    """
    known = {name for examples in splits.values() for example in examples for name in (group_of(example), example.source) if name}
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"data.leave_out: no example has the variant or source '{unknown[0]}'{nearest(unknown[0], known)}")
    kept = [[e for e in examples if group_of(e) not in names and e.source not in names] for examples in splits.values()]
    for (split, examples), rest in zip(splits.items(), kept, strict=True):
        if len(rest) < len(examples):
            logger.info("%s: %d of %d examples left out (data.leave_out)", split, len(examples) - len(rest), len(examples))
    return kept


def distinct(paths: Sequence[Path], key: str) -> list[str]:
    """Short names for the paths of the setting `key`: their last part, or as many parts as tell them apart.

    Raises InputError for a path that is there twice.
    """
    resolved = [path.resolve() for path in paths]
    if repeated := [str(path) for path in resolved if resolved.count(path) > 1]:
        raise InputError(f"{key}: expected each path once, got {repeated[0]} twice")
    named = (["/".join(path.parts[-count:]) for path in resolved] for count in range(1, max(len(path.parts) for path in resolved) + 1))
    return next(names for names in named if len(set(names)) == len(names))


def classes(objective: Objective, clean: Sequence[Clean] = ("answerable",), distracted: Sequence[Distracted] = ("conflict",)) -> Classes:
    """Number the classes of an objective; `clean` and `distracted` count for `conflict` alone."""
    if objective == "conflict":
        return {**{Condition(name): 0 for name in clean}, **{Condition(name): 1 for name in distracted}}
    if objective == "unanswerable":
        return {Condition.ANSWERABLE: 0, Condition.UNANSWERABLE: 1}
    return {Condition.ANSWERABLE: 0, Condition.CONFLICT: 1, Condition.UNANSWERABLE: 2}


def outputs(objective: Objective) -> int:
    """Logits of a model of this objective: a single one for two classes."""
    return 3 if objective == "threeway" else 1


def titles(learnt: Classes) -> list[str]:
    """The conditions of each class, in the order of the classes."""
    return [" or ".join(condition for condition in learnt if learnt[condition] == number) for number in range(max(learnt.values()) + 1)]


def draw(examples: Sequence[Example], learnt: Classes, limit: int, seed: int) -> list[Example]:
    """Draw `limit` of the examples, in their order.

    Each class is shuffled by the seed, and the classes take turns; one that runs out leaves its turns to the others. So the classes
    are balanced where they can be, and with one seed the first 100 are among the first 200.
    """
    by_class = {number: [i for i, example in enumerate(examples) if learnt[example.condition] == number] for number in set(learnt.values())}
    for number, members in by_class.items():
        random.Random(f"{seed}:limit:{number}").shuffle(members)
    turns = [i for turn in zip_longest(*by_class.values()) for i in turn if i is not None]
    return [examples[i] for i in sorted(turns[:limit])]
