"""One encoding for training, evaluation and serving: whole question, a share for each document, the mask that reaches the model."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.records import Document
from sieve.joint.inputs import Encoding, InputSettings, collate, encode, shares
from sieve.joint.model import Backbone
from sieve.screening import CHARACTERS_PER_TOKEN

FULL = InputSettings(max_length=4096)
QUESTION = "w1 w2 w3 w4 w5 w6"


def text(count: int, word: str = "w7") -> str:
    """A text of `count` tokens."""
    return " ".join([word] * count)


def document(name: str, content: str, **fields: Any) -> Document:
    return Document(id=name, text=content, **fields)


@pytest.fixture
def tokenizer(backbone: Callable[[str], Backbone]) -> PreTrainedTokenizerBase:
    return backbone("longformer").tokenizer


def decoded(encoding: Encoding, tokenizer: PreTrainedTokenizerBase) -> str:
    return " ".join(tokenizer.convert_ids_to_tokens(encoding.ids))


def test_a_set_is_question_then_documents_in_rank_order_each_behind_a_separator(tokenizer: PreTrainedTokenizerBase) -> None:
    documents = [document("b", "w8 w9", rank=2), document("a", "w7", rank=1, title="red")]
    encoding = encode("w1 w2", documents, tokenizer, FULL)
    assert decoded(encoding, tokenizer) == "<cls> w1 w2 <sep> <unk> w7 <sep> w8 w9 <sep>"  # `red.` is not in this vocabulary
    assert encoding.question_end == 3
    assert encoding.truncated == ()
    assert encode("w1 w2", documents[::-1], tokenizer, FULL) == encoding


def test_a_causal_model_reads_the_same_layout_and_pools_its_end_of_sequence(backbone: Callable[[str], Backbone]) -> None:
    tokenizer = backbone("llama").tokenizer
    encoding = encode("w1 w2", [document("a", text(20)), document("b", "w9")], tokenizer, InputSettings(max_length=16))
    assert decoded(encoding, tokenizer) == f"w1 w2 <eos> {text(10)} <eos> w9 <eos>"
    assert encoding.question_end == 2
    assert encoding.truncated == ("a",)


@pytest.mark.parametrize(("length", "cut"), [(4095, ()), (4096, ()), (4097, ("a",)), (4098, ("a",))])
def test_exact_lengths_at_the_limit(tokenizer: PreTrainedTokenizerBase, length: int, cut: tuple[str, ...]) -> None:
    """Pitfall A3 (i): first token, question, separator, document and separator count together."""
    encoding = encode(QUESTION, [document("a", text(length - 9))], tokenizer, FULL)
    assert len(encoding.ids) == min(length, 4096)
    assert encoding.truncated == cut


def test_five_long_documents_are_all_represented_and_all_reported(tokenizer: PreTrainedTokenizerBase) -> None:
    """Pitfall A3 (ii)."""
    documents = [document(f"d{i}", text(2000, f"w{10 + i}")) for i in range(5)]
    encoding = encode(QUESTION, documents, tokenizer, FULL)
    tokens = decoded(encoding, tokenizer).split()
    assert tokens[:8] == ["<cls>", *QUESTION.split(), "<sep>"]
    assert len(tokens) == 4096
    # 4096 less first token, question, five separators and the last: 4083 tokens, 816.6 for each.
    assert [tokens.count(f"w{10 + i}") for i in range(5)] == [816, 816, 817, 817, 817]
    assert encoding.truncated == ("d0", "d1", "d2", "d3", "d4")


def test_a_short_document_behind_a_long_one_is_read_whole(tokenizer: PreTrainedTokenizerBase) -> None:
    """Pitfall A3 (iii): document 5 contradicts document 1, and changing it alone changes the ids."""
    others = [document("d1", text(4000)), *(document(f"d{i}", text(40, "w8")) for i in (2, 3, 4))]
    one = encode(QUESTION, [*others, document("d5", text(39, "w9") + " w20")], tokenizer, FULL)
    two = encode(QUESTION, [*others, document("d5", text(39, "w9") + " w21")], tokenizer, FULL)
    assert one.truncated == two.truncated == ("d1",)
    words = tokenizer.convert_ids_to_tokens
    assert [(words(a), words(b)) for a, b in zip(one.ids, two.ids, strict=True) if a != b] == [("w20", "w21")]


def test_the_question_is_kept_whole_however_long_the_documents_are(tokenizer: PreTrainedTokenizerBase) -> None:
    question = " ".join(f"w{i}" for i in range(40))
    encoding = encode(question, [document("a", text(500)), document("b", text(500))], tokenizer, InputSettings(max_length=64))
    assert decoded(encoding, tokenizer).startswith(f"<cls> {question} <sep> w7")
    assert encoding.question_end == 41
    assert len(encoding.ids) == 64


def test_a_question_that_leaves_less_than_a_token_for_each_document_is_refused(tokenizer: PreTrainedTokenizerBase) -> None:
    documents = [document("a", text(500)), document("b", text(500))]
    settings = InputSettings(max_length=64)
    # First token, two separators and the last take 4.
    assert decoded(encode(text(58), documents, tokenizer, settings), tokenizer).split()[-4:] == ["w7", "<sep>", "w7", "<sep>"]
    for tokens in (59, 5000):
        message = rf"question of {tokens} tokens leaves no room for 2 documents in 64 tokens; shorten it or set sieve.inputs.max_length"
        with pytest.raises(InputError, match=message):
            encode(text(tokens), documents, tokenizer, settings)


class Recorder:
    """A tokenizer that notes how much text it was given."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        self.characters: list[int] = []

    def __call__(self, content: str, **options: Any) -> Any:
        self.characters.append(len(content))
        return self.tokenizer(content, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)


