"""Runs against one another: the six rows of text 001 with every statement of its prose, what is refused, and what the command line takes."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from conf.job import RUN_FILE, run_folder
from eval.compare import CompareJob, Comparisons, compare, with_runs
from eval.comparison.transfers import (
    Comparison,
    Counts,
    Ended,
    Place,
    Transfer,
    compare_runs,
    counts,
    require_closed,
    sign_flips,
    transfers,
)
from eval.metrics import Judged
from eval.predict import EXAMPLES, PREDICTIONS
from eval.score import METRICS
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Condition, Document, Example, Outcome, Prediction, Reason, RetrievalState

ROOT = Path(__file__).parents[2]
IDS = [f"e{n:02}" for n in range(1, 21)]
QUESTIONS = {
    "e07": "how many seats are included in the Team plan?",
    "e11": "what is the SLA credit for a four-hour outage on Business?",
    "e14": "who approves a refund above €5,000?",
}
TWENTY = [
    Example(
        id=name,
        question_id=name,
        question=QUESTIONS.get(name, f"what does policy {name} say?"),
        documents=(Document(id="d1", text="Ten seats."),),
        answers=("10",),
        state=RetrievalState.ANSWERABLE,
        condition=Condition.ANSWERABLE,
        lineage={"index": "v1", "code": "abc"},
    )
    for name in IDS
]
WRONG_AT_FIRST = {"e03", "e07", "e11", "e18", "e02", "e09"}
"""14 of 20 are correct. The prose names the first four; which the other two are, it does not say."""
SIX_ROWS = {
    "baseline": (WRONG_AT_FIRST, set()),
    "best last": (WRONG_AT_FIRST - {"e07"}, set()),
    "headers": (WRONG_AT_FIRST - {"e07", "e03"}, set()),
    "abstain if unsure": (WRONG_AT_FIRST - {"e07", "e03", "e11", "e18"}, {"e11", "e18", "e05"}),
    "abstain if no block addresses it": (WRONG_AT_FIRST - {"e07", "e03"}, set()),
    "abstain if the text is absent": (WRONG_AT_FIRST - {"e07", "e03", "e11", "e18"}, {"e11", "e18"}),
}
"""Wrong answers and abstentions of each run."""

MakeRun = Callable[..., Path]


def answered(example: Example, answer: str = "10") -> Prediction:
    return Prediction(id=example.id, question_id=example.question_id, state=RetrievalState.ANSWERABLE, answer=answer)


def abstained(
    example: Example, reason: Reason = Reason.UNANSWERABLE, state: RetrievalState | None = RetrievalState.UNANSWERABLE
) -> Prediction:
    return Prediction(id=example.id, question_id=example.question_id, state=state, reason=reason)


def predictions(wrong: set[str], abstentions: set[str], examples: Sequence[Example] = TWENTY) -> list[Prediction]:
    return [abstained(e) if e.id in abstentions else answered(e, "5" if e.id in wrong else "10") for e in examples]


CONFIG = {
    "dataset": {"_target_": "data.load"},
    "system": {
        "_target_": "systems.load",
        "max_new_tokens": 32,
        "sage_settings": {"model": {"base": "a", "precision": "auto"}, "inputs": {"order": "best_first"}, "train": {"batch_size": 4}},
    },
    "predictions": None,
    "batch_size": 8,
    "match": "exact",
}


def changed(config: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of a nested config with one dotted key set."""
    name, _, rest = key.partition(".")
    return {**config, name: changed(config[name], rest, value) if rest else value}


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A folder as `eval.pipeline` leaves it."""

    def make(name: str, made: Sequence[Prediction], examples: Sequence[Example] = TWENTY, **changes: Any) -> Path:
        config: Mapping[str, Any] = CONFIG
        for key, value in changes.items():
            config = changed(config, key.replace("__", "."), value)
        folder = run_folder({**config, "out": name}, tmp_path, "eval_pipeline", [])
        write_records(folder / EXAMPLES, examples)
        write_records(folder / PREDICTIONS, made)
        return folder

    return make


def compared(folders: Sequence[Path], out: Path, **changes: Any) -> Comparisons:
    out.mkdir(exist_ok=True)
    return compare(CompareJob.model_validate({"runs": folders, "resamples": 50, "show": 3, **changes}), out)


def columns(row: Counts) -> tuple[int, int, int]:
    return row.correct, row.wrong, row.abstained


def moves(step: Comparison) -> dict[str, tuple[str, str]]:
    return {moved.id: (transfer.origin.value, transfer.target.value) for transfer in step.transfers for moved in transfer.moved}


TO_ABSTAINED = ("wrong", "abstained: unanswerable")


def test_the_six_rows_of_text_001(make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Section "Rerunning the ones you were not worried about", statement by statement."""
    folders = [make_run(name, predictions(*ended)) for name, ended in SIX_ROWS.items()]
    found = compared(folders, tmp_path / "out")
    assert [row.name for row in found.rows] == list(SIX_ROWS)
    rows = [row.counts for row in found.rows]
    assert [columns(row) for row in rows] == [(14, 6, 0), (15, 5, 0), (16, 4, 0), (15, 2, 3), (16, 4, 0), (16, 2, 2)]
    assert all(sum(columns(row)) == row.total == 20 and not row.unparsed and not row.error for row in rows)

    reordered, headers, unsure, _, absent = found.steps
    assert moves(reordered) == {"e07": ("wrong", "correct")}
    assert moves(headers) == {"e03": ("wrong", "correct")}
    assert moves(unsure) == {"e11": TO_ABSTAINED, "e18": TO_ABSTAINED, "e05": ("correct", "abstained: unanswerable")}
    assert (unsure.moved, unsure.gains, unsure.losses) == (3, 0, 1)
    assert columns(rows[3]) == tuple(a + b for a, b in zip(columns(rows[2]), (-1, -2, 3), strict=True))
    assert moves(absent) == {"e11": TO_ABSTAINED, "e18": TO_ABSTAINED}

    def against(first: int, second: int, name: str) -> Comparison:
        return compared([folders[first], folders[second]], tmp_path / name).steps[0]

    same = against(2, 4, "same")
    assert (same.moved, same.transfers) == (0, ()) and rows[2] == rows[4]
    assert all((d.difference, d.low, d.high) in ((0, 0, 0), (None, None, None)) for d in same.metrics)
    residual = against(2, 5, "residual")
    assert moves(residual) == {"e11": TO_ABSTAINED, "e18": TO_ABSTAINED} and residual.losses == 0
    assert moves(against(3, 5, "last")) == {"e05": ("abstained: unanswerable", "correct")}
    assert [step.before for step in found.from_first] == ["baseline"] * 4
    assert set(moves(found.from_first[-1])) == {"e07", "e03", "e11", "e18"}
    told = capsys.readouterr().out
    assert "how many seats are included in the Team plan?" in told


