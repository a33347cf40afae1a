"""Reports: what the terminal, the files and the told examples show."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from eval.records import Report
from eval.report import METRIC_TITLES, REASON_TITLES, example_lines, render_table, write_report
from eval.score import score
from rag.errors import InputError
from rag.records import Citation, Condition, Document, DocumentLabel, Example, Prediction, Reason, RetrievalState

PROVENANCE = {"commit": "0123abc", "machine": "Linux x86_64, 2 cores", "command": "python -m eval.pipeline dataset=demo"}
STATES = {Condition.ANSWERABLE: RetrievalState.ANSWERABLE, Condition.UNANSWERABLE: RetrievalState.UNANSWERABLE}


def example(id_: str, condition: Condition, question_id: str, question: str = "Who is the mayor of Ostvale?") -> Example:
    state = STATES.get(condition, RetrievalState.DISTRACTED)
    documents = [Document(id="d1", text="Ostvale has a harbour. The mayor of Ostvale is Ada Lind.", label=DocumentLabel.ANSWERABLE)]
    if state is RetrievalState.DISTRACTED:
        label = DocumentLabel(condition.value)
        documents.append(Document(id="d2", text="It rains. The mayor of Ostvale is Bo Falk. It rains.", label=label))
    return Example(
        id=id_,
        question_id=question_id,
        question=question,
        documents=tuple(documents),
        answers=("Ada Lind",),
        state=state,
        condition=condition,
    )


def prediction(id_: str, question_id: str, **fields: Any) -> Prediction:
    return Prediction(id=id_, question_id=question_id, **fields)


def answered(id_: str, question_id: str, answer: str = "Ada Lind", **fields: Any) -> Prediction:
    given = {"state": RetrievalState.ANSWERABLE, "prompt": "...", "sieve_score": 0.125, "threshold": 0.5} | fields
    return prediction(id_, question_id, answer=answer, **given)


def flagged(id_: str, question_id: str, **fields: Any) -> Prediction:
    given = {"state": RetrievalState.DISTRACTED, "sieve_score": 0.875, "threshold": 0.5, "blamed": ("d2",)} | fields
    return prediction(id_, question_id, **given)


EXAMPLES = [
    example("a1", Condition.ANSWERABLE, "q1"),
    example("a2", Condition.ANSWERABLE, "q2"),
    example("u1", Condition.UNANSWERABLE, "q1"),
    example("c1", Condition.CONFLICT, "q1"),
    example("c2", Condition.CONFLICT, "q2"),
]
PREDICTIONS = [
    answered("a1", "q1", citations=(Citation(document_id="d1", supported=True),), timings={"sieve": 4.0, "sage": 20.0}),
    answered("a2", "q2", "Bo Falk"),
    prediction("u1", "q1", reason=Reason.UNANSWERABLE, state=RetrievalState.UNANSWERABLE, prompt="...", output="unanswerable"),
    flagged("c1", "q1", reason=Reason.DISTRACTED),
    prediction("c2", "q2", reason=Reason.SIEVE_TIMEOUT),
]


@pytest.fixture(scope="module")
def report() -> Report:
    return score(EXAMPLES, PREDICTIONS, resamples=100)


def shown(*renderables: RenderableType) -> str:
    console = Console(width=100, color_system=None, force_terminal=False)
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable)
    return capture.get()


def told(example_: Example, prediction_: Prediction) -> str:
    return " ".join(shown(*example_lines([example_], [prediction_], limit=1)).split())


def test_the_terminal_tables_show_each_metric_with_interval_and_n_in_100_columns(report: Report) -> None:
    output = shown(render_table(report))
    lines = output.splitlines()
    assert max(map(len, lines)) <= 100
    assert "…" not in output
    for row in report.metrics:
        line = next(line for line in lines if METRIC_TITLES[row.name] in line)
        value = "n/a" if row.value is None else f"{row.value:.3f} {row.low:.3f} to {row.high:.3f}"
        assert " ".join(line.split()).endswith(f"{value} {row.n} {row.questions}")


def test_the_summary_names_the_matching_rule_and_the_resampling(report: Report) -> None:
    output = " ".join(shown(render_table(report)).split())
    assert "5 examples of 2 questions. An answer is correct by strict exact match." in output
    assert "Intervals: 95%, bootstrap by question, 100 resamples, seed 0." in output
    assert "Always abstaining would have System Accuracy 0.600" in output


def test_the_written_report_reads_back_and_names_its_origin(report: Report, tmp_path: Path) -> None:
    write_report(tmp_path / "new", report, PROVENANCE)
    written = json.loads((tmp_path / "new" / "report.json").read_text(encoding="utf-8"))
    assert written["provenance"] == PROVENANCE
    assert Report.model_validate_json(json.dumps(written["report"])) == report
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["report.json", "report.md"]


def test_the_markdown_has_the_same_tables_and_the_origin(report: Report, tmp_path: Path) -> None:
    write_report(tmp_path, report, PROVENANCE)
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| Coverage | 1.000 | 1.000 to 1.000 | 2 | 2 |" in markdown
    assert "| Incorrect answers, all answers to unanswerable and distracted sets among them | 1 |" in markdown
    assert "| sage | 20.0 | 20.0 | 20.0 | 1 |" in markdown
    assert "- commit: `0123abc`" in markdown
    tables = [block.splitlines() for block in markdown.split("\n\n") if block.startswith("|")]
    assert len(tables) == 7
    assert all(line.count("|") == table[0].count("|") for table in tables for line in table)


def test_writing_twice_gives_the_same_bytes(report: Report, tmp_path: Path) -> None:
    write_report(tmp_path / "one", report, PROVENANCE)
    write_report(tmp_path / "two", score(EXAMPLES[::-1], PREDICTIONS, resamples=100), PROVENANCE)
    for name in ("report.json", "report.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_folder_that_cannot_be_written_is_a_clear_error_and_leaves_nothing_half_done(report: Report, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="report.json: could not write the report"):
        write_report(tmp_path / "file", report, PROVENANCE)


def test_examples_come_from_each_condition_in_turn_and_from_different_questions() -> None:
    stories = [" ".join(shown(story).split()) for story in example_lines(EXAMPLES, PREDICTIONS, limit=4)]
    assert [story.split("documents ")[1].split(" Sieve")[0] for story in stories] == [
        "1: answerable",
        "1: unanswerable",
        "2: distracted (conflict), d2 planted",
        "1: answerable",
    ]
    assert "ran out of time" in stories[2], "the second question's conflict set comes first: question q1 was shown before"


def test_told_examples_do_not_depend_on_the_order_of_the_files() -> None:
    assert shown(*example_lines(EXAMPLES[::-1], PREDICTIONS[::-1], limit=3)) == shown(*example_lines(EXAMPLES, PREDICTIONS, limit=3))


def test_no_more_examples_are_told_than_there_are() -> None:
    assert len(example_lines(EXAMPLES, PREDICTIONS, limit=99)) == 5
    assert example_lines(EXAMPLES, PREDICTIONS, limit=0) == []


CONFLICT = example("c", Condition.CONFLICT, "q")
CLEAN = example("a", Condition.ANSWERABLE, "q")


@pytest.mark.parametrize(
    ("example_", "prediction_", "expected"),
    [
        (CLEAN, answered("a", "q"), "verdict correct answer"),
        (CLEAN, answered("a", "q", "Bo Falk"), 'verdict wrong answer, expected "Ada Lind"'),
        (
            CLEAN,
            prediction("a", "q", reason=Reason.UNANSWERABLE, state=RetrievalState.UNANSWERABLE),
            'abstained needlessly (the Sage found no answer in the documents); expected "Ada Lind"',
        ),
        (CONFLICT, flagged("c", "q", reason=Reason.DISTRACTED), "verdict abstained rightly: the documents were found misleading"),
        (CONFLICT, prediction("c", "q", reason=Reason.SIEVE_FAILED), "rightly, but not for the right cause (the Sieve failed)"),
        (CONFLICT, answered("c", "q"), "verdict answered, but should have abstained (distracted)"),
        (
            CONFLICT,
            flagged("c", "q", answer="Ada Lind", removed=("d2",), prompt="..."),
            "removed d2",
        ),
        (
            CONFLICT,
            flagged("c", "q", answer="Ada Lind", removed=("d2",), prompt="..."),
            "verdict recovered: after filtering, the answer is the gold answer",
        ),
        (CONFLICT, prediction("c", "q", reason=Reason.UNPARSED, output="{'ans", prompt="..."), "unreadable output; should have abstained"),
        (CLEAN, prediction("a", "q", error="question: blank"), "verdict bad input: question: blank"),
    ],
)
def test_verdicts_in_words(example_: Example, prediction_: Prediction, expected: str) -> None:
    assert expected in told(example_, prediction_)


def test_the_blamed_document_is_named_quoted_and_checked_against_what_was_planted() -> None:
    right = told(CONFLICT, flagged("c", "q", reason=Reason.DISTRACTED))
    assert "P(distracted) 0.875, at or above 0.500: flagged; blames d2, which was planted" in right
    assert "d2: The mayor of Ostvale is Bo Falk. Sage not called" in right
    assert "blames d1, not (only) what was planted" in told(CONFLICT, flagged("c", "q", reason=Reason.DISTRACTED, blamed=("d1",)))


def test_an_answer_is_shown_with_its_citations() -> None:
    story = told(CLEAN, PREDICTIONS[0].model_copy(update={"id": "a", "question_id": "q"}))
    assert 'Sage answers "Ada Lind", citing d1 d1: The mayor of Ostvale is Ada Lind.' in story
    unsupported = answered("a", "q", "Bo Falk", citations=(Citation(document_id="d1", supported=False),))
    assert "citing d1 (its text does not hold the answer)" in told(CLEAN, unsupported)
    assert 'answers "Ada Lind", citing nothing' in told(CLEAN, answered("a", "q"))


def test_untrusted_text_cannot_steer_the_terminal() -> None:
    """Neither rich markup, nor escape sequences, nor line breaks of a question or an answer take effect; long text is cut with a mark."""
    question = "Who [bold red]is\x1b[31m :smile:\nit?"
    story = shown(*example_lines([example("a", Condition.ANSWERABLE, "q", question)], [answered("a", "q", "x" * 500)], limit=1))
    assert "Who [bold red]is [31m :smile: it?" in story
    assert "\x1b" not in story
    assert story.count("x") < 200 and "…" in story


def test_every_reason_has_words() -> None:
    assert set(REASON_TITLES) == set(Reason)


def test_every_metric_has_a_title() -> None:
    """Calibration has rows only where an output has a confidence, and a condition only where there are examples of it."""
    sure = [PREDICTIONS[0].model_copy(update={"confidence": 0.9}), *PREDICTIONS[1:]]
    report = score(EXAMPLES, sure, resamples=100)
    absent = {"gold_given_negated", "gold_given_adversarial"}
    assert {row.name for row in (*report.metrics, *report.alternatives)} == set(METRIC_TITLES) - absent


def test_what_the_sieve_read_is_told_by_answer() -> None:
    made = flagged("c1", "q1", reason=Reason.DISTRACTED).model_copy(
        update={"readings": {"d1": "Lima", "d2": "Quito", "d3": "", "d4": "Lima"}}
    )
    assert 'reads d1, d4: "Lima"; d2: "Quito"; d3: nothing' in told(EXAMPLES[3], made)
    assert "reads" not in told(EXAMPLES[3], flagged("c1", "q1", reason=Reason.DISTRACTED))


def test_a_story_tells_what_followed_an_abstention() -> None:
    again = PREDICTIONS[0].model_copy(
        update={"recovery": ("filtered", "re_retrieved", "escalated"), "added": (Document(id="d9", text="New."),)}
    )
    assert "then retrieved again (d9), a stronger system asked" in told(EXAMPLES[0], again)
    assert "then" not in told(EXAMPLES[0], PREDICTIONS[0].model_copy(update={"recovery": ("filtered",)})).split()
