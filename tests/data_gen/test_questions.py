"""The record of a question, and how questions are dealt out to splits, each once."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from data_gen.questions import Question, Simulated, candidates, distracting, merge, named
from data_gen.sources import nq_wiki
from rag.errors import InputError
from rag.records import Document, DocumentLabel
from rag.splits import normalise_question


def question(text: str = "Who keeps the light?", answers: tuple[str, ...] = ("Ada Kol",), **fields: Any) -> Question:
    return Question(id=fields.pop("id", "q"), question=text, answers=answers, source="lights.json", **fields)


def write(path: Path, *questions: str, text: str = "Ada Kol keeps the light.") -> Path:
    rows = [{"question": q, "answers": ["Ada Kol"], "ctxs": [{"title": "Light", "text": text}]} for q in questions]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_a_question_has_an_answer_and_consistent_documents() -> None:
    with pytest.raises(ValidationError, match="answers"):
        question(answers=())
    with pytest.raises(ValidationError, match="visible character"):
        question(answers=(" ",))
    with pytest.raises(ValidationError, match="no label yet"):
        question(documents=(Document(id="d", text="x", label=DocumentLabel.NEUTRAL),))
    with pytest.raises(ValidationError, match="with a label"):
        question(simulated=(Document(id="d", text="x"),))
    with pytest.raises(ValidationError, match="repeated: d"):
        question(documents=(Document(id="d", text="x"),), simulated=(Document(id="d", text="y", label=DocumentLabel.CONFLICT),))


def test_candidates_are_ranked_and_told_apart_by_their_text() -> None:
    reasons: Counter[str] = Counter()
    found = candidates("q", [("T", "Zürich lies on a lake."), ("", " \n"), ("U", "zürich  lies on a LAKE."), ("", "東京")], reasons)
    assert [(d.title, d.text, d.rank, d.label) for d in found] == [("T", "Zürich lies on a lake.", 1, None), ("", "東京", 2, None)]
    assert reasons == {"document without text": 1, "document repeats a better ranked one": 1}
    assert candidates("q", [("", "東京")], Counter())[0].id == found[1].id


def test_a_simulated_document_that_repeats_a_candidate_is_left_out() -> None:
    reasons: Counter[str] = Counter()
    beside = candidates("q", [("", "Ada keeps it.")], reasons)
    given_texts = [Simulated(t, DocumentLabel.CONFLICT, "Bo") for t in ("Ada keeps it.", "Bo keeps it.", "", "bo keeps it.")]
    made = distracting("q", given_texts, beside, reasons)
    assert [(d.text, d.label, d.answer) for d in made] == [("Bo keeps it.", DocumentLabel.CONFLICT, "Bo")]
    assert reasons == {"simulated document repeats another document": 2, "simulated document without text": 1}


def test_two_records_of_one_question_are_merged_where_they_share_an_answer() -> None:
    reasons: Counter[str] = Counter()
    first = question(documents=candidates("q", [("", "one"), ("", "two")], reasons), gold=("p1",))
    second = question(
        "who keeps the light",
        ("A. Kol", "ada kol"),
        id="r",
        documents=candidates("r", [("", "two"), ("", "three")], reasons),
        simulated=distracting("r", [Simulated("Bo keeps it.", DocumentLabel.CONFLICT, "Bo")], (), reasons),
        gold=("p2", "p1"),
        reference="Ada Kol keeps the light.",
    )
    both = merge(first, second, reasons)
    assert (both.id, both.question, both.answers) == ("q", "Who keeps the light?", ("Ada Kol", "A. Kol"))
    assert [(d.text, d.rank) for d in both.documents] == [("one", 1), ("two", 2), ("three", 3)]
    assert [d.answer for d in both.simulated] == ["Bo"] and both.gold == ("p1", "p2") and both.reference == "Ada Kol keeps the light."
    assert {d.id.rpartition("-")[0] for d in (*both.documents, *both.simulated)} == {"q"}
    assert reasons == {"question repeats an earlier one, merged with it": 1, "document repeats a better ranked one": 1}
    assert Question.model_validate_json(both.model_dump_json()) == both


def test_a_repeated_question_with_another_answer_is_dropped() -> None:
    reasons: Counter[str] = Counter()
    first = question()
    assert merge(first, question(answers=("Bo",)), reasons) is first
    assert reasons == {"question repeats an earlier one with another answer": 1}


@given(st.text(), st.text())
def test_an_id_from_the_text_goes_by_the_normalised_question(one: str, other: str) -> None:
    alike = normalise_question(one).casefold().split() == normalise_question(other).casefold().split()
    assert (named("n", one) == named("n", other)) == alike


NAMES = tuple(f"Who keeps light {i}?" for i in range(60))


def test_shares_deal_one_file_out_without_overlap(tmp_path: Path) -> None:
    path = write(tmp_path / "lights.json", *NAMES, "who keeps light 7", "WHO keeps light 9!")
    shares = {"train": 0.6, "validation": 0.1, "test": 0.3}
    dropped: Counter[str] = Counter()
    splits = {split: nq_wiki.questions(path, split, shares, dropped=dropped) for split in shares}
    texts = [q.question for questions in splits.values() for q in questions]
    assert sorted(texts) == sorted(NAMES) and all(q.split == split for split, questions in splits.items() for q in questions)
    assert all(splits.values()) and len({q.id for questions in splits.values() for q in questions}) == 60
    assert dropped == {"question repeats an earlier one, merged with it": 2, "document repeats a better ranked one": 2}
    assert splits == {split: nq_wiki.questions(path, split, shares) for split in shares}
    assert splits["train"] != nq_wiki.questions(path, "train", shares, seed=1)


def test_a_question_in_the_files_of_two_splits_stays_in_the_test_split(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.json", *NAMES[:40]), write(tmp_path / "b.json", "WHO keeps light 3", *NAMES[30:60])
    path = {"train": first, "validation": first, "test": second}
    shares = {"train": 0.7, "validation": 0.3}
    dropped: Counter[str] = Counter()
    splits = {split: nq_wiki.questions(path, split, shares, dropped=dropped) for split in path}
    keys = [normalise_question(q.question) for questions in splits.values() for q in questions]
    assert len(keys) == len(set(keys)) == 60
    assert len(splits["test"]) == 31 and dropped == {"question is in the test split too": 11}
    swapped = {"train": second, "test": first, "validation": first}
    assert len(nq_wiki.questions(swapped, "train", {"test": 0.5, "validation": 0.5})) == 31 - 11


def test_settings_that_fit_no_question_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "lights.json", *NAMES[:3])
    with pytest.raises(InputError, match=r"split=train: .* got shares \{'test': 1\.0\}; set dataset\.questions\.shares"):
        nq_wiki.questions(path, "train")
    with pytest.raises(InputError, match=r"split=dev: expected one of train, test; .* dataset\.questions\.path\.dev"):
        nq_wiki.questions({"train": path, "test": path}, "dev")
    with pytest.raises(InputError, match=r"the splits train, test share its questions, got shares \{'train': 0, 'test': 0\}"):
        nq_wiki.questions({"train": path, "test": path}, "test")
    with pytest.raises(InputError, match="limit"):
        nq_wiki.questions(path, limit=0)
    dropped: Counter[str] = Counter()
    assert len(nq_wiki.questions(path, limit=2, dropped=dropped)) == 2 and dropped == {"question over limit": 1}
