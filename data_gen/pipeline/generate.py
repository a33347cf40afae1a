"""From question-answer pairs to labelled sets, by the steps of paper 002 (section 4.1): a source of Examples for `data_gen.build`.

    python -m data_gen.build dataset=medqa out=data/medqa

Retrieve, write a reference sentence, label what was retrieved, simulate distracting documents, validate them, put sets together. What each
step made of each question stays in `steps/`, so that a run that was killed goes on and rejected documents can be looked at.
"""

import hashlib
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from data_gen.documents import fingerprint
from data_gen.pipeline.cases import Case
from data_gen.pipeline.judge import label_candidates
from data_gen.pipeline.prompts import PROMPTS
from data_gen.pipeline.reference import refer
from data_gen.pipeline.retrieve import retrieve
from data_gen.pipeline.sets import SetSettings, chosen, sets
from data_gen.pipeline.simulate import KINDS, simulate
from data_gen.pipeline.steps import DONE, STEPS, VALIDATED, Done, Engine, Step, Work, run, split_of, totals
from data_gen.pipeline.validate import validate
from data_gen.questions import Question
from data_gen.sources.left_out import report
from rag.cluster import Workers
from rag.errors import InputError
from rag.jsonl import iter_records, write_records
from rag.models import cached_chat
from rag.models.cached_chat import CachedChat, Price
from rag.models.chat import ChatModel
from rag.provenance import provenance
from rag.records import DocumentLabel, Example
from rag.retrieval.corpus import CARD, Corpus
from rag.settings import CachePath, Component, Target

logger = logging.getLogger(__name__)

_FIRST = ("test", "validation", "train")
"""A passage is left to the first of these whose sets hold it, so that test sets are what was retrieved."""
_LENGTHS = 10_000


class _Chat(NamedTuple):
    """A chat model by its config, with the folder of its replies."""

    model: Component
    replies: Path | None
    price: Price | None

    def start(self) -> ChatModel:
        return cached_chat.load(self.model, self.replies, self.price)


def _corpora(component: Component) -> Iterator[str]:
    """Fingerprints of the corpora that a retriever's config names; one that is not there is missed only where a question needs it."""
    for key, value in component.arguments.items():
        if isinstance(value, Component):
            yield from _corpora(value)
        elif key == "corpus" and isinstance(value, Path) and (value / CARD).is_file():
            yield Corpus.open(value).fingerprint


@dataclass(frozen=True)
class _Retrieve:
    retriever: Component | None
    candidates: int
    name: str = "1_retrieve"

    @property
    def mark(self) -> str:
        return " ".join(_corpora(self.retriever)) if self.retriever else ""

    def start(self) -> Work:
        # Where data sets ship their documents, no index is made or opened.
        retriever = cache(self.retriever.build) if self.retriever else lambda: None
        return lambda cases: Done(retrieve([case.question for case in cases], retriever, self.candidates))


@dataclass(frozen=True)
class _Refer:
    chat: _Chat | None
    attempts: int
    seed: int
    name: str = "2_reference"
    mark: str = ""

    def start(self) -> Work:
        chat = self.chat.start() if self.chat else None
        return lambda cases: _spending(chat, lambda: refer(cases, chat, self.attempts, self.seed))


@dataclass(frozen=True)
class _Label:
    nli: Component
    name: str = "3_label"
    mark: str = ""

    def start(self) -> Work:
        nli = self.nli.build()
        return lambda cases: Done(label_candidates(cases, nli))


@dataclass(frozen=True)
class _Simulate:
    chat: _Chat | None
    kinds: tuple[DocumentLabel, ...]
    attempts: int
    lengths: tuple[int, ...]
    seed: int
    name: str = "4_simulate"

    @property
    def mark(self) -> str:
        # The lengths come from all questions, so they may change where a shard's own cases do not.
        return hashlib.sha256(repr(self.lengths).encode()).hexdigest()

    def start(self) -> Work:
        chat = self.chat.start() if self.chat else None
        return lambda cases: _spending(chat, lambda: simulate(cases, chat, self.kinds, self.attempts, self.lengths, self.seed))


@dataclass(frozen=True)
class _Validate:
    nli: Component
    judge: _Chat | None
    seed: int
    name: str = VALIDATED
    mark: str = ""

    def start(self) -> Work:
        nli, judge = self.nli.build(), self.judge.start() if self.judge else None
        return lambda cases: _spending(judge, lambda: validate(cases, nli, judge, self.seed))


def _spending(chat: ChatModel | None, work: Callable[[], list[Case]]) -> Done:
    """The work's cases, and what the cache says was asked for them."""
    if not isinstance(chat, CachedChat):
        return Done(work())
    before = _numbers(chat)
    cases = work()
    return Done(cases, {key: value - before[key] for key, value in _numbers(chat).items()})


def _numbers(chat: CachedChat) -> dict[str, float]:
    return {key: value for key, value in chat.usage.model_dump().items() if not isinstance(value, str)}


