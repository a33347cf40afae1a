"""What all chat models share: streams, seeds and chats without a system role."""

from collections.abc import Sequence

import pytest

from rag.errors import InputError
from rag.models.chat import ChatRequest, Completion, Message, Reply, in_order, sampling_seed, stream, without_system_role

SYSTEM, QUESTION = Message("system", "Be brief."), Message("user", "Who?")


def test_a_model_that_cannot_stream_is_asked_one_at_a_time() -> None:
    class Plain:
        name = "plain"
        sizes: list[int] = []  # noqa: RUF012

        def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
            self.sizes.append(len(requests))
            return [Completion(request.messages[0].content, 1, 1, True) for request in requests]

    chat = Plain()
    replies = list(stream(chat, [ChatRequest((Message("user", text),)) for text in "ab"]))
    assert replies == [(0, Completion("a", 1, 1, True)), (1, Completion("b", 1, 1, True))]
    assert chat.sizes == [1, 1]


def test_replies_are_put_in_order_by_place_alone() -> None:
    first, second = Completion("b", 1, 1, True), Completion("a", 1, 1, True)
    assert in_order(iter([(1, second), (0, first)])) == [first, second]


def test_a_system_s_text_opens_the_first_user_turn() -> None:
    chat = (SYSTEM, QUESTION, Message("assistant", "Ada."), Message("user", "When?"))
    assert without_system_role(chat) == (Message("user", "Be brief.\n\nWho?"), *chat[2:])
    assert without_system_role([QUESTION]) == (QUESTION,)
    with pytest.raises(InputError, match="expected at least one user turn"):
        without_system_role([SYSTEM])


def test_a_sampling_seed_differs_by_seed_and_by_chat_and_fits_its_bits() -> None:
    requests = [ChatRequest((QUESTION,)), ChatRequest((QUESTION,), 1), ChatRequest((SYSTEM, QUESTION)), ChatRequest((QUESTION,), -1)]
    for bits in (31, 63):
        seeds = [sampling_seed(request, bits) for request in requests]
        assert len(set(seeds)) == 4
        assert all(0 <= seed < 2**bits for seed in seeds)
    assert sampling_seed(requests[0], 31) == sampling_seed(ChatRequest((QUESTION,), 0), 31)
