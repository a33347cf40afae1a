"""One Sage without a Sieve: it tells the state in its own words, and keeps the promises of the two-stage system."""

import random
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.records import Citation, Document, Prediction, Query, Reason, RetrievalState
from serve.systems.sage_only import SageOnly
from serve.systems.sieve_and_sage import SieveAndSage
from serve.systems.stage import load_sage

GOLD = "The capital of Peru is Lima."
OTHER = "The capital of Peru is Cusco."


def one(system: SageOnly, query: Query) -> Prediction:
    [prediction] = system.predict([query])
    return prediction


@pytest.mark.parametrize(
    ("output", "answer", "reason", "state"),
    [
        ("Lima", "Lima", None, RetrievalState.ANSWERABLE),
        ("Unanswerable.", None, Reason.UNANSWERABLE, RetrievalState.UNANSWERABLE),
        ("“Conflict”", None, Reason.DISTRACTED, RetrievalState.DISTRACTED),
        ("the Suez conflict", "the Suez conflict", None, RetrievalState.ANSWERABLE),
        ("", None, Reason.UNPARSED, None),
    ],
)
def test_the_state_is_what_the_sage_says(output, answer, reason, state, make_sage, query) -> None:
    """Pitfall E5: a string is a reply of its own only when it stands alone."""
    prediction = one(SageOnly(make_sage(output, conflict="conflict")), query(GOLD, OTHER))
    assert (prediction.answer, prediction.reason, prediction.state) == (answer, reason, state)
    assert (prediction.sieve_score, prediction.threshold, prediction.output) == (None, None, output)


def test_a_two_way_sage_that_says_conflict_has_answered(make_sage, query) -> None:
    prediction = one(SageOnly(make_sage("conflict")), query(GOLD, OTHER))
    assert (prediction.answer, prediction.state) == ("conflict", RetrievalState.ANSWERABLE)


def test_an_answer_comes_with_citation_prompt_tokens_and_timings(make_sage, query) -> None:
    prediction = one(SageOnly(make_sage()), query(GOLD, "Llamas live in the Andes."))
    assert prediction.citations == (Citation(document_id="d1", supported=True),)
    assert prediction.prompt is not None and GOLD in prediction.prompt
    assert prediction.tokens == {"prompt": len(prediction.prompt.split()), "completion": 2}
    assert set(prediction.timings) == {"sage", "total"}


@pytest.mark.parametrize("texts", [(), ("   \n",), ("", "\t")])
def test_a_set_without_text_never_reaches_the_model(texts, make_sage, query) -> None:
    """Promise 2 and pitfall E1."""
    sage = make_sage()
    prediction = one(SageOnly(sage), query(*texts))
    assert (prediction.reason, prediction.state, prediction.answer) == (Reason.NO_DOCUMENTS, RetrievalState.UNANSWERABLE, None)
    assert sage.asked == []


def test_a_batch_is_one_call_and_one_poisoned_item_fails_alone(make_sage, query) -> None:
    """Pitfall I4."""

    def say(question: str, _: Sequence[Document]) -> str:
        if question == "poison":
            raise RuntimeError("the model fell over")
        if question == "long":
            raise InputError("over budget")
        return "Lima"

    sage = make_sage(say)
    SageOnly(sage).predict([query(GOLD, id="a"), query(GOLD, id="b")])
    assert len(sage.asked) == 1
    questions = ("What?", "poison", " ", "long", "What?")
    predictions = SageOnly(sage).predict([query(GOLD, id=f"e{n}", question=q) for n, q in enumerate(questions)])
    assert [p.answer for p in predictions] == ["Lima", None, None, None, "Lima"]
    assert [p.reason for p in predictions] == [None, Reason.SAGE_FAILED, None, None, None]
    assert "question: expected text" in str(predictions[2].error)
    assert predictions[3].error == "over budget"


def test_a_sage_out_of_time_abstains(make_sage, query) -> None:
    """Promise 1."""
    release = threading.Event()
    prediction = one(SageOnly(make_sage(lambda *_: str(release.wait(10))), sage_deadline=0.1), query(GOLD))
    release.set()
    assert (prediction.reason, prediction.answer) == (Reason.SAGE_TIMEOUT, None)


def test_ask_takes_texts(make_sage) -> None:
    system = SageOnly(make_sage())
    assert system.ask("What is the capital of Peru?", ["Llamas.", GOLD]).citations == (Citation(document_id="d2", supported=True),)
    with pytest.raises(InputError, match="got one text"):
        system.ask("What?", GOLD)


def test_a_deadline_that_lets_nothing_pass_is_refused(make_sage) -> None:
    with pytest.raises(InputError, match="sage_deadline: expected a number of seconds above 0, got 0"):
        SageOnly(make_sage(), sage_deadline=0)


def test_a_sage_that_finds_a_conflict_in_a_set_that_passed_the_sieve_is_heard(make_sieve, make_sage, query) -> None:
    prediction = SieveAndSage(make_sieve(0.1), make_sage("conflict", conflict="conflict")).predict([query(GOLD, OTHER)])[0]
    assert (prediction.reason, prediction.state, prediction.sieve_score) == (Reason.DISTRACTED, RetrievalState.DISTRACTED, 0.1)


def test_neither_checkpoint_nor_base_is_an_error_that_names_both_keys() -> None:
    with pytest.raises(InputError, match="sage: expected a checkpoint folder, got none, and no sage_settings"):
        load_sage(None, None, "cpu")


@given(
    outputs=st.lists(st.sampled_from(["Lima", "Lima [d1]", "unanswerable", "conflict", "", "crash", "input"]), max_size=5),
    empty=st.integers(0, 4),
    seed=st.integers(0, 100),
)
def test_everything_that_is_no_answer_has_a_reason(outputs, empty, seed, make_sage, query) -> None:
    """Promises 1 and 2 over a Sage that says or does anything."""

    def say(question: str, _: Sequence[Document]) -> str:
        output = outputs[int(question)]
        if output == "crash":
            raise RuntimeError
        if output == "input":
            raise InputError("cannot be used")
        return output

    order = random.Random(f"{seed}:order").sample(range(len(outputs)), len(outputs))
    queries = [query(*(() if n == empty else (GOLD,)), id=f"e{n}", question=str(n)) for n in order]
    predictions = SageOnly(make_sage(say, conflict="conflict")).predict(queries)
    assert [p.id for p in predictions] == [q.id for q in queries]
    for n, made in zip(order, predictions, strict=True):
        if n == empty:
            assert made.reason is Reason.NO_DOCUMENTS
        elif outputs[n].startswith("Lima"):
            assert (made.answer, made.state) == ("Lima", RetrievalState.ANSWERABLE)
        else:
            assert made.answer is None
            assert (made.reason is None) != (made.error is None)
