"""Bring examples and predictions together by id while both are read, so that neither has to be held."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from rag.errors import InputError
from rag.records import Example, Prediction


def pairs(examples: Iterable[Example], predictions: Iterable[Prediction]) -> Iterator[tuple[Example, Prediction]]:
    """Yield each example with its prediction as soon as both were read; each side is read once.

    Two sides in the same order, as `eval.pipeline` writes them, are held one at a time, whatever their number; out of order, what waits
    for its mate is held. Ids are held either way.

    Raises InputError, after the last pair, that names the ids when the two do not match one to one, or when a pair disagrees about its question
    id: what was made of the pairs before counts for nothing then.
    """
    match = _Matching()
    for example, prediction in zip_longest(examples, predictions):
        if example is not None:
            yield from match.example(example)
        if prediction is not None:
            yield from match.prediction(prediction)
    match.require_one_to_one()


class _Matching:
    """What waits for its mate, and what was wrong so far."""

    def __init__(self) -> None:
        self.examples: dict[str, Example] = {}
        self.predictions: dict[str, Prediction] = {}
        self.seen_examples: dict[str, int] = {}
        self.seen_predictions: dict[str, int] = {}
        self.other_question: list[str] = []

    def example(self, example: Example) -> Iterator[tuple[Example, Prediction]]:
        if _first(self.seen_examples, example.id):
            if example.id in self.predictions:
                yield from self._met(example, self.predictions.pop(example.id))
            else:
                self.examples[example.id] = example

    def prediction(self, prediction: Prediction) -> Iterator[tuple[Example, Prediction]]:
        if _first(self.seen_predictions, prediction.id):
            if prediction.id in self.examples:
                yield from self._met(self.examples.pop(prediction.id), prediction)
            else:
                self.predictions[prediction.id] = prediction

    def _met(self, example: Example, prediction: Prediction) -> Iterator[tuple[Example, Prediction]]:
        if example.question_id != prediction.question_id:
            self.other_question.append(example.id)
        yield example, prediction

    def require_one_to_one(self) -> None:
        if not self.seen_examples:
            raise InputError("examples: expected at least one to score, got none")
        problems = [
            *_named("more than one example with id", _repeated(self.seen_examples)),
            *_named("more than one prediction for", _repeated(self.seen_predictions)),
            *_named("no prediction for", list(self.examples)),
            *_named("predictions without an example", list(self.predictions)),
            *_named("another question_id than the example's in", self.other_question),
        ]
        if problems:
            examples, predictions = sum(self.seen_examples.values()), sum(self.seen_predictions.values())
            raise InputError(
                f"predictions: expected exactly one for each of the {examples} examples, got {predictions}: {'; '.join(problems)}; "
                "were they made from another data file?"
            )


def _first(seen: dict[str, int], name: str) -> bool:
    seen[name] = seen.get(name, 0) + 1
    return seen[name] == 1


def _repeated(seen: dict[str, int]) -> list[str]:
    return sorted(name for name, count in seen.items() if count > 1)


def _named(problem: str, ids: Sequence[str], limit: int = 5) -> list[str]:
    if not ids:
        return []
    rest = f" and {len(ids) - limit} more" if len(ids) > limit else ""
    return [f"{problem} {', '.join(ids[:limit])}{rest}"]