def test_what_is_written_names_every_move(make_run: MakeRun, tmp_path: Path) -> None:
    """The terminal shows `show` of a kind, the files all."""
    everything = set(IDS)
    folders = [
        make_run("a", predictions(set(), set())),
        make_run("b", predictions(set(), everything), system__sage_settings__inputs__order="b"),
    ]
    compared(folders, tmp_path / "out", show=0)
    written = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    [transfer] = written["comparisons"][0]["transfers"]
    assert (transfer["from"], transfer["to"]) == ("correct", "abstained: unanswerable")
    assert [moved["id"] for moved in transfer["moved"]] == IDS
    assert {"key": "system.sage_settings.inputs.order", "before": "best_first", "after": "b"} in written["settings"][0]["differences"]
    table = (tmp_path / "out" / "compare.md").read_text(encoding="utf-8")
    assert all(f"| correct | abstained: unanswerable | {name} |" in table for name in IDS)
    assert "| a | 20 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 20 |  |" in table
    assert "| b | 0 | 0 | 20 | 0 | 20 | 0 | 0 | 0 | 0 | 20 | 20 correct to abstained: unanswerable |" in table


def test_the_same_runs_give_the_same_bytes(make_run: MakeRun, tmp_path: Path) -> None:
    folders = [make_run(name, predictions(*SIX_ROWS[name])) for name in ("baseline", "abstain if unsure")]
    for out in ("one", "two"):
        compared(folders, tmp_path / out)
    assert (tmp_path / "one" / "compare.json").read_bytes() == (tmp_path / "two" / "compare.json").read_bytes()
    assert (tmp_path / "one" / "compare.md").read_bytes() == (tmp_path / "two" / "compare.md").read_bytes()


