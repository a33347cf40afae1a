import pytest
import torch

from rag.errors import InputError
from rag.models.base import load_tokenizer
from rag.records import Document
from sieve.extractive.inputs import InputSettings, encode, pad, places
from sieve.extractive.model import ModelSettings


def words(count: int) -> str:
    return " ".join(f"w{i % 100}" for i in range(count))


@pytest.fixture(scope="module")
def tokenizer(model_settings: ModelSettings) -> object:
    return load_tokenizer(model_settings.base)


def encoded(tokenizer: object, text: str, inputs: InputSettings, question: str = "the answer", title: str = "") -> object:
    (found,) = encode([(question, Document(id="d", text=text, title=title))], tokenizer, inputs)  # type: ignore[arg-type]
    return found


def test_a_short_document_is_one_window_with_its_title(tokenizer: object, inputs: InputSettings) -> None:
    found = encoded(tokenizer, "the  answer\nis red", inputs, title="w1")
    assert found.text == "w1. the answer is red" and not found.truncated
    (window,) = found.windows
    assert len(window.ids) == 2 + 3 + 5 and window.first == 4
    assert [found.text[a:b] for a, b in window.offsets] == ["w1.", "the", "answer", "is", "red"]
    assert window.segments == [0] * 4 + [1] * 6


def test_a_long_document_is_read_in_windows_that_overlap(tokenizer: object, inputs: InputSettings) -> None:
    found = encoded(tokenizer, words(60), inputs)
    assert [len(window.ids) for window in found.windows] == [40, 38] and not found.truncated
    first, second = (set(window.offsets) for window in found.windows)
    assert len(first & second) == inputs.stride
    assert {found.text[a:b] for a, b in first | second} == set(words(60).split())


def test_what_is_left_of_a_far_longer_one_is_said_to_be_cut(tokenizer: object, inputs: InputSettings) -> None:
    found = encoded(tokenizer, words(400), inputs)
    assert len(found.windows) == inputs.max_windows and found.truncated


def test_a_blank_document_is_a_window_without_text(tokenizer: object, inputs: InputSettings) -> None:
    (window,) = encoded(tokenizer, "  ", inputs).windows
    assert window.offsets == [] and places(window, [(0, 1)]) == []


def test_a_question_that_leaves_no_room_is_refused(tokenizer: object, inputs: InputSettings) -> None:
    with pytest.raises(InputError, match=r"question of 30 tokens leaves no room for a document in 40 tokens, of which 8 overlap"):
        encoded(tokenizer, "w1", inputs, question=words(30))


def test_control_tokens_in_a_document_are_text(tokenizer: object, inputs: InputSettings) -> None:
    (window,) = encoded(tokenizer, "red <sep> blue", inputs).windows
    ends = [2]  # id of <sep>
    assert sum(i in ends for i in window.ids) == 2


def test_places_are_tokens_of_the_window(tokenizer: object, inputs: InputSettings) -> None:
    found = encoded(tokenizer, "the answer is red", inputs)
    (window,) = found.windows
    start = found.text.index("answer")
    assert places(window, [(start, start + len("answer is"))]) == [(window.first + 1, window.first + 2)]
    late = encoded(tokenizer, words(60), inputs)
    assert places(late.windows[0], [(0, len(late.text))]) == []


def test_padding_is_masked(tokenizer: object, inputs: InputSettings) -> None:
    windows = [encoded(tokenizer, text, inputs).windows[0] for text in ("red", "the answer is red")]
    batch = pad(windows, 1, segments=True)
    assert batch["input_ids"].shape == (2, 9) and batch["attention_mask"].sum(1).tolist() == [6, 9]
    assert torch.equal(batch["input_ids"][0, 6:], torch.full((3,), 1))
    assert "token_type_ids" not in pad(windows, 1, segments=False)
