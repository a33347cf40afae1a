"""What became of each example: an answer matched by a rule, and the prediction reduced to what the metrics read."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from eval.metrics import Judged
from eval.pairs import pairs
from rag import text
from rag.records import DocumentLabel, Example, Outcome, Prediction, Reason, RetrievalState

Match = Literal["exact", "squad", "contains"]
"""When an answer counts as correct: strict exact match, plain SQuAD exact match, or a gold answer found in it at word boundaries."""

MATCHES: Final[tuple[Match, ...]] = ("exact", "squad", "contains")
DISTRACTING: Final = frozenset({DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL})


def answer_matches(answer: str, golds: Sequence[str], match: Match) -> bool:
    """Whether the answer matches any gold answer by the rule; containment looks for the gold answer in the answer."""
    if match == "exact":
        return bool(text.exact_match(answer, golds))
    if match == "squad":
        return bool(text.squad_exact_match(answer, golds))
    return any(text.contains(answer, gold) for gold in golds)


def outcome(example: Example, prediction: Prediction, match: Match = "exact") -> Outcome:
    """How a prediction ended.

    An answer to a set that is not answerable is wrong whatever it says. Output that could not be read is UNPARSED and bad input is ERROR:
    never correct, and not abstentions. A guard failure (the Sieve or the Sage crashed or ran out of time) is an abstention.
    """
    if prediction.error is not None:
        return Outcome.ERROR
    if prediction.reason is Reason.UNPARSED:
        return Outcome.UNPARSED
    if prediction.answer is None:
        return Outcome.ABSTAINED
    right = example.state is RetrievalState.ANSWERABLE and answer_matches(prediction.answer, example.answers, match)
    return Outcome.CORRECT if right else Outcome.WRONG


def judge(example: Example, prediction: Prediction, match: Match = "exact") -> Judged:
    """Reduce one example and its prediction to what the metrics read."""
    answer = prediction.answer if example.answers else None
    matches = None if answer is None else answer_matches(answer, example.answers, match)
    return _judged(example, prediction, outcome(example, prediction, match), matches, _answer_f1(example, prediction))


def judge_by_each_rule(example: Example, prediction: Prediction) -> dict[Match, Judged]:
    """As `judge` by each rule; rules that agree share one row."""
    if prediction.answer is None or not example.answers:
        return dict.fromkeys(MATCHES, judge(example, prediction))
    found: dict[Match, bool] = {rule: answer_matches(prediction.answer, example.answers, rule) for rule in MATCHES}
    f1 = _answer_f1(example, prediction)
    ended = {True: Outcome.CORRECT if example.state is RetrievalState.ANSWERABLE else Outcome.WRONG, False: Outcome.WRONG}
    rows = {matches: _judged(example, prediction, ended[matches], matches, f1) for matches in set(found.values())}
    return {rule: rows[matches] for rule, matches in found.items()}


def _answer_f1(example: Example, prediction: Prediction) -> float | None:
    return None if prediction.answer is None or not example.answers else text.squad_f1(prediction.answer, example.answers)


def _judged(example: Example, prediction: Prediction, ended: Outcome, matches_gold: bool | None, answer_f1: float | None) -> Judged:
    distracting = distracting_ids(example)
    return Judged(
        question_id=example.question_id,
        gold=example.state,
        condition=example.condition,
        outcome=ended,
        state=prediction.state,
        reason=prediction.reason,
        matches_gold=matches_gold,
        answer_f1=answer_f1,
        flagged=_flagged(prediction),
        sage_called=_sage_called(prediction),
        filtered=bool(prediction.removed),
        blamed_share=_blamed_share(example, prediction),
        labelled=any(document.label is not None for document in example.documents),
        distractors=len(distracting),
        removed=len(prediction.removed),
        removed_distractors=len(distracting.intersection(prediction.removed)),
        answerable_without=any(document.label is DocumentLabel.ANSWERABLE for document in example.documents),
        has_gold=bool(example.answers),
        recovery=prediction.recovery,
    )


def _sage_called(prediction: Prediction) -> bool | None:
    """Whether a model was asked for an answer; none where a system gives an answer and tells of no prompt, stage or tokens."""
    if prediction.prompt is not None or "sage" in prediction.timings or "prompt" in prediction.tokens:
        return True
    return None if prediction.answer is not None or prediction.output is not None else False


def _flagged(prediction: Prediction) -> bool | None:
    if prediction.sieve_score is None or prediction.threshold is None:
        return None
    return prediction.sieve_score >= prediction.threshold


def distracting_ids(example: Example) -> frozenset[str]:
    """Ids of the documents whose label says that they mislead."""
    return frozenset(document.id for document in example.documents if document.label in DISTRACTING)


def _blamed_share(example: Example, prediction: Prediction) -> float | None:
    distracting = distracting_ids(example)
    if not distracting or not prediction.blamed:
        return None
    return sum(blamed in distracting for blamed in prediction.blamed) / len(prediction.blamed)


def pair(examples: Iterable[Example], predictions: Iterable[Prediction]) -> list[tuple[Example, Prediction]]:
    """Examples with their predictions, sorted by id.

    Raises InputError that names the ids when the two do not match one to one, or when a pair disagrees about its question id.
    """
    return sorted(pairs(examples, predictions), key=lambda both: both[0].id)
