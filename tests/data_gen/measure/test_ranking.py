"""Ranks of simulated documents among retrieved ones."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.measure.ranking import Ranking, Scores, rank, ranks
from data_gen.pipeline.cases import Case
from rag.errors import InputError
from rag.jsonl import iter_records
from rag.records import Document, DocumentLabel

SCORES = {
    "Ada built the bridge.": 0.9,
    "The bridge is long.": 0.5,
    "Ada likes bridges.": 0.1,
    "No Ada.": -2.0,
    "Bo built the bridge.": 0.5,
    "Ada never built the bridge.": 0.95,
    "Cy built the tower.": 0.0,
}
"""Ranks: 1 negated, 2 gold, 3.5 the long bridge and conflict, 5 neutral, 6 adversarial, 7 kept aside."""


def by_kind(ranking: Ranking) -> dict[str, tuple[float | None, float | None, int]]:
    return {row.kind: (row.raw.value, row.scaled.value, row.documents) for row in ranking.rows}


def test_equal_scores_share_their_mean_rank() -> None:
    assert ranks([0.5, 0.9, 0.5, 0.1]) == [2.5, 1, 2.5, 4]
    assert ranks([1, 1, 1]) == [2, 2, 2]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_ranks_add_up_whatever_is_tied(scores: list[int]) -> None:
    assert sum(ranks(scores)) == len(scores) * (len(scores) + 1) / 2


def test_raw_and_scaled_ranks_by_hand(bridge: Case, scorer: Any, tmp_path: Path) -> None:
    """Seven passages: the rejected document is not among them, the one that was kept aside is."""
    ranking = rank([bridge], scorer(SCORES), tmp_path / "r.jsonl", resamples=10, seed=0)
    assert (ranking.questions, ranking.fewest, ranking.most, ranking.reranker) == (1, 7, 7, "scorer")
    assert by_kind(ranking) == {
        "gold": (2.0, pytest.approx(1 / 6), 1),
        "conflict": (3.5, pytest.approx(2.5 / 6), 1),
        "adversarial": (6.0, pytest.approx(5 / 6), 1),
        "negated": (1.0, 0.0, 1),
    }


def test_means_are_over_documents_of_questions_of_different_size(bridge: Case, make_case: Any, scorer: Any, tmp_path: Path) -> None:
    """Table 3's scale: of the two passages of the second question conflict is the last, so 1 when it is scaled."""
    tower = make_case("the tower", [("Ada built it.", DocumentLabel.ANSWERABLE)], [(DocumentLabel.CONFLICT, "Bo built it.", None)])
    bare = make_case("the quay", [("Ada dug it.", DocumentLabel.ANSWERABLE)], [(DocumentLabel.CONFLICT, "Bo dug it.", "no")])
    scores = {**SCORES, "Ada built it.": 2.0, "Bo built it.": 1.0}
    ranking = rank([bridge, tower, bare], scorer(scores), tmp_path / "r.jsonl", resamples=200, seed=0)
    assert (ranking.questions, ranking.fewest, ranking.most) == (2, 2, 7)
    conflict = next(row for row in ranking.rows if row.kind == "conflict")
    assert (conflict.documents, conflict.questions) == (2, 2)
    assert conflict.raw.value == pytest.approx((3.5 + 2) / 2)
    assert conflict.scaled.value == pytest.approx((2.5 / 6 + 1) / 2)
    assert (conflict.raw.low, conflict.raw.high) == (2.0, 3.5)
    assert by_kind(ranking)["gold"][:2] == (1.5, pytest.approx(1 / 12))


def test_the_gold_row_is_about_the_best_retrieved_answer_alone(make_case: Any, scorer: Any, tmp_path: Path) -> None:
    case = make_case(
        "q",
        [("first", DocumentLabel.UNANSWERABLE), ("second", DocumentLabel.ANSWERABLE), ("third", DocumentLabel.ANSWERABLE)],
        [(DocumentLabel.NEGATED, "not", None)],
    )
    ranking = rank([case], scorer({"first": 0, "second": 1, "third": 3, "not": 2}), tmp_path / "r.jsonl", resamples=5, seed=0)
    assert by_kind(ranking)["gold"] == (3.0, pytest.approx(2 / 3), 1)


