"""Runs side by side: what is read, what is refused, and that the picture and the table show the reports' numbers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.figures import plot_trade_off
from eval.report import write_report
from eval.score import score
from eval.side_by_side import Average
from eval.table import TableJob, tabulate
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Condition, Document, Example, Prediction, Reason, RetrievalState

EXAMPLES = [
    Example(
        id=f"e{n}",
        question_id=f"q{n}",
        question=f"Who is number {n}?",
        documents=(Document(id="d1", text="Ada."),),
        answers=("Ada",),
        state=RetrievalState.ANSWERABLE if n < 4 else RetrievalState.UNANSWERABLE,
        condition=Condition.ANSWERABLE if n < 4 else Condition.UNANSWERABLE,
    )
    for n in range(8)
]


COLUMNS = ("coverage", "unanswerable_f1", "macro_f1")


def job(**settings: Any) -> TableJob:
    return TableJob.model_validate({"columns": COLUMNS, "plot": COLUMNS[:2], **settings})


@pytest.fixture
def run_at(tmp_path: Path) -> Callable[..., Path]:
    """A run that answers the first examples and abstains on the rest."""

    def make(name: str, answered: int, examples: list[Example] = EXAMPLES) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        predictions = [
            Prediction(id=e.id, question_id=e.question_id, state=RetrievalState.ANSWERABLE, answer="Ada")
            if n < answered
            else Prediction(id=e.id, question_id=e.question_id, state=RetrievalState.UNANSWERABLE, reason=Reason.UNANSWERABLE)
            for n, e in enumerate(examples)
        ]
        write_records(folder / "examples.jsonl", examples)
        write_report(folder, score(examples, predictions, resamples=50), {"commit": "abc"})
        return folder

    return make


def test_the_table_holds_each_runs_numbers_in_the_order_given(run_at: Callable[..., Path], tmp_path: Path) -> None:
    """Hand-computed: answering 6 of 8 covers all four answerable sets, and 2 of 4 unanswerable ones are found (F1 2/3)."""
    runs = [run_at("bold", 6), run_at("timid", 2)]
    out = tmp_path / "out"
    out.mkdir()
    bold, timid = tabulate(job(runs=runs, names=("1:1", "10:1")), out)
    assert (bold.name, bold.metrics["coverage"].value, timid.metrics["coverage"].value) == ("1:1", 1.0, 0.5)
    assert bold.metrics["unanswerable_f1"].value == pytest.approx(2 / 3)
    assert timid.metrics["unanswerable_f1"].value == pytest.approx(0.8)
    table = (out / "table.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in table if line.startswith("| 1:1 |"))
    assert row.split(" | ")[1].startswith("1.000 (1.000 to 1.000)") and row.split(" | ")[2].startswith("0.667 (")
    assert row.endswith("| 4 / 2 | 2 / 0 | n/a | 8 |")
    assert [row["name"] for row in json.loads((out / "table.json").read_text(encoding="utf-8"))["rows"]] == ["1:1", "10:1"]
    assert (out / "table.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_runs_give_the_same_bytes(run_at: Callable[..., Path], tmp_path: Path) -> None:
    runs = [run_at("a", 6), run_at("b", 2)]
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        tabulate(job(runs=runs), tmp_path / name)
    for file in ("table.png", "table.md", "table.json"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_runs_on_other_examples_are_refused(run_at: Callable[..., Path], tmp_path: Path) -> None:
    other = [e.model_copy(update={"question": f"And {e.question}"}) for e in EXAMPLES]
    for third in (run_at("fewer", 2, EXAMPLES[:6]), run_at("changed", 2, other)):
        with pytest.raises(
            InputError, match="runs: expected runs on the same examples and by the same matching rule, got .*first: 8 examples"
        ):
            tabulate(job(runs=[run_at("first", 6) if not (tmp_path / "first").exists() else tmp_path / "first", third]), tmp_path)


def test_runs_that_scored_again_have_no_examples_beside_them(run_at: Callable[..., Path], tmp_path: Path) -> None:
    runs = [run_at("a", 6), run_at("b", 2)]
    (runs[1] / "examples.jsonl").unlink()
    assert [run.name for run in tabulate(job(runs=runs), tmp_path)] == ["a", "b"]


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_names_that_do_not_name_each_run_are_refused(names: tuple[str, ...], run_at: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names: expected one name for each of 2 runs, got"):
        tabulate(job(runs=[run_at("a", 6), run_at("b", 2)], names=names), tmp_path)


def test_folders_of_one_name_are_not_averaged_unasked(run_at: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="names: the folders have equal names, .*set names="):
        tabulate(job(runs=[run_at("a", 6), run_at("other/a", 2)]), tmp_path)


def test_a_folder_without_a_report_is_named(run_at: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere/report.json: expected a JSON file, found nothing at that path"):
        tabulate(job(runs=[tmp_path / "nowhere"]), tmp_path)
    folder = run_at("a", 6)
    (folder / "report.json").write_text("[]")
    with pytest.raises(InputError, match="report.json: expected a report that eval.pipeline wrote"):
        tabulate(job(runs=[folder]), tmp_path)


def test_a_metric_that_does_not_apply_is_neither_drawn_nor_shown_as_zero(run_at: Callable[..., Path], tmp_path: Path) -> None:
    only_unanswerable = run_at("a", 2, EXAMPLES[4:])
    [run] = tabulate(job(runs=[only_unanswerable]), tmp_path)
    assert run.metrics[COLUMNS[0]].value is None
    assert "| a | n/a | " in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_an_interval_that_does_not_hold_its_value_is_drawn_one_sided(tmp_path: Path) -> None:
    row = Average(value=0.5, low=0.6, high=0.7, runs=1)
    plot_trade_off(["a"], [row], [row], ("x", "y"), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_runs_that_differ_on_purpose_stand_side_by_side(run_at: Callable[..., Path], tmp_path: Path) -> None:
    runs = [run_at("all", 6), run_at("fewer", 2, EXAMPLES[:6])]
    table = tabulate(job(runs=runs, same_examples=False, plot=None), tmp_path)
    assert [(run.n, run.commit) for row in table for run in row.runs] == [(8, "abc"), (6, "abc")]
    assert not (tmp_path / "table.png").exists()


def test_a_metric_that_does_not_exist_is_named_with_its_neighbour(run_at: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="columns: no metric is called 'macro_f2'.*macro_f1"):
        tabulate(job(runs=[run_at("a", 6)], columns=["macro_f2"]), tmp_path)
    with pytest.raises(InputError, match="plot: no metric is called 'coverages'.*coverage"):
        tabulate(job(runs=[run_at("b", 6)], plot=["coverages", "macro_f1"]), tmp_path)


def test_runs_of_one_name_are_averaged_with_their_spread(run_at: Callable[..., Path], tmp_path: Path) -> None:
    """Hand-computed: coverage 1.0 and 0.5 give 0.75, and their standard deviation is 0.354; counts are summed."""
    runs = [run_at("seed-0", 6), run_at("seed-1", 2), run_at("other", 4)]
    averaged, single = tabulate(job(runs=runs, names=("ours", "ours", "theirs"), plot=None), tmp_path)
    coverage = averaged.metrics["coverage"]
    assert (coverage.value, coverage.runs, coverage.low) == (0.75, 2, None)
    assert coverage.spread == pytest.approx(0.35355, abs=1e-5)
    assert single.metrics["coverage"].spread is None and single.metrics["coverage"].low is not None
    row = next(line for line in (tmp_path / "table.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ours |"))
    assert row.split(" | ")[1] == "0.750 ± 0.354 (2)" and row.endswith("| 6 / 2 | 6 / 2 | n/a | 16 |")


def test_a_metric_that_one_run_lacks_is_averaged_over_the_others(run_at: Callable[..., Path], tmp_path: Path) -> None:
    runs = [run_at("a", 6), run_at("b", 2, EXAMPLES[4:])]
    [row] = tabulate(job(runs=runs, names=("both", "both"), same_examples=False, plot=None), tmp_path)
    assert (row.metrics["coverage"].value, row.metrics["coverage"].runs, row.metrics["coverage"].spread) == (1.0, 1, None)
