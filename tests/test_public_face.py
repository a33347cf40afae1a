"""What a user of the library imports, and that it is what the README and the docstring say."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import rag.records
import serve.systems.sieve_and_sage
import sieve.predict
import sieve_and_sage
from sieve_and_sage import Document, InputError, Prediction, Query, Reason, RetrievalState, SieveAndSage, load, load_sieve


def test_every_name_is_there_and_is_the_project_s_own() -> None:
    assert sieve_and_sage.__all__ == sorted(sieve_and_sage.__all__, key=lambda name: (name.islower(), name))
    assert all(getattr(sieve_and_sage, name).__module__.split(".")[0] in ("rag", "serve", "sieve") for name in sieve_and_sage.__all__)
    assert sieve_and_sage.Prediction is rag.records.Prediction
    assert sieve_and_sage.load is serve.systems.sieve_and_sage.load
    assert sieve_and_sage.load_sieve is sieve.predict.load


def test_every_name_says_what_it_is() -> None:
    assert [name for name in sieve_and_sage.__all__ if not inspect.getdoc(getattr(sieve_and_sage, name))] == []


def test_the_docstring_s_call_is_one_that_load_takes() -> None:
    call = 'load(sieve="checkpoints/local/sieve", sage="checkpoints/local/sage", on_flag="filter")'
    assert call in (sieve_and_sage.__doc__ or "")
    inspect.signature(load).bind(sieve="checkpoints/local/sieve", sage="checkpoints/local/sage", on_flag="filter")
    inspect.signature(SieveAndSage.ask).bind(None, "Who is the mayor of Port Velmere?", ["first text", "second text"])


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_folder_without_a_checkpoint_says_how_to_get_one(as_path: type, tmp_path: Path) -> None:
    nowhere = as_path(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"nowhere: expected a sieve checkpoint .* train one with `python -m sieve\.train`"):
        load(sieve=nowhere, sage=nowhere)
    with pytest.raises(InputError, match="expected a sieve checkpoint"):
        load_sieve(nowhere)


def test_a_prediction_reads_back_from_its_json() -> None:
    prediction = Prediction(id="ask", question_id="ask", state=RetrievalState.DISTRACTED, reason=Reason.DISTRACTED, sieve_score=0.9)
    assert Prediction.model_validate_json(prediction.model_dump_json()) == prediction


def test_a_query_is_made_of_documents() -> None:
    query = Query(id="q", question_id="q", question="Who?", documents=(Document(id="d1", text="Ada."),))
    assert query.documents[0].label is None


@pytest.mark.parametrize(("question", "documents"), [("Who?", [None]), ("Who?", [3]), (None, ["text"]), ("Who?", ["\ud800 half"])])
def test_asking_with_what_is_not_text_is_a_clear_error(question: Any, documents: Any) -> None:
    """No pydantic error reaches a user of the library, and text that cannot be encoded is refused before any model sees it."""
    system = SieveAndSage(Untouched(), Untouched(), threshold=0.5)
    with pytest.raises(InputError, match="expected a question and documents as text"):
        system.ask(question, documents)


class Untouched:
    """A stage that nothing reaches."""

    threshold = 0.5

    def screen(self, *_: Any) -> Any:
        raise AssertionError("reached the Sieve")

    leave_one_out = answer = screen
