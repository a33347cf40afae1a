"""The job that measures how documents are read, with a Sieve that says what a test tells it to."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from eval import reading
from eval.reading import ReadingJob, evaluate, figures
from rag.checkpoint import MANIFEST
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Condition, Document, Example, RetrievalState
from sieve.predict import Screening


def example(number: int, *answers: str, documents: int = 1) -> Example:
    state = RetrievalState.ANSWERABLE if answers else RetrievalState.UNANSWERABLE
    found = tuple(Document(id=f"d{n}", text=f"text {number}") for n in range(documents))
    return Example(
        id=f"e{number}",
        question_id=f"q{number}",
        question="Who?",
        documents=found,
        answers=answers,
        state=state,
        condition=Condition(state),
    )


EXAMPLES = [example(0, "Ada Lind", "Lind"), example(1, "the red car"), example(2), example(3)]


class Reads:
    """Says the next of its answers."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = list(answers)

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        return [Screening(0.1, (), 3, {of[0].id: self.answers.pop(0)}) for of in documents]


def test_figures_by_hand() -> None:
    found = figures(EXAMPLES, ["Lind", "red bus", "", "Oslo"])
    # `red bus` and `red car` share one word of two.
    assert found["F1"].value == pytest.approx((1 + 0.5 + 1 + 0) / 4)
    assert found["exact match"].value == pytest.approx((1 + 0 + 1 + 0) / 4)
    assert found["F1 with an answer"].value == pytest.approx(0.75)
    assert found["silent without"].value == pytest.approx(0.5)


def test_one_kind_alone_has_no_figure_of_the_other() -> None:
    assert "silent without" not in figures(EXAMPLES[:2], ["Lind", ""])
    assert figures(EXAMPLES[:2], ["Lind", ""])["F1"].value == pytest.approx(0.5)


@pytest.fixture
def settings(tmp_path: Path) -> ReadingJob:
    write_records(tmp_path / "data.jsonl", EXAMPLES)
    (tmp_path / MANIFEST).write_text("{}")
    return ReadingJob(checkpoint=tmp_path, data=tmp_path / "data.jsonl", batch_size=3, resamples=50, out=None, seed=0)


def test_a_run_that_stopped_goes_on(settings: ReadingJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(reading.predict, "load", lambda *_, **__: Reads(["Lind", "red bus", ""]))
    with pytest.raises(IndexError):
        evaluate(settings, out)
    monkeypatch.setattr(reading.predict, "load", lambda *_, **__: Reads(["Oslo"]))
    report = evaluate(settings, out)
    assert {figure.name: figure.value for figure in report.figures}["F1"] == pytest.approx(0.625)
    monkeypatch.setattr(reading.predict, "load", lambda *_, **__: pytest.fail("nothing is left to read"))
    assert evaluate(settings, out).figures == report.figures


def test_sets_of_several_documents_are_refused(settings: ReadingJob, tmp_path: Path) -> None:
    write_records(tmp_path / "data.jsonl", [*EXAMPLES, example(9, "x", documents=2)])
    with pytest.raises(InputError, match="expected examples of one document each, got another number in 'e9'"):
        evaluate(settings, tmp_path)
