"""Removal of several units, one after the other: when it goes on, when it stops, and what it never passes on (promises 2 to 4)."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.records import Document, Query, Reason, RetrievalState
from serve.systems.sieve_and_sage import SieveAndSage
from sieve.predict import Removal

TEXTS = tuple(f"The capital of Peru is {city}." for city in ("Lima", "Cusco", "Arequipa", "Trujillo", "Iquitos"))


def additive(**weights: float) -> Callable[[Sequence[Document]], float]:
    """Each document adds its own weight, as evidence that piles up does."""
    return lambda documents: min(1.0, sum(weights.get(document.id, 0.0) for document in documents))


def worst(**weights: float) -> Callable[[Sequence[Document]], float]:
    """The worst document decides, as in a Sieve that compares pairs."""
    return lambda documents: max((weights.get(document.id, 0.0) for document in documents), default=0.0)


def filtering(sieve: Any, sage: Any, max_removals: int | None, **settings: Any) -> SieveAndSage:
    return SieveAndSage(sieve, sage, on_flag="filter", max_removals=max_removals, **settings)


class TestOneTwoThree:
    @pytest.mark.parametrize("score", [additive, worst])
    @pytest.mark.parametrize("planted", [1, 2, 3])
    @pytest.mark.parametrize("limit", [1, 2, 3, None])
    def test_as_many_planted_documents_go_as_the_limit_allows(self, score, planted, limit, make_sieve, make_sage, query) -> None:
        weights = dict(list({"d2": 0.3, "d3": 0.36, "d4": 0.33}.items())[:planted])
        sage = make_sage()
        [made] = filtering(make_sieve(score(**weights), 0.25), sage, limit).predict([query(*TEXTS)])
        assert made.state is RetrievalState.DISTRACTED
        # Each of them alone is over the threshold, whether they pile up or the worst one decides, so all must go, the worst first.
        if limit is None or planted <= limit:
            assert made.removed == tuple(sorted(weights, key=lambda i: -weights[i]))
            assert (made.answer, made.reason, made.recovery) == ("Lima", None, ("filtered",))
            assert made.prompt is not None and TEXTS[0] in made.prompt
        else:
            assert (made.answer, made.reason) == (None, Reason.STILL_DISTRACTED)
            assert (made.removed, made.recovery, sage.asked) == ((), (), [])

    def test_it_stops_as_soon_as_the_rest_is_below_the_threshold(self, make_sieve, make_sage, query) -> None:
        sieve = make_sieve(additive(d2=0.4, d3=0.4, d4=0.4))
        [made] = filtering(sieve, make_sage(), None).predict([query(*TEXTS)])
        assert made.removed == ("d4", "d3"), "a tie goes to the lower-ranked"
        assert len(sieve.examined) == 2

    def test_a_rest_that_scores_the_threshold_is_not_clean(self, make_sieve, make_sage, query) -> None:
        [made] = filtering(make_sieve(additive(d2=0.5, d3=0.25, d4=0.25)), make_sage(), None).predict([query(*TEXTS)])
        assert made.removed == ("d2", "d4")

    def test_blame_and_leave_one_out_are_those_of_the_set_as_it_was_retrieved(self, make_sieve, make_sage, query) -> None:
        [made] = filtering(make_sieve(worst(d2=0.6, d3=0.8)), make_sage(), None).predict([query(*TEXTS[:3])])
        assert (made.blamed, made.leave_one_out) == (("d3",), {"d1": 0.8, "d2": 0.8, "d3": 0.6})
        assert made.removed == ("d3", "d2")

    def test_near_identical_documents_are_one_removal(self, make_sieve, make_sage, query) -> None:
        sieve = make_sieve(worst(d2=0.8, d3=0.8, d4=0.7))
        [made] = filtering(sieve, make_sage(), 2).predict([query(TEXTS[0], TEXTS[1], TEXTS[1].upper(), TEXTS[2])])
        assert (made.removed, made.answer) == (("d2", "d3", "d4"), "Lima")

    def test_a_set_of_which_nothing_clean_remains(self, make_sieve, make_sage, query) -> None:
        sage = make_sage()
        [made] = filtering(make_sieve(0.9), sage, None).predict([query(*TEXTS[:3])])
        assert (made.reason, made.removed, made.recovery) == (Reason.ALL_REMOVED, (), ())
        assert sage.asked == []

    def test_it_is_the_limit_that_says_so_where_it_is_reached_first(self, make_sieve, make_sage, query) -> None:
        [made] = filtering(make_sieve(0.9), make_sage(), 2).predict([query(*TEXTS[:3])])
        assert made.reason is Reason.STILL_DISTRACTED

    def test_where_no_single_removal_helps_the_lower_ranked_go_first(self, make_sieve, make_sage, query) -> None:
        """The price of the rule for ties, and of greed: scores that stand at one ceiling say nothing about which of them to begin with."""
        [made] = filtering(make_sieve(worst(d2=0.9, d3=0.9)), make_sage(), None).predict([query(*TEXTS)])
        assert made.removed == ("d5", "d4", "d3", "d2")

    def test_sets_of_a_batch_go_on_for_as_long_as_they_need(self, make_sieve, make_sage, query) -> None:
        def score(documents: Sequence[Document]) -> float:
            planted = {"one": {"d2": 0.8}, "two": {"d2": 0.8, "d3": 0.9}, "all": dict.fromkeys(("d1", "d2", "d3", "d4", "d5"), 0.9)}
            return worst(**planted[documents[0].title])(documents)

        def titled(name: str) -> Query:
            asked = query(*TEXTS, id=name)
            return asked.model_copy(update={"documents": tuple(d.model_copy(update={"title": name}) for d in asked.documents)})

        sieve = make_sieve(score)
        made = filtering(sieve, make_sage(), None).predict([titled(name) for name in ("two", "all", "one")])
        assert [p.removed for p in made] == [("d3", "d2"), (), ("d2",)]
        assert [p.reason for p in made] == [None, Reason.ALL_REMOVED, None]
        assert [len(batch) for batch in sieve.examined] == [3, 2, 1, 1, 1]


class TestFailures:
    def test_a_crash_in_a_later_round_is_a_guard_failure_and_nothing_counts_as_removed(self, make_sieve, make_sage, query) -> None:
        def score(documents: Sequence[Document]) -> float:
            if len(documents) == 3:
                raise RuntimeError("the model fell over")
            return worst(d2=0.6, d3=0.8)(documents)

        sage = make_sage()
        [made] = filtering(make_sieve(score), sage, None).predict([query(*TEXTS)])
        assert (made.reason, made.removed, made.recovery, made.answer) == (Reason.SIEVE_FAILED, (), (), None)
        assert made.state is RetrievalState.DISTRACTED
        assert sage.asked == []

    def test_a_removal_of_what_is_gone_already_is_no_removal(self, make_sieve, make_sage, query) -> None:
        sieve = make_sieve(0.9)
        sieve.leave_one_out = lambda *_: [[Removal(("d2",), 2, 0.8)]]
        [made] = filtering(sieve, make_sage(), None).predict([query(*TEXTS)])
        assert (made.reason, made.removed) == (Reason.SIEVE_FAILED, ())

    def test_all_rounds_share_one_deadline(self, make_sieve, make_sage, query, clock) -> None:
        """Pitfall I4: four rounds of 3 s each, none of which is late by itself, do not take four deadlines."""
        sieve = make_sieve(0.9)
        whole = sieve.leave_one_out
        sieve.leave_one_out = lambda *asked: clock.sleep(3) or whole(*asked)
        [made] = filtering(sieve, make_sage(), None, sieve_deadline=8).predict([query(*TEXTS)])
        assert made.reason is Reason.SIEVE_TIMEOUT
        assert clock.seconds == 8
        assert made.timings["leave_one_out"] == 8000, "the times of the rounds add up"

    def test_one_set_that_hangs_leaves_the_others_their_own_deadline(self, make_sieve, make_sage, query, clock) -> None:
        def score(documents: Sequence[Document]) -> float:
            if documents[0].text == "hangs" and len(documents) < 4:
                clock.sleep(3600)
            return worst(d2=0.6, d3=0.8)(documents)

        queries = [query("hangs" if n == 1 else TEXTS[0], *TEXTS[1:4], id=f"e{n}") for n in range(4)]
        made = filtering(make_sieve(score), make_sage(), None, sieve_deadline=2).predict(queries)
        assert [p.reason for p in made] == [None, Reason.SIEVE_TIMEOUT, None, None]

    @pytest.mark.parametrize("limit", [0, -1])
    def test_a_limit_that_allows_nothing_is_refused(self, limit, make_sieve, make_sage) -> None:
        with pytest.raises(InputError, match=f"max_removals: expected at least 1, or none for as many as it takes, got {limit}"):
            filtering(make_sieve(0.9), make_sage(), limit)


class TestGoingOn:
    """`filter` after `predict`: as if the system had been set to filter from the start, without a second screening."""

    def test_it_ends_as_filtering_at_once_does(self, make_sieve, make_sage, query) -> None:
        score = worst(d2=0.6, d3=0.8)
        sieve = make_sieve(score)
        system = SieveAndSage(sieve, make_sage(), max_removals=None)
        asked = query(*TEXTS)
        flagged = system.predict([asked])
        [later] = system.filter([asked], flagged)
        [at_once] = filtering(make_sieve(score), make_sage(), None).predict([asked])
        assert later.model_copy(update={"timings": {}}) == at_once.model_copy(update={"timings": {}})
        assert set(later.timings) == set(at_once.timings)
        assert later.timings["sieve"] == flagged[0].timings["sieve"]
        assert len(sieve.screened) == 1

    @pytest.mark.parametrize("score", [0.1, float("nan")])
    def test_a_set_that_was_not_flagged_is_refused(self, score, make_sieve, make_sage, query) -> None:
        system = SieveAndSage(make_sieve(score), make_sage())
        asked = query(*TEXTS)
        with pytest.raises(InputError, match="query e1: expected an abstention on a set that the Sieve flagged"):
            system.filter([asked], system.predict([asked]))


WEIGHT = st.sampled_from([0.0, 0.2, 0.3, 0.5, 0.6, 0.9])


@given(
    weights=st.lists(WEIGHT, min_size=1, max_size=5),
    form=st.sampled_from([additive, worst]),
    limit=st.sampled_from([1, 2, 3, None]),
    threshold=st.sampled_from([0.3, 0.5, 0.9]),
)
def test_no_answer_comes_of_a_set_that_scores_the_threshold(weights, form, limit, threshold, make_sieve, make_sage, query) -> None:
    score = form(**{f"d{n}": weight for n, weight in enumerate(weights, start=1)})
    read: list[Sequence[Document]] = []
    sage = make_sage(lambda _, documents: read.append(documents) or "Lima")
    asked = query(*TEXTS[: len(weights)])
    [made] = filtering(make_sieve(score, threshold), sage, limit).predict([asked])
    ids = [document.id for document in asked.documents]
    assert set(made.removed) < set(ids)
    assert len(set(made.removed)) == len(made.removed) <= (limit or 5)
    if made.answer is None:
        assert read == [] and (made.removed, made.recovery) == ((), ())
        assert made.reason in (Reason.STILL_DISTRACTED, Reason.ALL_REMOVED)
    else:
        assert score(read[0]) < threshold
        assert [document.id for document in read[0]] == [i for i in ids if i not in made.removed]
        assert made.recovery == (("filtered",) if made.removed else ())
        # None of the removals was idle: with the last one put back the rest is flagged.
        kept = [document for document in asked.documents if document.id not in made.removed[:-1]]
        assert not made.removed or score(kept) >= threshold


@given(weights=st.lists(WEIGHT, min_size=3, max_size=3), form=st.sampled_from([additive, worst]))
def test_neither_the_order_of_the_documents_nor_the_batch_decides_what_goes(weights, form, make_sieve, make_sage, query) -> None:
    """Pitfall E10: ties go by rank and id, wherever a document stands."""
    score = form(**{f"d{n}": weight for n, weight in enumerate(weights, start=1)})
    documents = [d.model_copy(update={"rank": n}) for n, d in enumerate(query(*TEXTS[:3]).documents, start=1)]
    queries = [Query(id=f"e{n}", question_id="q", question="What?", documents=order) for n, order in enumerate(permutations(documents))]
    system = filtering(make_sieve(score), make_sage(), None)
    together = system.predict(queries)
    assert len({(p.removed, p.reason, p.answer) for p in together}) == 1
    assert [p.removed for p in together] == [system.predict([asked])[0].removed for asked in queries]
