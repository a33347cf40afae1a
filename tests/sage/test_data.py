"""Which examples train the Sage, what their rows look like, and what is left out."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rag.errors import InputError
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState
from sage.data import Row, fit, make_row, prepare, select, teaches_truth
from sage.inputs import InputSettings, build
from sage.model import Backbone, ModelSettings, load_backbone
from sage.settings import SageSettings, TrainSettings


def sized(prompt: int, answer: int) -> Row:
    return Row(input_ids=list(range(prompt + answer)), completion_mask=[0] * prompt + [1] * answer)


def test_rows_whose_answer_would_be_cut_stop_the_run() -> None:
    """Pitfall B1: prompts of 900, 1,020 and 1,300 tokens, answers of 6, limit 1,024."""
    rows = [sized(900, 6), sized(1020, 6), sized(1300, 6)]
    with pytest.raises(
        InputError, match="max_length=1024 does not hold every answer: 1 cut, 1 lost of 3 rows.*sage.inputs.max_prompt_tokens"
    ):
        fit(rows, 1024, allow_cut_answers=False)
    kept = fit(rows, 1024, allow_cut_answers=True)
    assert (kept.rows, kept.cut, kept.lost) == (rows[:1], 1, 1)


@pytest.mark.parametrize(("max_length", "cut", "lost"), [(906, 0, 0), (905, 1, 0), (901, 1, 0), (900, 0, 1)])
def test_the_boundary_between_whole_cut_and_lost(max_length: int, cut: int, lost: int) -> None:
    """Pitfall B1: a row that keeps only some of its answer is no better than one that keeps none."""
    found = fit([sized(900, 6)], max_length, allow_cut_answers=True)
    assert (found.cut, found.lost) == (cut, lost)


@pytest.mark.parametrize("answer", ["Lima", None])
def test_a_row_is_the_served_ids_then_the_answer_then_the_end_of_turn(
    backbone: Backbone, inputs: InputSettings, make_example: Callable[..., Example], answer: str | None
) -> None:
    """Promise 6 and pitfalls B2, B4: ids served equal the masked prefix, and the last token learnt ends the turn."""
    example = make_example(1, answer=answer)
    row = make_row(example, backbone.tokenizer, inputs, backbone.ends[0])
    masked = row["completion_mask"].index(1)
    assert row["input_ids"][:masked] == build(example.question, example.documents, backbone.tokenizer, inputs).ids
    assert row["completion_mask"] == [0] * masked + [1] * (len(row["input_ids"]) - masked)
    taught = row["input_ids"][masked:]
    assert taught[-1] == backbone.ends[0]
    assert backbone.tokenizer.decode(taught[:-1]) == (answer or "unanswerable")
    assert len(taught) >= 2
    assert row["input_ids"].count(backbone.tokenizer.bos_token_id) == (1 if backbone.tokenizer.bos_token_id else 0)


def test_a_blank_line_more_in_the_template_does_not_widen_the_mask(
    new_base: Callable[..., Path], settings_for: Callable[..., ModelSettings], inputs: InputSettings, make_example: Callable[..., Example]
) -> None:
    """Pitfall B4: the mask comes from the ids, not from the text of a known template."""
    template = (
        "\n{% for m in messages %}<|im_start|>{{ m['role'] }}\n\n{{ m['content'] }}<|im_end|>\n\n{% endfor %}<|im_start|>assistant\n\n"
    )
    changed = template.replace("{% endfor %}<", "{% endfor %}{% if add_generation_prompt %}<") + "{% endif %}"
    backbone = load_backbone(settings_for(new_base(template=changed)))
    row = make_row(make_example(1), backbone.tokenizer, inputs, backbone.ends[0])
    assert backbone.tokenizer.decode(row["input_ids"][row["completion_mask"].index(1) :]) == "Lima<|im_end|>"


def test_a_template_that_renders_the_served_prompt_differently_in_training_is_refused(
    new_base: Callable[..., Path], settings_for: Callable[..., ModelSettings], inputs: InputSettings, make_example: Callable[..., Example]
) -> None:
    """Promise 6."""
    template = "{{ messages | length }}{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>{% endfor %}"
    backbone = load_backbone(settings_for(new_base(template=template)))
    with pytest.raises(InputError, match="example 'e1': the chat template renders the prompt differently once an answer follows"):
        make_row(make_example(1), backbone.tokenizer, inputs, backbone.ends[0])


def test_an_answer_that_holds_the_end_of_turn_is_refused(
    chatml: Backbone, inputs: InputSettings, make_example: Callable[..., Example]
) -> None:
    with pytest.raises(InputError, match="example 'e1': expected one end of turn after the answer .* found 2"):
        make_row(make_example(1, answer="Lima<|im_end|>Cusco"), chatml.tokenizer, inputs, chatml.ends[0])


def test_a_question_over_budget_names_its_example(chatml: Backbone, make_example: Callable[..., Example]) -> None:
    with pytest.raises(InputError, match="example 'e7'.*max_prompt_tokens"):
        make_row(make_example(7), chatml.tokenizer, InputSettings(max_prompt_tokens=20), chatml.ends[0])


def make_set(number: int, state: RetrievalState, condition: Condition | None = None) -> Example:
    return Example(
        id=f"{state.value}-{number}",
        question_id=f"q{number}",
        question="Who?",
        documents=(Document(id="d1", text="Ada."),),
        answers=("Ada",),
        state=state,
        condition=condition or Condition(state.value),
    )


MIXED = (
    [make_set(i, RetrievalState.ANSWERABLE) for i in range(50)]
    + [make_set(i, RetrievalState.UNANSWERABLE) for i in range(20)]
    + [make_set(i, RetrievalState.DISTRACTED, Condition.CONFLICT) for i in range(30)]
)


def test_ten_answerable_sets_for_each_unanswerable_one_and_no_distracted_set() -> None:
    selection = select(MIXED, max_answerable=None, answerable_per_unanswerable=10, seed=0)
    assert selection.counts == {
        "answerable": 50, "unanswerable": 5, "conflict": 0, "distracted": 30, "no_documents": 0, "labels_disagree": 0,
        "over_limit": 0, "over_ratio": 15, "over_conflict_ratio": 0,
    }  # fmt: skip
    assert len(selection.examples) == 55
    assert sum(selection.counts.values()) == len(MIXED)
    assert all(example.state is not RetrievalState.DISTRACTED for example in selection.examples)


def test_the_limit_on_answerable_sets_comes_before_the_proportion() -> None:
    selection = select(MIXED, max_answerable=20, answerable_per_unanswerable=10, seed=0)
    assert (selection.counts["answerable"], selection.counts["unanswerable"], selection.counts["over_limit"]) == (20, 2, 30)


def test_examples_without_text_are_left_out_and_counted() -> None:
    blank = MIXED[0].model_copy(update={"id": "blank", "documents": (Document(id="d1", text=" "),)})
    selection = select([*MIXED, blank], max_answerable=None, answerable_per_unanswerable=None, seed=0)
    assert selection.counts["no_documents"] == 1
    assert "blank" not in {example.id for example in selection.examples}


def test_the_draw_depends_on_seed_and_ids_not_on_file_order() -> None:
    shuffled = random.Random(1).sample(MIXED, len(MIXED))
    first, again, other = (select(source, 20, 10, seed).examples for source, seed in ((MIXED, 0), (shuffled, 0), (MIXED, 1)))
    assert first == again
    assert first != other


WITH_OTHERS = [
    *MIXED,
    *(make_set(100 + i, RetrievalState.DISTRACTED, Condition.NEGATED) for i in range(7)),
    *(make_set(200 + i, RetrievalState.DISTRACTED, Condition.ADVERSARIAL) for i in range(8)),
]


def test_sage_only_learns_conflict_sets_and_sees_no_negated_or_adversarial_one() -> None:
    """Answerable to unanswerable to conflict as 10 : 1 : 2."""
    selection = select(WITH_OTHERS, None, 10, seed=0, with_conflict=True, answerable_per_conflict=5)
    assert selection.counts == {
        "answerable": 50, "unanswerable": 5, "conflict": 10, "distracted": 15, "no_documents": 0, "labels_disagree": 0,
        "over_limit": 0, "over_ratio": 15, "over_conflict_ratio": 20,
    }  # fmt: skip
    assert sum(selection.counts.values()) == len(WITH_OTHERS)
    distracted = [example for example in selection.examples if example.state is RetrievalState.DISTRACTED]
    assert {example.condition for example in distracted} == {Condition.CONFLICT}


def test_conflict_sets_do_not_change_which_other_sets_a_two_way_sage_learns() -> None:
    two_way = select(WITH_OTHERS, 20, 10, seed=0).examples
    with_conflict = select(WITH_OTHERS, 20, 10, seed=0, with_conflict=True).examples
    assert {e.id for e in two_way} == {e.id for e in with_conflict if e.state is not RetrievalState.DISTRACTED}
    assert sum(example.state is RetrievalState.DISTRACTED for example in with_conflict) == 30


GOLD, NO_ANSWER, NEUTRAL = DocumentLabel.ANSWERABLE, DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL
FALSE, DENIES, LURES = DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL


def labelled(condition: Condition, *labels: DocumentLabel | None, number: int = 1) -> Example:
    distracted = condition not in (Condition.ANSWERABLE, Condition.UNANSWERABLE)
    example = make_set(number, RetrievalState.DISTRACTED if distracted else RetrievalState(condition.value), condition)
    documents = tuple(Document(id=f"d{n}", text=f"Ada {n}.", label=label) for n, label in enumerate(labels))
    return example.model_copy(update={"documents": documents})


@pytest.mark.parametrize(
    ("condition", "labels", "right"),
    [
        (Condition.ANSWERABLE, (GOLD, NO_ANSWER), True),
        (Condition.ANSWERABLE, (None, None), True),
        (Condition.ANSWERABLE, (None, GOLD), True),
        (Condition.ANSWERABLE, (FALSE, NEUTRAL), False),  # a lone false passage: its answer is not the gold one
        (Condition.ANSWERABLE, (None, NO_ANSWER), False),
        (Condition.UNANSWERABLE, (NO_ANSWER, NEUTRAL), True),
        (Condition.UNANSWERABLE, (None,), True),
        (Condition.UNANSWERABLE, (NO_ANSWER, FALSE), False),  # it does give an answer, and nothing says that it is false
        (Condition.UNANSWERABLE, (NO_ANSWER, GOLD), False),
        (Condition.UNANSWERABLE, (LURES,), False),
        (Condition.CONFLICT, (GOLD, FALSE), True),
        (Condition.CONFLICT, (FALSE, FALSE), True),
        (Condition.CONFLICT, (None, None), True),
        (Condition.CONFLICT, (FALSE, NEUTRAL), False),  # one answer alone is no conflict
        (Condition.CONFLICT, (GOLD, GOLD), False),
        (Condition.CONFLICT, (GOLD, DENIES), False),
    ],
)
def test_what_an_example_teaches_is_what_its_documents_say(
    condition: Condition, labels: tuple[DocumentLabel | None, ...], right: bool
) -> None:
    assert teaches_truth(labelled(condition, *labels)) is right


def test_a_blank_document_is_no_evidence_for_an_answer() -> None:
    example = labelled(Condition.ANSWERABLE, GOLD, NO_ANSWER)
    blank = example.documents[0].model_copy(update={"text": " "})
    assert not teaches_truth(example.model_copy(update={"documents": (blank, example.documents[1])}))


def test_examples_whose_labels_disagree_are_left_out_and_counted_before_the_proportion() -> None:
    good = [labelled(Condition.ANSWERABLE, GOLD, NEUTRAL, number=n) for n in range(10)]
    lone = [labelled(Condition.ANSWERABLE, FALSE, number=n) for n in range(10, 14)]
    flagged = [labelled(Condition.CONFLICT, FALSE, number=n) for n in range(3)]
    unanswerable = [labelled(Condition.UNANSWERABLE, NO_ANSWER, number=n) for n in range(20)]
    counts = select([*good, *lone, *flagged, *unanswerable], None, 5, seed=0, with_conflict=True).counts
    assert (counts["answerable"], counts["unanswerable"], counts["conflict"], counts["labels_disagree"]) == (10, 2, 0, 7)
    assert select([*good, *lone, *flagged], None, 5, seed=0).counts["labels_disagree"] == 4, (
        "a two-way Sage counts the others as distracted"
    )


THREE_WAY = InputSettings(max_prompt_tokens=400, instruction="unanswerable_conflict", conflict="they disagree, sorry")


def test_a_conflict_row_teaches_the_conflict_string(backbone: Backbone) -> None:
    row = make_row(labelled(Condition.CONFLICT, GOLD, FALSE), backbone.tokenizer, THREE_WAY, backbone.ends[0])
    taught = row["input_ids"][row["completion_mask"].index(1) :]
    assert backbone.tokenizer.decode(taught[:-1]) == "they disagree, sorry"
    assert "respond with 'they disagree, sorry'" in backbone.tokenizer.decode(row["input_ids"])


def test_a_two_way_sage_has_no_words_for_a_distracted_set(chatml: Backbone, inputs: InputSettings) -> None:
    with pytest.raises(ValueError, match="example 'distracted-1': a two-way Sage has no words for a distracted set"):
        make_row(labelled(Condition.CONFLICT, GOLD, FALSE), chatml.tokenizer, inputs, chatml.ends[0])


def test_a_sage_that_would_never_see_a_conflict_is_not_trained_to_say_so(
    chatml: Backbone, chatml_base: Path, settings_for: Callable[..., ModelSettings], train_settings: TrainSettings
) -> None:
    settings = SageSettings(model=settings_for(chatml_base), inputs=THREE_WAY, train=train_settings)
    with pytest.raises(InputError, match="expected conflict examples, since sage.inputs.conflict is set, kept none of 70"):
        prepare(MIXED[:70], chatml, settings, seed=0)
