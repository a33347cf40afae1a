"""The two-stage system: whatever goes wrong, and whatever the stages say, an answer was screened and an abstention has a reason."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.records import Citation, Document, Prediction, Query, Reason, RetrievalState
from sage.predict import Kind, Parsed
from serve.systems.sieve_and_sage import SieveAndSage
from serve.systems.stage import load_sage
from sieve.predict import Removal, Screening

GOLD = "The capital of Peru is Lima."
OTHER = "The capital of Peru is Cusco."
THIRD = "Llamas live in the Andes."


def ids(documents: Sequence[Document]) -> set[str]:
    return {document.id for document in documents}


def distracted_by(*culprits: str, low: float = 0.1, high: float = 0.9) -> Callable[[Sequence[Document]], float]:
    """Scores high while all culprits are in the set."""
    return lambda documents: high if ids(documents).issuperset(culprits) else low


def one(system: SieveAndSage, query: Query) -> Prediction:
    [prediction] = system.predict([query])
    return prediction


class TestClean:
    def test_a_clean_set_is_answered_with_citation_prompt_tokens_and_timings(self, make_sieve, make_sage, query) -> None:
        prediction = one(SieveAndSage(make_sieve(0.1), make_sage("Lima")), query(GOLD, THIRD))
        assert (prediction.answer, prediction.state, prediction.reason) == ("Lima", RetrievalState.ANSWERABLE, None)
        assert prediction.citations == (Citation(document_id="d1", supported=True),)
        assert (prediction.id, prediction.question_id) == ("e1", "q-e1")
        assert (prediction.sieve_score, prediction.threshold, prediction.confidence, prediction.output) == (0.1, 0.5, 0.75, "Lima")
        assert prediction.prompt is not None and GOLD in prediction.prompt and THIRD in prediction.prompt
        assert prediction.tokens == {"sieve": 20, "prompt": len(prediction.prompt.split()), "completion": 2}
        assert set(prediction.timings) == {"sieve", "sage", "total"}
        assert prediction.timings["total"] == prediction.timings["sieve"] + prediction.timings["sage"]

    def test_a_clean_set_costs_one_sieve_call_and_a_flagged_one_two(self, make_sieve, make_sage, query) -> None:
        """Pitfall A6."""
        clean, flagged = make_sieve(0.1), make_sieve(distracted_by("d2"))
        for sieve in (clean, flagged):
            one(SieveAndSage(sieve, make_sage(), on_flag="filter"), query(GOLD, OTHER, "c", "d", "e"))
        assert (len(clean.screened), len(clean.examined)) == (1, 0)
        assert (len(flagged.screened), len(flagged.examined)) == (1, 1)

    def test_a_batch_costs_one_call_of_each_stage(self, make_sieve, make_sage, query) -> None:
        sieve, sage = make_sieve(0.1), make_sage()
        SieveAndSage(sieve, sage).predict([query(GOLD, id="e1"), query(GOLD, id="e2")])
        assert (len(sieve.screened), len(sage.asked)) == (1, 1)

    def test_no_query_is_no_call(self, make_sieve, make_sage) -> None:
        sieve = make_sieve(0.1)
        assert SieveAndSage(sieve, make_sage()).predict([]) == []
        assert sieve.screened == []


class TestNothingRetrieved:
    @pytest.mark.parametrize("texts", [(), ("   \n",), ("", "\t")])
    @pytest.mark.parametrize("on_flag", ["abstain", "blame", "filter"])
    def test_it_reaches_neither_stage(self, texts, on_flag, make_sieve, make_sage, query) -> None:
        """Pitfall E1."""
        sieve, sage = make_sieve(0.1), make_sage()
        prediction = one(SieveAndSage(sieve, sage, on_flag=on_flag), query(*texts))
        assert (prediction.reason, prediction.answer, prediction.citations) == (Reason.NO_DOCUMENTS, None, ())
        assert prediction.state is RetrievalState.UNANSWERABLE
        assert (sieve.screened, sieve.examined, sage.asked) == ([], [], [])

    def test_blank_documents_among_others_are_no_evidence(self, make_sieve, make_sage, query) -> None:
        seen: list[set[str]] = []
        sieve = make_sieve(lambda documents: seen.append(ids(documents)) or 0.1)
        assert one(SieveAndSage(sieve, make_sage()), query(" ", GOLD)).answer == "Lima"
        assert seen == [{"d2"}]


class TestFlagged:
    def test_a_score_equal_to_the_threshold_is_flagged(self, make_sieve, make_sage, query) -> None:
        sage = make_sage()
        assert one(SieveAndSage(make_sieve(0.5, threshold=0.5), sage), query(GOLD, OTHER)).reason is Reason.DISTRACTED
        assert sage.asked == []
        assert one(SieveAndSage(make_sieve(0.49, threshold=0.5), sage), query(GOLD, OTHER)).answer == "Lima"

    @pytest.mark.parametrize(("given", "reason"), [(0.4, Reason.DISTRACTED), (0.6, None), (None, Reason.DISTRACTED)])
    def test_a_threshold_of_its_own_replaces_the_sieve_s(self, given, reason, make_sieve, make_sage, query) -> None:
        prediction = one(SieveAndSage(make_sieve(0.45, threshold=0.45), make_sage(), threshold=given), query(GOLD))
        assert (prediction.reason, prediction.threshold) == (reason, 0.45 if given is None else given)

    def test_abstain_ends_there(self, make_sieve, make_sage, query) -> None:
        sieve, sage = make_sieve(distracted_by("d2")), make_sage()
        prediction = one(SieveAndSage(sieve, sage, on_flag="abstain"), query(GOLD, OTHER))
        assert (prediction.reason, prediction.state, prediction.blamed) == (Reason.DISTRACTED, RetrievalState.DISTRACTED, ())
        assert (sieve.examined, sage.asked) == ([], [])

    def test_blame_names_the_document_and_abstains(self, make_sieve, make_sage, query) -> None:
        sage = make_sage()
        prediction = one(SieveAndSage(make_sieve(distracted_by("d2")), sage, on_flag="blame"), query(GOLD, OTHER, THIRD))
        assert (prediction.reason, prediction.blamed, prediction.removed) == (Reason.DISTRACTED, ("d2",), ())
        assert prediction.leave_one_out == {"d1": 0.9, "d2": 0.1, "d3": 0.9}
        assert sage.asked == []

    def test_filter_removes_the_document_and_asks_on_the_rest(self, make_sieve, make_sage, query) -> None:
        prediction = one(SieveAndSage(make_sieve(distracted_by("d2")), make_sage(), on_flag="filter"), query(GOLD, OTHER, THIRD))
        assert (prediction.answer, prediction.removed, prediction.blamed) == ("Lima", ("d2",), ("d2",))
        assert prediction.state is RetrievalState.DISTRACTED, "the state is that of the set as it was retrieved"
        assert prediction.prompt is not None and OTHER not in prediction.prompt and THIRD in prediction.prompt
        assert set(prediction.timings) == {"sieve", "leave_one_out", "sage", "total"}

    def test_a_sage_that_abstains_on_the_rest_leaves_the_state_as_retrieved(self, make_sieve, make_sage, query) -> None:
        system = SieveAndSage(make_sieve(distracted_by("d2")), make_sage("unanswerable"), on_flag="filter")
        prediction = one(system, query(GOLD, OTHER))
        assert (prediction.reason, prediction.state) == (Reason.UNANSWERABLE, RetrievalState.DISTRACTED)

    @pytest.mark.parametrize("texts", [(GOLD,), (GOLD, GOLD.upper())])
    def test_nothing_left_is_a_reason_of_its_own(self, texts, make_sieve, make_sage, query) -> None:
        """A single document, and near-identical ones, which are one unit."""
        sage = make_sage()
        prediction = one(SieveAndSage(make_sieve(0.9), sage, on_flag="filter"), query(*texts))
        assert (prediction.reason, prediction.answer) == (Reason.ALL_REMOVED, None)
        assert sage.asked == []

    def test_a_sieve_that_removes_the_whole_set_leaves_nothing_to_answer_from(self, make_sieve, make_sage, query) -> None:
        sieve, sage = make_sieve(0.9), make_sage()
        sieve.leave_one_out = lambda *_: [[Removal(("d1", "d2"), 1, 0.0)]]
        assert one(SieveAndSage(sieve, sage, on_flag="filter"), query(GOLD, OTHER)).reason is Reason.ALL_REMOVED
        assert sage.asked == []

    @pytest.mark.parametrize("left", [0.5, 0.7])
    def test_a_set_that_no_removal_cleans_is_not_passed_on(self, left, make_sieve, make_sage, query) -> None:
        """Two false documents: without either the set is still distracted. A score equal to the threshold is, too."""
        sage = make_sage()
        system = SieveAndSage(make_sieve(distracted_by("d2", low=left)), sage, on_flag="filter")
        prediction = one(system, query(GOLD, OTHER, THIRD))
        assert (prediction.reason, prediction.blamed, prediction.removed) == (Reason.STILL_DISTRACTED, ("d2",), ())
        assert sage.asked == []

    def test_near_identical_documents_are_removed_as_one(self, make_sieve, make_sage, query) -> None:
        def score(documents: Sequence[Document]) -> float:
            return 0.9 if ids(documents) & {"d2", "d3"} else 0.1

        prediction = one(SieveAndSage(make_sieve(score), make_sage(), on_flag="filter"), query(GOLD, OTHER, OTHER.upper(), THIRD))
        assert (prediction.removed, prediction.answer) == (("d2", "d3"), "Lima")
        assert prediction.leave_one_out == {"d1": 0.9, "d2": 0.1, "d3": 0.1, "d4": 0.9}

    def test_a_tie_goes_to_the_lower_ranked_document(self, make_sieve, make_sage, query) -> None:
        """Any removal cleans this set; the document that the retriever trusts least goes."""
        system = SieveAndSage(make_sieve(distracted_by("d1", "d2", "d3")), make_sage(), on_flag="filter")
        assert one(system, query(GOLD, OTHER, THIRD)).removed == ("d3",)

    def test_a_tie_goes_by_rank_wherever_the_document_stands(self, make_sieve, make_sage) -> None:
        documents = tuple(Document(id=i, text=text, rank=rank) for i, text, rank in (("a", GOLD, 3), ("b", OTHER, 1), ("c", THIRD, 2)))
        asked = Query(id="e1", question_id="q1", question="What?", documents=documents)
        system = SieveAndSage(make_sieve(distracted_by("a", "b", "c")), make_sage(), on_flag="filter")
        assert one(system, asked).removed == ("a",)

    def test_a_tie_but_for_rounding_is_a_tie(self, make_sieve, make_sage, query) -> None:
        rest = {"d1": 0.3, "d2": 0.2 + 1e-8, "d3": 0.2}
        sieve = make_sieve(lambda documents: next((score for i, score in rest.items() if i not in ids(documents)), 0.9))
        for bits in (1e-8, 0.0, -1e-8):
            rest["d2"] = 0.2 + bits
            assert one(SieveAndSage(sieve, make_sage(), on_flag="filter"), query("a", "b", "c")).removed == ("d3",)

    def test_a_tie_in_rank_goes_to_the_first_id(self, make_sieve, make_sage, query) -> None:
        sieve = make_sieve(0.9)
        sieve.leave_one_out = lambda *_: [[Removal(("d3",), 2, 0.1), Removal(("d2",), 2, 0.1), Removal(("d1",), 1, 0.1)]]
        assert one(SieveAndSage(sieve, make_sage(), on_flag="filter"), query(GOLD, OTHER, THIRD)).removed == ("d2",)


def crash(*_: Any) -> Any:
    raise RuntimeError("the model fell over")


def out_of_memory(*_: Any) -> Any:
    raise MemoryError


NO_PROBABILITY = [float("nan"), float("inf"), -0.01, 1.01, None, "0.1"]


class TestGuardFailures:
    """Promise 1: each ends in an abstention with a reason, and the Sage is never asked about a set that was not screened."""

    @pytest.mark.parametrize("on_flag", ["abstain", "filter"])
    @pytest.mark.parametrize("score", NO_PROBABILITY)
    def test_a_sieve_score_that_is_no_probability(self, score, on_flag, make_sieve, make_sage, query) -> None:
        sage = make_sage()
        prediction = one(SieveAndSage(make_sieve(score), sage, on_flag=on_flag), query(GOLD, OTHER))
        assert (prediction.reason, prediction.answer, prediction.sieve_score) == (Reason.SIEVE_FAILED, None, None)
        assert sage.asked == []

    @pytest.mark.parametrize("result", [crash, out_of_memory, lambda *_: [], lambda *_: None, lambda *_: [None]])
    def test_a_sieve_that_crashes_or_gives_no_result_for_each_set(self, result, make_sieve, make_sage, query) -> None:
        sieve, sage = make_sieve(0.1), make_sage()
        sieve.screen = result
        assert one(SieveAndSage(sieve, sage), query(GOLD)).reason is Reason.SIEVE_FAILED
        assert sage.asked == []

    def test_too_many_results_are_nobody_s(self, make_sieve, make_sage, query) -> None:
        """Two results for one set: which of them belongs to it cannot be known."""
        sieve, sage = make_sieve(0.1), make_sage()
        sieve.screen = lambda *_: [Screening(0.1, (), 1), Screening(0.9, (), 1)]
        assert one(SieveAndSage(sieve, sage), query(GOLD)).reason is Reason.SIEVE_FAILED
        assert sage.asked == []

    @pytest.mark.parametrize("score", NO_PROBABILITY)
    def test_a_leave_one_out_score_that_is_no_probability(self, score, make_sieve, make_sage, query) -> None:
        sieve, sage = make_sieve(lambda documents: 0.9 if len(documents) == 2 else score), make_sage()
        assert one(SieveAndSage(sieve, sage, on_flag="filter"), query(GOLD, OTHER)).reason is Reason.SIEVE_FAILED
        assert sage.asked == []

    @pytest.mark.parametrize(
        "result",
        [
            crash,
            lambda *_: [],
            lambda *_: [[Removal(("d9",), 1, 0.0)]],
            lambda *_: [[Removal((), 1, 0.0)]],
            lambda *_: [[Removal(("d1", "d9"), 1, 0.0)]],
        ],
        ids=["crash", "no result", "unknown document", "no document", "one of two unknown"],
    )
    def test_removals_that_cannot_be_read_pass_nothing_on(self, result, make_sieve, make_sage, query) -> None:
        """A removal that names no document of the set would pass the whole flagged set on as if it were clean."""
        sieve, sage = make_sieve(0.9), make_sage()
        sieve.leave_one_out = result
        prediction = one(SieveAndSage(sieve, sage, on_flag="filter"), query(GOLD, OTHER))
        assert (prediction.reason, prediction.state) == (Reason.SIEVE_FAILED, RetrievalState.DISTRACTED)
        assert sage.asked == []

    @pytest.mark.parametrize("result", [crash, lambda *_: [], lambda *_: [None], lambda *_: ["Lima"]])
    def test_a_sage_that_crashes_or_gives_no_reply(self, result, make_sieve, make_sage, query) -> None:
        sage = make_sage()
        sage.answer = result
        prediction = one(SieveAndSage(make_sieve(0.1), sage), query(GOLD))
        assert (prediction.reason, prediction.answer, prediction.sieve_score) == (Reason.SAGE_FAILED, None, 0.1)

    @pytest.mark.parametrize("output", ["", "  ", '""', " . "])
    def test_output_that_cannot_be_read(self, output, make_sieve, make_sage, query) -> None:
        prediction = one(SieveAndSage(make_sieve(0.1), make_sage(output)), query(GOLD))
        assert (prediction.reason, prediction.answer, prediction.output) == (Reason.UNPARSED, None, output)
        assert prediction.prompt is not None

    def test_a_parser_that_calls_nothing_an_answer(self, make_sieve, make_sage, query) -> None:
        sage = make_sage()
        reply = sage.answer(["q"], [[Document(id="d1", text=GOLD)]])[0]
        sage.answer = lambda *_: [reply._replace(parsed=Parsed(Kind.ANSWER))]
        assert one(SieveAndSage(make_sieve(0.1), sage), query(GOLD)).reason is Reason.UNPARSED

    @pytest.mark.parametrize("confidence", [float("nan"), 1.5, -0.5])
    def test_a_confidence_that_is_no_probability_costs_the_confidence_not_the_answer(
        self, confidence, make_sieve, make_sage, query
    ) -> None:
        """Promise 12: it leaves the calibration table, not the accuracy table; a NaN in a record would sink the batch."""
        sage = make_sage()
        reply = sage.answer(["q"], [[Document(id="d1", text=GOLD)]])[0]
        sage.answer = lambda *_: [reply._replace(confidence=confidence)]
        prediction = one(SieveAndSage(make_sieve(0.1), sage), query(GOLD))
        assert (prediction.answer, prediction.confidence) == ("Lima", None)

    def test_a_failure_is_logged_with_its_cause(self, make_sieve, make_sage, query, caplog) -> None:
        one(SieveAndSage(make_sieve(crash), make_sage()), query(GOLD))
        assert "query e1: sieve_failed: RuntimeError('the model fell over')" in caplog.text


class TestDeadlines:
    """Pitfall I4."""

    @pytest.mark.parametrize(
        ("stage", "reason"),
        [("screen", Reason.SIEVE_TIMEOUT), ("leave_one_out", Reason.SIEVE_TIMEOUT), ("answer", Reason.SAGE_TIMEOUT)],
    )
    def test_a_stage_that_hangs_ends_in_an_abstention_in_time(self, stage, reason, make_sieve, make_sage, query, clock) -> None:
        sieve, sage = make_sieve(distracted_by("d2")), make_sage()
        hanging = sage if stage == "answer" else sieve
        setattr(hanging, stage, lambda *_: clock.sleep(3600))
        system = SieveAndSage(sieve, sage, on_flag="filter", sieve_deadline=1, sage_deadline=2)
        prediction = one(system, query(GOLD, OTHER))
        assert (prediction.reason, prediction.answer) == (reason, None)
        assert clock.seconds == (2 if stage == "answer" else 1)

    def test_one_item_that_hangs_does_not_cost_the_others_their_answer(self, make_sieve, make_sage, query, clock) -> None:
        sieve = make_sieve(lambda documents: 0.1 if documents[0].text != THIRD else clock.sleep(3600))
        queries = [query(GOLD, id="e1"), query(THIRD, id="e2"), query(GOLD, id="e3")]
        predictions = SieveAndSage(sieve, make_sage(), sieve_deadline=3).predict(queries)
        assert [p.reason for p in predictions] == [None, Reason.SIEVE_TIMEOUT, None]

    def test_a_deadline_is_for_each_query_not_for_the_batch(self, make_sieve, make_sage, query, clock) -> None:
        sieve = make_sieve(lambda _: clock.sleep(2) or 0.1)
        predictions = SieveAndSage(sieve, make_sage(), sieve_deadline=3).predict([query(GOLD, id=f"e{n}") for n in range(4)])
        assert [p.answer for p in predictions] == ["Lima"] * 4
        assert len(sieve.screened) == 1
        assert [p.timings["sieve"] for p in predictions] == [2000] * 4, "the batch's time by item"

    def test_a_stage_in_time_is_unaffected(self, make_sieve, make_sage, query) -> None:
        assert one(SieveAndSage(make_sieve(0.1), make_sage(), sieve_deadline=30, sage_deadline=30), query(GOLD)).answer == "Lima"


class TestBatches:
    def test_an_empty_question_is_an_error_and_the_rest_are_results_in_order(self, make_sieve, make_sage, query) -> None:
        """Pitfall I4: three results and one error."""
        queries = [query(GOLD, id=f"e{n}", question="  " if n == 3 else "What?") for n in (1, 2, 3, 4)]
        predictions = SieveAndSage(make_sieve(0.1), make_sage()).predict(queries)
        assert [(p.id, p.answer) for p in predictions] == [("e1", "Lima"), ("e2", "Lima"), ("e3", None), ("e4", "Lima")]
        assert [p.error is None for p in predictions] == [True, True, False, True]
        assert "question: expected text" in str(predictions[2].error)

    def test_repeated_document_ids_are_an_error(self, make_sieve, make_sage) -> None:
        twice = Document(id="d1", text=GOLD)
        asked = Query(id="e1", question_id="q1", question="What?", documents=(twice, twice))
        assert one(SieveAndSage(make_sieve(0.1), make_sage()), asked).error == "documents: ids must be unique, repeated: d1"

    @pytest.mark.parametrize("stage", ["sieve", "leave_one_out", "sage"])
    @pytest.mark.parametrize("error", [RuntimeError("poisoned"), InputError("too long")])
    def test_one_poisoned_item_fails_alone(self, stage, error, make_sieve, make_sage, query) -> None:
        """The call on the whole batch raises; called one by one, only the item at fault does."""

        def poisoned(documents: Sequence[Document]) -> bool:
            return any("poison" in document.text for document in documents)

        def score(documents: Sequence[Document]) -> float:
            if poisoned(documents) and stage == ("sieve" if len(documents) == 2 else "leave_one_out"):
                raise error
            return distracted_by("d2")(documents)

        def say(_: str, documents: Sequence[Document]) -> str:
            if poisoned(documents) and stage == "sage":
                raise error
            return "Lima"

        queries = [query(GOLD if n != 2 else "poison", OTHER, id=f"e{n}") for n in (1, 2, 3)]
        predictions = SieveAndSage(make_sieve(score), make_sage(say), on_flag="filter").predict(queries)
        assert [p.answer for p in predictions] == ["Lima", None, "Lima"]
        if isinstance(error, InputError):
            assert (predictions[1].error, predictions[1].reason, predictions[1].state) == ("too long", None, None)
        else:
            assert predictions[1].reason is (Reason.SAGE_FAILED if stage == "sage" else Reason.SIEVE_FAILED)

    def test_an_item_that_the_sage_returns_as_an_error_leaves_the_others_alone(self, make_sieve, make_sage, query) -> None:
        sage = make_sage()
        good = sage.answer(["q"], [[Document(id="d1", text=GOLD)]])[0]
        sage.answer = lambda *_: [InputError("over budget"), good]
        predictions = SieveAndSage(make_sieve(0.1), sage).predict([query(GOLD, id="e1"), query(GOLD, id="e2")])
        assert [(p.error, p.answer) for p in predictions] == [("over budget", None), (None, "Lima")]

    def test_a_batch_with_one_result_too_few_is_run_one_by_one(self, make_sieve, make_sage, query) -> None:
        """A stage that swallows an item in a batch: no result may slip to the neighbour."""
        sieve = make_sieve(lambda documents: 0.9 if documents[0].text == OTHER else 0.1)
        whole = sieve.screen
        sieve.screen = lambda questions, documents: whole(questions, documents)[: max(1, len(questions) - 1)]
        predictions = SieveAndSage(sieve, make_sage()).predict([query(GOLD, id="e1"), query(OTHER, id="e2"), query(GOLD, id="e3")])
        assert [p.sieve_score for p in predictions] == [0.1, 0.9, 0.1]

    def test_every_item_goes_its_own_way(self, make_sieve, make_sage, query) -> None:
        def score(documents: Sequence[Document]) -> float:
            return 0.9 if any(document.text == OTHER for document in documents) else 0.1

        def say(question: str, _: Sequence[Document]) -> str:
            return "unanswerable" if question == "Who?" else "Lima"

        queries = [
            query(GOLD, id="clean"),
            query(GOLD, OTHER, id="flagged"),
            query(id="empty"),
            query(GOLD, id="unanswerable", question="Who?"),
            query(OTHER, id="alone"),
        ]
        predictions = SieveAndSage(make_sieve(score), make_sage(say), on_flag="filter").predict(queries)
        assert [(p.id, p.answer, p.reason) for p in predictions] == [
            ("clean", "Lima", None),
            ("flagged", "Lima", None),
            ("empty", None, Reason.NO_DOCUMENTS),
            ("unanswerable", None, Reason.UNANSWERABLE),
            ("alone", None, Reason.ALL_REMOVED),
        ]


class TestCitations:
    """Pitfall E3: Sieve removes d2, the budget drops d5, the order is reversed, and only d4 holds the answer."""

    TEXTS = (
        "Arequipa is built of white stone.",
        "The capital of Peru is Cusco.",
        "Llamas live in the high Andes.",
        "Since 1535 the capital of Peru is Lima.",
        "The river Amazon begins in Peru.",
    )

    def predict(self, make_sieve, make_sage, query, output: str) -> Prediction:
        asked = query(*self.TEXTS)
        room_for_three = make_sage().answer([asked.question], [[asked.documents[n] for n in (0, 2, 3)]])[0].prompt_tokens
        system = SieveAndSage(make_sieve(distracted_by("d2")), make_sage(output, budget=room_for_three), on_flag="filter")
        prediction = one(system, asked)
        assert (prediction.removed, prediction.dropped) == (("d2",), ("d5",))
        assert prediction.prompt is not None
        places = [prediction.prompt.index(self.TEXTS[n]) for n in (3, 2, 0)]
        assert places == sorted(places), "best last"
        return prediction

    def test_the_citation_is_the_document_that_holds_the_answer(self, make_sieve, make_sage, query) -> None:
        prediction = self.predict(make_sieve, make_sage, query, "Lima")
        assert prediction.citations == (Citation(document_id="d4", supported=True),)

    def test_removed_and_unknown_documents_cannot_be_cited(self, make_sieve, make_sage, query) -> None:
        prediction = self.predict(make_sieve, make_sage, query, "Lima [d2][d9]")
        assert (prediction.answer, prediction.citations, prediction.rejected_citations) == ("Lima", (), ("d2", "d9"))

    def test_neither_can_a_dropped_one(self, make_sieve, make_sage, query) -> None:
        prediction = self.predict(make_sieve, make_sage, query, "Lima [d4, d5]")
        assert prediction.citations == (Citation(document_id="d4", supported=True),)
        assert (prediction.answer, prediction.rejected_citations) == ("Lima", ("d5",))

    def test_a_citation_that_does_not_hold_the_answer_is_marked(self, make_sieve, make_sage, query) -> None:
        prediction = self.predict(make_sieve, make_sage, query, "Lima [d3]")
        assert prediction.citations == (Citation(document_id="d3", supported=False),)


@pytest.mark.parametrize("output", ["Unanswerable.", "  UNANSWERABLE ", "“unanswerable”"])
def test_an_abstention_is_recognised(output, make_sieve, make_sage, query) -> None:
    """Pitfall E5."""
    prediction = one(SieveAndSage(make_sieve(0.1), make_sage(output)), query(GOLD))
    assert (prediction.reason, prediction.answer, prediction.state) == (Reason.UNANSWERABLE, None, RetrievalState.UNANSWERABLE)


@pytest.mark.parametrize("output", ["the unanswerable question", "unanswerable by radio"])
def test_an_answer_that_contains_the_string_is_no_abstention(output, make_sieve, make_sage, query) -> None:
    """Pitfall E5."""
    prediction = one(SieveAndSage(make_sieve(0.1), make_sage(output)), query(GOLD))
    assert (prediction.answer, prediction.reason) == (output, None)


class TestUse:
    def test_ask_takes_texts_and_documents(self, make_sieve, make_sage) -> None:
        system = SieveAndSage(make_sieve(0.1), make_sage())
        prediction = system.ask("What is the capital of Peru?", [THIRD, Document(id="peru", text=GOLD)])
        assert prediction.citations == (Citation(document_id="peru", supported=True),)
        assert system.ask("What is the capital of Peru?", [THIRD, GOLD]).citations == (Citation(document_id="d2", supported=True),)

    def test_one_text_in_place_of_a_list_is_not_read_letter_by_letter(self, make_sieve, make_sage) -> None:
        with pytest.raises(InputError, match=r"documents: expected a list of documents, got one text"):
            SieveAndSage(make_sieve(0.1), make_sage()).ask("What?", GOLD)

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ({"on_flag": "fliter"}, "on_flag: expected abstain, blame, filter, got 'fliter'; did you mean 'filter'?"),
            ({"threshold": 1.5}, "threshold: expected a number from 0 to 1, got 1.5"),
            ({"threshold": float("nan")}, "threshold: expected a number from 0 to 1, got nan"),
            ({"sieve_deadline": 0}, "sieve_deadline: expected a number of seconds above 0, got 0"),
            ({"sage_deadline": -1}, "sage_deadline: expected a number of seconds above 0, got -1"),
        ],
    )
    def test_a_setting_that_would_switch_the_guard_off_is_refused(self, setting, message, make_sieve, make_sage) -> None:
        with pytest.raises(InputError) as caught:
            SieveAndSage(make_sieve(0.1), make_sage(), **setting)
        assert str(caught.value) == message


SCORES: tuple[Any, ...] = (0.0, 0.2, 0.4, 0.5, 0.8, 1.0, float("nan"), 2.0, None, "crash", "input")
OUTPUTS = ("Lima", "Lima [d1]", "Lima [d9]", "unanswerable", "", '"."', "crash", "input")
TEXTS = (GOLD, GOLD.lower(), OTHER, THIRD, "", " \n")


@given(
    sets=st.lists(st.lists(st.sampled_from(TEXTS), max_size=4), max_size=4),
    blank=st.sets(st.integers(0, 3), max_size=1),
    on_flag=st.sampled_from(["abstain", "blame", "filter"]),
    seed=st.integers(0, 1000),
)
def test_an_answer_was_screened_and_everything_else_has_a_reason(sets, blank, on_flag, seed, make_sieve, make_sage, query) -> None:
    """Promises 1 to 4 over stages that do anything at all; what they do depends on what they are asked, not on the batch."""

    def act(choices: Sequence[Any], documents: Sequence[Document]) -> Any:
        choice = random.Random(f"{seed}{sorted(ids(documents))}{[d.text for d in documents]}").choice(choices)
        if choice == "crash":
            raise RuntimeError
        if choice == "input":
            raise InputError("cannot be used")
        return choice

    sage = make_sage(lambda _, documents: act(OUTPUTS, documents))
    system = SieveAndSage(make_sieve(lambda documents: act(SCORES, documents)), sage, on_flag=on_flag)
    queries = [query(*texts, id=f"e{n}", question=" " if n in blank else "What?") for n, texts in enumerate(sets)]
    predictions = system.predict(queries)
    assert [p.id for p in predictions] == [q.id for q in queries]
    for asked, made in zip(queries, predictions, strict=True):
        shown = {document.id for document in asked.documents if document.text.strip()}
        assert made.timings["total"] == pytest.approx(sum(made.timings.values()) - made.timings["total"])
        assert shown.issuperset({*made.removed, *made.blamed, *made.leave_one_out, *(c.document_id for c in made.citations)})
        if made.answer is None:
            assert (made.reason is None) != (made.error is None)
            assert made.citations == ()
            assert made.error is None or made.state is None
            continue
        assert made.prompt is not None and made.sieve_score is not None
        assert not any(f'<doc id="{removed}"' in made.prompt for removed in made.removed)
        if made.sieve_score >= system.threshold:
            assert on_flag == "filter" and made.removed and set(made.removed) < shown
            assert made.leave_one_out[made.removed[0]] == min(made.leave_one_out.values()) < system.threshold
            assert made.state is RetrievalState.DISTRACTED
        else:
            assert (made.removed, made.state) == ((), RetrievalState.ANSWERABLE)


def test_what_a_reading_sieve_found_is_kept(make_sieve, make_sage, query) -> None:
    sieve = make_sieve(0.1)
    sieve.screen = lambda questions, documents: [Screening(0.1, (), 5, {"d1": "Lima", "d2": ""})] * len(questions)
    prediction = one(SieveAndSage(sieve, make_sage("Lima")), query(GOLD, "no answer here"))
    assert prediction.readings == {"d1": "Lima", "d2": ""}


def test_a_folder_may_be_named_as_text() -> None:
    with pytest.raises(InputError, match="expected a sage checkpoint"):
        load_sage("no/such/folder", None, "cpu")
