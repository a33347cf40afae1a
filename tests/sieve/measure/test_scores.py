"""Scores on disk: read again, continued, and never mixed with those of something else."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag.errors import InputError
from rag.jsonl import iter_records
from rag.records import Condition, Document, Example
from sieve.measure.scores import Scored, readable, request, require_same_inputs, score_all, to_blame
from sieve.predict import Removal

TEXTS = ("red", "blue", "green", "red blue")


def requests_of(texts: tuple[str, ...], *, blame: bool = False) -> list:
    return [
        request(f"k{i}", "q", [Document(id="d1", text=text), Document(id="d2", text="red")], blame=blame) for i, text in enumerate(texts)
    ]


def test_a_rerun_asks_for_what_is_missing_only(tmp_path: Path, stand_ins: SimpleNamespace) -> None:
    """Promise 15: also when the run was stopped between two batches."""

    class Stops(stand_ins.reads):
        def screen(self, questions, documents):
            if self.screened >= 2:
                raise KeyboardInterrupt
            return super().screen(questions, documents)

    with pytest.raises(KeyboardInterrupt):
        score_all(Stops(), requests_of(TEXTS), tmp_path / "scores.jsonl", batch_size=2, title="sets")
    assert [scored.key for scored in iter_records(tmp_path / "scores.jsonl", Scored)] == ["k0", "k1"]
    again = stand_ins.reads()
    whole = score_all(again, requests_of(TEXTS), tmp_path / "scores.jsonl", batch_size=2, title="sets")
    assert again.screened == 2
    assert whole == score_all(stand_ins.reads(), requests_of(TEXTS), tmp_path / "other.jsonl", batch_size=3, title="sets")
    assert {key: scored.score for key, scored in whole.items()} == {"k0": 0.1, "k1": 0.9, "k2": 0.1, "k3": 0.9}
    never = stand_ins.reads()
    assert score_all(never, requests_of(TEXTS), tmp_path / "scores.jsonl", batch_size=2, title="sets") == whole
    assert never.screened == 0


def test_the_document_to_blame_is_found_right_after_the_screening_of_its_set(tmp_path: Path, stand_ins: SimpleNamespace) -> None:
    found = score_all(stand_ins.reads(), requests_of(("blue",), blame=True), tmp_path / "scores.jsonl", batch_size=2, title="sets")
    assert found["k0"].blamed == ("d2",)  # without either of them nothing disagrees; ties go to the lower rank


def test_ties_between_removals_go_to_the_lower_rank_then_to_the_id() -> None:
    """Promise 4."""
    assert to_blame([Removal(("a",), 1, 0.2), Removal(("b",), 2, 0.2), Removal(("c",), 3, 0.4)]) == ("b",)
    assert to_blame([Removal(("b",), 1, 0.2), Removal(("a",), 1, 0.2)]) == ("a",)
    assert to_blame([]) == ()


def test_a_request_shows_neither_label_nor_answer_and_ranks_are_its_order() -> None:
    asked = request("k", "q", [Document.model_validate({"id": "d", "text": "t", "rank": 7, "label": "conflict", "answer": "red"})])
    assert asked.documents == (Document(id="d", text="t", rank=1),)


def test_a_score_that_is_no_number_stops_the_run(tmp_path: Path, stand_ins: SimpleNamespace) -> None:
    class Broken(stand_ins.reads):
        def screen(self, questions, documents):
            return [screening._replace(score=math.nan) for screening in super().screen(questions, documents)]

    with pytest.raises(InputError, match="score of 'k0' is not a number"):
        score_all(Broken(), requests_of(TEXTS), tmp_path / "scores.jsonl", batch_size=2, title="sets")


def test_blank_documents_are_taken_off_and_examples_without_text_counted(make_example: Callable[..., Example]) -> None:
    blank = make_example(1, Condition.ANSWERABLE, documents=(Document(id="d", text=" "),))
    half = make_example(2, Condition.ANSWERABLE, documents=(Document(id="b", text=" "), Document(id="d", text="red", rank=1)))
    examples, without = readable([blank, half])
    assert without == 1
    assert [[d.id for d in e.documents] for e in examples] == [["d"]]
    with pytest.raises(InputError, match="expected examples with documents, found none"):
        readable([blank])
    with pytest.raises(InputError, match="example id 'e2-answerable' occurs in two files"):
        readable([half, half])


def test_scores_of_other_files_are_not_mixed_in(tmp_path: Path) -> None:
    require_same_inputs(tmp_path / "new", {"a.jsonl": "1", "manifest.json": "2"})
    require_same_inputs(tmp_path / "new", {"a.jsonl": "1", "manifest.json": "2"})
    with pytest.raises(InputError, match=r"made from other content of a\.jsonl, b\.jsonl; set out to a new folder"):
        require_same_inputs(tmp_path / "new", {"b.jsonl": "1", "manifest.json": "2"})
