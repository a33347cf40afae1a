"""A judge of the input: only sets that it calls sufficient, in so many words, reach the Sage."""

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.models.cached_chat import CachedChat
from rag.models.chat import Completion
from rag.records import Prediction, Query, Reason, RetrievalState
from serve.systems.sufficiency_judge import Sufficiency, SufficiencyJudge

GOLD = "The capital of Peru is Lima."
OTHER = "The capital of Peru is Cusco."


def judge(chat: Any, **changes: Any) -> Sufficiency:
    return Sufficiency(chat, **{"conflicts": True, "think": False, "max_prompt_characters": 10_000, **changes})


def one(system: SufficiencyJudge, query: Query) -> Prediction:
    [prediction] = system.predict([query])
    return prediction


class TestVerdict:
    @pytest.mark.parametrize(
        ("said", "answer", "reason", "state"),
        [
            ("sufficient", "Lima", None, RetrievalState.ANSWERABLE),
            (" “Sufficient.” \n", "Lima", None, RetrievalState.ANSWERABLE),
            ("insufficient", None, Reason.INSUFFICIENT, RetrievalState.UNANSWERABLE),
            ("CONFLICTING", None, Reason.DISTRACTED, RetrievalState.DISTRACTED),
        ],
    )
    def test_only_a_sufficient_set_reaches_the_sage(self, said, answer, reason, state, make_chat, make_sage, query) -> None:
        sage = make_sage("Lima")
        prediction = one(SufficiencyJudge(judge(make_chat(said)), sage), query(GOLD, OTHER))
        assert (prediction.answer, prediction.reason, prediction.state) == (answer, reason, state)
        assert len(sage.asked) == (answer is not None)
        assert (prediction.prompt is None) == (answer is None), "the Sage's prompt tells whether its call was saved"

    def test_what_it_cost_is_kept_apart(self, make_chat, make_sage, query) -> None:
        chat = make_chat("sufficient")
        prediction = one(SufficiencyJudge(judge(chat), make_sage("Lima")), query(GOLD))
        message = chat.asked[0].messages[0].content
        assert prediction.tokens["judge_prompt"] == len(message.split())
        assert prediction.tokens["judge_completion"] == 2
        assert set(prediction.tokens) == {"judge_prompt", "judge_completion", "prompt", "completion"}
        assert set(prediction.timings) == {"judge", "sage", "total"}
        assert GOLD in message and "What is the capital of Peru?" in message

    def test_a_server_that_does_not_count_leaves_no_count(self, make_chat, make_sage, query) -> None:
        chat = make_chat(Completion("insufficient", 0, 0, finished=True))
        assert one(SufficiencyJudge(judge(chat), make_sage()), query(GOLD)).tokens == {}

    def test_a_sufficient_set_may_still_be_abstained_on(self, make_chat, make_sage, query) -> None:
        prediction = one(SufficiencyJudge(judge(make_chat("sufficient")), make_sage("unanswerable")), query(GOLD))
        assert (prediction.reason, prediction.state) == (Reason.UNANSWERABLE, RetrievalState.UNANSWERABLE)

    @pytest.mark.parametrize(
        "said",
        ["", "yes", "sufficient, I think", "not sufficient", "insufficient\nsufficient", "sufficient insufficient", "**sufficient**", "1"],
    )
    def test_anything_else_is_no_verdict(self, said, make_chat, make_sage, query) -> None:
        """Promise 1: an output that cannot be read never lets a set through."""
        sage = make_sage("Lima")
        prediction = one(SufficiencyJudge(judge(make_chat(said)), sage), query(GOLD))
        assert (prediction.answer, prediction.reason, prediction.state) == (None, Reason.JUDGE_FAILED, None)
        assert sage.asked == []
        assert prediction.tokens["judge_completion"] == 1 + len(said.split()), "what it said was paid for all the same"

    def test_a_conflict_is_no_verdict_where_it_was_not_asked_for(self, make_chat, make_sage, query) -> None:
        chat = make_chat("conflicting")
        assert one(SufficiencyJudge(judge(chat, conflicts=False), make_sage()), query(GOLD)).reason is Reason.JUDGE_FAILED
        assert "conflicting" not in chat.asked[0].messages[0].content

    @pytest.mark.parametrize(
        ("said", "answer"),
        [
            ("Lima is named.\n\nSufficient", "Lima"),
            ("sufficient", "Lima"),
            ("Is it insufficient?\nNo.\nsufficient. \n", "Lima"),
            ("sufficient\nbecause Lima is named", None),
            ("So it is sufficient", None),
            (Completion("Lima is named.\nsufficient", 5, 5, finished=False), None),
        ],
    )
    def test_after_thinking_the_last_line_is_the_verdict(self, said, answer, make_chat, make_sage, query) -> None:
        prediction = one(SufficiencyJudge(judge(make_chat(said), think=True), make_sage("Lima")), query(GOLD))
        assert (prediction.answer, prediction.reason) == (answer, None if answer else Reason.JUDGE_FAILED)

    def test_documents_that_the_judge_did_not_read_are_named(self, make_chat, make_sage, query) -> None:
        chat = make_chat("sufficient")
        room = len(judge(chat).instruction) + 140
        prediction = one(SufficiencyJudge(judge(chat, max_prompt_characters=room), make_sage("Lima")), query(GOLD * 2, "Long. " * 50))
        assert (prediction.trimmed, prediction.dropped) == (("d2",), ())


