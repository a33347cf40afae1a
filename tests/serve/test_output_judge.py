"""A judge of the output: no answer goes out that the documents do not bear out, and none at all where the judge fails."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.models.nli import Entailment
from rag.models.nli_lexical import LexicalNli
from rag.records import Citation, Prediction, Query, Reason, RetrievalState
from serve.systems.output_judge import OutputJudge

GOLD = "The capital of Peru is Lima."
OTHER = "The capital of Peru is Cusco."
THIRD = "Llamas live in the Andes."

SAYS = Entailment(0.9, 0.1, 0.0)
DENIES = Entailment(0.0, 0.1, 0.9)
NEITHER = Entailment(0.1, 0.8, 0.1)


def by_document(**judged: Entailment) -> Any:
    """Judges by what the document is: `gold`, `other`; `third` says neither."""
    known = {GOLD: judged.get("gold", NEITHER), OTHER: judged.get("other", NEITHER)}
    return lambda premise, _: known.get(premise, NEITHER)


def system(sage: Any, nli: Any, **changes: Any) -> OutputJudge:
    return OutputJudge(sage, nli, **{"support": 0.5, "contradiction": 0.5, **changes})


def one(judge: OutputJudge, query: Query) -> Prediction:
    [prediction] = judge.predict([query])
    return prediction


class TestVerdict:
    def test_an_answer_that_a_document_bears_out_stands_as_the_sage_gave_it(self, make_sage, make_nli, query) -> None:
        nli = make_nli(by_document(gold=SAYS))
        prediction = one(system(make_sage("Lima"), nli), query(GOLD, THIRD))
        assert (prediction.answer, prediction.state, prediction.reason) == ("Lima", RetrievalState.ANSWERABLE, None)
        assert prediction.citations == (Citation(document_id="d1", supported=True),)
        assert prediction.confidence == 0.75
        hypothesis = 'The answer to "What is the capital of Peru?" is Lima.'
        assert nli.judged == [(GOLD, hypothesis), (THIRD, hypothesis)]
        assert set(prediction.timings) == {"sage", "judge", "total"}
        assert prediction.timings["total"] == pytest.approx(prediction.timings["sage"] + prediction.timings["judge"])

    def test_one_that_none_bears_out_does_not(self, make_sage, make_nli, query) -> None:
        prediction = one(system(make_sage("Arequipa"), make_nli(by_document())), query(GOLD, THIRD))
        assert (prediction.answer, prediction.reason, prediction.state) == (None, Reason.UNSUPPORTED, RetrievalState.UNANSWERABLE)
        assert (prediction.citations, prediction.output) == ((), "Arequipa")

    def test_nor_does_one_that_another_document_contradicts(self, make_sage, make_nli, query) -> None:
        nli = make_nli(by_document(gold=SAYS, other=DENIES))
        prediction = one(system(make_sage("Lima"), nli), query(GOLD, OTHER))
        assert (prediction.answer, prediction.reason, prediction.state) == (None, Reason.CONTRADICTED, RetrievalState.DISTRACTED)

    def test_contradiction_is_not_checked_where_it_has_no_threshold(self, make_sage, make_nli, query) -> None:
        nli = make_nli(by_document(gold=SAYS, other=DENIES))
        assert one(system(make_sage("Lima"), nli, contradiction=None), query(GOLD, OTHER)).answer == "Lima"

    def test_an_answer_of_the_sage_s_own_is_unsupported_whatever_contradicts_it(self, make_sage, make_nli, query) -> None:
        prediction = one(system(make_sage("Arequipa"), make_nli(by_document(gold=DENIES, other=DENIES))), query(GOLD, OTHER))
        assert prediction.reason is Reason.UNSUPPORTED

    def test_values_equal_to_the_thresholds_support_and_contradict(self, make_sage, make_nli, query) -> None:
        nli = make_nli(by_document(gold=Entailment(0.5, 0.5, 0.0), other=Entailment(0.0, 0.5, 0.5)))
        assert one(system(make_sage("Lima"), nli), query(GOLD)).answer == "Lima"
        assert one(system(make_sage("Lima"), nli), query(GOLD, OTHER)).reason is Reason.CONTRADICTED

    def test_an_abstention_of_the_sage_is_not_judged(self, make_sage, make_nli, query) -> None:
        nli = make_nli(by_document())
        prediction = one(system(make_sage("unanswerable"), nli), query(GOLD))
        assert (prediction.reason, set(prediction.timings), nli.judged) == (Reason.UNANSWERABLE, {"sage", "total"}, [])

    def test_braces_in_an_answer_are_text_and_a_final_stop_is_not_doubled(self, make_sage, make_nli, query) -> None:
        nli = make_nli(by_document(gold=SAYS))
        one(system(make_sage("{question} Inc."), nli, hypothesis="{question} {answer}."), query(GOLD, question="Who {answer}?"))
        assert nli.judged[0][1] == "Who {answer}? {question} Inc."

    @pytest.mark.parametrize(
        ("texts", "answer", "reason"),
        [
            ((GOLD, THIRD), "Lima", None),
            ((THIRD,), None, Reason.UNSUPPORTED),
            ((GOLD, "Lima is not the capital of Peru."), None, Reason.CONTRADICTED),
        ],
    )
    def test_with_the_stand_in_for_nli(self, texts, answer, reason, make_sage, query) -> None:
        prediction = one(system(make_sage("Lima"), LexicalNli()), query(*texts))
        assert (prediction.answer, prediction.reason) == (answer, reason)


class TestPromises:
    @pytest.mark.parametrize("texts", [(), ("   \n",)])
    def test_a_set_without_text_reaches_neither_model(self, texts, make_sage, make_nli, query) -> None:
        """Promise 2 and pitfall E1."""
        sage, nli = make_sage(), make_nli(by_document(gold=SAYS))
        assert one(system(sage, nli), query(*texts)).reason is Reason.NO_DOCUMENTS
        assert (sage.asked, nli.judged) == ([], [])

    @pytest.mark.parametrize(
        "fault",
        [
            RuntimeError("fell over"),
            InputError("hypothesis: it takes 600 of the 512 tokens of a window"),
            Entailment(float("nan"), 0.5, 0.5),
            Entailment(0.9, 0.1, float("nan")),
            Entailment(1.7, 0.0, 0.0),
        ],
    )
    def test_a_judge_that_fails_lets_no_answer_out(self, fault, make_sage, make_nli, query) -> None:
        """Promise 1. A sentence that the judge cannot take is made of the answer, so it is no fault of the question."""

        def judge(*_: str) -> Entailment:
            if isinstance(fault, Exception):
                raise fault
            return fault

        prediction = one(system(make_sage("Lima"), make_nli(judge)), query(GOLD))
        assert (prediction.answer, prediction.reason, prediction.error) == (None, Reason.JUDGE_FAILED, None)
        assert (prediction.state, prediction.citations, prediction.output) == (None, (), "Lima")

    def test_nor_does_one_that_judges_too_few(self, make_sage, make_nli, query) -> None:
        nli = make_nli(by_document(gold=SAYS))
        nli.judge = lambda pairs: [SAYS] * (len(pairs) - 1)
        assert one(system(make_sage("Lima"), nli), query(GOLD, THIRD)).reason is Reason.JUDGE_FAILED

    def test_nor_does_one_out_of_time(self, make_sage, make_nli, query, clock) -> None:
        """Promise 1 and pitfall I4."""
        prediction = one(system(make_sage("Lima"), make_nli(lambda *_: clock.sleep(3600)), judge_deadline=1), query(GOLD))
        assert clock.seconds == 1
        assert (prediction.answer, prediction.reason) == (None, Reason.JUDGE_TIMEOUT)

    def test_one_poisoned_item_fails_alone(self, make_sage, make_nli, query) -> None:
        """Pitfall I4."""

        def judge(premise: str, _: str) -> Entailment:
            if premise == "poison":
                raise RuntimeError
            return SAYS

        nli = make_nli(judge)
        made = system(make_sage("Lima"), nli).predict([query(GOLD, id="a"), query("poison", id="b"), query(GOLD, id="c", question=" ")])
        assert [(prediction.answer, prediction.reason) for prediction in made] == [
            ("Lima", None),
            (None, Reason.JUDGE_FAILED),
            (None, None),
        ]
        assert made[2].error is not None

    def test_a_sage_that_fails_is_not_judged(self, make_sage, make_nli, query) -> None:
        def fall(*_: Any) -> str:
            raise RuntimeError

        nli = make_nli(by_document(gold=SAYS))
        assert one(system(make_sage(fall), nli), query(GOLD)).reason is Reason.SAGE_FAILED
        assert nli.judged == []

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ({"support": 0}, "support: expected a number above 0, up to 1, got 0"),
            ({"support": float("nan")}, "support: expected a number above 0, up to 1, got nan"),
            ({"contradiction": 2}, "contradiction: expected a number above 0, up to 1, got 2"),
            ({"hypothesis": "yes"}, "hypothesis: expected a sentence with {answer} in it, and {question} where it is of use, got 'yes'"),
            ({"judge_deadline": 0}, "judge_deadline: expected a number of seconds above 0, got 0"),
        ],
    )
    def test_a_setting_that_would_switch_the_judge_off_is_refused(self, setting, message, make_sage, make_nli) -> None:
        with pytest.raises(InputError) as caught:
            system(make_sage(), make_nli(by_document()), **setting)
        assert str(caught.value) == message

    def test_ask_takes_texts(self, make_sage, make_nli) -> None:
        assert system(make_sage("Lima"), make_nli(by_document(gold=SAYS))).ask("What is the capital of Peru?", [GOLD]).answer == "Lima"

    @given(
        judged=st.lists(st.sampled_from([SAYS, DENIES, NEITHER, Entailment(float("nan"), 0, 0), None]), min_size=4, max_size=4),
        output=st.sampled_from(["Lima", "unanswerable", ""]),
        sizes=st.lists(st.integers(0, 2), max_size=3),
    )
    def test_an_answer_was_borne_out_and_everything_else_has_a_reason(self, judged, output, sizes, make_sage, make_nli, query) -> None:
        def judge(premise: str, _: str) -> Entailment:
            found = judged[int(premise)]
            if found is None:
                raise RuntimeError
            return found

        made = system(make_sage(output), make_nli(judge)).predict(
            [query(*(str((n + place) % 4) for place in range(size)), id=f"e{n}") for n, size in enumerate(sizes)]
        )
        for n, (size, prediction) in enumerate(zip(sizes, made, strict=True)):
            of_set = [judged[(n + place) % 4] for place in range(size)]
            borne_out = SAYS in of_set and all(one in (SAYS, NEITHER) for one in of_set)
            assert (prediction.answer == "Lima") == (output == "Lima" and borne_out)
            assert (prediction.answer is None) == (prediction.reason is not None)
