"""Examples from a small file in RobustRAG's format."""

import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_gen.sources import robustrag
from rag.errors import InputError
from rag.records import Condition, DocumentLabel, Example, RetrievalState

Write = Callable[..., Path]


def record(**changes: Any) -> dict[str, Any]:
    """A question with one snippet that holds the answer and two that do not."""
    return {
        "id": 0,
        "question": "Which city hosts the games?",
        "correct answer": ["Lima"],
        "incorrect answer": "Quito",
        "incorrect_context": ["The games go to Quito this year.", "Quito will host the games."],
        "context": [snippet("The games open in Lima on Monday."), snippet("Tickets sold fast."), snippet("The limit is two.")],
        **changes,
    }


def snippet(text: str, title: str = "") -> dict[str, str]:
    return {"title": title, "text": text, "link": "https://example.org"}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(*records: Any) -> Path:
        path = tmp_path / "games.json"
        path.write_text(json.dumps(list(records)), encoding="utf-8")
        return path

    return to_file


def by_condition(examples: list[Example]) -> dict[Condition, Example]:
    return {example.condition: example for example in examples}


def test_a_set_with_the_answer_gives_an_answerable_and_a_conflict_example(write: Write) -> None:
    examples = by_condition(robustrag.load(write(record())))
    assert set(examples) == {Condition.ANSWERABLE, Condition.CONFLICT}
    answerable, conflict = examples[Condition.ANSWERABLE], examples[Condition.CONFLICT]
    assert answerable.id == "games-0-answerable"
    assert answerable.question_id == conflict.question_id == "games-0"
    assert answerable.answers == conflict.answers == ("Lima",)
    assert [d.label for d in answerable.documents] == [DocumentLabel.ANSWERABLE, DocumentLabel.UNANSWERABLE, DocumentLabel.UNANSWERABLE]
    assert conflict.state is RetrievalState.DISTRACTED
    assert Counter(d.label for d in conflict.documents) == {
        DocumentLabel.ANSWERABLE: 1,
        DocumentLabel.UNANSWERABLE: 1,
        DocumentLabel.CONFLICT: 1,
    }
    assert [d.rank for d in conflict.documents] == [1, 2, 3]


def test_what_each_document_says_is_known_in_its_own_spelling(write: Write) -> None:
    context = [snippet("All games open in LIMA on Monday."), snippet("Tickets sold fast."), snippet("The limit is two.")]
    conflict = by_condition(robustrag.load(write(record(context=context))))[Condition.CONFLICT]
    says = {d.label: d.answer for d in conflict.documents}
    assert says == {DocumentLabel.ANSWERABLE: "LIMA", DocumentLabel.UNANSWERABLE: None, DocumentLabel.CONFLICT: "Quito"}


@pytest.mark.parametrize("neutral", [1, 2, 3])
def test_neutral_documents_come_last_from_other_questions_and_name_no_answer(write: Write, neutral: int) -> None:
    path = write(
        record(),
        record(
            id=1,
            question="Who hosts the winter games?",
            context=[snippet("The winter games go to Lima."), snippet("Winter games cost much.")],
        ),
        record(
            id=2, question="Which games are old?", context=[snippet("Old games come from Quito."), snippet("The oldest games are lost.")]
        ),
        record(id=3, question="Who plays games?", context=[snippet("Which city has games?"), snippet("All play games.")]),
    )
    with_neutral = [example for example in robustrag.load(path, neutral=neutral) if example.question_id == "games-0"]
    plain = [example for example in robustrag.load(path) if example.question_id == "games-0"]
    assert len(with_neutral) == 2
    for example, without in zip(with_neutral, plain, strict=True):
        assert example.documents[:3] == without.documents
        added = example.documents[3:]
        assert [(d.rank, d.label, d.answer) for d in added] == [(4 + i, DocumentLabel.NEUTRAL, None) for i in range(neutral)]
        assert {d.text for d in added} <= {
            "Winter games cost much.",
            "The oldest games are lost.",
            "Which city has games?",
            "All play games.",
        }


def test_a_question_without_neighbours_gets_no_neutral_document_and_is_counted(write: Write) -> None:
    dropped: Counter[str] = Counter()
    (first, _) = robustrag.load(write(record()), neutral=2, dropped=dropped)
    assert len(first.documents) == 3
    assert dropped == {"set without a neutral document to append": 2}


