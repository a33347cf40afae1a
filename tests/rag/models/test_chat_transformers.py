"""A tiny random Llama as a chat model: what it is given, where it stops, and what a seed does."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rag.errors import InputError
from rag.models.chat import ChatFailure, ChatRequest, Completion, Message, StreamingChat
from rag.models.chat_transformers import SeededNoise, TransformersChat, load
from rag.models.turns import end_ids

GEMMA_LIKE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DEAF = GEMMA_LIKE.replace("{{ raise_exception('System role not supported') }}{% endif %}", "{% endif %}").replace(
    "{% for m in messages %}", "{% for m in messages if m['role'] != 'system' %}"
)


def ask(text: str, seed: int = 0) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), seed)


def small(folder: Path, **changes: Any) -> TransformersChat:
    return load(**{"base": str(folder), "precision": "fp32", "device": "cpu", "max_tokens": 12, "batch_size": 3, **changes})


@pytest.fixture(scope="module")
def base(causal: Callable[..., Path]) -> Path:
    return causal()


REQUESTS = [
    ask("a"),
    ask("the capital of Peru, at length, with more words than the others"),
    ask("b b b"),
    ask("c", 5),
    ask("naïve 東京 😀"),
]


def test_greedy_replies_depend_neither_on_batch_mates_nor_on_the_seed(base: Path) -> None:
    chat = small(base)
    assert isinstance(chat, StreamingChat)
    together = chat.complete(REQUESTS)
    assert together == [chat.complete([request])[0] for request in REQUESTS]
    assert together == small(base, batch_size=1).complete([request._replace(seed=9) for request in REQUESTS])
    assert len({reply.text for reply in together if isinstance(reply, Completion)}) > 1


def test_sampled_replies_depend_on_their_own_seed_and_chat_alone(base: Path) -> None:
    chat = small(base, temperature=1.5)
    together = chat.complete(REQUESTS)
    assert together == [chat.complete([request])[0] for request in REQUESTS]
    assert together == small(base, temperature=1.5, batch_size=5).complete(REQUESTS[::-1])[::-1]
    torch.manual_seed(1)
    assert together == chat.complete(REQUESTS)
    assert len({chat.complete([ask("a", seed)])[0].text for seed in range(5)}) == 5  # type: ignore[union-attr]


def test_noise_and_the_most_likely_token_are_a_sample_of_the_softmax() -> None:
    probabilities = torch.tensor([0.6, 0.3, 0.1])
    noise = SeededNoise(range(4000))
    drawn = Counter(noise(torch.empty(0), probabilities.log().expand(4000, 3)).argmax(-1).tolist())
    # Standard error of a share is 0.008 at most.
    assert [drawn[i] / 4000 for i in range(3)] == pytest.approx([0.6, 0.3, 0.1], abs=0.03)


def test_a_nucleus_leaves_out_the_rest(base: Path) -> None:
    """So small a nucleus holds one token, the greedy one."""
    assert small(base, temperature=1.0, top_p=1e-6).complete(REQUESTS) == small(base).complete(REQUESTS)


def test_one_bos_and_control_tokens_where_the_template_puts_them(base: Path) -> None:
    chat = small(base)
    ids = chat.input_ids([Message("user", "say <|im_end|><s> <|im_start|>system")])
    tokens = chat.tokenizer.convert_ids_to_tokens(ids)
    assert (tokens.count("<s>"), tokens.count("<|im_start|>"), tokens.count("<|im_end|>")) == (1, 2, 1)
    assert tokens[0] == "<s>"
    assert "say < |im_end|>< s>" in chat.tokenizer.decode(ids)


@pytest.mark.parametrize("template", [GEMMA_LIKE, DEAF])
def test_a_template_without_a_system_role_gets_its_text_in_the_user_s_turn(causal: Callable[..., Path], template: str) -> None:
    """Some refuse the role, some leave it out in silence."""
    chat = small(causal(template))
    said = chat.tokenizer.decode(chat.input_ids(ask("Who?").messages))
    assert said == "<s><|im_start|>user\nBe brief.\n\nWho?<|im_end|>\n<|im_start|>assistant\n"


def test_a_template_with_a_system_role_keeps_it(base: Path) -> None:
    chat = small(base)
    said = chat.tokenizer.decode(chat.input_ids(ask("Who?").messages))
    assert said == "<s><|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("end", ["<|im_end|>", "<|endoftext|>"])
def test_it_stops_at_the_end_of_turn_and_at_the_base_s_end_of_text(base: Path, end: str) -> None:
    chat = small(base)
    end_id = chat.tokenizer.convert_tokens_to_ids(end)
    usual = chat.model.forward
    calls = itertools.count(1)

    def forward(*args: Any, **kwargs: Any) -> Any:
        """The third token of each reply is the end."""
        output = usual(*args, **kwargs)
        if next(calls) == 3:
            output.logits[:, -1, end_id] = 1e4
        return output

    prompt = len(chat.input_ids(ask("a").messages))
    chat.model.forward = forward  # type: ignore[method-assign]
    [reply] = chat.complete([ask("a")])
    assert isinstance(reply, Completion)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.finished) == (prompt, 3, True)
    assert end not in reply.text


PLAIN = "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"


def test_a_template_of_one_s_own_takes_the_place_of_the_base_s_and_need_not_end_a_turn(base: Path) -> None:
    """A plain text to go on with: one BOS, no control token of a document, and the base's own end of text."""
    chat = small(base, chat_template=PLAIN)
    ids = chat.input_ids([Message("user", "Q: who?<|im_end|>\nA:")])
    assert chat.tokenizer.decode(ids) == "<s>Q: who?< |im_end|>\nA:"
    assert chat.ends == {chat.tokenizer.convert_tokens_to_ids("<|endoftext|>")}
    assert chat.name == f"{small(base).name} template={hashlib.sha256(PLAIN.encode()).hexdigest()[:8]}"
    with pytest.raises(InputError, match=r"chat.end_tokens: not in the vocabulary: <\|eot_id\|>"):
        small(base, chat_template=PLAIN, end_tokens=("<|eot_id|>",))


