"""What follows an abstention: by state, in the order given, and never around a guard that failed."""

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.jsonl import iter_records
from rag.records import Citation, Document, DocumentLabel, Prediction, Query, Reason, RetrievalState
from rag.retrieval.bm25 import Bm25
from rag.settings import Component
from serve.systems.always_abstain import AlwaysAbstain
from serve.systems.human_queue import HumanQueue, Queued
from serve.systems.recovery import Recovery, load
from serve.systems.sage_only import SageOnly
from serve.systems.second_retrieval import SecondRetrieval
from serve.systems.sieve_and_sage import SieveAndSage

QUESTION = "Who is the mayor of Ostvale?"
GOLD = "The mayor of Ostvale is Ada Lind."
FALSE = "The mayor of Ostvale is Bo Falk."
NOTHING = "Ostvale has a harbour and a lighthouse."
CORPUS = (
    Document(id="w1", text=GOLD, label=DocumentLabel.ANSWERABLE, answer="Ada Lind"),
    Document(id="w2", text="Ada Lind, mayor since May, was born in Ostvale."),
    Document(id="w3", text=NOTHING),
    Document(id="w4", text="The mayor of Norrby is Eva Strand."),
    Document(id="w5", text="Ostvale lies on the coast."),
)


def score(documents: Sequence[Document]) -> float:
    """Distracted where one document names Bo Falk and another Ada Lind, or one says so itself."""
    texts = [document.text for document in documents]
    if any("crash" in text for text in texts):
        raise RuntimeError("the model fell over")
    both = any("Bo Falk" in text for text in texts) and any("Ada Lind" in text for text in texts)
    return 0.9 if both or any("hoax" in text for text in texts) else 0.1


def say(_: str, documents: Sequence[Document]) -> str:
    named = [document for document in documents if "is Ada Lind" in document.text]
    return f"Ada Lind [{named[0].id}]" if named else "unanswerable"


class Stronger:
    """A system that answers all, abstains on all, or falls over, and notes what it was asked."""

    def __init__(self, answer: str | None = "Ada Lind", *, poison: str = "", reason: Reason = Reason.UNANSWERABLE) -> None:
        self.answer, self.poison, self.reason = answer, poison, reason
        self.asked: list[Query] = []

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        if self.poison in [query.id for query in queries]:
            raise RuntimeError("the server is gone")
        self.asked += queries
        ends: dict[str, Any] = {"answer": self.answer} if self.answer else {"reason": self.reason}
        times = {"sage": 30.0, "total": 30.0}
        return [
            Prediction(
                id=q.id,
                question_id=q.question_id,
                state=RetrievalState.ANSWERABLE,
                **ends,
                timings=times,
                tokens={"prompt": 50},
                prompt="...",
            )
            for q in queries
        ]


@pytest.fixture
def gated(make_sieve: Callable[..., Any], make_sage: Callable[..., Any]) -> Callable[..., SieveAndSage]:
    return lambda **settings: SieveAndSage(make_sieve(score), make_sage(say), **settings)


@pytest.fixture
def asks(query: Callable[..., Query]) -> Callable[..., Query]:
    return lambda *texts, id="e1": query(*texts, id=id, question=QUESTION)


def one(system: Recovery, query: Query) -> Prediction:
    [made] = system.predict([query])
    assert made.timings["total"] == pytest.approx(sum(ms for stage, ms in made.timings.items() if stage != "total"))
    return made


