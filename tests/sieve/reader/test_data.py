import logging

import pytest

from rag.errors import InputError
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState
from sieve.reader.data import Collator, Row, disagree, rows
from sieve.reader.inputs import InputSettings
from sieve.reader.predict import ReaderSieve

INPUTS = InputSettings(max_length=64, max_answer_tokens=4)


def example(number: int, *documents: Document) -> Example:
    return Example(
        id=f"e{number}",
        question_id=f"q{number}",
        question=f"w{number} is",
        documents=documents,
        answers=("red",),
        state=RetrievalState.ANSWERABLE,
        condition=Condition.ANSWERABLE,
    )


def said(name: str, text: str, label: DocumentLabel, answer: str | None = None) -> Document:
    return Document(id=name, text=text, label=label, answer=answer)


GOLD = said("gold", "w1 red w2", DocumentLabel.ANSWERABLE, "red")
FALSE = said("false", "w1 blue w2", DocumentLabel.CONFLICT, "blue")
DENIED = said("denied", "never red w3", DocumentLabel.NEGATED, "not red")
SILENT = said("silent", "w4 w5", DocumentLabel.UNANSWERABLE)
NEUTRAL = said("neutral", "w6 red w7", DocumentLabel.NEUTRAL)


def taught(reader: ReaderSieve, row: Row) -> str:
    return str(reader.tokenizer.decode(row["input_ids"][-row["answer_length"] :], skip_special_tokens=True))


def prepare(reader: ReaderSieve, *examples: Example, silent_per_answer: float | None = None) -> list[Row]:
    return rows(examples, reader.tokenizer, INPUTS, silent_per_answer=silent_per_answer, seed=0, name="training")


def test_each_document_teaches_what_it_says_true_or_not(reader: ReaderSieve) -> None:
    found = prepare(reader, example(1, GOLD, FALSE, DENIED, SILENT, NEUTRAL))
    assert [(row["group"], taught(reader, row)) for row in found] == [
        ("answerable", "red"),
        ("conflict", "blue"),
        ("negated", "red"),  # the tiny vocabulary has no `not`, and unknown words are not printed
        ("unanswerable", ""),
        ("neutral", ""),
    ]
    assert all(row["input_ids"][-1] == reader.tokenizer.eos_token_id for row in found)
    assert all(row["length"] == len(row["input_ids"]) for row in found)


def test_a_document_in_several_sets_is_one_row(reader: ReaderSieve) -> None:
    again = example(1, FALSE, GOLD.model_copy(update={"id": "other"}), SILENT)
    assert len(prepare(reader, example(1, GOLD, SILENT), again)) == 3
    assert len(prepare(reader, example(1, GOLD, SILENT), example(2, GOLD, SILENT))) == 4


def test_what_cannot_be_taught_is_counted(reader: ReaderSieve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bad = [
        said("a", "w1 w2", DocumentLabel.ANSWERABLE, "red"),
        said("b", "w1 red", DocumentLabel.ANSWERABLE),
        said("c", "w1 blue", DocumentLabel.ADVERSARIAL, "blue"),
        said("d", "w1 w2 w3 w4 w5 w6", DocumentLabel.CONFLICT, "w1 w2 w3 w4 w5"),
        said("e", "red " + "w1 " * 100, DocumentLabel.ANSWERABLE, "red"),
        said("f", " ", DocumentLabel.UNANSWERABLE),
    ]
    assert len(prepare(reader, example(1, GOLD, SILENT, *bad))) == 2
    for reason in (
        "'answer not in the text': 1",
        "'answer not known': 1",
        "'label adversarial': 1",
        "'answer longer than max_answer_tokens': 1",
        "'answer may stand in the part that was cut': 1",
        "'blank': 1",
    ):
        assert reason in caplog.text


def test_silent_documents_are_drawn_by_the_seed(reader: ReaderSieve) -> None:
    many = [example(n, GOLD, *(said(f"s{i}", f"w{n} w{i}", DocumentLabel.UNANSWERABLE) for i in range(5))) for n in range(4)]
    found = prepare(reader, *many, silent_per_answer=0.5)
    assert [row["group"] for row in found] == ["answerable"] * 4 + ["unanswerable"] * 2
    assert found == prepare(reader, *many, silent_per_answer=0.5)


def test_one_kind_of_document_alone_teaches_nothing(reader: ReaderSieve) -> None:
    with pytest.raises(InputError, match=r"found 1 and 0.*check data\.train"):
        prepare(reader, example(1, GOLD))


def test_answers_end_at_the_right_edge_and_their_logits_are_the_only_ones(reader: ReaderSieve) -> None:
    long = said("long", "w1 w2 w3 w9", DocumentLabel.CONFLICT, "w2 w3")
    found = prepare(reader, example(1, GOLD, long, SILENT))
    batch = Collator(pad_id=1)(found)
    assert batch["labels"].tolist() == [[-100] * (3 - row["answer_length"]) + row["input_ids"][-row["answer_length"] :] for row in found]
    assert batch["logits_to_keep"].tolist() == [-4, -3, -2]
    assert batch["input_ids"][:, -1].tolist() == [reader.tokenizer.eos_token_id] * 3
    labels = batch.pop("labels")
    logits = reader.model(**batch).logits
    assert logits.shape[:2] == labels.shape
    whole = reader.model(**{name: tensor for name, tensor in batch.items() if name != "logits_to_keep"}).logits
    assert logits.detach().allclose(whole[:, -4:-1].detach(), atol=1e-5)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (GOLD, FALSE, True),
        (GOLD, DENIED, True),
        (GOLD, said("again", "red w9", DocumentLabel.ANSWERABLE, "Red"), False),
        (GOLD, SILENT, False),
        (SILENT, NEUTRAL, False),
        (GOLD, said("unknown", "w1", DocumentLabel.CONFLICT), None),
        (said("unlabelled", "w1", DocumentLabel.ANSWERABLE), SILENT, None),
    ],
)
def test_whether_two_documents_disagree_is_known_where_both_are(first: Document, second: Document, expected: bool | None) -> None:
    assert disagree(first, second) is disagree(second, first) is expected
