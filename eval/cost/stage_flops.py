"""Count the floating-point operations of each stage on real examples, resumable."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.cost.flops import counting
from eval.cost.parts import forget
from rag.errors import InputError
from rag.jsonl import Journal, iter_records
from rag.records import Example, Prediction, Record, Text
from rag.render import evidence
from serve.systems import System
from serve.systems.recovery import Recovery

logger = logging.getLogger(__name__)

FLOPS = "flops.jsonl"


class StageFlops(Record):
    """Operations of one system on one example, by stage; those that the prediction of the run went through count for it."""

    system: Text
    example: Text
    stages: dict[Text, int]
    """`sieve`, `leave_one_out` where the run looked for a document to blame, and `sage`, also where the gate kept the set from it."""
    spent: int
    """Of those of them that the run went through; `leave_one_out` once, however many documents were removed one after the other."""


def stage_flops(
    systems: Mapping[str, System], predictions: Mapping[str, Mapping[str, Prediction]], examples: Sequence[Example], out: Path
) -> list[StageFlops]:
    """Run the stages of each system that has them as `sieve` and `sage`, one example at a time; what the journal in `out` holds is not run again.

    Of a system whose abstentions are followed (`serve.systems.recovery`) it is the stages of the system inside.
    """
    path = out / FLOPS
    journal = Journal(path)
    done = {(row.system, row.example): row for row in iter_records(path, StageFlops)} if path.exists() else {}
    rows = []
    for name, whole in systems.items():
        system = whole.system if isinstance(whole, Recovery) else whole
        if not hasattr(system, "sage"):
            logger.info("%s: no stages to count operations of", name)
            continue
        for example in examples:
            key = (name, example.id)
            if key not in done and (prediction := predictions[name].get(example.id)) is not None:
                done[key] = _count(name, system, example, prediction)
                journal.append([done[key]])
            rows += [done[key]] if key in done else []
    return rows


def _count(name: str, system: Any, example: Example, prediction: Prediction) -> StageFlops:
    documents = evidence(example.query().documents)
    kept = [document for document in documents if document.id not in prediction.removed]
    stages: dict[str, int] = {}
    spent = 0
    forget(system)
    if (sieve := getattr(system, "sieve", None)) is not None:
        stages["sieve"] = _flops(lambda: sieve.screen([example.question], [documents]))
        spent += stages["sieve"]
        if "leave_one_out" in prediction.timings:
            stages["leave_one_out"] = _flops(lambda: sieve.leave_one_out([example.question], [documents]))
            spent += stages["leave_one_out"]
    if kept:
        stages["sage"] = _flops(lambda: system.sage.answer([example.question], [kept]))
        spent += stages["sage"] if prediction.prompt is not None else 0
    return StageFlops(system=name, example=example.id, stages=stages, spent=spent)


def _flops(call: Callable[[], Any]) -> int:
    with counting() as counter:
        results = call()
    if failures := [result for result in results if isinstance(result, InputError)]:
        logger.warning("counted on an example that could not be asked: %s", failures[0])
    return counter.flops
