from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag.jsonl import describe, dump
from rag.records import Document, Example, Prediction, Query, Reason

ROW: dict[str, Any] = {
    "id": "e1",
    "question_id": "q1",
    "question": "Who?",
    "documents": [{"id": "d1", "text": "Ada.", "label": "answerable"}],
    "answers": ["Ada"],
    "state": "answerable",
    "condition": "answerable",
}


def problem(model: type[Any], row: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(row)
    return describe(caught.value, model)


@pytest.mark.parametrize("answer", ["no", "007", "12:30", "C++", "-5", "1e3", "null", " padded "])
def test_answers_stay_what_was_written(answer: str) -> None:
    example = Example.model_validate(ROW | {"answers": [answer]})
    assert example.answers == (answer,)
    assert Example.model_validate_json(dump(example)) == example


def test_a_bare_string_is_one_answer() -> None:
    assert Example.model_validate(ROW | {"answers": "NYC"}).answers == ("NYC",)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"answers": [7]}, 'answers.0: expected text, got int 7; write it in quotes, such as "7"'),
        ({"answers": ["Ada", False]}, "answers.1: expected text, got bool False; write it in quotes"),
        ({"answers": 12.5}, 'answers.0: expected text, got float 12.5; write it in quotes, such as "12.5"'),
        ({"id": 3}, 'id: expected text, got int 3; write it in quotes, such as "3"'),
        ({"id": "  "}, "id: expected text with at least one visible character, got blank text"),
        ({"question": " "}, "question: expected text with at least one visible character, got blank text"),
        ({"documents": [{"id": 1, "text": "x"}]}, 'documents.0.id: expected text, got int 1; write it in quotes, such as "1"'),
        ({"documents": [{"id": "d", "text": "x", "score": float("nan")}]}, "documents.0.score: Input should be a finite number"),
        ({"documents": [{"id": "d", "text": "x", "rank": 0}]}, "documents.0.rank: Input should be greater than or equal to 1"),
        ({"documents": [{"id": "d", "text": "x"}] * 2}, "documents: ids must be unique within an example, repeated: d"),
        ({"answers": []}, "answers: an example with state `answerable` needs at least one gold answer"),
        ({"answers": [" "]}, "answers: an example with state `answerable` needs at least one gold answer"),
        ({"state": "maybe"}, "state: Input should be 'answerable', 'unanswerable' or 'distracted'"),
        ({"awnsers": ["Ada"]}, "awnsers: unknown field; did you mean 'answers'?"),
        ({"documents": [{"id": "d", "text": "x", "meta_data": {}}]}, "documents.0.meta_data: unknown field; did you mean 'metadata'?"),
        ({"zzz": 1}, "zzz: unknown field"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change: dict[str, Any], expected: str) -> None:
    assert expected in problem(Example, ROW | change)


def test_all_problems_of_a_record_are_told_at_once() -> None:
    assert problem(Example, {"id": 1, "state": "answerable"}).count(";") >= 5


def test_an_example_without_answer_needs_no_gold() -> None:
    assert (
        Example.model_validate(ROW | {"answers": [], "state": "unanswerable", "condition": "unanswerable", "documents": []}).answers == ()
    )


def test_a_query_shows_nothing_that_a_system_must_not_see() -> None:
    query = Example.model_validate(ROW).query()
    assert query == Query(id="e1", question_id="q1", question="Who?", documents=(Document(id="d1", text="Ada."),))


def test_records_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Example.model_validate(ROW).question = "Other?"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "reason: a prediction without an answer needs a reason or an error"),
        ({"answer": "Ada", "reason": Reason.UNANSWERABLE}, "answer: a prediction has either an answer or a reason not to give one"),
        ({"answer": "Ada", "error": "blank question"}, "answer: a prediction has either an answer or a reason not to give one"),
        ({"answer": "Ada", "sieve_score": float("nan")}, "sieve_score"),
        ({"answer": "Ada", "confidence": 85}, "confidence: Input should be less than or equal to 1"),
    ],
)
def test_a_prediction_answers_or_says_why_not(fields: dict[str, Any], expected: str) -> None:
    assert expected in problem(Prediction, {"id": "e1", "question_id": "q1", **fields})


FINITE = st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.builds(
    Document,
    id=st.text(min_size=1).filter(str.strip),
    text=st.text(),
    title=st.text(),
    rank=st.none() | st.integers(1, 99),
    score=st.none() | FINITE,
    metadata=st.dictionaries(st.text(), st.text(), max_size=2),
)


@given(DOCUMENTS)
def test_documents_survive_json(document: Document) -> None:
    line = dump(document)
    assert "\n" not in line
    assert Document.model_validate_json(line) == document