def load(
    questions: Target,
    nli: Target,
    folder: Path | None = None,
    split: str = "test",
    splits: tuple[str, ...] = ("test",),
    retriever: Target | None = None,
    chat: Target | None = None,
    judge: Target | None = None,
    replies: CachePath | None = None,
    price: Price | None = None,
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
    gpus_per_worker: float = 0,
    dropped: Counter[str] | None = None,
    yields: Counter[tuple[str, str]] | None = None,
) -> list[Example]:
    """The Examples of one split; the steps run for all of `splits` first, as no passage may be in two of them.

    `folder` keeps the steps. `questions` is a source's `questions`; `limit` keeps the first questions of each split. `candidates` are
    retrieved, the best `k` that can be used make a set. `replies` is a folder that keeps what chat models said, so that nothing is asked
    twice, and `price` is what they cost. `attempts` documents are written for each question and kind, and
    as many reference sentences at most. `shard` questions are
    done and kept at a time. `judge` is a second model that must agree on contradiction. What was left
    out is added to `dropped` by reason; `yields` counts simulated documents by kind and by `used` or the reason that it was rejected for.
    """
    if folder is None:
        raise InputError(
            "dataset: these sets take long to make; write them with `python -m data_gen.build`, then read them with dataset=jsonl"
        )
    _check(candidates=candidates, attempts=attempts, k=k, k_min=k_min, distractors=distractors, shard=shard, workers=workers)
    if limit is not None:
        _check(limit=limit)
    steps = folder / STEPS
    reasons: Counter[str] = Counter()
    files = [path for name in splits for path in _deal(questions, name, steps, limit, shard, reasons if name == split else Counter())]
    writer = _Chat(chat, replies, price) if chat else None
    second = _Chat(judge, replies, price) if judge else None
    before: tuple[Step, ...] = (_Retrieve(retriever, candidates), _Refer(writer, attempts, seed), _Label(nli))
    for step in before:
        files = run(step, files, steps, engine, Workers(workers, gpus=gpus_per_worker))
    after: tuple[Step, ...] = (_Simulate(writer, kinds, attempts, _lengths(files, seed), seed), _Validate(nli, second, seed))
    for step in after:
        files = run(step, files, steps, engine, Workers(workers, gpus=gpus_per_worker))
    for step in (*before, *after):
        _log(step.name, totals(steps / step.name / DONE))
    settings = SetSettings(k, k_min, distractors, neutral, shuffle, seed)
    belongs = _belongs(files, settings)
    lineage = {"code": provenance()["commit"], "seed": str(seed), "prompts": f"paper 002, tables 12 and 13 ({PROMPTS})"}
    examples: list[Example] = []
    for case in _cases(path for path in files if split_of(path) == split):
        examples += sets(case, settings, belongs, split, lineage, reasons)
        if yields is not None:
            yields.update((str(s.kind), s.rejected or "used") for s in case.simulations)
    report(split, +reasons, dropped)
    return examples


def _log(name: str, done: dict[str, float]) -> None:
    if not done:
        return
    asked = done.get("requests", 0) - done.get("cached", 0) - done.get("repeated", 0)
    spent = (
        f"; asked {asked:.0f} times, {done['failed']:.0f} failed, {done['prompt_tokens']:.0f} + {done['completion_tokens']:.0f} tokens, "
        f"cost {done['cost']:.2f}; {done['cached']:.0f} replies were there"
        if "requests" in done
        else ""
    )
    speed = done["documents"] / max(done["seconds"], 1e-9)
    logger.info("%s: %.0f documents in %.1f s, %.1f a second%s", name, done["documents"], done["seconds"], speed, spent)


def _check(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise InputError(f"{name}: expected a number of at least 1, got {value}; set dataset.{name}")


def _deal(questions: Component, split: str, steps: Path, limit: int | None, shard: int, reasons: Counter[str]) -> list[Path]:
    """Write the split's questions as shards of Cases without candidates; what the source left out is added to `reasons`."""
    counted = {"dropped": reasons} if "dropped" in inspect.signature(questions.target).parameters else {}
    found: list[Question] = list(Component(questions.target, {**questions.arguments, "split": split, **counted}).build())
    if limit is not None:
        reasons["question over limit"] += len(found[limit:])
        found = found[:limit]
    if not found:
        raise InputError(f"questions: the source {questions.target.__module__} has none for '{split}'; leave it out of splits")
    paths = []
    for number, start in enumerate(range(0, len(found), shard)):
        paths.append(steps / "0_questions" / f"{split}-{number:05}.jsonl")
        write_records(paths[-1], [Case(question=question) for question in found[start : start + shard]])
    return paths


def _cases(files: Iterable[Path]) -> Iterator[Case]:
    return (case for path in files for case in iter_records(path, Case))


def _lengths(files: Sequence[Path], seed: int) -> tuple[int, ...]:
    """Lengths in characters of the distinct passages that were retrieved: the corpus' own distribution as far as it is known; a sample of many."""
    lengths = {fingerprint(c.document.text): len(c.document.text) for case in _cases(files) for c in case.candidates}
    values = [lengths[mark] for mark in sorted(lengths)]
    return tuple(values if len(values) <= _LENGTHS else Random(f"{seed}:lengths").sample(values, _LENGTHS))


def _belongs(files: Sequence[Path], settings: SetSettings) -> dict[str, str]:
    """The split whose sets hold each passage, by its fingerprint."""
    belongs: dict[str, str] = {}
    for path in sorted(files, key=lambda path: _FIRST.index(split_of(path))):
        for case in _cases([path]):
            top, extra, _ = chosen(case, settings, belongs, split_of(path))
            belongs.update((fingerprint(document.text), split_of(path)) for document in (*top, *extra))
    return belongs
