"""Interleaving, warm-up, forgetting and resuming, with a clock that only stand-ins move."""

from pathlib import Path

import pytest

from eval.cost.latency import speedup
from eval.cost.timing import TIMINGS, Pass, Timing, measure
from rag.errors import InputError
from rag.jsonl import iter_records
from rag.records import Reason


@pytest.fixture
def pair(clock, stand_in):
    log = []
    return {"slow": stand_in(clock, "slow", 0.2, log), "fast": stand_in(clock, "fast", 0.1, log)}, log


def test_every_batch_goes_to_all_systems_one_after_another_in_an_order_drawn_anew(pair, clock, examples_of, tmp_path: Path) -> None:
    systems, log = pair
    timings = measure(systems, examples_of(8), [Pass(2, 6)], tmp_path, warmup=0, seed=1, clock=clock)
    assert len(timings) == len(log) == 2 * 4 * 6
    couples = [log[i : i + 2] for i in range(0, len(log), 2)]
    assert all(first[1] == second[1] and {first[0], second[0]} == {"slow", "fast"} for first, second in couples)
    assert {first[0] for first, _ in couples} == {"slow", "fast"}  # neither is always first
    rounds = [[couple[0][1] for couple in couples[i : i + 4]] for i in range(0, len(couples), 4)]
    assert len({tuple(one) for one in rounds}) > 1
    assert all({name for batch in one for name in batch} == {f"q{n}-0" for n in range(8)} for one in rounds)


def test_the_order_depends_on_the_seed_alone(clock, stand_in, examples_of, tmp_path: Path) -> None:
    logs = []
    for run, seed in enumerate((3, 3, 4)):
        log = []
        systems = {name: stand_in(clock, name, 0.1, log) for name in ("a", "b", "c")}
        (tmp_path / str(run)).mkdir()
        measure(systems, examples_of(5), [Pass(1, 2)], tmp_path / str(run), warmup=0, seed=seed, clock=clock)
        logs.append(log)
    assert logs[0] == logs[1] != logs[2]


def test_warm_up_is_not_timed_and_goes_to_all(pair, clock, examples_of, tmp_path: Path) -> None:
    systems, log = pair
    timings = measure(systems, examples_of(4), [Pass(1, 1)], tmp_path, warmup=2, seed=0, clock=clock)
    assert len(timings) == 8
    assert [name for name, _ in log[:4]].count("slow") == 2
    assert len(log) == 12


def test_what_a_system_remembers_does_not_make_the_second_round_free(pair, clock, examples_of, tmp_path: Path) -> None:
    """The reader Sieve remembers passages; timed warm, all rounds after the first would cost nothing."""
    systems, _ = pair
    timings = measure(systems, examples_of(3), [Pass(1, 3)], tmp_path, warmup=3, seed=0, clock=clock)
    assert {(t.system, round(t.milliseconds)) for t in timings} == {("slow", 200), ("fast", 100)}


def test_a_killed_run_goes_on_and_times_nothing_twice(pair, clock, examples_of, tmp_path: Path) -> None:
    systems, log = pair
    systems["slow"].stop_after = systems["fast"].stop_after = 7
    with pytest.raises(KeyboardInterrupt):
        measure(systems, examples_of(4), [Pass(1, 2), Pass(3, 1)], tmp_path, warmup=0, seed=0, clock=clock)
    kept = list(iter_records(tmp_path / TIMINGS, Timing))
    assert len(kept) == 7
    systems["slow"].stop_after = systems["fast"].stop_after = None
    timings = measure(systems, examples_of(4), [Pass(1, 2), Pass(3, 1)], tmp_path, warmup=1, seed=0, clock=clock)
    assert timings[:7] == kept
    assert len(timings) == 2 * (4 + 4) + 2 * 2
    assert len(log) == len(timings) + 2 * 2  # and the warm-up of two batch sizes
    assert [len(t.examples) for t in timings if t.batch_size == 3] == [3, 3, 1, 1]
    reads = clock.reads
    assert measure(systems, examples_of(4), [Pass(1, 2), Pass(3, 1)], tmp_path, warmup=1, seed=0, clock=clock) == timings
    assert clock.reads == reads


def test_times_of_other_examples_are_refused(pair, clock, examples_of, tmp_path: Path) -> None:
    systems, _ = pair
    measure(systems, examples_of(4), [Pass(1, 1)], tmp_path, warmup=0, seed=0, clock=clock)
    with pytest.raises(InputError, match="holds times of other examples than those of this run; set out to a new folder"):
        measure(systems, examples_of(5), [Pass(1, 1)], tmp_path, warmup=0, seed=0, clock=clock)


def test_a_machine_that_slows_down_hits_all_systems_alike(pair, clock, examples_of, tmp_path: Path) -> None:
    """From the third round on everything takes ten times as long; one system after the other would give a speedup of 20 or 0.2."""
    systems, log = pair

    def slowing() -> float:
        for system in systems.values():
            system.slower = 10.0 if len(log) >= 2 * 2 * 6 else 1.0
        return clock()

    examples = examples_of(6)
    timings = measure(systems, examples, [Pass(1, 5)], tmp_path, warmup=0, seed=0, clock=slowing)
    row = speedup(timings, "fast", "slow", {e.id: e.question_id for e in examples}, resamples=100, seed=0)
    assert (row.value, row.low, row.high) == pytest.approx((2.0, 2.0, 2.0))


def test_failures_are_counted(pair, clock, examples_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systems, _ = pair
    answer = systems["fast"].predict
    fails = lambda queries: [p.model_copy(update={"reason": Reason.SAGE_FAILED}) for p in answer(queries)]  # noqa: E731
    monkeypatch.setattr(systems["fast"], "predict", fails)
    timings = measure(systems, examples_of(3), [Pass(2, 1)], tmp_path, warmup=0, seed=0, clock=clock)
    assert {name: sum(t.failed for t in timings if t.system == name) for name in systems} == {"slow": 0, "fast": 3}