def other(example: Example, **fields: Any) -> Example:
    return example.model_copy(update=fields)


@pytest.mark.parametrize(
    ("examples", "changes", "message"),
    [
        (TWENTY[:19], {}, r"dataset of a and b: 1 examples only in the first \(e20\)"),
        ([*TWENTY, other(TWENTY[0], id="e21")], {}, r"dataset of a and b: 1 examples only in the second \(e21\)"),
        ([*TWENTY[:-1], other(TWENTY[-1], question="why?")], {}, r"dataset of a and b: question of 1 examples \(e20\)"),
        ([other(e, documents=()) for e in TWENTY], {}, r"dataset of a and b: documents of 20 examples \(e01, .*, e05 and 15 more\)"),
        (
            [other(e, documents=(e.documents[0].model_copy(update={"score": 0.51}),)) for e in TWENTY],
            {},
            r"dataset of a and b: scores of the documents of 20 examples",
        ),
        ([other(e, lineage={"index": "v2"}) for e in TWENTY], {}, r"index of a and b: index is 'v1' and 'v2' \(20 examples\)"),
        ([other(e, lineage={}) for e in TWENTY], {}, r"index of a and b: index is 'v1' and not named \(20 examples\)"),
        (TWENTY, {"batch_size": 4}, r"decoding of a and b: batch_size is 8 and 4"),
        (TWENTY, {"match": "squad"}, r"decoding of a and b: match is exact and squad"),
        (TWENTY, {"system__max_new_tokens": 64}, r"decoding of a and b: system.max_new_tokens is 32 and 64"),
        (
            TWENTY,
            {"system__sage_settings__model__precision": "float32", "batch_size": 1},
            r"decoding of a and b: batch_size is 8 and 1; sage_settings.model.precision is auto and float32. Add allow=\[decoding\]",
        ),
    ],
)
def test_runs_that_differ_in_more_than_the_system_are_refused_by_name(
    examples: list[Example], changes: dict[str, Any], message: str, make_run: MakeRun, tmp_path: Path
) -> None:
    made = predictions(set(), set(), examples)
    folders = [make_run("a", predictions(set(), set())), make_run("b", made, examples, **changes)]
    with pytest.raises(InputError, match=message):
        compared(folders, tmp_path / "out")
    assert not (tmp_path / "out" / "compare.json").exists()


def on_another_processor(folder: Path, **versions: str) -> Path:
    """The folder of a run as it would be if another processor had made it."""
    record = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    record["versions"] |= versions
    (folder / RUN_FILE).write_text(json.dumps(record), encoding="utf-8")
    return folder


def scored(score: float, threshold: float = 0.5) -> list[Prediction]:
    """Twenty answers, of which the first is held back where its score reaches the threshold."""
    first, *rest = predictions(set(), {"e01"} if score >= threshold else set())
    return [first.model_copy(update={"sieve_score": score, "threshold": threshold}), *rest]


def test_a_run_by_another_processor_is_told_as_one_and_not_as_other_content(make_run: MakeRun, tmp_path: Path) -> None:
    """Its retriever's scores differ in their last bits, and one set is on the edge of the threshold."""

    def retrieved(bits: float) -> list[Example]:
        return [other(e, documents=(e.documents[0].model_copy(update={"score": 0.5 + bits}),)) for e in TWENTY]

    here = on_another_processor(make_run("a", scored(0.4999999), retrieved(0.0)), instructions="avx2 avx512f amx_bf16", threads="1")
    there = on_another_processor(make_run("b", scored(0.5), retrieved(1e-7)), instructions="avx2", threads="1")
    found = compared([here, there], tmp_path / "out")
    assert moves(found.steps[0]) == {"e01": ("correct", "abstained: unanswerable")}
    processor, edge, _ = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))["notes"]
    assert processor.startswith("b was not computed as a was: instructions 'avx2 avx512f amx_bf16' and 'avx2'. The same models give")
    assert processor.endswith("On the CPU, precision=auto is bfloat16 in a and float32 in b: more than last bits.")
    assert edge == "On the edge: e01 moved from a to b with the same Sieve score but for rounding, across the threshold."


