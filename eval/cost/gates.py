"""Put together what a gate did on all sets of a run and what its stages cost on those that were measured."""

from collections.abc import Mapping, Sequence
from typing import Literal

from eval.cost.break_even import BreakEven, GateSet, break_even
from eval.cost.latency import example_medians
from eval.cost.runs import StoredRun
from eval.cost.stage_flops import StageFlops
from eval.cost.timing import Timing
from rag.records import Example, Prediction, RetrievalState

STAGES = ("sieve", "leave_one_out", "sage")


def gates(
    runs: Sequence[StoredRun],
    examples: Sequence[Example],
    timings: Sequence[Timing],
    counts: Sequence[StageFlops],
    *,
    resamples: int,
    seed: int,
) -> tuple[list[BreakEven], list[str]]:
    """Where each run with a Sieve's scores pays for itself, in time and in operations; and for which it cannot be told, and why."""
    found, notes = [], []
    units: tuple[Literal["milliseconds", "flops"], ...] = ("milliseconds", "flops") if counts else ("milliseconds",)
    for unit in units:
        for run in runs:
            if not any(prediction.sieve_score is not None for prediction in run.predictions.values()):
                continue
            if unit == "milliseconds":
                costs = {stage: example_medians(timings, run.name, stage) for stage in STAGES}
            else:
                own = [row for row in counts if row.system == run.name]
                costs = {stage: {row.example: float(row.stages[stage]) for row in own if stage in row.stages} for stage in STAGES}
            followed = sorted({step for p in run.predictions.values() for step in p.recovery if step != "filtered"})
            if followed:
                notes += [
                    f"{run.name}: where it pays for itself is not told, because what followed a flag ({', '.join(followed)}) costs too; profile the "
                    "run of its gated system alone."
                ] * (unit == units[0])
                continue
            sets = gate_sets(examples, run.predictions, costs)
            unseen = not costs["leave_one_out"] and any("leave_one_out" in p.timings for p in run.predictions.values())
            row = None if unseen else break_even(run.name, unit, sets, resamples=resamples, seed=seed)
            if row is None:
                notes.append(
                    f"{run.name}: where it pays for itself cannot be told in {unit}: it takes distracted and other sets, and each of its stages on "
                    "at least one measured example; raise limit, or flop_examples."
                )
            else:
                found.append(row)
    return found, notes


def gate_sets(
    examples: Sequence[Example], predictions: Mapping[str, Prediction], costs: Mapping[str, Mapping[str, float]]
) -> list[GateSet]:
    """One record for each example that the Sieve scored; `costs` by stage and example."""
    sets = []
    for example in examples:
        prediction = predictions.get(example.id)
        if prediction is None or prediction.sieve_score is None or prediction.threshold is None:
            continue
        flagged = prediction.sieve_score >= prediction.threshold
        sieve, leave_one_out, sage = (costs[stage].get(example.id) for stage in STAGES)
        sets.append(
            GateSet(
                question_id=example.question_id,
                distracted=example.state is RetrievalState.DISTRACTED,
                flagged=flagged,
                passed_on=flagged and prediction.prompt is not None,
                sieve=sieve,
                leave_one_out=leave_one_out,
                sage=sage,
            )
        )
    return sets
