"""Read what `data_gen.build` wrote from question-answer pairs: the cases behind it and the Examples."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from data_gen.pipeline.cases import Case, Simulation
from data_gen.pipeline.steps import STEPS, VALIDATED, split_of
from rag.errors import InputError
from rag.jsonl import iter_records, read_examples
from rag.records import Condition, Document, DocumentLabel, Example

_CASES = Path(STEPS) / VALIDATED


class Built(NamedTuple):
    """One folder of data."""

    cases: list[Case]
    """By split and shard."""
    examples: Mapping[str, Mapping[Condition, Example]]
    """By question id and condition."""
    files: dict[str, Path]
    """What was read, by its name in the folder."""


def read(folder: Path, splits: Sequence[str] | None) -> Built:
    """Read the cases and Examples of some splits, or of all.

    Raises InputError for a folder without the steps of a build, a split that it lacks, and Examples that come from another build.
    """
    found = sorted({split_of(path) for path in (folder / _CASES).glob("*-*.jsonl")})
    if not found:
        raise InputError(
            f"data={folder}: expected a folder that `python -m data_gen.build` made of question-answer pairs, found no cases in {_CASES}"
        )
    if lacking := sorted(set(splits or ()) - set(found)):
        raise InputError(f"splits: {folder} has no '{lacking[0]}'; it has {', '.join(found)}")
    cases: list[Case] = []
    examples: dict[str, dict[Condition, Example]] = {}
    files: dict[str, Path] = {}
    for split in found if splits is None else splits:
        shards = sorted((folder / _CASES).glob(f"{split}-*.jsonl"))
        known = {case.question.id for path in shards for case in _kept(path, cases)}
        for example in read_examples(folder / f"{split}.jsonl"):
            if example.question_id not in known:
                raise InputError(
                    f"{folder / f'{split}.jsonl'}: no case of {_CASES} has the question '{example.question_id}'; build the folder again"
                )
            examples.setdefault(example.question_id, {})[example.condition] = example
        files |= {path.relative_to(folder).as_posix(): path for path in (*shards, folder / f"{split}.jsonl")}
    return Built(cases, examples, files)


def _kept(path: Path, cases: list[Case]) -> list[Case]:
    shard = list(iter_records(path, Case))
    cases += shard
    return shard


def gold(case: Case) -> Document | None:
    """The best retrieved document that gives the answer; none where no document does."""
    return next((c.document for c in case.candidates if c.document.label is DocumentLabel.ANSWERABLE), None)


def usable(case: Case) -> list[Simulation]:
    """The simulated documents that were not rejected."""
    return [simulation for simulation in case.simulations if simulation.rejected is None]


def drawn(cases: Sequence[Case], limit: int | None, seed: int) -> list[Case]:
    """The cases with an answerable document, beside which alone documents are simulated; `limit` of them, in their order."""
    answerable = [case for case in cases if gold(case) is not None]
    if limit is None or limit >= len(answerable):
        return answerable
    places = Random(f"{seed}:audited questions").sample(range(len(answerable)), limit)
    return [answerable[place] for place in sorted(places)]
