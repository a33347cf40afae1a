"""The base that never abstains: whatever it says is an answer, but nothing is asked where there is nothing to read."""

import pytest

from rag.errors import InputError
from rag.records import Reason, RetrievalState
from serve.systems.never_abstain import Forced
from serve.systems.sage_only import SageOnly

GOLD = "The capital of Peru is Lima."


@pytest.mark.parametrize("output", ["Lima", "unanswerable", " Conflict. ", "I don't know", '"."'])
def test_every_output_that_is_not_blank_is_an_answer(output, make_sage, query) -> None:
    [prediction] = SageOnly(Forced(make_sage(output, conflict="conflict"))).predict([query(GOLD)])
    assert (prediction.answer, prediction.state, prediction.reason) == (output.strip(), RetrievalState.ANSWERABLE, None)


def test_so_is_one_that_was_cut_at_the_token_limit(make_sage, query) -> None:
    sage = make_sage("Lima, which lies")
    whole = sage.answer
    sage.answer = lambda questions, documents: [reply._replace(finished=False) for reply in whole(questions, documents)]
    assert SageOnly(Forced(sage)).predict([query(GOLD)])[0].answer == "Lima, which lies"


def test_blank_output_is_unparsed_and_an_empty_set_reaches_no_model(make_sage, query) -> None:
    """Promise 2 and pitfall E1."""
    sage = make_sage(" \n")
    assert SageOnly(Forced(sage)).predict([query(GOLD)])[0].reason is Reason.UNPARSED
    silent = make_sage()
    assert SageOnly(Forced(silent)).predict([query(), query(" \n")])[1].reason is Reason.NO_DOCUMENTS
    assert silent.asked == []


def test_a_crash_and_an_item_that_cannot_be_asked_stay_what_they_are(make_sage, query) -> None:
    """Promise 1 and pitfall I4."""

    def say(question, _):
        if question == "poison":
            raise RuntimeError
        if question == "long":
            raise InputError("over budget")
        return "Lima"

    made = SageOnly(Forced(make_sage(say))).predict([query(GOLD, question=q, id=q) for q in ("What?", "poison", "long", "Who?")])
    assert [(p.answer, p.reason, p.error) for p in made] == [
        ("Lima", None, None), (None, Reason.SAGE_FAILED, None), (None, None, "over budget"), ("Lima", None, None),
    ]  # fmt: skip