@pytest.mark.parametrize("content", [text(350_000), "x" * 1_000_000], ids=["words", "one word"])
def test_a_document_of_a_million_characters_is_cut_before_it_is_tokenized(tokenizer: PreTrainedTokenizerBase, content: str) -> None:
    recorder = Recorder(tokenizer)
    documents = [document("huge", content), document("small", "w9 w9")]
    encoding = encode(QUESTION, documents, cast(PreTrainedTokenizerBase, recorder), InputSettings(max_length=128))
    assert max(recorder.characters) == 128 * CHARACTERS_PER_TOKEN
    assert encoding.truncated == ("huge",)
    assert decoded(encoding, tokenizer).endswith("<sep> w9 w9 <sep>")


@pytest.mark.parametrize("blank", ["", " \n\t "])
def test_a_blank_document_takes_a_separator_and_no_more(tokenizer: PreTrainedTokenizerBase, blank: str) -> None:
    encoding = encode("w1", [document("a", blank), document("b", "w9")], tokenizer, FULL)
    assert decoded(encoding, tokenizer) == "<cls> w1 <sep> <sep> w9 <sep>"
    assert encoding.truncated == ()


def test_a_question_without_documents_can_be_encoded(tokenizer: PreTrainedTokenizerBase) -> None:
    assert decoded(encode("w1", [], tokenizer, FULL), tokenizer) == "<cls> w1 <sep>"


def test_control_tokens_written_in_a_document_or_question_stay_text(tokenizer: PreTrainedTokenizerBase) -> None:
    encoding = encode("w1 <pad>", [document("a", "w2 <sep> w3 <cls>")], tokenizer, FULL)
    tokens = decoded(encoding, tokenizer).split()
    assert (tokens.count("<sep>"), tokens.count("<cls>"), tokens.count("<pad>")) == (2, 1, 0)


@pytest.mark.parametrize(
    ("lengths", "budget", "granted"),
    [
        ((10, 10), 30, [10, 10]),
        ((100, 100), 51, [25, 26]),
        ((100, 4, 100), 50, [23, 4, 23]),
        ((0, 9), 5, [0, 5]),
        ((), 5, []),
        ((3, 3, 3), 0, [0, 0, 0]),
    ],
)
def test_what_short_documents_leave_goes_to_long_ones(lengths: Sequence[int], budget: int, granted: list[int]) -> None:
    assert shares(lengths, budget) == granted


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(0, 200))
def test_shares_are_fair_and_waste_nothing(lengths: list[int], budget: int) -> None:
    granted = shares(lengths, budget)
    assert sum(granted) == min(budget, sum(lengths))
    for length, share in zip(lengths, granted, strict=True):
        assert min(length, budget // len(lengths)) <= share <= length
    cut = [share for length, share in zip(lengths, granted, strict=True) if share < length]
    # A document that is cut has as much as any other, give or take the remainder.
    assert not cut or min(cut) >= max(granted) - 1


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(0, 50))
def test_nothing_is_cut_while_there_is_room(lengths: list[int], spare: int) -> None:
    assert shares(lengths, sum(lengths) + spare) == lengths


ROWS = [Encoding([0, 5, 6, 2, 7, 2], 3, ()), Encoding([0, 5, 2, 7, 8, 9, 9, 2], 2, ())]


@pytest.mark.parametrize(("pattern", "sums"), [("first", [1, 1]), ("question", [3, 2])])
def test_a_longformer_gets_global_attention_where_the_settings_say(pattern: Any, sums: list[int]) -> None:
    """Pitfall A1: on the first token or the question, never on a document or on padding."""
    batch = collate(ROWS, 1, model_type="longformer", global_attention=pattern)
    mask = batch["global_attention_mask"]
    assert mask.shape == batch["input_ids"].shape == (2, 8)
    assert mask.sum(1).tolist() == sums
    assert [row.nonzero().flatten().tolist() for row in mask] == [list(range(n)) for n in sums]
    assert int((mask * (1 - batch["attention_mask"])).sum()) == 0


@pytest.mark.parametrize("model_type", ["bert", "roberta", "llama", "modernbert"])
def test_other_models_do_not_get_an_argument_that_they_do_not_know(model_type: str) -> None:
    """Pitfall A1."""
    assert set(collate(ROWS, 1, model_type=model_type, global_attention="question")) == {"input_ids", "attention_mask"}


def test_rows_are_padded_on_the_right() -> None:
    batch = collate(ROWS, 1, model_type="bert", global_attention="first")
    assert batch["input_ids"][0].tolist() == [0, 5, 6, 2, 7, 2, 1, 1]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 0, 0], [1] * 8]
    assert batch["input_ids"].dtype == batch["attention_mask"].dtype == torch.int64