def test_another_number_of_threads_is_told_and_one_processor_says_nothing(make_run: MakeRun, tmp_path: Path) -> None:
    one = on_another_processor(make_run("a", scored(0.2)), instructions="avx2", threads="1")
    two = on_another_processor(make_run("b", scored(0.7)), instructions="avx2", threads="2")
    compared([one, two], tmp_path / "out")
    first, *others = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))["notes"]
    assert first.startswith("b was not computed as a was: threads '1' and '2'.") and "precision=auto" not in first
    assert len(others) == 1, "a score that moved across the threshold by more than rounding is no set on its edge"
    same = on_another_processor(make_run("c", scored(0.2)), instructions="avx2", threads="1")
    compared([one, same], tmp_path / "same")
    assert len(json.loads((tmp_path / "same" / "compare.json").read_text(encoding="utf-8"))["notes"]) == 1


def test_several_grounds_are_named_together_and_each_must_be_allowed(make_run: MakeRun, tmp_path: Path) -> None:
    fewer = [other(e, lineage={"index": "v2"}) for e in TWENTY[:5]]
    folders = [make_run("a", predictions(set(), set())), make_run("b", predictions({"e01"}, set(), fewer), fewer, batch_size=4)]
    with pytest.raises(InputError, match=r"dataset of .*index of .*decoding of .*allow=\[dataset,index,decoding\]"):
        compared(folders, tmp_path / "out")
    with pytest.raises(InputError, match=r"other differences: index of .*decoding of .*allow=\[dataset,index,decoding\]"):
        compared(folders, tmp_path / "out", allow=["dataset"])
    found = compared(folders, tmp_path / "out", allow=["dataset", "index", "decoding"])
    assert [(row.counts.total, row.left_out) for row in found.rows] == [(5, 15), (5, 0)]
    assert moves(found.steps[0]) == {"e01": ("correct", "wrong")}
    notes = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))["notes"]
    assert "Left out of a, because not all runs have them: 15 examples." in notes
    assert any(note.startswith("Differs and was allowed to: decoding of a and b: batch_size is 8 and 4") for note in notes)


def test_a_rule_given_here_takes_the_place_of_the_runs_own(make_run: MakeRun, tmp_path: Path) -> None:
    wordy = [answered(e, "there are 10") for e in TWENTY]
    folders = [make_run("a", wordy, match="contains"), make_run("b", wordy, match="exact")]
    for match, ended in (("contains", (20, 0, 0)), ("exact", (0, 20, 0))):
        assert [columns(row.counts) for row in compared(folders, tmp_path / match, match=match).rows] == [ended, ended]


def test_what_only_one_system_has_is_no_difference_of_decoding(make_run: MakeRun, tmp_path: Path) -> None:
    """A base, a budget, an order of documents or a stage more is what is compared; how the Sage trained is told, not refused."""
    alone = {"_target_": "systems.none"}
    folders = [
        make_run("a", predictions(set(), set())),
        make_run("b", predictions(set(), set()), system=alone),
        make_run("c", predictions(set(), set()), system__sage_settings__model__base="b", system__sage_settings__train__batch_size=1),
    ]
    found = compared(folders, tmp_path / "out")
    assert [step.moved for step in found.steps] == [0, 0]


