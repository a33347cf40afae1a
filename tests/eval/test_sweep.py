"""The table of a sweep: rows named by what varied, seeds averaged, and what is refused."""

from pathlib import Path
from typing import NamedTuple

import pytest

from eval.report import write_report
from eval.score import score
from eval.sweep import names, tabulate
from rag.errors import InputError
from rag.records import Condition, Document, Example, Prediction, RetrievalState

TABLE = {"title": "K", "columns": ["coverage"], "average": ["dataset.seed"], "note": "Small."}


class Given(NamedTuple):
    folder: Path
    overrides: dict[str, str]


def run_at(folder: Path, answered: int, **overrides: str) -> Given:
    """A run of four answerable examples, of which the first are answered."""
    examples = [
        Example(
            id=f"e{n}",
            question_id=f"q{n}",
            question="Who?",
            documents=(Document(id="d1", text="Ada."),),
            answers=("Ada",),
            state=RetrievalState.ANSWERABLE,
            condition=Condition.ANSWERABLE,
        )
        for n in range(4)
    ]
    predictions = [
        Prediction(id=e.id, question_id=e.question_id, state=RetrievalState.ANSWERABLE, answer="Ada")
        if n < answered
        else Prediction(id=e.id, question_id=e.question_id, state=RetrievalState.UNANSWERABLE, reason="unanswerable")
        for n, e in enumerate(examples)
    ]
    folder.mkdir()
    write_report(folder, score(examples, predictions, resamples=20), {"commit": "abc"})
    return Given(folder, {key.replace("__", "."): value for key, value in overrides.items()})


def test_a_row_for_each_setting_with_seeds_averaged_in_the_order_of_the_sweep(tmp_path: Path) -> None:
    runs = [
        run_at(tmp_path / f"{k}{s}", n, dataset__k=k, dataset__seed=s)
        for k, s, n in (("7", "0", 4), ("7", "1", 2), ("3", "0", 1), ("3", "1", 1))
    ]
    first, second = tabulate(tmp_path, runs, TABLE)
    assert (first.name, first.metrics["coverage"].value, second.name, second.metrics["coverage"].value) == ("k=7", 0.75, "k=3", 0.25)
    assert (tmp_path / "table.md").read_text(encoding="utf-8").startswith("# K\n\nSmall. Intervals: 95%")


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([{"system": "vanilla", "profile": "local"}, {"system": "sage_only", "profile": "local"}], ["vanilla", "sage_only"]),
        ([{"system.threshold": "0.5"}, {"system.threshold": "null"}], ["threshold=0.5", "threshold=null"]),
        ([{"a": "x", "b.on": "true"}, {"a": "y", "b.on": "true"}], ["x", "y"]),
        ([{"a": "x", "b.on": "true"}, {"a": "y", "b.on": "false"}], ["x, on=true", "y, on=false"]),
        ([{"seed": "1"}], ["all"]),
        ([{"seed": "1"}, {"seed": "2"}], ["all", "all"]),
        ([{"k": "1"}, {}], ["k=1", "k=unset"]),
        ([{"p": "runs/t/r-bm25/test.jsonl"}, {"p": "runs/t/r-dense_minilm/test.jsonl"}], ["bm25", "dense_minilm"]),
        ([{"p": "a/x.jsonl"}, {"p": "b/y.jsonl"}], ["a/x", "b/y"]),
    ],
)
def test_a_name_holds_what_varies(overrides: list[dict[str, str]], expected: list[str]) -> None:
    assert names(overrides, ["seed"]) == expected


def test_an_unknown_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="columns: no metric is called 'coverages'.*coverage"):
        tabulate(tmp_path, [run_at(tmp_path / "a", 1)], {**TABLE, "columns": ["coverages"]})
    with pytest.raises(InputError, match="table: colums"):
        tabulate(tmp_path, [], {**TABLE, "colums": []})
