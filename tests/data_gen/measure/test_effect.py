"""What simulated documents do to the answers of a model."""

from collections.abc import Mapping
from typing import Any

import pytest

from data_gen.measure.effect import Effect, Row, affect, sets
from data_gen.pipeline.cases import Case
from rag.prompts import QA_PROMPTS
from rag.records import Condition, DocumentLabel, Example

ANSWERABLE, UNANSWERABLE, NEUTRAL = DocumentLabel.ANSWERABLE, DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL


@pytest.fixture
def cases(make_case: Any) -> list[Case]:
    """Four questions, each with one more unanswerable candidate than its set has documents."""
    labels = [("gold", ANSWERABLE), ("aside", None), ("plain", UNANSWERABLE), ("half", NEUTRAL), ("spare", UNANSWERABLE)]
    return [make_case(f"q{n}", [(f"{text} {n}", label) for text, label in labels]) for n in range(4)]


@pytest.fixture
def examples(cases: list[Case], make_example: Any) -> dict[str, dict[Condition, Example]]:
    """Answerable sets of all, conflicting ones of the first three."""
    built: dict[str, dict[Condition, Example]] = {}
    for n, case in enumerate(cases):
        documents = [(f"plain {n}", UNANSWERABLE), (f"gold {n}", ANSWERABLE), (f"half {n}", NEUTRAL)]
        built[case.question.id] = {Condition.ANSWERABLE: make_example(case, Condition.ANSWERABLE, documents)}
        if n < 3:
            distracted = [(f"false {n}", DocumentLabel.CONFLICT), *documents[1:]]
            built[case.question.id][Condition.CONFLICT] = make_example(case, Condition.CONFLICT, distracted)
    return built


def row(effect: Effect, condition: Condition) -> Row:
    return next(row for row in effect.rows if row.condition is condition)


def test_the_unanswerable_set_has_other_candidates_where_the_answer_was(
    cases: list[Case], examples: dict[str, dict[Condition, Example]]
) -> None:
    """One spare candidate takes the place of the gold document; nothing is left for that of the neutral one."""
    made = sets(cases[0], examples["q0"])
    assert {condition: [document.text for document in documents] for condition, documents in made.items()} == {
        Condition.ANSWERABLE: ["plain 0", "gold 0", "half 0"],
        Condition.CONFLICT: ["false 0", "gold 0", "half 0"],
        Condition.UNANSWERABLE: ["plain 0", "spare 0"],
    }
    assert [document.rank for document in made[Condition.UNANSWERABLE]] == [1, 2]


def test_a_set_without_anything_unanswerable_has_no_such_condition(make_case: Any, make_example: Any) -> None:
    case = make_case("q", [("gold", ANSWERABLE)])
    base = make_example(case, Condition.ANSWERABLE, [("gold", ANSWERABLE)])
    assert list(sets(case, {Condition.ANSWERABLE: base})) == [Condition.ANSWERABLE]
    unanswerable = make_example(case, Condition.UNANSWERABLE, [("x", UNANSWERABLE)])
    assert sets(case, {Condition.UNANSWERABLE: unanswerable}) == {}
    assert sets(case, {}) == {}


def answer_of(replies: Mapping[tuple[str, str], str | None]) -> Any:
    """Replies by question and condition, which the prompt tells by its documents."""

    def reply(prompt: str) -> str | None:
        condition = "conflict" if "false" in prompt else "answerable" if "gold" in prompt else "unanswerable"
        number = prompt.rpartition("Who built q")[2][0]
        return replies.get((number, condition), "Ada")

    return reply


def test_differences_are_paired_on_the_same_questions(
    cases: list[Case], examples: dict[str, dict[Condition, Example]], scripted: Any
) -> None:
    """Answerable: right, right, wrong, right. Conflict on the first three: wrong, wordy, wrong. Exact -2/3 on 3 questions, contained -1/3."""
    replies = {
        ("2", "answerable"): "Bo",
        ("0", "conflict"): "Bo",
        ("1", "conflict"): "It was Ada who did.",
        ("2", "conflict"): "Bo",
        ("0", "unanswerable"): "nobody",
        ("1", "unanswerable"): "nobody",
        ("2", "unanswerable"): "the Ada.",
        ("3", "unanswerable"): "nobody",
    }
    effect = affect(cases, examples, scripted(answer_of(replies)), budget=10_000, resamples=400, seed=0)
    base, conflict, unanswerable = (row(effect, c) for c in (Condition.ANSWERABLE, Condition.CONFLICT, Condition.UNANSWERABLE))
    assert (base.questions, base.exact.value, base.contains.value) == (4, 0.75, 0.75)
    assert (base.exact_difference.low, base.exact_difference.value, base.exact_difference.high) == (0, 0, 0)
    assert (conflict.questions, conflict.exact.value) == (3, 0.0)
    assert conflict.contains.value == pytest.approx(1 / 3)
    assert conflict.exact_difference.value == pytest.approx(-2 / 3), "the fourth question, right without a conflict, is not in it"
    assert (conflict.exact_difference.low, conflict.exact_difference.high) == (-1.0, 0.0)
    assert conflict.contains_difference.value == pytest.approx(-1 / 3)
    assert (unanswerable.questions, unanswerable.exact.value, unanswerable.exact_difference.value) == (4, 0.25, -0.5)
    assert row(effect, Condition.NEGATED).questions == 0
    assert row(effect, Condition.NEGATED).exact.value is None


def test_a_failed_request_takes_its_question_out_of_the_pairs(
    cases: list[Case], examples: dict[str, dict[Condition, Example]], scripted: Any
) -> None:
    replies = {("0", "answerable"): None, ("1", "conflict"): None}
    effect = affect(cases, examples, scripted(answer_of(replies)), budget=10_000, resamples=5, seed=0)
    counts = {str(r.condition): (r.questions, r.failed) for r in effect.rows}
    assert counts == {"answerable": (3, 1), "unanswerable": (3, 1), "conflict": (1, 2), "negated": (0, 0), "adversarial": (0, 0)}


def test_the_prompt_is_that_of_table_14_and_shows_no_label(
    cases: list[Case], examples: dict[str, dict[Condition, Example]], scripted: Any
) -> None:
    model = scripted(str)
    affect(cases[:1], examples, model, budget=10_000, resamples=5, seed=0)
    assert len(model.prompts) == 3
    for prompt in model.prompts:
        assert prompt.startswith(QA_PROMPTS["normal"])
        assert prompt.endswith("Question: Who built q0?")
        assert not any(label in prompt for label in DocumentLabel)
    assert model.prompts[0].index("half 0") < model.prompts[0].index("plain 0"), "the best document stands next to the question"


def test_documents_that_do_not_fit_are_counted(cases: list[Case], examples: dict[str, dict[Condition, Example]], scripted: Any) -> None:
    instruction = len(QA_PROMPTS["normal"])
    model = scripted(str)
    effect = affect(cases[:1], examples, model, budget=instruction + 70, resamples=5, seed=0)
    assert effect.cut == 3
    assert all(len(prompt) <= instruction + 70 for prompt in model.prompts)
    assert affect(cases[:1], examples, scripted(str), budget=10_000, resamples=5, seed=0).cut == 0