def test_a_system_inside_another_keeps_the_names_of_its_decoding(make_run: MakeRun, tmp_path: Path) -> None:
    inside = {"_target_": "systems.recovery", "first": changed(CONFIG["system"], "sage_settings.model.precision", "float32")}
    folders = [make_run("a", predictions(set(), set())), make_run("b", predictions(set(), set()), system=inside)]
    with pytest.raises(InputError, match="sage_settings.model.precision is auto and float32"):
        compared(folders, tmp_path / "out")


def test_predictions_that_were_scored_again_are_compared_as_those_of_the_system_that_made_them(make_run: MakeRun, tmp_path: Path) -> None:
    """Another precision of the config they were scored under decides nothing; that of the run they were made in does."""
    good = make_run("good", predictions(set(), set()))
    other = changed(CONFIG["system"], "sage_settings.model.precision", "float32")
    again = make_run("again", predictions(set(), set()), predictions=str(good / "predictions.jsonl"), system=other)
    assert compared([good, again], tmp_path / "out").steps[0].moved == 0
    elsewhere = make_run("elsewhere", predictions(set(), set()), predictions="my_rag/predictions.jsonl", system=other)
    assert compared([good, elsewhere], tmp_path / "out2").steps[0].moved == 0


def test_a_folder_that_cannot_be_compared_says_what_to_do(make_run: MakeRun, tmp_path: Path) -> None:
    good = make_run("good", predictions(set(), set()))
    with pytest.raises(InputError, match="runs: expected each run once, got "):
        compared([good, good], tmp_path / "out")
    with pytest.raises(InputError, match="nowhere: expected the folder of a run"):
        compared([good, tmp_path / "nowhere"], tmp_path / "out")
    stopped = make_run("stopped", predictions(set(), set())[:7])
    with pytest.raises(InputError, match="stopped: predictions: expected exactly one for each of the 20 examples, got 7"):
        compared([good, stopped], tmp_path / "out")
    (stopped / PREDICTIONS).unlink()
    with pytest.raises(InputError, match=f"stopped: expected a finished run of eval.pipeline, found no {PREDICTIONS} in it"):
        compared([good, stopped], tmp_path / "out")
    training = run_folder({"out": "training"}, tmp_path, "sage_train", [])
    with pytest.raises(InputError, match="training: expected the folder of a run of eval.pipeline, it is one of sage_train"):
        compared([good, training], tmp_path / "out")


def test_runs_without_a_common_example_are_refused_even_where_data_may_differ(make_run: MakeRun, tmp_path: Path) -> None:
    renamed = [other(e, id=f"x{e.id}") for e in TWENTY]
    folders = [make_run("a", predictions(set(), set())), make_run("b", predictions(set(), set(), renamed), renamed)]
    with pytest.raises(InputError, match="runs: expected runs that have examples in common, found none"):
        compared(folders, tmp_path / "out", allow=["dataset"])
    moved = [other(e, question_id=f"x{e.id}") for e in TWENTY]
    folders = [folders[0], make_run("c", predictions(set(), set(), moved), moved)]
    with pytest.raises(InputError, match="give example 'e01' to different questions"):
        compared(folders, tmp_path / "out", allow=["dataset"])


def test_folders_of_one_name_go_by_their_paths(make_run: MakeRun, tmp_path: Path) -> None:
    folders = [make_run("a/run", predictions(set(), set())), make_run("b/run", predictions({"e01"}, set()))]
    assert [row.name for row in compared(folders, tmp_path / "out").rows] == [str(folder) for folder in folders]
    with pytest.raises(InputError, match="names: expected one name for each of 2 runs, all different"):
        compared(folders, tmp_path / "out", names=["one"])


UNANSWERABLE_SET = Example(
    id="u", question_id="u", question="why?", documents=(), state=RetrievalState.UNANSWERABLE, condition=Condition.UNANSWERABLE
)