class TestNone:
    @pytest.mark.parametrize("names", [(), ("none",)])
    def test_abstentions_stay_as_they_are(self, names: Any, gated: Any, asks: Any) -> None:
        queries = [asks(GOLD, FALSE, id="e1"), asks(NOTHING, id="e2"), asks(GOLD, id="e3"), asks(id="e4")]
        made = Recovery(gated(), on_distracted=names, on_unanswerable=names).predict(queries)
        plain = gated().predict(queries)
        assert [p.model_copy(update={"timings": {}}) for p in made] == [p.model_copy(update={"timings": {}}) for p in plain]

    def test_an_answer_is_followed_by_nothing(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        stronger, queue = Stronger(), tmp_path / "q.jsonl"
        system = Recovery(gated(), on_distracted=["escalate"], on_unanswerable=["queue"], stronger=stronger, queue=HumanQueue(queue))
        assert one(system, asks(GOLD)).recovery == ()
        assert stronger.asked == [] and not queue.exists()

    def test_nor_is_an_input_error(self, gated: Any, query: Any) -> None:
        stronger = Stronger()
        made = one(
            Recovery(gated(), on_distracted=["escalate"], on_unanswerable=["escalate"], stronger=stronger), query(GOLD, question=" ")
        )
        assert made.error is not None and stronger.asked == []


class TestFilter:
    def test_it_answers_from_the_rest_and_screens_once(self, gated: Any, asks: Any) -> None:
        inner = gated()
        made = one(Recovery(inner, on_distracted=["filter"]), asks(FALSE.replace("Bo", "hoax: Bo"), GOLD))
        assert (made.answer, made.removed, made.recovery) == ("Ada Lind", ("d1",), ("filtered",))
        assert made.state is RetrievalState.DISTRACTED
        assert set(made.timings) == {"sieve", "leave_one_out", "sage", "total"}
        assert len(inner.sieve.screened) == 1

    def test_a_conflict_that_the_sage_reported_has_nothing_to_remove(self, make_sieve: Any, make_sage: Any, asks: Any) -> None:
        inner = SieveAndSage(make_sieve(0.1), make_sage("conflict", conflict="conflict"))
        made = one(Recovery(inner, on_distracted=["filter"]), asks(GOLD))
        assert (made.reason, made.recovery) == (Reason.DISTRACTED, ())

    def test_it_comes_first_and_the_next_strategy_sees_what_it_left(self, make_sieve: Any, make_sage: Any, asks: Any) -> None:
        stronger = Stronger()
        inner = SieveAndSage(make_sieve(lambda documents: 0.9 if len(documents) == 3 else 0.1), make_sage("unanswerable"))
        made = one(Recovery(inner, on_distracted=["filter", "escalate"], stronger=stronger), asks(GOLD, FALSE, NOTHING))
        assert (made.answer, made.removed, made.recovery) == ("Ada Lind", ("d3",), ("filtered", "escalated"))
        assert [document.id for document in stronger.asked[0].documents] == ["d1", "d2"]
        assert made.state is RetrievalState.DISTRACTED

    def test_a_set_that_no_removal_cleans_goes_on_whole(self, make_sieve: Any, make_sage: Any, asks: Any) -> None:
        stronger = Stronger(answer=None)
        inner = SieveAndSage(make_sieve(0.9), make_sage())
        made = one(Recovery(inner, on_distracted=["filter", "escalate"], stronger=stronger), asks(GOLD, FALSE, NOTHING))
        assert (made.reason, made.removed, made.recovery) == (Reason.STILL_DISTRACTED, (), ("escalated",))
        assert len(stronger.asked[0].documents) == 3


class TestReRetrieve:
    def system(self, inner: Any, rounds: int = 1, **again: Any) -> Recovery:
        settings = {"rounds": rounds}
        return Recovery(
            inner, on_distracted=["re_retrieve"], on_unanswerable=["re_retrieve"], again=SecondRetrieval(Bm25(CORPUS), **again), **settings
        )

    def test_new_documents_come_after_the_set_and_the_answer_cites_one(self, gated: Any, asks: Any) -> None:
        inner = gated()
        made = one(self.system(inner, k=2), asks(NOTHING))
        assert (made.answer, made.reason, made.recovery) == ("Ada Lind", None, ("re_retrieved",))
        assert made.citations == (Citation(document_id="w1", supported=True),), "pitfall E3"
        assert [d.id for d in made.added] == ["w1", "w4"]
        assert made.state is RetrievalState.UNANSWERABLE, "the state is that of the set as it was retrieved"
        assert (made.sieve_score, len(inner.sieve.screened)) == (0.1, 2), "the new set was screened too"
        assert made.prompt is not None and NOTHING in made.prompt and GOLD in made.prompt
        assert set(made.timings) == {"sieve", "sage", "re_retrieve", "total"}

    def test_labels_of_a_corpus_reach_no_system(self, gated: Any, asks: Any) -> None:
        made = one(self.system(gated()), asks(NOTHING))
        assert {(d.label, d.answer) for d in made.added} == {(None, None)}

    def test_a_document_of_the_set_is_not_found_again_by_id_or_by_text(self, gated: Any) -> None:
        documents = (Document(id="w1", text="Ostvale."), Document(id="x", text=NOTHING.upper()), Document(id="w2", text="A town."))
        made = one(self.system(gated()), Query(id="e1", question_id="q1", question=QUESTION, documents=documents))
        assert {d.id for d in made.added} == {"w4", "w5"}

    def test_in_the_place_of_a_distracted_set(self, gated: Any, asks: Any) -> None:
        added = one(self.system(gated(), k=2), asks(FALSE, "They say Ada Lind is a hoax."))
        assert (added.answer, added.reason, added.recovery) == (None, Reason.DISTRACTED, ("re_retrieved",)), "the hoax is still there"
        made = one(self.system(gated(), k=2, placement="replace"), asks(FALSE, "They say Ada Lind is a hoax."))
        assert (made.answer, made.state, made.recovery) == ("Ada Lind", RetrievalState.DISTRACTED, ("re_retrieved",))
        assert made.sieve_score == 0.9, "the score is that of the set as it was retrieved"
        assert made.prompt is not None and FALSE not in made.prompt

    def test_nothing_retrieved_at_first(self, gated: Any, asks: Any) -> None:
        """Pitfall E1: no stage was called on the empty set, and the second one is screened like any other."""
        inner = gated()
        made = one(self.system(inner), asks())
        assert (made.answer, made.recovery) == ("Ada Lind", ("re_retrieved",))
        assert (len(inner.sieve.screened), len(inner.sage.asked)) == (1, 1)

    def test_nothing_found_leaves_the_abstention_and_calls_no_stage(self, gated: Any, asks: Any) -> None:
        inner = gated()
        system = Recovery(inner, on_unanswerable=["re_retrieve"], again=SecondRetrieval(Bm25([Document(id="z", text="Unrelated words.")])))
        made = one(system, asks(NOTHING))
        assert (made.reason, made.recovery, made.added) == (Reason.UNANSWERABLE, (), ())
        assert len(inner.sieve.screened) == 1

    def test_rounds_bring_other_documents_each_time_and_end_with_an_answer(self, gated: Any, asks: Any) -> None:
        class Ordered:
            name = "ordered"

            def search(self, question: str, k: int) -> list[Document]:
                return [CORPUS[n] for n in (4, 3, 2, 0, 1)][:k]

        inner = gated()
        made = one(Recovery(inner, on_unanswerable=["re_retrieve"], again=SecondRetrieval(Ordered(), k=1), rounds=5), asks("Ostvale."))
        assert [d.id for d in made.added] == ["w5", "w4", "w3", "w1"]
        assert (made.answer, made.recovery) == ("Ada Lind", ("re_retrieved",) * 4)
        made = one(Recovery(inner, on_unanswerable=["re_retrieve"], again=SecondRetrieval(Ordered(), k=1), rounds=2), asks("Ostvale."))
        assert (made.reason, len(made.added)) == (Reason.UNANSWERABLE, 2)

    def test_the_gated_system_s_own_filter_works_on_the_new_set(self, gated: Any, asks: Any) -> None:
        """The second retrieval brings a misleading document beside the true one."""
        corpus = [CORPUS[0], Document(id="w9", text="That Ostvale has a mayor is a hoax.")]
        system = Recovery(gated(on_flag="filter"), on_unanswerable=["re_retrieve"], again=SecondRetrieval(Bm25(corpus)))
        made = one(system, asks(NOTHING))
        assert {d.id for d in made.added} == {"w1", "w9"}
        assert (made.answer, made.removed, made.recovery) == ("Ada Lind", ("w9",), ("re_retrieved", "filtered"))

    def test_neither_the_batch_nor_its_order_decides_what_is_found(self, gated: Any, asks: Any) -> None:
        """Pitfall E10."""
        queries = [asks(*["Ostvale."] * n, NOTHING, id=f"e{n}") for n in range(3)]
        system = self.system(gated(), k=2)
        together = [p.added for p in system.predict(queries)]
        assert together == [system.predict([asked])[0].added for asked in queries]
        assert together == [p.added for p in system.predict(queries[::-1])][::-1]

    def test_a_search_that_fails_for_one_query_leaves_the_others_alone(self, gated: Any, asks: Any, caplog: Any) -> None:
        """Pitfall I4."""

        class Broken(Bm25):
            def search(self, question: str, k: int) -> list[Document]:
                if "3" in question:
                    raise InputError("the question is too long")
                return super().search(question, k)

        queries = [asks(NOTHING, id=f"e{n}").model_copy(update={"question": f"{QUESTION} {n}"}) for n in (1, 2, 3, 4)]
        made = Recovery(gated(), on_unanswerable=["re_retrieve"], again=SecondRetrieval(Broken(CORPUS))).predict(queries)
        assert [p.answer for p in made] == ["Ada Lind", "Ada Lind", None, "Ada Lind"]
        assert (made[2].reason, made[2].error) == (Reason.UNANSWERABLE, None)
        assert "query e3: re_retrieve failed" in caplog.text


class TestEscalate:
    def system(self, inner: Any, stronger: Any, **settings: Any) -> Recovery:
        return Recovery(inner, on_distracted=["escalate"], on_unanswerable=["escalate"], stronger=stronger, **settings)

    @pytest.mark.parametrize(("texts", "state"), [((GOLD, FALSE), RetrievalState.DISTRACTED), ((NOTHING,), RetrievalState.UNANSWERABLE)])
    def test_its_answer_is_used_for_either_state(self, texts: Any, state: Any, gated: Any, asks: Any) -> None:
        made = one(self.system(gated(), Stronger()), asks(*texts))
        assert (made.answer, made.reason, made.state, made.recovery) == ("Ada Lind", None, state, ("escalated",))
        assert (made.timings["escalate"], made.tokens["escalate_prompt"]) == (30.0, 50)

    @pytest.mark.parametrize("reason", [Reason.UNANSWERABLE, Reason.SAGE_FAILED, Reason.SAGE_TIMEOUT])
    def test_its_abstention_or_failure_keeps_the_first_one(self, reason: Reason, gated: Any, asks: Any) -> None:
        made = one(self.system(gated(), Stronger(None, reason=reason)), asks(GOLD, FALSE))
        assert (made.answer, made.reason, made.state) == (None, Reason.DISTRACTED, RetrievalState.DISTRACTED)
        assert (made.recovery, made.timings["escalate"]) == (("escalated",), 30.0)

    def test_a_crash_costs_one_query_its_second_chance(self, gated: Any, asks: Any) -> None:
        """Pitfall I4."""
        queries = [asks(NOTHING, id=f"e{n}") for n in (1, 2, 3)]
        made = self.system(gated(), Stronger(poison="e2")).predict(queries)
        assert [(p.answer, p.reason) for p in made] == [("Ada Lind", None), (None, Reason.UNANSWERABLE), ("Ada Lind", None)]

    def test_one_that_hangs_ends_in_time(self, gated: Any, asks: Any) -> None:
        """Pitfall I4. It would end only after the system has, so that a system that waited for it would never end."""
        release = threading.Event()
        stronger = Stronger()
        stronger.predict = lambda _: release.wait()  # type: ignore[method-assign, assignment, return-value]
        made = one(self.system(gated(), stronger, escalate_deadline=0.1), asks(NOTHING))
        release.set()
        assert made.reason is Reason.UNANSWERABLE

    @pytest.mark.parametrize("texts", [(), (" ",)])
    def test_a_set_without_a_document_is_not_asked_about(self, texts: Any, gated: Any, asks: Any) -> None:
        """Pitfall E1: a stronger model would answer from memory."""
        stronger = Stronger()
        made = one(self.system(gated(), stronger), asks(*texts))
        assert (made.reason, made.recovery, stronger.asked) == (Reason.NO_DOCUMENTS, (), [])

    def test_a_sage_alone_will_do(self, gated: Any, asks: Any, make_sage: Any) -> None:
        made = one(self.system(gated(), SageOnly(make_sage("Ada Lind [d1] [d9]"))), asks(GOLD, FALSE))
        assert made.citations == (Citation(document_id="d1", supported=True),)
        assert made.rejected_citations == ("d9",)


class TestQueue:
    def system(self, inner: Any, path: Path, **settings: Any) -> Recovery:
        return Recovery(inner, on_distracted=["queue"], on_unanswerable=["queue"], queue=HumanQueue(path), **settings)

    def test_a_line_holds_what_a_person_needs(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        path = tmp_path / "human" / "queue.jsonl"
        made = one(self.system(gated(on_flag="blame"), path), asks(GOLD, FALSE))
        assert (made.reason, made.recovery, made.answer) == (Reason.DISTRACTED, ("queued",), None)
        [line] = iter_records(path, Queued)
        assert (line.id, line.question, [d.text for d in line.documents]) == ("e1", QUESTION, [GOLD, FALSE])
        assert (line.state, line.reason, line.sieve_score, line.threshold) == (RetrievalState.DISTRACTED, Reason.DISTRACTED, 0.9, 0.5)
        assert (line.leave_one_out, line.blamed) == ({"d1": 0.1, "d2": 0.1}, ("d2",))

    def test_a_query_is_queued_once_however_often_it_comes(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        path = tmp_path / "queue.jsonl"
        for _ in range(2):
            system = self.system(gated(), path)
            for _ in range(2):
                made = system.predict([asks(NOTHING, id="e1"), asks(NOTHING, id="e2")])
                assert [p.recovery for p in made] == [("queued",)] * 2
        assert [line.id for line in iter_records(path, Queued)] == ["e1", "e2"]

    def test_another_question_under_the_same_id_is_not_lost(self, gated: Any, tmp_path: Path) -> None:
        path = tmp_path / "queue.jsonl"
        system = self.system(gated(), path)
        for question in ("Who?", "Where?"):
            system.ask(question, [NOTHING])
        assert [line.question for line in iter_records(path, Queued)] == ["Who?", "Where?"]

    def test_a_line_that_a_kill_cut_is_queued_again(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        path = tmp_path / "queue.jsonl"
        queries = [asks(NOTHING, id="e1"), asks(NOTHING, id="e2")]
        self.system(gated(), path).predict(queries)
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        self.system(gated(), path).predict(queries)
        assert path.read_bytes() == whole

    def test_a_file_that_is_no_queue_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "q.jsonl").write_text('{"id": "e1"}\n')
        with pytest.raises(InputError, match=r"q\.jsonl:1: question_id"):
            HumanQueue(tmp_path / "q.jsonl")


class TestGuardFailures:
    """A guard that failed has said nothing about the set: nobody answers in its place but a person."""

    ALL = ("filter", "re_retrieve", "escalate", "queue")

    def system(self, inner: Any, path: Path, stronger: Any, names: Sequence[Any] = ALL) -> Recovery:
        unanswerable = [name for name in names if name != "filter"]
        settings = {"again": SecondRetrieval(Bm25(CORPUS)), "stronger": stronger, "queue": HumanQueue(path)}
        return Recovery(inner, on_distracted=names, on_unanswerable=unanswerable, **settings)

    def test_a_sieve_that_crashes(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        stronger = Stronger()
        made = one(self.system(gated(), tmp_path / "q.jsonl", stronger), asks("crash", GOLD))
        assert (made.reason, made.answer, made.recovery) == (Reason.SIEVE_FAILED, None, ("queued",))
        assert stronger.asked == []
        assert [json.loads(line)["reason"] for line in (tmp_path / "q.jsonl").read_text().splitlines()] == ["sieve_failed"]

    def test_it_stays_a_failure_where_there_is_no_queue(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        stronger = Stronger()
        made = one(self.system(gated(), tmp_path / "q.jsonl", stronger, ("filter", "re_retrieve", "escalate")), asks("crash", GOLD))
        assert (made.reason, made.recovery, stronger.asked) == (Reason.SIEVE_FAILED, (), [])

    def test_a_crash_on_the_set_of_a_second_retrieval(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        stronger = Stronger()
        system = Recovery(
            gated(),
            on_unanswerable=["re_retrieve", "escalate"],
            on_distracted=["queue"],
            again=SecondRetrieval(Bm25([Document(id="z", text="crash of the mayor of Ostvale")])),
            stronger=stronger,
            queue=HumanQueue(tmp_path / "q.jsonl"),
        )
        made = one(system, asks(NOTHING))
        assert (made.reason, made.state) == (Reason.SIEVE_FAILED, RetrievalState.UNANSWERABLE)
        assert (made.recovery, made.answer, stronger.asked) == (("re_retrieved", "queued"), None, [])

    def test_a_crash_while_filtering(self, make_sieve: Any, make_sage: Any, asks: Any, tmp_path: Path) -> None:
        def brittle(documents: Sequence[Document]) -> float:
            if len(documents) < 2:
                raise RuntimeError("the model fell over")
            return 0.9

        stronger = Stronger()
        made = one(self.system(SieveAndSage(make_sieve(brittle), make_sage()), tmp_path / "q.jsonl", stronger), asks(GOLD, FALSE))
        assert (made.reason, made.recovery, stronger.asked) == (Reason.SIEVE_FAILED, ("queued",), [])

    @pytest.mark.parametrize("output", ["", "crash"])
    def test_a_sage_that_says_nothing_readable_or_crashes(
        self, output: str, make_sieve: Any, make_sage: Any, asks: Any, tmp_path: Path
    ) -> None:
        def speak(*_: Any) -> str:
            if output == "crash":
                raise RuntimeError("the model fell over")
            return output

        stronger = Stronger()
        made = one(self.system(SieveAndSage(make_sieve(0.1), make_sage(speak)), tmp_path / "q.jsonl", stronger), asks(GOLD))
        assert made.reason is (Reason.SAGE_FAILED if output else Reason.UNPARSED)
        assert (made.recovery, stronger.asked) == (("queued",), [])


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"on_distracted": ["fliter"]}, "on_distracted: expected a list of .*, got 'fliter'; did you mean 'filter'"),
            ({"on_distracted": ["none", "filter"]}, r"expected each strategy once, or \[none\] alone, got \[none, filter\]"),
            ({"on_distracted": ["filter", "filter"]}, "each strategy once"),
            ({"on_distracted": ["re_retrieve", "filter"]}, "expected `filter` before `re_retrieve`"),
            ({"on_unanswerable": ["filter"]}, "on_unanswerable: `filter` is for distracted sets"),
            (
                {"on_unanswerable": ["re_retrieve"]},
                "the strategy `re_retrieve` needs something to do it with, got none; set system.retriever",
            ),
            ({"on_unanswerable": ["escalate"]}, "the strategy `escalate` needs .* set system@system.escalate=NAME"),
            ({"on_distracted": ["queue"]}, "the strategy `queue` needs .* set system.queue=FILE"),
            ({"rounds": 0}, "rounds: expected at least 1, got 0"),
            ({"escalate_deadline": 0}, "escalate_deadline: expected a number of seconds above 0"),
        ],
    )
    def test_what_does_not_go_together_is_refused(self, settings: dict[str, Any], message: str, gated: Any) -> None:
        with pytest.raises(InputError, match=message):
            Recovery(gated(), **settings)

    @pytest.mark.parametrize(
        ("settings", "message"), [({"k": 0}, "k: expected at least 1"), ({"deadline": 0}, "retrieve_deadline: expected")]
    )
    def test_a_search_for_nothing_is_refused(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            SecondRetrieval(Bm25(CORPUS), **settings)

    def test_a_system_without_a_sieve_cannot_filter(self) -> None:
        with pytest.raises(InputError, match="`filter` needs a system with a Sieve, got a AlwaysAbstain"):
            Recovery(AlwaysAbstain(), on_distracted=["filter"])

    def test_any_system_with_states_can_be_followed(self, asks: Any) -> None:
        made = one(Recovery(AlwaysAbstain(), on_distracted=["escalate"], stronger=Stronger()), asks(GOLD))
        assert (made.answer, made.recovery) == ("Ada Lind", ("escalated",))

    def test_only_what_the_strategies_need_is_built(self, gated: Any, asks: Any, tmp_path: Path) -> None:
        def untouched() -> Any:
            raise AssertionError("this was not to be built")

        queue = tmp_path / "q.jsonl"
        unused = {"retriever": Component(untouched, {}), "escalate": Component(untouched, {}), "queue": queue}
        system = load(Component(gated, {}), on_distracted=("filter",), **unused)
        assert system.ask(QUESTION, [FALSE.replace("Bo", "hoax: Bo"), GOLD]).answer == "Ada Lind"
        assert not queue.exists()
        for name in ("re_retrieve", "escalate"):
            with pytest.raises(AssertionError, match="not to be built"):
                load(Component(gated, {}), on_unanswerable=(name,), **unused)


TEXTS = (GOLD, FALSE, NOTHING, "They say it is a hoax.", "crash", " ")
ANY = st.lists(st.sampled_from(["filter", "re_retrieve", "escalate", "queue"]), unique=True).filter(
    lambda names: "filter" not in names or "re_retrieve" not in names or names.index("filter") < names.index("re_retrieve")
)


@given(
    sets=st.lists(st.lists(st.sampled_from(TEXTS), max_size=3), max_size=4),
    on_distracted=ANY,
    on_unanswerable=ANY,
    placement=st.sampled_from(["add", "replace"]),
    answers=st.booleans(),
)
def test_an_answer_comes_from_the_gate_or_from_the_stronger_system(
    sets, on_distracted, on_unanswerable, placement, answers, make_sieve, make_sage, query, tmp_path_factory
) -> None:
    """Promise 1 to 3 over all combinations: whatever the gated system answers was screened below the threshold."""
    read: list[Sequence[Document]] = []
    sage = make_sage(lambda question, documents: read.append(documents) or say(question, documents))
    stronger = Stronger("Ada Lind" if answers else None)
    system = Recovery(
        SieveAndSage(make_sieve(score), sage),
        on_distracted=on_distracted,
        on_unanswerable=[name for name in on_unanswerable if name != "filter"],
        again=SecondRetrieval(Bm25([*CORPUS, Document(id="w6", text=f"{FALSE} A hoax of the mayor.")]), 2, placement),
        stronger=stronger,
        queue=HumanQueue(tmp_path_factory.mktemp("queue") / "q.jsonl"),
    )
    queries = [query(*texts, id=f"e{n}", question=QUESTION) for n, texts in enumerate(sets)]
    made = system.predict(queries)
    assert [p.id for p in made] == [q.id for q in queries]
    assert all(score(documents) < 0.5 for documents in read)
    escalated = {asked.id for asked in stronger.asked}
    for asked, prediction in zip(queries, made, strict=True):
        shown = {document.id for document in asked.documents} | {document.id for document in prediction.added}
        assert shown.issuperset({*prediction.removed, *(citation.document_id for citation in prediction.citations)})
        assert prediction.timings["total"] == pytest.approx(sum(v for k, v in prediction.timings.items() if k != "total"))
        if "crash" in [document.text for document in asked.documents]:
            assert (prediction.answer, prediction.reason) == (None, Reason.SIEVE_FAILED)
            assert prediction.recovery in ((), ("queued",)) and prediction.id not in escalated
        assert ("escalated" in prediction.recovery) == (prediction.id in escalated)
        assert (prediction.answer is None) == (prediction.reason is not None)
        assert (prediction.recovery[-1:] == ("queued",)) <= (prediction.answer is None)