@pytest.mark.parametrize("k", [2, 3, 5, 7, 10])
def test_any_number_of_snippets_makes_a_set_with_the_conflict_at_any_place(write: Write, k: int) -> None:
    context = [snippet("The games open in Lima on Monday."), *(snippet(f"Tickets of kind {n} sold fast.") for n in range(9))]
    path = write(*(record(id=i, question=f"Which city hosts game {i}?", context=context) for i in range(80)))
    conflicts = [example for example in robustrag.load(path, k=k) if example.condition is Condition.CONFLICT]
    places = Counter(next(i for i, d in enumerate(e.documents) if d.label is DocumentLabel.CONFLICT) for e in conflicts)
    assert {len(example.documents) for example in conflicts} == {k}
    assert set(places) == set(range(k))
    assert [e.documents for e in conflicts] == [e.documents for e in robustrag.load(path, k=k) if e.condition is Condition.CONFLICT]


def test_the_answer_must_stand_as_a_whole_word(write: Write) -> None:
    (example,) = robustrag.load(write(record(context=[snippet("The limit is two."), snippet("Limassol waits.")])))
    assert example.condition is Condition.UNANSWERABLE
    assert example.state is RetrievalState.UNANSWERABLE


def test_a_document_keeps_its_id_in_all_sets_of_its_question(write: Write) -> None:
    examples = by_condition(robustrag.load(write(record())))
    texts = {d.id: d.text for example in examples.values() for d in example.documents}
    assert len(texts) == 4
    kept = [d for d in examples[Condition.CONFLICT].documents if d.label is not DocumentLabel.CONFLICT]
    assert all(d.text == texts[d.id] for d in kept)


def test_the_only_gold_document_is_never_replaced_and_the_conflict_stands_anywhere(write: Write) -> None:
    path = write(*(record(id=i, question=f"Which city hosts game {i}?") for i in range(60)))
    conflicts = [example for example in robustrag.load(path) if example.condition is Condition.CONFLICT]
    assert all(any(d.label is DocumentLabel.ANSWERABLE for d in example.documents) for example in conflicts)
    places = Counter(next(i for i, d in enumerate(example.documents) if d.label is DocumentLabel.CONFLICT) for example in conflicts)
    assert set(places) == {0, 1, 2}
    assert min(places.values()) >= 10
    assert [e.documents for e in conflicts] == [e.documents for e in robustrag.load(path) if e.condition is Condition.CONFLICT]


def test_one_of_two_gold_documents_may_be_replaced(write: Write) -> None:
    context = [snippet("The games open in Lima."), snippet("Lima expects guests.")]
    conflict = by_condition(robustrag.load(write(record(context=context))))[Condition.CONFLICT]
    assert Counter(d.label for d in conflict.documents) == {DocumentLabel.ANSWERABLE: 1, DocumentLabel.CONFLICT: 1}


def test_blank_and_repeated_snippets_make_room_for_the_next_and_are_counted(write: Write) -> None:
    dropped: Counter[str] = Counter()
    context = [
        snippet("  "),
        snippet("Tickets sold fast."),
        snippet("tickets  sold fast."),
        {"title": "no text"},
        snippet("Lima is ready."),
    ]
    examples = by_condition(robustrag.load(write(record(context=context)), k=2, dropped=dropped))
    assert [d.text for d in examples[Condition.ANSWERABLE].documents] == ["Tickets sold fast.", "Lima is ready."]
    assert dropped == {"snippet without text": 2, "snippet repeats a better ranked one": 1}


def test_the_top_k_are_taken_and_no_more(write: Write) -> None:
    context = [snippet("Tickets sold fast."), snippet("The gates open."), snippet("Lima is ready.")]
    assert by_condition(robustrag.load(write(record(context=context)), k=2)).keys() == {Condition.UNANSWERABLE}


