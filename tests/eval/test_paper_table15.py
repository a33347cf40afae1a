"""The paper's table 15 recomputed from its own counts: what follows from them, and what does not."""

from pathlib import Path

import pytest

from eval import metrics
from eval.paper_table15 import PRINTED, ROWS, SIZES, Check, check, judged, markdown

PAGE = Path(__file__).parents[2] / "docs" / "table15.md"
CHECKS = {(each.data, each.system): check(each) for each in ROWS}


def names(checks: list[Check]) -> set[tuple[str, str]]:
    return {(each.paper.data, each.paper.system) for each in checks}


def test_the_table_is_whole() -> None:
    assert len(ROWS) == len(CHECKS) == 40
    assert {each.data for each in ROWS} == set(SIZES)
    assert len({each.system for each in ROWS}) == 5


@pytest.mark.parametrize("each", CHECKS.values(), ids=lambda each: f"{each.paper.data}-{each.paper.system}")
def test_coverage_selective_accuracy_answerable_f1_and_counts_are_those_of_the_paper(each: Check) -> None:
    paper = each.paper
    assert each.counts_add_up and each.macro_f1
    assert len(judged(paper)) == sum(SIZES[paper.data])
    assert each.coverage == pytest.approx(paper.coverage, abs=PRINTED)
    assert each.selective == pytest.approx(paper.selective, abs=PRINTED)
    assert each.answerable_f1 == pytest.approx(paper.answerable_f1, abs=PRINTED)
    printed = (paper.correct_answers, paper.incorrect_answers, paper.correct_abstentions, paper.incorrect_abstentions)
    assert metrics.response_counts(judged(paper)) == (*printed, 0, 0)


def test_printed_system_accuracy_agrees_with_any_abstention_in_nine_rows() -> None:
    agrees = names([each for each in CHECKS.values() if each.agrees_by_any_abstention])
    assert agrees == {*((data, "DTA-RAAT") for data in SIZES), ("MedQA", "Sieve and Sage")}


def test_printed_system_accuracy_can_be_the_strict_one_in_all_but_seven_rows() -> None:
    assert names([each for each in CHECKS.values() if not each.agrees_by_right_state]) == {
        ("NQ-google", "Sage-only"),
        ("NQ-google", "Sieve and Sage"),
        ("NQ-wiki", "Sieve and Sage"),
        ("RealtimeQA", "Sage-only"),
        ("RealtimeQA", "Sieve and Sage"),
        ("RAG-Bench", "Sage-only"),
        ("RAG-Bench", "Sieve and Sage"),
    }


def test_two_printed_values_exceed_what_either_definition_allows() -> None:
    exceeds = names([each for each in CHECKS.values() if each.any_abstention < each.paper.system_accuracy - PRINTED])
    assert exceeds == {("NQ-google", "Sieve and Sage"), ("RealtimeQA", "Sieve and Sage")}


def test_the_range_by_right_state_is_never_above_any_abstention() -> None:
    assert all(each.right_state and max(each.right_state) <= each.any_abstention for each in CHECKS.values())


def test_the_page_is_what_the_module_gives() -> None:
    """`python -c "from eval.paper_table15 import markdown; print(markdown(), end='')" > docs/table15.md` makes it again."""
    assert PAGE.read_text(encoding="utf-8") == markdown()