class TestPromises:
    @pytest.mark.parametrize("texts", [(), ("   \n",)])
    def test_a_set_without_text_reaches_neither_model(self, texts, make_chat, make_sage, query) -> None:
        """Promise 2 and pitfall E1."""
        chat, sage = make_chat("sufficient"), make_sage()
        assert one(SufficiencyJudge(judge(chat), sage), query(*texts)).reason is Reason.NO_DOCUMENTS
        assert (chat.asked, sage.asked) == ([], [])

    @pytest.mark.parametrize("fault", [RuntimeError("fell over"), InputError("the server refuses the key"), None])
    def test_a_judge_that_fails_lets_nothing_through(self, fault, make_chat, make_sage, query) -> None:
        """Promise 1."""

        def say(_: str) -> None:
            if fault is not None:
                raise fault

        sage = make_sage("Lima")
        prediction = one(SufficiencyJudge(judge(make_chat(say)), sage), query(GOLD))
        assert (prediction.answer, prediction.reason, prediction.error, sage.asked) == (None, Reason.JUDGE_FAILED, None, [])

    def test_nor_does_one_out_of_time(self, make_chat, make_sage, query) -> None:
        """Promise 1 and pitfall I4."""
        release = threading.Event()
        sage = make_sage("Lima")
        prediction = one(SufficiencyJudge(judge(make_chat(lambda _: str(release.wait(10)))), sage, judge_deadline=0.1), query(GOLD))
        release.set()
        assert (prediction.reason, sage.asked) == (Reason.JUDGE_TIMEOUT, [])

    def test_one_unreadable_verdict_fails_alone(self, make_chat, make_sage, query) -> None:
        """Pitfall I4."""
        chat = make_chat(lambda message: "who knows" if "poison" in message else "sufficient")
        made = SufficiencyJudge(judge(chat), make_sage("Lima")).predict(
            [query(GOLD, id=f"e{n}", question=question) for n, question in enumerate(("What?", "poison", " ", "Who?"))]
        )
        assert [prediction.answer for prediction in made] == ["Lima", None, None, "Lima"]
        assert [prediction.reason for prediction in made] == [None, Reason.JUDGE_FAILED, None, None]
        assert len(chat.asked) == 3

    def test_a_deadline_that_lets_nothing_pass_is_refused(self, make_chat, make_sage) -> None:
        with pytest.raises(InputError, match="judge_deadline: expected a number of seconds above 0, got -1"):
            SufficiencyJudge(judge(make_chat("sufficient")), make_sage(), judge_deadline=-1)

    def test_nothing_is_asked_twice(self, make_chat, make_sage, query, tmp_path: Path) -> None:
        chat = make_chat("sufficient")
        for _ in range(2):
            SufficiencyJudge(judge(CachedChat(chat, tmp_path)), make_sage("Lima")).predict([query(GOLD), query(OTHER, id="e2")])
        assert len(chat.asked) == 2

    def test_ask_takes_texts(self, make_chat, make_sage) -> None:
        assert SufficiencyJudge(judge(make_chat("insufficient")), make_sage()).ask("Who?", [GOLD]).reason is Reason.INSUFFICIENT

    @given(
        said=st.lists(st.sampled_from(["sufficient", "insufficient", "conflicting", "maybe", "", "crash", None]), max_size=4),
        output=st.sampled_from(["Lima", "unanswerable", ""]),
    )
    def test_an_answer_was_let_through_and_everything_else_has_a_reason(self, said, output, make_chat, make_sage, query) -> None:
        def say(message: str) -> str | None:
            verdict = said[int(message.rpartition("Question: ")[2])]
            if verdict == "crash":
                raise RuntimeError
            return verdict

        made = SufficiencyJudge(judge(make_chat(say)), make_sage(output)).predict(
            [query(GOLD, id=f"e{n}", question=str(n)) for n in range(len(said))]
        )
        for verdict, prediction in zip(said, made, strict=True):
            assert (prediction.answer == "Lima") == (verdict == "sufficient" and output == "Lima")
            assert (prediction.answer is None) == (prediction.reason is not None)
            assert (prediction.prompt is not None) == (verdict == "sufficient")