@pytest.mark.parametrize(
    ("changes", "conditions", "reasons"),
    [
        (
            {"incorrect_context": ["Lima, not Quito.", " ", "Elsewhere."]},
            {Condition.ANSWERABLE},
            {
                "text for the wrong answer contains a gold answer": 1,
                "text for the wrong answer is blank": 1,
                "text for the wrong answer does not contain it": 1,
                "conflict set without a usable text for the wrong answer": 1,
            },
        ),
        (
            {"context": [snippet("Lima is ready."), snippet("Quito is ready.")]},
            set(),
            {"answerable question with a snippet that names only the wrong answer": 1},
        ),
        (
            {"context": [snippet("Lima, and not Quito, is ready."), snippet("Tickets sold fast.")]},
            {Condition.ANSWERABLE, Condition.CONFLICT},
            {},
        ),
        ({"context": [snippet("Lima is ready.")]}, {Condition.ANSWERABLE}, {"conflict set without a document to replace": 1}),
        ({"context": [snippet("")]}, set(), {"snippet without text": 1, "question without a usable snippet": 1}),
    ],
)
def test_what_cannot_be_used_is_left_out_and_counted(
    write: Write, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], conditions: set[Condition], reasons: dict[str, int]
) -> None:
    dropped: Counter[str] = Counter()
    with caplog.at_level(logging.INFO):
        assert by_condition(robustrag.load(write(record(**changes)), dropped=dropped)).keys() == conditions
    assert dropped == reasons
    assert all(f"left out {count}: {reason}" in caplog.text for reason, count in reasons.items())


def test_aliases_and_titles_belong_to_the_rule_only_when_asked_for(write: Write) -> None:
    path = write(
        record(
            **{"expanded answer": ["Ciudad de los Reyes"], "context": [snippet("Hosts: Ciudad de los Reyes.", "Lima"), snippet("Soon.")]}
        )
    )
    assert robustrag.load(path, aliases=False)[0].condition is Condition.UNANSWERABLE
    assert robustrag.load(path, aliases=False)[0].documents[0].title == ""
    assert robustrag.load(path)[0].answers == ("Lima", "Ciudad de los Reyes")
    with_titles = robustrag.load(path, aliases=False, titles=True)[0]
    assert (with_titles.condition, with_titles.documents[0].title) == (Condition.ANSWERABLE, "Lima")


def test_ids_become_text_and_a_bare_answer_is_one_answer(write: Write) -> None:
    """Pitfall F2: a bare string is not read letter by letter."""
    example = robustrag.load(write(record(**{"id": "007", "correct answer": "Lima"})))[0]
    assert (example.question_id, example.answers) == ("games-007", ("Lima",))


def test_questions_are_dealt_out_to_splits_by_their_text(write: Write) -> None:
    """Pitfall G5: two spellings of a question stay together."""
    path = write(
        *(record(id=i, question=f"Which city hosts game {i}?") for i in range(40)),
        *(record(id=100 + i, question=f"which city hosts GAME {i}") for i in range(40)),
    )
    shares = {"train": 0.5, "validation": 0.5}
    train, validation = ({e.question_id for e in robustrag.load(path, split=split, shares=shares)} for split in ("train", "validation"))
    assert len(train) + len(validation) == 80
    assert min(len(train), len(validation)) >= 20
    assert all((f"games-{i}" in train) == (f"games-{100 + i}" in train) for i in range(40))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"correct answer": []}, r"games.json: record 1: correct answer: .*at least 1 item"),
        ({"correct answer": [5]}, r"record 1: correct answer.0: expected text, got int 5"),
        ({"id": True}, r"record 1: id: expected text, got bool True"),
        ({"question": " "}, r"record 1: question: .*blank text"),
        ({"context": [{"text": 5}]}, r"record 1: context.0.text: expected text, got int 5"),
        ({"context": "text"}, r"record 1: context: "),
        ({"incorrect answer": None}, r"record 1: incorrect answer: "),
        ({"id": 0}, r"record 1: id: '0' was already used by record 0"),
    ],
)
def test_a_malformed_record_is_named_with_its_field(write: Write, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        robustrag.load(write(record(), record(**{"id": 1, **changes})))


def test_a_missing_field_is_named(write: Write) -> None:
    incomplete = record()
    del incomplete["incorrect_context"]
    with pytest.raises(InputError, match=r"record 0: incorrect_context: Field required"):
        robustrag.load(write(incomplete))


def test_a_file_that_holds_no_records_is_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a JSON list of RobustRAG records, got an empty list"):
        robustrag.load(write())
    (tmp_path / "object.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="got dict"):
        robustrag.load(tmp_path / "object.json")
    with pytest.raises(InputError, match="nothing at that path"):
        robustrag.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 1}, "k: expected"),
        ({"limit": 0}, "limit: expected"),
        ({"neutral": -1}, "neutral: expected"),
        ({"split": "train"}, "split=train: .*set dataset.shares"),
    ],
)
def test_an_argument_out_of_range_is_refused_by_name(write: Write, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        robustrag.load(write(record()), **arguments)
