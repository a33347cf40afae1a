"""Sets in which only what the documents say tells the labels apart, from three formats of files: training data and audits for the Sieve.

    python -m data_gen.build dataset=simpleqa_sets dataset.path=simpleqa.json 'splits=[train,validation]' out=data/simpleqa_sets

`data_gen.pools.assemble.Variant` names the kinds of sets, `docs/data.md` has the rules.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Literal

from data_gen.documents import fingerprint
from data_gen.pools.assemble import SetSettings, Variant, assemble
from data_gen.pools.pool import Edits, Material, PoolSettings
from data_gen.pools.pooling import pools
from data_gen.sources import gold_passages, rgb, robustrag
from data_gen.sources.left_out import report
from data_gen.split import assign
from rag.errors import InputError
from rag.records import Example
from rag.settings import InputPath
from rag.splits import normalise_question

logger = logging.getLogger(__name__)

Format = Literal["robustrag", "gold_passages", "rgb"]


def load(
    path: InputPath,
    format: Format,
    split: str = "train",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    k_min: int = 2,
    k_max: int = 10,
    variants: tuple[Variant, ...] | None = None,
    rounds: int = 6,
    golds: int = 3,
    distractors: int = 2,
    min_golds: int = 0,
    neutral: bool = True,
    off_topic: float = 0.3,
    edits: Edits = Edits.GIVEN,
    false_answers: int = 2,
    copies: bool = True,
    words: int | None = None,
    aliases: bool = False,
    cap: int | None = None,
    limit: int | None = None,
    exclude: tuple[InputPath, ...] = (),
    dropped: Counter[str] | None = None,
) -> list[Example]:
    """The sets of all questions of `split`, in the file's order of questions.

    `shares` deals the questions out to splits, all to `split` when absent; a passage that questions of two splits have is used in the split of
    the first. Questions and passages that occur in a file of `exclude` are not used. `variants` of every one of `rounds` rounds; where it is
    none, the rounds deal them out so that edited and generated documents are in distracted and clean sets alike. `k_min` to `k_max` documents
    make a set, of at most `words` words; at most `golds` of them have the answer and at most `distractors` contradict it. `cap` keeps that many sets
    of a question, drawn at random, and `limit` the first sets of all. The rest is in `PoolSettings` and `SetSettings`. What was left out is
    logged, and added to `dropped` by reason. Raises InputError for a file that does not fit its format.
    """
    given = {split: 1.0} if shares is None else shares
    if given.get(split, 0) <= 0:
        raise InputError(f"split={split}: expected a split with a share of the questions, got shares {given}; set dataset.shares")
    _check_numbers(
        k_min=k_min,
        k_max=k_max,
        rounds=rounds,
        golds=golds,
        distractors=distractors,
        words=words,
        cap=cap,
        limit=limit,
        false_answers=false_answers,
    )
    reasons: Counter[str] = Counter()
    materials = _of_split(_without(_read(path, format, aliases), exclude, reasons), given, split, seed, reasons)
    how = PoolSettings(words=words, edits=edits, false_answers=false_answers, copies=copies, seed=seed)
    what = SetSettings(k_min, k_max, golds, distractors, min_golds, rounds, variants, neutral, off_topic, seed)
    examples: list[Example] = []
    for pool in pools(materials, how, reasons):
        examples += _capped(assemble(pool, what, path.name, reasons), cap, Random(f"{seed}:cap:{pool.question_id}"), reasons)
    reasons["set over limit"] += len(examples[limit:]) if limit is not None else 0
    examples = examples[:limit]
    kinds = Counter(example.variant for example in examples)
    logger.info("%s, %s: %s", path, split, ", ".join(f"{count} {name}" for name, count in sorted(kinds.items())) or "no sets")
    report(f"{path}, {split}", reasons, dropped)
    return examples


def _check_numbers(k_min: int, k_max: int, **others: int | None) -> None:
    if not 2 <= k_min <= k_max:
        raise InputError(f"k_min, k_max: expected 2 <= k_min <= k_max, got {k_min} and {k_max}")
    for name, value in others.items():
        if value is not None and value < 1:
            raise InputError(f"{name}: expected a number of at least 1, got {value}")


def _read(path: Path, format: Format, aliases: bool) -> list[Material]:
    match format:
        case "robustrag":
            return robustrag.materials(path, aliases)
        case "gold_passages":
            return gold_passages.materials(path)
        case "rgb":
            return rgb.materials(path)


def _without(materials: list[Material], files: tuple[Path, ...], reasons: Counter[str]) -> list[Material]:
    """The materials without questions and passages of the given files; a count of none is reported too."""
    if not files:
        return materials
    texts = [text for path in files for text in _texts(path)]
    questions, passages = {normalise_question(text) for text in texts}, {fingerprint(text) for text in texts}
    kept = [material for material in materials if normalise_question(material.question) not in questions]
    reasons["question is in a file of exclude"] += len(materials) - len(kept)
    return [
        _with_passages(material, lambda text: fingerprint(text) not in passages, "passage is in a file of exclude", reasons)
        for material in kept
    ]


def _texts(path: Path) -> Iterator[str]:
    """Every text in a JSON or JSONL file, at any depth."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"exclude: {path}: expected a JSON or JSONL file: {error}") from error
    try:
        values = [json.loads(content)]
    except json.JSONDecodeError:
        values = []
        for number, line in enumerate(content.split("\n"), start=1):
            try:
                values += [json.loads(line)] if line.strip() else []
            except json.JSONDecodeError as error:
                raise InputError(f"exclude: {path}:{number}: neither JSON nor JSON lines: {error.msg}") from error
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, dict)):
            values += value.values() if isinstance(value, dict) else value


def _of_split(materials: list[Material], shares: dict[str, float], split: str, seed: int, reasons: Counter[str]) -> list[Material]:
    """The materials of one split without the passages that an earlier question of another split has."""
    splits = [assign(material.question, shares, seed) for material in materials]
    owner: dict[str, str] = {}
    for material, name in zip(materials, splits, strict=True):
        for text in (*material.passages, *(true for true, _ in material.edited)):
            owner.setdefault(fingerprint(text), name)
    kept = [material for material, name in zip(materials, splits, strict=True) if name == split]
    return [_with_passages(m, lambda text: owner[fingerprint(text)] == split, "passage is used in another split", reasons) for m in kept]


def _with_passages(material: Material, keep: Callable[[str], bool], reason: str, reasons: Counter[str]) -> Material:
    passages = tuple(text for text in material.passages if keep(text))
    edited = tuple(pair for pair in material.edited if keep(pair[0]))
    reasons[reason] += len(material.passages) - len(passages) + len(material.edited) - len(edited)
    return material._replace(passages=passages, edited=edited)


def _capped(examples: list[Example], cap: int | None, rng: Random, reasons: Counter[str]) -> list[Example]:
    if cap is None or len(examples) <= cap:
        return examples
    reasons["set over the cap of its question"] += len(examples) - cap
    kept = set(rng.sample(range(len(examples)), cap))
    return [example for place, example in enumerate(examples) if place in kept]
