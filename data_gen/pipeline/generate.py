"""From question-answer pairs to labelled sets, by the steps of paper 002 (section 4.1): a source of Examples for `data_gen.build`.

    python -m data_gen.build dataset=medqa out=data/medqa

Retrieve, write a reference sentence, label what was retrieved, simulate distracting documents, validate them, put sets together. What each
step made of each question stays in `steps/`, so that a run that was killed goes on and rejected documents can be looked at.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from data_gen.documents import fingerprint
from data_gen.pipeline.cases import Case
from data_gen.pipeline.prompts import PROMPTS
from data_gen.pipeline.judge import label_candidates
from data_gen.pipeline.reference import refer
from data_gen.pipeline.retrieve import retrieve
from data_gen.pipeline.sets import SetSettings, sets
from data_gen.pipeline.simulate import KINDS, simulate
from data_gen.pipeline.steps import Engine, Step, Work, run
from data_gen.pipeline.validate import validate
from data_gen.questions import Question
from rag.errors import InputError
from rag.jsonl import iter_records, write_records
from rag.records import DocumentLabel, Example
from rag.provenance import provenance
from rag.settings import Component, Target

logger = logging.getLogger(__name__)

STEPS = "steps"
_FIRST = ("test", "validation", "train")
"""A passage that several splits retrieved is left to the first of these."""
_LENGTHS = 10_000


@dataclass(frozen=True)
class _Retrieve:
    retriever: Component | None
    candidates: int
    name: str = "1_retrieve"

    def start(self) -> Work:
        retriever = self.retriever.build() if self.retriever else None
        return lambda cases: retrieve([case.question for case in cases], retriever, self.candidates)


@dataclass(frozen=True)
class _Refer:
    chat: Component | None
    seed: int
    name: str = "2_reference"

    def start(self) -> Work:
        return partial(refer, chat=self.chat.build() if self.chat else None, seed=self.seed)


@dataclass(frozen=True)
class _Label:
    nli: Component
    name: str = "3_label"

    def start(self) -> Work:
        return partial(label_candidates, nli=self.nli.build())


@dataclass(frozen=True)
class _Simulate:
    chat: Component | None
    kinds: tuple[DocumentLabel, ...]
    attempts: int
    lengths: tuple[int, ...]
    seed: int
    name: str = "4_simulate"

    def start(self) -> Work:
        chat = self.chat.build() if self.chat else None
        return partial(simulate, chat=chat, kinds=self.kinds, attempts=self.attempts, lengths=self.lengths, seed=self.seed)


@dataclass(frozen=True)
class _Validate:
    nli: Component
    judge: Component | None
    seed: int
    name: str = "5_validate"

    def start(self) -> Work:
        return partial(validate, nli=self.nli.build(), judged_by=self.judge.build() if self.judge else None, seed=self.seed)


def load(
    questions: Target,
    folder: Path,
    split: str,
    splits: tuple[str, ...],
    nli: Target,
    retriever: Target | None = None,
    chat: Target | None = None,
    judge: Target | None = None,
    candidates: int = 20,
    kinds: tuple[DocumentLabel, ...] = KINDS,
    attempts: int = 1,
    k: int = 5,
    k_min: int = 2,
    distractors: int = 1,
    neutral: int = 0,
    shuffle: bool = True,
    seed: int = 0,
    limit: int | None = None,
    shard: int = 64,
    engine: Engine = Engine.LOCAL,
    workers: int = 1,
    dropped: Counter[str] | None = None,
    yields: Counter[tuple[str, str]] | None = None,
) -> list[Example]:
    """The Examples of one split; the steps run for all of `splits` first, as no passage may be in two of them.

    `folder` keeps the steps. `questions` is a source's `questions`; `limit` keeps the first questions of each split. `candidates` are
    retrieved, the best `k` that can be used make a set. `attempts` documents are written for each question and kind. `shard` questions are
    done and kept at a time. `judge` is a second model that must agree on contradiction. What was left
    out is added to `dropped` by reason; `yields` counts simulated documents by kind and by `used` or the reason that it was rejected for.
    """
    _check(candidates=candidates, attempts=attempts, k=k, k_min=k_min, distractors=distractors, shard=shard, workers=workers)
    steps = folder / STEPS
    files = [path for name in splits for path in _deal(questions, name, steps, limit, shard)]
    for step in (_Retrieve(retriever, candidates), _Refer(chat, seed), _Label(nli)):
        files = run(step, files, steps, engine, workers)
    lengths = _lengths(files, seed)
    for step in (_Simulate(chat, kinds, attempts, lengths, seed), _Validate(nli, judge, seed)):
        files = run(step, files, steps, engine, workers)
    belongs = _belongs(files)
    settings = SetSettings(k, k_min, distractors, neutral, shuffle, seed)
    lineage = {"code": provenance()["commit"], "seed": str(seed), "prompts": f"paper 002, tables 12 and 13 ({PROMPTS})"}
    reasons: Counter[str] = Counter()
    examples: list[Example] = []
    for case in _cases(path for path in files if _split(path) == split):
        examples += sets(case, settings, belongs, split, lineage, reasons)
        if yields is not None:
            yields.update((str(s.kind), s.rejected or "used") for s in case.simulations)
    for reason, count in sorted(reasons.items()):
        if count:
            logger.info("%s: left out %d: %s", split, count, reason)
    if dropped is not None:
        dropped.update({reason: count for reason, count in reasons.items() if count})
    return examples


def _check(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise InputError(f"{name}: expected a number of at least 1, got {value}; set dataset.{name}")


def _deal(questions: Component, split: str, steps: Path, limit: int | None, shard: int) -> list[Path]:
    """Write the split's questions as shards of Cases without candidates."""
    found: list[Question] = Component(questions.target, {**questions.arguments, "split": split}).build()
    found = list(found)[:limit]
    if not found:
        raise InputError(f"questions: the source {questions.target.__module__} has none for '{split}'; leave it out of splits")
    paths = []
    for number, start in enumerate(range(0, len(found), shard)):
        paths.append(steps / "0_questions" / f"{split}-{number:05}.jsonl")
        write_records(paths[-1], [Case(question=question) for question in found[start : start + shard]])
    return paths


def _split(path: Path) -> str:
    return path.name.partition("-")[0]


def _cases(files: Iterable[Path]) -> Iterator[Case]:
    return (case for path in files for case in iter_records(path, Case))


def _lengths(files: Sequence[Path], seed: int) -> tuple[int, ...]:
    """Lengths in characters of the distinct passages that were retrieved: the corpus' own distribution as far as it is known; a sample of many."""
    lengths = {fingerprint(c.document.text): len(c.document.text) for case in _cases(files) for c in case.candidates}
    values = [lengths[mark] for mark in sorted(lengths)]
    return tuple(values if len(values) <= _LENGTHS else Random(f"{seed}:lengths").sample(values, _LENGTHS))


def _belongs(files: Sequence[Path]) -> dict[str, str]:
    """The split that keeps each passage which several splits retrieved."""
    first: dict[str, str] = {}
    shared: dict[str, str] = {}
    for path in sorted(files, key=lambda path: _FIRST.index(_split(path))):
        for case in _cases([path]):
            for candidate in case.candidates:
                mark = fingerprint(candidate.document.text)
                owner = first.setdefault(mark, _split(path))
                if owner != _split(path):
                    shared[mark] = owner
    return shared