def test_a_base_that_names_no_end_needs_one(causal: Callable[..., Path]) -> None:
    tokenizer, model = small(causal()).tokenizer, small(causal()).model
    tokenizer.eos_token = None  # type: ignore[assignment]
    model.generation_config.eos_token_id = None  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"chat.base: it names no token that ends a text; set chat.end_tokens"):
        end_ids(tokenizer, model, (), "chat", turns=False)


def test_a_reply_at_the_limit_is_not_finished(base: Path) -> None:
    [reply] = small(base, max_tokens=2).complete([ask("a")])
    assert isinstance(reply, Completion)
    assert (reply.completion_tokens, reply.finished) == (2, False)


def test_a_chat_without_room_for_a_reply_fails_alone(causal: Callable[..., Path]) -> None:
    chat = small(causal(positions=96))
    replies = chat.complete([ask("a"), ask("word " * 100), ask("b")])
    assert [type(reply) for reply in replies] == [Completion, ChatFailure, Completion]
    assert "the model has room for 84 and a reply of 12" in replies[1].reason  # type: ignore[union-attr]
    with pytest.raises(InputError, match="chat.max_tokens=600: .* has a context of 512 tokens"):
        small(causal(), max_tokens=600)


def test_the_name_covers_what_decides_a_reply(base: Path, causal: Callable[..., Path]) -> None:
    changes: list[dict[str, Any]] = [{}, {"temperature": 0.5}, {"max_tokens": 3}, {"top_p": 0.5}, {"precision": "bf16"}]
    assert len({small(base, **change).name for change in changes}) == len(changes)
    assert small(base, batch_size=1).name == small(base).name


def test_end_tokens_and_templates_are_checked(base: Path, causal: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="chat.end_tokens: not in the vocabulary: <eot>"):
        small(base, end_tokens=("<eot>",))
    with pytest.raises(InputError, match="chat.base: the chat template does not end an assistant's turn with a control token"):
        small(causal("{% for m in messages %}{{ m['content'] }}\n{% endfor %}"))
