"""Examples, and systems whose time is told by a clock of the test's own."""

from collections.abc import Sequence

import pytest

from rag.records import Condition, Document, Example, Prediction, Query, Reason, RetrievalState


class FakeClock:
    """Seconds that pass only when a stand-in works; `slowdown` at a time makes the whole machine slower."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.seconds

    def work(self, seconds: float) -> None:
        self.seconds += seconds


class StandIn:
    """Takes so many seconds for an example; what it has read once costs it nothing until it forgets."""

    def __init__(self, clock: FakeClock, name: str, seconds: float, log: list[tuple[str, tuple[str, ...]]]) -> None:
        self.clock, self.name, self.seconds, self.log = clock, name, seconds, log
        self.read: set[str] = set()
        self.stop_after: int | None = None
        self.slower = 1.0

    def forget(self) -> None:
        self.read.clear()

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        if self.stop_after is not None and len(self.log) >= self.stop_after:
            raise KeyboardInterrupt
        self.log.append((self.name, tuple(query.id for query in queries)))
        new = [query for query in queries if query.id not in self.read]
        self.clock.work(self.slower * self.seconds * len(new))
        self.read |= {query.id for query in queries}
        timings = {"sage": 1000 * self.seconds, "total": 1000 * self.seconds}
        return [Prediction(id=q.id, question_id=q.question_id, reason=Reason.POLICY, timings=timings) for q in queries]


def make_examples(count: int, variants: int = 1) -> list[Example]:
    """`variants` of each question; every second set is distracted."""
    return [
        Example(
            id=f"q{n}-{v}",
            question_id=f"q{n}",
            question=f"What is number {n}?",
            documents=(Document(id="d1", text=f"Number {n}."), Document(id="d2", text=f"Not {n}.")),
            answers=("Number",),
            state=RetrievalState.DISTRACTED if (n * variants + v) % 2 else RetrievalState.ANSWERABLE,
            condition=Condition.CONFLICT if (n * variants + v) % 2 else Condition.ANSWERABLE,
        )
        for n in range(count)
        for v in range(variants)
    ]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stand_in() -> type[StandIn]:
    return StandIn


@pytest.fixture(name="examples_of")
def _examples_of():
    return make_examples