def test_each_way_to_end_has_a_column_of_its_own(make_run: MakeRun, tmp_path: Path) -> None:
    """Unreadable output and bad input are neither wrong nor abstained; a failed guard is an abstention that says nothing."""
    examples = [*TWENTY[:6], UNANSWERABLE_SET]
    made = [
        answered(TWENTY[0]),
        abstained(TWENTY[1], Reason.DISTRACTED, RetrievalState.DISTRACTED),
        abstained(TWENTY[2], Reason.SIEVE_TIMEOUT, None),
        abstained(TWENTY[3], Reason.UNSUPPORTED, RetrievalState.ANSWERABLE),
        abstained(TWENTY[4], Reason.UNPARSED, RetrievalState.ANSWERABLE),
        Prediction(id=TWENTY[5].id, question_id=TWENTY[5].question_id, error="question: blank"),
        abstained(UNANSWERABLE_SET),
    ]
    folders = [make_run("a", [answered(e) for e in examples], examples), make_run("b", made, examples)]
    first, second = (row.counts for row in compared(folders, tmp_path / "out").rows)
    assert columns(first) == (6, 1, 0)
    assert second == Counts(correct=1, wrong=0, abstained=4, distracted=1, unanswerable=1, other=2, rightly=1, unparsed=1, error=1, total=7)


def judged(outcome: Outcome, gold: RetrievalState, state: RetrievalState | None, reason: Reason | None) -> Judged:
    condition = Condition.CONFLICT if gold is RetrievalState.DISTRACTED else Condition(gold.value)
    return Judged("q", gold, condition, outcome, state, reason, None, None, None, True, False, None)


outcomes, states = st.sampled_from(Outcome), st.sampled_from([None, *RetrievalState])
reasons = st.sampled_from([None, Reason.DISTRACTED, Reason.SAGE_FAILED, Reason.POLICY])
ended_twice = st.builds(
    lambda gold, *sides: tuple(judged(outcome, gold, state, reason) for outcome, state, reason in sides),
    st.sampled_from(RetrievalState),
    *[st.tuples(outcomes, states, reasons)] * 2,
)


@settings(max_examples=50)
@given(st.lists(ended_twice, min_size=1, max_size=12))
def test_all_columns_close_whatever_happens(both: list[tuple[Judged, Judged]]) -> None:
    first, second = ({f"e{n}": Ended(f"q{n}", "?", pair[side]) for n, pair in enumerate(both)} for side in (0, 1))
    step = compare_runs(("a", first), ("b", second), resamples=2, seed=0)
    assert step.moved == sum(a.place is not b.place for a, b in zip(first.values(), second.values(), strict=True))
    assert step.gains - step.losses == sum(e.right for e in second.values()) - sum(e.right for e in first.values())
    assert step.between_columns == sum(a.outcome is not b.outcome for a, b in both)
    row = counts(list(first.values()))
    assert row.correct + row.wrong + row.abstained + row.unparsed + row.error == row.total == len(both)


def test_counts_that_do_not_close_are_a_bug() -> None:
    one = counts([Ended("q", "?", judged(Outcome.CORRECT, RetrievalState.ANSWERABLE, None, None))])
    none = one.model_copy(update={"correct": 0})
    with pytest.raises(RuntimeError, match="do not add up to the total"):
        require_closed(one, none, [])
    other_column = one.model_copy(update={"correct": 0, "wrong": 1})
    with pytest.raises(RuntimeError, match="correct changed from 1 to 0, the moves say"):
        require_closed(one, other_column, [])
    with pytest.raises(ValueError, match="the same examples"):
        transfers({}, {"e": Ended("q", "?", judged(Outcome.CORRECT, RetrievalState.ANSWERABLE, None, None))})
    assert Transfer(origin=Place.WRONG, target=Place.CORRECT, moved=()).model_dump(by_alias=True)["from"] == "wrong"


@pytest.mark.parametrize(
    ("net", "p"),
    [
        ([], 1.0),
        ([1] * 6, 2 / 64),
        ([-1], 1.0),
        ([1] * 8 + [-1] * 2, 2 * 56 / 1024),
        ([1, -1] * 5, 1.0),
        ([5, 5, -1], 4 / 8),
    ],
)
def test_signs_of_questions_by_hand(net: list[int], p: float) -> None:
    """8 against 2: 1 + 10 + 45 = 56 of 1024 ways are as extreme on one side. 5 + 5 - 1: of eight sums, 11 and 9 and their negatives."""
    assert sign_flips(net) == sign_flips([-value for value in net]) == pytest.approx(p)


