"""Calls of the Sage and tokens: of the whole data set, by example, and by question that got an answer."""

from collections.abc import Sequence

from rag.records import Prediction, Record, Text


class TokenRow(Record):
    """Tokens of one kind: `prompt` and what other stages read go in, `completion` comes out."""

    kind: Text
    total: int
    per_example: float
    per_answer: float | None
    """By example that got an answer; none where none did."""


class Usage(Record):
    """What one run used."""

    system: Text
    n: int
    answered: int
    sage_calls: int
    sage_calls_saved: int
    """Examples on which the Sage was not called, for whatever reason."""
    tokens: tuple[TokenRow, ...]


def usage(system: str, predictions: Sequence[Prediction]) -> Usage:
    """Add up the stored predictions of a run. The Sage was called where a prompt was rendered."""
    calls = sum(prediction.prompt is not None for prediction in predictions)
    answered = sum(prediction.answer is not None for prediction in predictions)
    kinds = dict.fromkeys(["sieve", "prompt", "completion", *sorted({kind for p in predictions for kind in p.tokens})])
    totals = {kind: sum(prediction.tokens.get(kind, 0) for prediction in predictions) for kind in kinds}
    return Usage(
        system=system,
        n=len(predictions),
        answered=answered,
        sage_calls=calls,
        sage_calls_saved=len(predictions) - calls,
        tokens=tuple(
            TokenRow(
                kind=kind, total=total, per_example=total / max(1, len(predictions)), per_answer=total / answered if answered else None
            )
            for kind, total in totals.items()
        ),
    )
