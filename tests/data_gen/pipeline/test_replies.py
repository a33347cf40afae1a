"""What is taken from a model's reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.pipeline.prompts import CONFLICT_PASSAGE, fill
from data_gen.pipeline.replies import ask, passage, seed_of, sentence
from rag.errors import InputError
from rag.models.chat import ChatRequest, Message
from tests.data_gen.pipeline.stand_ins import Chat


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("The museum is in Quito.", "The museum is in Quito."),
        ("Sure! Here is the passage you asked for:\n\nThe museum is in Quito.", "The museum is in Quito."),
        ("Here's a passage:\nThe museum is in Quito.\nIt is new.", "The museum is in Quito.\nIt is new."),
        ("**Conflict passage:** The museum is in Quito.", "The museum is in Quito."),
        ("Supporting Passage: The museum is in Quito.", "The museum is in Quito."),
        ("“The museum is in Quito.”", "The museum is in Quito."),
        ('"Quito" is what they say, not "Lima"', '"Quito" is what they say, not "Lima"'),
        ("```text\nThe museum is in Quito.\n```", "The museum is in Quito."),
        ("Opening hours: nine to five.", "Opening hours: nine to five."),
        ("博物館はキトにある。", "博物館はキトにある。"),
        ("   ", ""),
    ],
)
def test_a_passage_is_what_the_model_did_not_say_around_it(reply, text):
    assert passage(reply) == text


def test_a_sentence_is_the_first_line_of_the_reply():
    assert sentence("Sentence: It is in Quito.\nNote: invented.") == "It is in Quito."
    assert sentence("Dr. Smith lives at 3.5 km. from it") == "Dr. Smith lives at 3.5 km. from it"
    assert sentence("") == ""


@given(st.text(max_size=60))
def test_taking_a_passage_twice_changes_nothing_more_than_another_layer(text):
    once = passage(text)
    assert len(passage(once)) <= len(once) <= len(text)


def test_braces_in_a_value_stay_text():
    values = {"MIN_LENGTH": "10", "MAX_LENGTH": "20", "ANSWER_SENTENCE": "It is {MIN_LENGTH} \\1 $ (a)"}
    (message,) = fill(CONFLICT_PASSAGE, values)
    assert message.role == "user"
    assert "10 ~ 20 characters" in message.content
    assert "Sentence: It is {MIN_LENGTH} \\1 $ (a)\nConflict passage:" in message.content


def test_failures_and_replies_that_were_cut_are_no_replies():
    chat = Chat(lambda prompt: {"a": "fine", "b": None, "c": "half [cut]"}[prompt])
    assert ask(chat, [ChatRequest((Message("user", name),)) for name in "abc"]) == ["fine", None, None]


def test_something_to_ask_and_no_model_names_the_key():
    assert ask(None, []) == []
    with pytest.raises(InputError, match="chat@dataset.chat"):
        ask(None, [ChatRequest((Message("user", "a"),))])


def test_seeds_differ_by_part_and_are_the_same_again():
    seeds = {seed_of(0, "q1", "conflict"), seed_of(0, "q1", "negated"), seed_of(1, "q1", "conflict"), seed_of(0, "q", "1conflict")}
    assert len(seeds) == 4
    assert seed_of(0, "q1", "conflict") in seeds
    assert all(0 <= seed < 2**31 for seed in seeds)