def test_the_signs_of_many_questions_are_drawn() -> None:
    """The binomial tail of 15 gains against 5 losses is 0.0414, of which 100,000 draws are off by less than 0.004."""
    assert sign_flips([1] * 15 + [-1] * 5) == pytest.approx(0.0414, abs=0.004)
    assert sign_flips([1] * 15 + [-1] * 5, seed=1) == sign_flips([1] * 15 + [-1] * 5, seed=1)


def test_differences_are_paired_and_cover_every_metric(make_run: MakeRun, tmp_path: Path) -> None:
    """Ten of twenty made right: the difference is 0.5, and pairing keeps the interval as narrow as that of ten of twenty."""
    half = set(IDS[:10])
    folders = [make_run("a", predictions(half, set())), make_run("b", predictions(set(), set()))]
    step = compared(folders, tmp_path / "out", resamples=2000).steps[0]
    assert [d.name for d in step.metrics] == [name for name, _ in METRICS]
    accuracy = step.metrics[0]
    assert (accuracy.before, accuracy.after, accuracy.difference) == (0.5, 1.0, 0.5)
    assert accuracy.low == pytest.approx(0.3, abs=0.051) and accuracy.high == pytest.approx(0.7, abs=0.051)
    sieve = next(d for d in step.metrics if d.name == "sieve_macro_f1")
    assert (sieve.before, sieve.difference) == (None, None)


def test_scores_on_other_questions_are_not_subtracted(make_run: MakeRun, tmp_path: Path) -> None:
    """Sieve scores for half of the questions in one run only: shown, not compared."""
    scored = [answered(e).model_copy(update={"sieve_score": 0.1, "threshold": 0.5}) for e in TWENTY]
    folders = [make_run("a", scored), make_run("b", [*scored[:10], *predictions(set(), set())[10:]])]
    step = compared(folders, tmp_path / "out").steps[0]
    sieve = next(d for d in step.metrics if d.name == "sieve_macro_f1")
    assert (sieve.before, sieve.after, sieve.difference, sieve.note) == (1.0, 1.0, None, "the runs have it on different questions")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a", "b", "out=c"], ['runs=["a","b"]', "out=c"]),
        (["runs/a b", "runs/ü,1", 'q"q'], ['runs=["runs/a b","runs/ü,1","q\\"q"]']),
        (["runs=[a,b]", "out=c"], ["runs=[a,b]", "out=c"]),
        (["--cfg", "job"], ["--cfg", "job"]),
        ([], []),
    ],
)
def test_leading_paths_become_runs(given: list[str], expected: list[str]) -> None:
    assert with_runs(given) == expected


@pytest.mark.parametrize("path", ["runs/a b", "runs/ü,1", 'q"q', "it's", "a[0]", "C:\\runs", "{x}", "a:b", "null", "007"])
def test_hydra_reads_a_path_as_it_was_typed(path: str) -> None:
    [override] = with_runs([path])
    assert [str(each) for each in OverridesParser.create().parse_override(override).value()] == [path]


def test_a_folder_of_a_sweep_may_have_an_equals_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=1").mkdir()
    assert with_runs(["lr=1", "lr=2"]) == ['runs=["lr=1"]', "lr=2"]


def test_the_command_of_the_issue(make_run: MakeRun, tmp_path: Path) -> None:
    for name in ("baseline", "abstain if unsure"):
        make_run(name, predictions(*SIX_ROWS[name]))

    def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "eval.compare", *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    done = command("baseline", "abstain if unsure", "resamples=20", "out=compared")
    assert done.returncode == 0, done.stderr
    assert "5 examples moved" in done.stdout
    assert json.loads((tmp_path / "compared" / "compare.json").read_text(encoding="utf-8"))["runs"][1]["counts"]["abstained"] == 3
    refused = command("baseline")
    assert refused.returncode == 2 and "error: runs: expected two folders or more, the baseline first, got " in refused.stderr
