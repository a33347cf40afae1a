"""One function builds what training and serving send to the model."""

from collections.abc import Callable

import pytest

from rag.errors import InputError
from rag.prompts import QA_PROMPTS, QaPrompt
from rag.records import Document, Example
from sage.inputs import InputSettings, build
from sage.model import Backbone


def test_the_prompt_is_one_user_turn_that_ends_where_the_answer_begins(chatml: Backbone, make_example: Callable[..., Example]) -> None:
    example = make_example(1)
    built = build(example.question, example.documents, chatml.tokenizer, InputSettings(max_prompt_tokens=400))
    assert [message["role"] for message in built.messages] == ["user"]
    text = chatml.tokenizer.decode(built.ids)
    assert text == f"<|im_start|>user\n{built.prompt.text}<|im_end|>\n<|im_start|>assistant\n"
    assert built.prompt.tokens == len(built.ids)
    assert "respond with 'unanswerable'" in built.prompt.text


def test_the_instruction_names_the_configured_abstention_string(chatml: Backbone, make_example: Callable[..., Example]) -> None:
    """Pitfall D1: an abstention string with a comma."""
    example = make_example(1)
    settings = InputSettings(max_prompt_tokens=400, abstention="not known, sorry")
    text = build(example.question, example.documents, chatml.tokenizer, settings).prompt.text
    assert "respond with 'not known, sorry'" in text
    assert "unanswerable" not in text


def test_there_is_one_bos_though_template_and_tokenizer_both_add_it(llama3: Backbone, make_example: Callable[..., Example]) -> None:
    """Pitfall B2."""
    example = make_example(1)
    ids = build(example.question, example.documents, llama3.tokenizer, InputSettings(max_prompt_tokens=400)).ids
    assert llama3.tokenizer("x")["input_ids"][0] == llama3.tokenizer.bos_token_id
    assert ids.count(llama3.tokenizer.bos_token_id) == 1
    assert ids[0] == llama3.tokenizer.bos_token_id


def test_control_tokens_written_in_a_document_or_question_get_no_control_id(backbone: Backbone) -> None:
    """Pitfall E8."""
    tokens = backbone.tokenizer.all_special_tokens
    attack = "".join(backbone.tokenizer.get_added_vocab())
    assert set(tokens) <= set(backbone.tokenizer.get_added_vocab())
    settings = InputSettings(max_prompt_tokens=1500)

    def control_ids(question: str, text: str, title: str) -> list[int]:
        documents = [Document(id="d1", text=text, title=title)]
        ids = build(question, documents, backbone.tokenizer, settings).ids
        return [i for i in ids if i in backbone.tokenizer.added_tokens_decoder]

    plain = control_ids("Who is the mayor?", "The mayor is Ada.", "Town")
    assert control_ids(f"Who is the mayor?{attack}", f"The mayor is Ada.{attack}", f"Town{attack}") == plain


def test_blank_documents_are_no_evidence(chatml: Backbone) -> None:
    """Pitfall E1."""
    settings = InputSettings(max_prompt_tokens=400)
    for documents in ([], [Document(id="d1", text="  \n")]):
        with pytest.raises(InputError, match="at least one document with text, found none"):
            build("Who?", documents, chatml.tokenizer, settings)
    one = [Document(id="d1", text="Ada."), Document(id="d2", text=" ")]
    assert build("Who?", one, chatml.tokenizer, settings).prompt.shown == ("d1",)


def test_the_budget_covers_the_chat_template(chatml: Backbone) -> None:
    documents = [Document(id=f"d{i}", text="word " * 60) for i in range(1, 6)]
    whole = build("Who?", documents, chatml.tokenizer, InputSettings(max_prompt_tokens=2000))
    tight = InputSettings(max_prompt_tokens=len(whole.ids) - 1)
    built = build("Who?", documents, chatml.tokenizer, tight)
    assert built.prompt.dropped == ("d5",)
    assert len(built.ids) <= tight.max_prompt_tokens


def test_a_question_over_budget_is_an_error(chatml: Backbone) -> None:
    with pytest.raises(InputError, match="max_prompt_tokens"):
        build("Who? " * 500, [Document(id="d1", text="Ada.")], chatml.tokenizer, InputSettings(max_prompt_tokens=300))


def test_a_document_of_a_million_characters_is_trimmed_to_the_budget(chatml: Backbone) -> None:
    built = build("Who?", [Document(id="d1", text="word " * 200_000)], chatml.tokenizer, InputSettings(max_prompt_tokens=300))
    assert built.prompt.trimmed == ("d1",)
    assert len(built.ids) <= 300


def test_the_instruction_names_both_strings_each_in_its_own_place() -> None:
    """Pitfall D1: strings with a comma, with each other's word in them, and with what a pattern would read as a group."""
    settings = InputSettings(
        max_prompt_tokens=400, instruction="unanswerable_conflict", abstention="no 'conflict', no answer", conflict=r"\1 unanswerable"
    )
    text = settings.instruction_text()
    assert "If you cannot find the answer in the provided documents, please respond with 'no 'conflict', no answer'." in text
    assert r"If multiple documents present different answers, please respond with '\1 unanswerable'." in text


@pytest.mark.parametrize("instruction", list(QA_PROMPTS))
def test_each_prompt_of_table_14_is_sent_word_for_word(instruction: QaPrompt) -> None:
    settings = InputSettings(max_prompt_tokens=400).under(instruction)
    assert settings.instruction_text() == QA_PROMPTS[instruction]
    assert settings.conflict == ("conflict" if "conflict" in instruction else None)
    assert settings.under("unanswerable") == InputSettings(max_prompt_tokens=400)


def test_another_prompt_keeps_the_other_settings() -> None:
    own = InputSettings(max_prompt_tokens=99, order="best_first", instruction="conflict", abstention="no", conflict="they differ")
    assert own.under("unanswerable_conflict") == own.model_copy(update={"instruction": "unanswerable_conflict"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"instruction": "conflict"},
            "instruction 'conflict' asks for a reply of its own to a conflict; set sage.inputs.conflict=conflict",
        ),
        ({"conflict": "conflict"}, "conflict='conflict' is not asked for by instruction 'unanswerable'; set sage.inputs.instruction="),
        (
            {"instruction": "unanswerable_conflict", "conflict": "“Unanswerable”."},
            "conflict: expected another string than sage.inputs.abstention, got '“Unanswerable”.' for both",
        ),
        ({"instruction": "unanswerable_conflict", "conflict": " "}, "String should match pattern"),
    ],
)
def test_a_conflict_string_that_could_not_be_told_apart_is_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InputSettings.model_validate({"max_prompt_tokens": 400, **changes})
