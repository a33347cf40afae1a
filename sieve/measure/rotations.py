"""What changes when the documents of a set are rotated."""

import random
from collections import defaultdict
from collections.abc import Sequence

from rag.records import Example, Record
from sieve.data import group_of
from sieve.measure.intervals import Draw, share
from sieve.measure.scores import Request, Scored, request


class Flips(Record):
    """What changes when a set's documents are rotated. A set counts once, however many of its rotations differ."""

    sets: int
    rotations: int
    """Rotations scored, the retrieved order not counted."""
    decision: float | None
    """Share of sets with a rotation that is decided otherwise than the retrieved order."""
    decision_low: float | None
    decision_high: float | None
    each: float | None
    """Share of rotations decided otherwise."""
    flagged_sets: int
    blamed: float | None
    """Of the flagged sets, the share with a rotation in which other documents are blamed than in the retrieved order."""
    blamed_low: float | None
    blamed_high: float | None


def rotated_sample(examples: Sequence[Example], limit: int, seed: int) -> list[Example]:
    """Draw sets of two documents or more; the groups take turns, so that none is lost in a large one."""
    by_group: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        if len(example.documents) > 1:
            by_group[f"{group_of(example)}:{example.source}"].append(example)
    for name, members in by_group.items():
        random.Random(f"{seed}:rotations:{name}").shuffle(members)
    turns = [members[i] for i in range(max(map(len, by_group.values()), default=0)) for members in by_group.values() if i < len(members)]
    return turns[:limit]


def rotations(sample: Sequence[Example], by_key: dict[str, Scored], threshold: float) -> list[Request]:
    """All rotations of the sets, the retrieved order among them where the set is flagged and so has documents to blame."""
    requests = []
    for example in sample:
        flagged = by_key[f"set:{example.id}"].score >= threshold
        for turn in range(0 if flagged else 1, len(example.documents)):
            documents = example.documents[turn:] + example.documents[:turn]
            requests.append(request(f"rotation:{turn}:{example.id}", example.question, documents, blame=flagged))
    return requests


def flip_rates(sample: Sequence[Example], by_key: dict[str, Scored], threshold: float, draw: Draw) -> Flips:
    """Compare each rotation of a set with its retrieved order."""
    decided: list[list[bool]] = []
    blamed: list[bool] = []
    questions_of_blamed = []
    for example in sample:
        flagged = by_key[f"set:{example.id}"].score >= threshold
        turned = [by_key[f"rotation:{turn}:{example.id}"] for turn in range(1, len(example.documents))]
        decided.append([(other.score >= threshold) is not flagged for other in turned])
        if flagged:
            first = set(by_key[f"rotation:0:{example.id}"].blamed)
            blamed.append(any(set(other.blamed) != first for other in turned))
            questions_of_blamed.append(example.question_id)
    decision = share(list(map(any, decided)), [e.question_id for e in sample], resamples=draw.resamples, seed=draw.seed)
    blame = share(blamed, questions_of_blamed, resamples=draw.resamples, seed=draw.seed)
    count = sum(map(len, decided))
    return Flips(
        sets=len(sample),
        rotations=count,
        decision=decision.value,
        decision_low=decision.low,
        decision_high=decision.high,
        each=sum(map(sum, decided)) / count if count else None,
        flagged_sets=len(blamed),
        blamed=blame.value,
        blamed_low=blame.low,
        blamed_high=blame.high,
    )