def test_a_reranker_reads_the_title_with_the_text(make_case: Any, scorer: Any, tmp_path: Path) -> None:
    case = make_case("q", [("text", DocumentLabel.ANSWERABLE)], [(DocumentLabel.NEGATED, "not", None)])
    titled = case.candidates[0].model_copy(
        update={"document": Document(id="d", title="Title", text="text", label=DocumentLabel.ANSWERABLE)}
    )
    model = scorer({"Title\ntext": 1, "not": 0})
    rank([case.model_copy(update={"candidates": (titled,)})], model, tmp_path / "r.jsonl", resamples=5, seed=0)
    assert model.asked == [("Who built q?", ("Title\ntext", "not"))]


def test_without_usable_simulations_there_is_nothing_to_rank(make_case: Any, scorer: Any, tmp_path: Path) -> None:
    case = make_case("q", [("text", DocumentLabel.ANSWERABLE)])
    ranking = rank([case], scorer({}), tmp_path / "r.jsonl", resamples=5, seed=0)
    assert (ranking.questions, ranking.fewest, ranking.most) == (0, None, None)
    assert all(row.raw.value is None and row.documents == 0 for row in ranking.rows)


class KilledError(Exception):
    """What ends the run."""


def test_a_killed_run_goes_on_after_the_last_question_on_disk(bridge: Case, make_case: Any, scorer: Any, tmp_path: Path) -> None:
    cases = [bridge, make_case("q", [("a", DocumentLabel.ANSWERABLE)], [(DocumentLabel.NEGATED, "b", None)])]
    scores = {**SCORES, "a": 1.0, "b": 1.0}
    journal = tmp_path / "r.jsonl"

    class Dies(scorer):  # type: ignore[misc, valid-type]
        def score(self, question: str, texts: Any) -> list[float]:
            if question == "Who built q?":
                raise KilledError
            result: list[float] = super().score(question, texts)
            return result

    with pytest.raises(KilledError):
        rank(cases, Dies(scores), journal, resamples=5, seed=0)
    model = scorer(scores)
    resumed = rank(cases, model, journal, resamples=5, seed=0)
    assert [question for question, _ in model.asked] == ["Who built q?"]
    assert resumed == rank(cases, scorer(scores), tmp_path / "other.jsonl", resamples=5, seed=0)
    silent = scorer({})
    assert rank(cases, silent, journal, resamples=5, seed=0) == resumed
    assert silent.asked == []


def test_scores_of_another_model_or_other_passages_are_not_taken(bridge: Case, scorer: Any, tmp_path: Path) -> None:
    journal = tmp_path / "r.jsonl"
    rank([bridge], scorer(SCORES), journal, resamples=5, seed=0)
    other = scorer({text: -score for text, score in SCORES.items()}, name="other")
    assert by_kind(rank([bridge], other, journal, resamples=5, seed=0))["negated"][0] == 7.0
    fewer = bridge.model_copy(update={"candidates": bridge.candidates[:2]})
    assert rank([fewer], scorer(SCORES), journal, resamples=5, seed=0).most == 5
    assert len(list(iter_records(journal, Scores))) == 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(bridge: Case, scorer: Any, tmp_path: Path, bad: float) -> None:
    with pytest.raises(InputError, match="expected 7 finite scores for the question 'the bridge'"):
        rank([bridge], scorer({**SCORES, "No Ada.": bad}), tmp_path / "r.jsonl", resamples=5, seed=0)


def test_too_few_scores_are_refused(bridge: Case, scorer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = scorer(SCORES)
    monkeypatch.setattr(model, "score", lambda question, texts: [1.0])
    with pytest.raises(InputError, match="expected 7 finite scores"):
        rank([bridge], model, tmp_path / "r.jsonl", resamples=5, seed=0)
