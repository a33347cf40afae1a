"""Natural language inference: does a document say a sentence, deny it, or neither?"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Entailment(NamedTuple):
    """What a premise is to a hypothesis: probabilities, 0 to 1, with the sum 1."""

    entailment: float
    neutral: float
    contradiction: float


NEUTRAL = Entailment(0.0, 1.0, 0.0)
"""What a document without text is to any sentence."""


class Nli(Protocol):
    """Judges pairs of a document and a sentence."""

    @property
    def name(self) -> str:
        """Model and settings that decide a judgement."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """One judgement for each pair of a premise (the document) and a hypothesis (the sentence), in order.

        A premise of any length is read as a whole. Raises InputError for a blank hypothesis.
        """
        ...


def pool(parts: Sequence[Entailment]) -> Entailment:
    """Join the judgements of a document's parts: one part that entails or contradicts is enough, however many say nothing.

    The largest entailment E and the largest contradiction C of any part are taken, and neutral is what they leave of 1. Where E + C exceeds 1
    both are divided by it and nothing is neutral: a document that is sure to entail in one part and sure to contradict in another comes out
    with about half of each, so that neither passes a threshold well above 0.5. One part alone is returned as it is; no part is `NEUTRAL`.
    The more parts, the larger the two maxima tend to be.
    """
    if len(parts) < 2:
        return parts[0] if parts else NEUTRAL
    entailment = max(part.entailment for part in parts)
    contradiction = max(part.contradiction for part in parts)
    total = max(1.0, entailment + contradiction)
    return Entailment(entailment / total, max(0.0, 1.0 - entailment - contradiction), contradiction / total)
