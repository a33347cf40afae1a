"""Time several systems on the same examples in one interleaved run, resumable."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from eval.cost.memory import PeakMemory
from eval.cost.parts import forget
from rag.errors import InputError
from rag.jsonl import Journal, iter_records
from rag.records import GUARD_FAILURES, Example, Prediction, Record, Text
from serve.clock import Clock, now
from serve.systems import System

TIMINGS = "timings.jsonl"


class Timing(Record):
    """One call of one system on one batch."""

    batch_size: int
    """Asked for; the last batch of a round may hold fewer."""
    round: int
    place: int
    """Of the batch in its round."""
    system: Text
    examples: tuple[Text, ...]
    """Ids."""
    milliseconds: float
    """Of the whole call, from outside."""
    stages: tuple[dict[Text, float], ...]
    """For each example, milliseconds by stage as the system measured them; an equal share of the batch's time."""
    failed: int
    """Examples on which a stage crashed, ran out of time or could not be asked."""
    peak_bytes: int | None
    """Memory above what was held before; none where it is not measured."""


class Pass(NamedTuple):
    """Rounds over all examples at one batch size."""

    batch_size: int
    rounds: int


class _Call(NamedTuple):
    batch_size: int
    round: int
    place: int
    system: str
    batch: Sequence[Example]

    @property
    def key(self) -> tuple[int, int, int, str]:
        return self[:4]


def measure(
    systems: Mapping[str, System],
    examples: Sequence[Example],
    passes: Sequence[Pass],
    out: Path,
    *,
    warmup: int,
    seed: int,
    clock: Clock = now,
) -> list[Timing]:
    """Time every system on every example; what the journal in `out` holds already is not timed again.

    In each round the examples are put in a new order and cut into batches, and each batch goes to all systems, one after another in an order
    drawn anew, so that whatever the machine does meanwhile hits all alike. Before each call the system forgets what it has read. Before
    the first call at a batch size each system answers `warmup` batches of it, untimed. Raises InputError for a journal of other examples.
    """
    path = out / TIMINGS
    journal = Journal(path)
    done = {(t.batch_size, t.round, t.place, t.system): t for t in iter_records(path, Timing)} if path.exists() else {}
    calls = list(_calls(list(systems), examples, passes, seed))
    for call in calls:
        if (timing := done.get(call.key)) and timing.examples != tuple(example.id for example in call.batch):
            raise InputError(f"{path}: holds times of other examples than those of this run; set out to a new folder")
    todo = [call for call in calls if call.key not in done]
    if todo:
        memory = PeakMemory()
        warm: set[int] = set()
        for call in _shown(todo):
            if call.batch_size not in warm:
                warm.add(call.batch_size)
                for first in (c for c in calls if c.batch_size == call.batch_size and c.round == 0 and c.place < warmup):
                    _time(systems[first.system], first, memory, clock)
            timing = _time(systems[call.system], call, memory, clock)
            journal.append([timing])
            done[call.key] = timing
    return [done[call.key] for call in calls]


def _calls(systems: Sequence[str], examples: Sequence[Example], passes: Sequence[Pass], seed: int) -> Iterator[_Call]:
    for size, rounds in passes:
        for number in range(rounds):
            draw = random.Random(f"{seed}:{size}:{number}")
            order = draw.sample(examples, len(examples))
            for place, start in enumerate(range(0, len(order), size)):
                for system in draw.sample(systems, len(systems)):
                    yield _Call(size, number, place, system, order[start : start + size])


def _time(system: System, call: _Call, memory: PeakMemory, clock: Clock) -> Timing:
    queries = [example.query() for example in call.batch]
    forget(system)
    memory.start()
    started = clock()
    predictions = system.predict(queries)
    milliseconds = 1000 * (clock() - started)
    peak = memory.stop()
    if [prediction.id for prediction in predictions] != [query.id for query in queries]:
        raise RuntimeError(f"{call.system}: expected one prediction for each query, in order")
    return Timing(
        batch_size=call.batch_size,
        round=call.round,
        place=call.place,
        system=call.system,
        examples=tuple(query.id for query in queries),
        milliseconds=milliseconds,
        stages=tuple({name: value for name, value in p.timings.items() if name != "total"} for p in predictions),
        failed=sum(map(_has_failed, predictions)),
        peak_bytes=peak,
    )


def _has_failed(prediction: Prediction) -> bool:
    return prediction.error is not None or prediction.reason in GUARD_FAILURES


def _shown(calls: Sequence[_Call]) -> Iterator[_Call]:
    columns = (TextColumn("timing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("timing", total=len(calls))
        for call in calls:
            yield call
            progress.advance(task)
