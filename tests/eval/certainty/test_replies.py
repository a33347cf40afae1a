"""A stored run at other thresholds: what it can tell, what it cannot, and one set of each question."""

from typing import Any

import pytest

from eval.certainty.replies import Point, Reply, at, one_each, run_of
from rag.errors import InputError
from rag.records import Condition, Document, Example, Prediction, Reason, RetrievalState

ANSWERABLE, DISTRACTED = RetrievalState.ANSWERABLE, RetrievalState.DISTRACTED


def example(id_: str, state: RetrievalState = ANSWERABLE) -> Example:
    condition = Condition.CONFLICT if state is DISTRACTED else Condition(state.value)
    documents = (Document(id="d", text="Ada."),)
    return Example(id=id_, question_id=f"q{id_}", question="Who?", documents=documents, answers=("Ada",), state=state, condition=condition)


def said(id_: str, score: float | None, answer: str | None = "Ada", threshold: float | None = 1.0, **fields: Any) -> Prediction:
    reason = None if answer is not None else fields.pop("reason", Reason.UNANSWERABLE)
    return Prediction(id=id_, question_id=f"q{id_}", sieve_score=score, threshold=threshold, answer=answer, reason=reason, **fields)


EXAMPLES = [example("a"), example("b"), example("c", DISTRACTED), example("d")]
FULL = [said("a", 0.2, confidence=0.9), said("b", 0.6, "Bo", confidence=0.4), said("c", 0.8), said("d", 0.1, None)]


def pairs(predictions: list[Prediction], examples: list[Example] = EXAMPLES) -> list[tuple[Example, Prediction]]:
    return list(zip(examples, predictions, strict=True))


def retrieved(score: float) -> list[Example]:
    """The examples with what a retriever computed."""
    return [e.model_copy(update={"documents": (e.documents[0].model_copy(update={"score": score}),)}) for e in EXAMPLES]


def test_a_run_at_other_thresholds_by_hand() -> None:
    """0.2 right, 0.6 wrong, 0.8 on a distracted set and wrong whatever it says, 0.1 an abstention. Equal to the threshold is flagged."""
    run = run_of(pairs(FULL), "exact")
    assert (run.reach, run.scored) == (1.0, True)
    assert [reply.correct for reply in run.replies] == [True, False, False, False]
    assert at(run.replies, Point(1.0)) == [True, True, True, False]
    assert at(run.replies, Point(0.8)) == [True, True, False, False]
    assert at(run.replies, Point(0.6)) == [True, False, False, False]
    assert at(run.replies, Point(0.2)) == [False] * 4


def test_answers_of_less_confidence_or_of_none_are_held_back() -> None:
    run = run_of(pairs(FULL), "exact")
    assert at(run.replies, Point(1.0, 0.9)) == [True, False, False, False]
    assert at(run.replies, Point(1.0, 0.0)) == [True, True, False, False]


def test_a_run_tells_of_no_threshold_above_its_own() -> None:
    stored = [said("a", 0.2, threshold=0.5), *(said(i, 0.9, None, 0.5, reason=Reason.DISTRACTED) for i in "bcd")]
    run = run_of(pairs(stored), "exact")
    assert run.reach == 0.5 and at(run.replies, Point(0.5), run.reach) == [True, False, False, False]
    with pytest.raises(InputError, match=r"0\.7 is above the run's own threshold 0\.5: .*eval\.pipeline \.\.\. system\.threshold=1"):
        at(run.replies, Point(0.7), run.reach)


def test_scores_may_come_from_another_run_on_the_same_examples() -> None:
    alone = [said(p.id, None, p.answer, None) for p in FULL]
    stored = [said(p.id, p.sieve_score, None, 0.05, reason=Reason.DISTRACTED) for p in FULL]
    run = run_of(pairs(alone), "exact", pairs(stored))
    assert run.reach == 1.0 and [reply.score for reply in run.replies] == [0.2, 0.6, 0.8, 0.1]
    assert at(run.replies, Point(0.7)) == [True, True, False, False]
    for other in ([e.model_copy(update={"question": "And who?"}) for e in EXAMPLES], retrieved(0.71), EXAMPLES[:-1]):
        with pytest.raises(InputError, match="on the same examples, and they differ"):
            run_of(pairs(alone, retrieved(0.7)), "exact", list(zip(other, stored, strict=False)))
    by_another_processor = pairs(stored, retrieved(0.7 + 1e-8))
    assert run_of(pairs(alone, retrieved(0.7)), "exact", by_another_processor) == run
    with pytest.raises(InputError, match="the first run to have no Sieve"):
        run_of(pairs(FULL), "exact", pairs(stored))


@pytest.mark.parametrize(
    "went_on",
    [
        said("a", 0.9, threshold=0.5, removed=("d",)),
        said("a", 0.9, threshold=0.5),
        said("a", 0.9, None, 0.5, reason=Reason.STILL_DISTRACTED),
        said("a", 0.9, None, 0.5, reason=Reason.ALL_REMOVED),
        said("a", 0.1, threshold=0.5, recovery=("escalated",)),
    ],
)
def test_a_run_that_went_on_after_a_flag_is_refused(went_on: Prediction) -> None:
    with pytest.raises(InputError, match=r"'a' was flagged and went on .*system\.on_flag=abstain"):
        run_of([(EXAMPLES[0], went_on)], "exact")


def test_a_run_of_several_thresholds_is_refused() -> None:
    with pytest.raises(InputError, match=r"one threshold in a run, got 0\.5, 1\.0"):
        run_of(pairs([said("a", 0.2, threshold=0.5), *FULL[1:]]), "exact")


def test_one_set_of_each_question_is_drawn_by_the_seed_alone() -> None:
    replies = [Reply(f"{n}-{v}", f"q{n}", True, True, v == 0, v / 10, None) for n in range(200) for v in range(4)]
    drawn = one_each(replies, 0, "any")
    assert [reply.question_id for reply in drawn] == sorted({reply.question_id for reply in replies})
    assert one_each(replies[::-1], 0, "any") == drawn
    assert one_each([r for r in replies if r.question_id != "q7"], 0, "any") == [r for r in drawn if r.question_id != "q7"]
    assert one_each(replies, 1, "any") != drawn != one_each(replies, 0, "clean")
    assert 30 <= sum(reply.correct for reply in drawn) <= 70
