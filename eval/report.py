"""Show a report: tables for the terminal, report.json and report.md, and single examples told in plain words."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eval.metrics import Judged
from eval.score import ConditionRow, Match, MetricRow, Report, distracting_ids, judge, pair
from rag.errors import InputError
from rag.records import Condition, Example, Outcome, Prediction, Reason, RetrievalState

METRIC_TITLES: Final = {
    "system_accuracy": "System Accuracy (any abstention)",
    "system_accuracy_strict": "System Accuracy (right state)",
    "coverage": "Coverage",
    "selective_accuracy": "Selective Accuracy",
    "macro_f1": "Macro-F1",
    "answerable_f1": "Answerable F1",
    "unanswerable_f1": "Unanswerable F1",
    "distracted_f1": "Distract F1",
    "answered_when_it_should_not": "Answered when it should not",
    "abstained_when_it_could_answer": "Abstained when it could answer",
    "sieve_true_positive_rate": "Sieve: distracted sets flagged",
    "sieve_false_positive_rate": "Sieve: other sets flagged",
    "sieve_macro_f1": "Sieve: Macro-F1, clean or distracted",
    "sage_calls_saved": "Sage calls saved",
    "blame_precision": "Blame precision",
    "recovery_rate": "Flagged distracted sets then answered",
    "recovery_accuracy": "Accuracy of those answers",
    "removal_precision": "Removed documents that were planted",
    "removal_recall": "Planted documents removed, if flagged",
    "recovered_answer_accuracy": "Flagged distracted: gold answer given",
    "right_after_recovery": "Flagged distracted: right if unplanted",
    "ece_midpoint": "Answers: calibration error, bin midpoints",
    "ece_mean": "Answers: calibration error, bin means",
    "brier": "Answers: Brier score",
    "aurc": "Answers: area under risk-coverage",
    "ece_midpoint_all": "All examples: calibration error, bin midpoints",
    "ece_mean_all": "All examples: calibration error, bin means",
    "brier_all": "All examples: Brier score",
    "aurc_all": "All examples: area under risk-coverage",
    "system_accuracy_exact": "System Accuracy, strict exact match",
    "selective_accuracy_exact": "Selective Accuracy, strict exact match",
    "system_accuracy_squad": "System Accuracy, SQuAD exact match",
    "selective_accuracy_squad": "Selective Accuracy, SQuAD exact match",
    "system_accuracy_contains": "System Accuracy, answer contains gold",
    "selective_accuracy_contains": "Selective Accuracy, answer contains gold",
    "selective_squad_f1": "SQuAD F1 of the answers given",
}
MATCH_TITLES: Final[Mapping[Match, str]] = {
    "exact": "strict exact match",
    "squad": "SQuAD exact match",
    "contains": "a gold answer found in the answer",
}
REASON_TITLES: Final = {
    Reason.DISTRACTED: "the documents were found misleading",
    Reason.STILL_DISTRACTED: "the Sieve found the documents misleading, whichever one is removed",
    Reason.ALL_REMOVED: "filtering left no document",
    Reason.NO_DOCUMENTS: "nothing was retrieved",
    Reason.UNANSWERABLE: "the Sage found no answer in the documents",
    Reason.SIEVE_FAILED: "the Sieve failed",
    Reason.SIEVE_TIMEOUT: "the Sieve ran out of time",
    Reason.SAGE_FAILED: "the Sage failed",
    Reason.SAGE_TIMEOUT: "the Sage ran out of time",
    Reason.UNPARSED: "the Sage's output could not be read",
    Reason.UNSUPPORTED: "no document was found to support the answer",
    Reason.CONTRADICTED: "a document was found to contradict the answer",
    Reason.INSUFFICIENT: "the documents were found not to suffice",
    Reason.JUDGE_FAILED: "the judge failed",
    Reason.JUDGE_TIMEOUT: "the judge ran out of time",
    Reason.POLICY: "this system always abstains",
}
RECOVERY_TITLES: Final = {
    "filtered": "filtered, then the Sage",
    "re_retrieved": "retrieved again",
    "escalated": "a stronger system asked",
    "queued": "queued for people",
}
RECOVERY_VERBS: Final = {"filtered": "filtering", "re_retrieved": "re-retrieval", "escalated": "escalation"}
GROUP_ENDS: Final = frozenset(
    {
        "system_accuracy_strict",
        "selective_accuracy",
        "distracted_f1",
        "abstained_when_it_could_answer",
        "sieve_macro_f1",
        "blame_precision",
        "recovery_accuracy",
        "right_after_recovery",
        "aurc",
    }
)
"""Metrics after which the table draws a gap."""


class _Section(NamedTuple):
    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: frozenset[int] = frozenset({0})
    """Columns of words; the others hold numbers."""
    gaps: frozenset[int] = frozenset()
    """Rows with a gap after them."""
    notes: tuple[str, ...] = ()


def render_table(report: Report) -> RenderableType:
    """The report as tables for a terminal of 100 columns."""
    blocks: list[RenderableType] = [Text(_summary(report))]
    for section in _sections(report):
        notes = [Padding(Text(note, style="dim"), (0, 0, 0, 2)) for note in section.notes]
        blocks += [Text(), Text(section.title, style="bold"), _rich_table(section), *notes]
    return Group(*blocks)


def write_report(folder: Path, report: Report, provenance: Mapping[str, str]) -> None:
    """Write report.json and report.md into `folder`, each complete or not at all.

    `provenance` says where the numbers come from: commit, machine, command. Raises InputError when the disk refuses.
    """
    content = {"provenance": dict(provenance), "report": report.model_dump(mode="json")}
    _write(folder / "report.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    _write(folder / "report.md", _markdown(report, provenance))


def _write(path: Path, content: str) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_text(content, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: could not write the report ({error.strerror}); the predictions are kept, score them again") from error


def _summary(report: Report) -> str:
    return (
        f"{report.n} examples of {report.questions} questions. An answer is correct by {MATCH_TITLES[report.match]}. "
        f"Intervals: {report.level:.0%}, bootstrap by question, {report.resamples} resamples, seed {report.seed}."
    )


def _sections(report: Report) -> list[_Section]:
    sections = [
        _metric_section("Metrics", report.metrics, report.resamples, report.notes),
        _response_section(report),
        _condition_section(report.conditions),
    ]
    if report.reasons:
        reasons = [(reason, REASON_TITLES[Reason(reason)], str(count)) for reason, count in report.reasons.items()]
        sections.append(_Section("Why no answer was given", ("reason", "meaning", "n"), reasons, frozenset({0, 1})))
    if report.recovery:
        sections.append(_recovery_section(report))
    if report.distractors:
        sections.append(_distractors_section(report))
    sections.append(_metric_section("The same answers by each matching rule", report.alternatives, report.resamples))
    if report.latency:
        times = [(row.stage, f"{row.mean:.1f}", f"{row.median:.1f}", f"{row.p95:.1f}", str(row.n)) for row in report.latency]
        kept = [f"{row.stage} {row.stored} of {row.n}" for row in report.latency if row.stored]
        notes = (
            (f"stored, so the times are those that the models took in the run which kept the results: {', '.join(kept)}.",) if kept else ()
        )
        sections.append(
            _Section("Milliseconds per example, measured in this run", ("stage", "mean", "median", "p95", "n"), times, notes=notes)
        )
    return sections


def _recovery_section(report: Report) -> _Section:
    header = ("what", "by state of the set", "n", "answered", "with a gold answer", "matching it")
    rows = [
        (
            RECOVERY_TITLES[row.step],
            ", ".join(f"{state} {n}" for state, n in row.by_state.items()) or "none",
            *map(str, (row.n, row.answered, row.with_gold, row.matching)),
        )
        for row in report.recovery
    ]
    note = (
        "answered: by this step, whatever the state of the set; the metrics above count an answer to a set that is not answerable as wrong."
    )
    return _Section("Recovery: what followed an abstention", header, rows, frozenset({0, 1}), notes=(note,))


def _distractors_section(report: Report) -> _Section:
    header = ("planted", "sets", "flagged", "metric", "value", "interval", "n")
    rows: list[tuple[str, ...]] = []
    ends = []
    for group in report.distractors:
        for place, row in enumerate(group.metrics):
            shown = (group.distractors, str(group.n), str(group.flagged)) if place == 0 else ("", "", "")
            rows.append((*shown, METRIC_TITLES[row.name], _number(row.value), _interval(row), str(row.n)))
        ends.append(len(rows) - 1)
    return _Section("Recovery by number of distractors", header, rows, frozenset({0, 3}), frozenset(ends))


def _metric_section(title: str, rows: Sequence[MetricRow], resamples: int, notes: tuple[str, ...] = ()) -> _Section:
    header = ("metric", "value", "interval", "n", "questions")
    cells = [(METRIC_TITLES[row.name], _number(row.value), _interval(row), str(row.n), str(row.questions)) for row in rows]
    gaps = frozenset(index for index, row in enumerate(rows) if row.name in GROUP_ENDS)
    own = tuple(f"{METRIC_TITLES[row.name]}: {row.note}." for row in rows if row.note)
    if undefined := [f"{METRIC_TITLES[row.name]} ({row.undefined})" for row in rows if row.undefined]:
        own += (f"Resamples without an example that counts, left out of the interval (of {resamples}): {', '.join(undefined)}.",)
    return _Section(title, header, cells, gaps=gaps, notes=own + notes)


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _interval(row: MetricRow) -> str:
    return "" if row.low is None else f"{_number(row.low)} to {_number(row.high)}"


def _response_section(report: Report) -> _Section:
    counts = report.counts
    rows = [
        ("Correct answers", str(counts.correct_answers)),
        ("Incorrect answers, all answers to unanswerable and distracted sets among them", str(counts.incorrect_answers)),
        ("Correct abstentions, on unanswerable and distracted sets", str(counts.correct_abstentions)),
        ("Incorrect abstentions, on answerable sets", str(counts.incorrect_abstentions)),
        ("Unparsed output", str(counts.unparsed)),
        ("Input errors", str(counts.errors)),
    ]
    return _Section(f"How all {report.n} examples ended", ("outcome", "n"), rows)


def _condition_section(rows: Sequence[ConditionRow]) -> _Section:
    header = ("condition", "state", "n", "right", "correct", "wrong", "abstained", "unparsed", "error", "flagged")
    cells = []
    for row in rows:
        right = row.correct if row.state is RetrievalState.ANSWERABLE else row.abstained
        flagged = f"{row.flagged / row.scored:.0%}" if row.scored else "n/a"
        ended = (row.correct, row.wrong, row.abstained, row.unparsed, row.error)
        cells.append((row.condition.value, row.state.value, str(row.n), f"{right / row.n:.0%}", *map(str, ended), flagged))
    note = "right: a correct answer to an answerable set, an abstention on any other. flagged: by the Sieve, of those with a score."
    return _Section("By condition", header, cells, frozenset({0, 1}), notes=(note,))


def _rich_table(section: _Section) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(section.header):
        table.add_column(name, justify="left" if index in section.left else "right", no_wrap=index not in section.left)
    for index, row in enumerate(section.rows):
        table.add_row(*map(Text, row), end_section=index in section.gaps)
    return table


def _markdown(report: Report, provenance: Mapping[str, str]) -> str:
    blocks = ["# Evaluation report", _summary(report)]
    for section in _sections(report):
        lines = [_markdown_row(section.header)]
        lines.append("|" + "|".join(" :--- " if index in section.left else " ---: " for index in range(len(section.header))) + "|")
        lines += map(_markdown_row, section.rows)
        blocks += [f"## {section.title}", "\n".join(lines), *section.notes]
    blocks += ["## Where the numbers come from", "\n".join(f"- {name}: `{_one_line(value)}`" for name, value in provenance.items())]
    return "\n\n".join(blocks) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def example_lines(
    examples: Iterable[Example], predictions: Iterable[Prediction], limit: int, match: Match = "exact"
) -> list[RenderableType]:
    """At most `limit` examples told line by line, taken from each condition in turn, of different questions as far as possible."""
    return [
        _story(example, prediction, judge(example, prediction, match))
        for example, prediction in _balanced(pair(examples, predictions), limit)
    ]


def _balanced(pairs: Sequence[tuple[Example, Prediction]], limit: int) -> list[tuple[Example, Prediction]]:
    waiting = {condition: [both for both in pairs if both[0].condition is condition] for condition in Condition}
    chosen: list[tuple[Example, Prediction]] = []
    shown: set[str] = set()
    while any(waiting.values()):
        for group in filter(None, waiting.values()):
            if len(chosen) >= limit:
                return chosen
            new = next((both for both in group if both[0].question_id not in shown), group[0])
            group.remove(new)
            shown.add(new[0].question_id)
            chosen.append(new)
    return chosen


def _story(example: Example, prediction: Prediction, judged: Judged) -> Table:
    verdict, style = _verdict(example, prediction, judged)
    lines = [
        ("documents", Text(_given(example))),
        ("Sieve", Text(_sieve_line(example, prediction))),
        *([("", Text(_readings(prediction), style="italic dim"))] if prediction.readings else []),
        *_quotes(example, prediction.blamed, example.question),
        ("Sage", Text(_sage_line(prediction))),
        *_quotes(example, [citation.document_id for citation in prediction.citations], prediction.answer or ""),
        ("verdict", Text(verdict, style=style)),
    ]
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("question"), Text(_one_line(example.question), style="bold"))
    for name, line in lines:
        table.add_row(Text(name), line)
    table.add_row()
    return table


def _given(example: Example) -> str:
    cause = "" if example.condition.value == example.state.value else f" ({example.condition.value})"
    planted = sorted(distracting_ids(example))
    return f"{len(example.documents)}: {example.state.value}{cause}" + (f", {', '.join(planted)} planted" if planted else "")


def _quotes(example: Example, ids: Sequence[str], about: str) -> list[tuple[str, Text]]:
    """The first named document in one sentence: the one that shares most words with `about`."""
    wanted = set(about.casefold().split())
    named = [document for document in example.documents if document.id in ids[:1]]
    return [("", Text(f"{document.id}: {_one_line(_nearest_sentence(document.text, wanted))}", style="italic dim")) for document in named]


def _nearest_sentence(text: str, wanted: set[str]) -> str:
    return max(re.split(r"(?<=[.!?])\s+", text), key=lambda sentence: len(wanted.intersection(sentence.casefold().split())))


def _sieve_line(example: Example, prediction: Prediction) -> str:
    if prediction.sieve_score is None or prediction.threshold is None:
        return "no score"
    score, threshold = prediction.sieve_score, prediction.threshold
    line = f"P(distracted) {score:.3f}, " + (
        f"at or above {threshold:.3f}: flagged" if score >= threshold else f"below {threshold:.3f}: passed"
    )
    if prediction.blamed:
        line += f"; blames {', '.join(prediction.blamed)}{_blame_check(example, prediction)}"
    if prediction.removed:
        line += f"; removed {', '.join(prediction.removed)}"
    return line


def _readings(prediction: Prediction) -> str:
    """What each document was read to answer, documents of one answer together; those that answer nothing come last."""
    by_answer: dict[str, list[str]] = {}
    for name, answer in prediction.readings.items():
        by_answer.setdefault(_one_line(answer), []).append(name)
    silent = by_answer.pop("", [])
    said = [f'{", ".join(names)}: "{answer}"' for answer, names in by_answer.items()]
    return "reads " + "; ".join([*said, *([f"{', '.join(silent)}: nothing"] if silent else [])])


def _blame_check(example: Example, prediction: Prediction) -> str:
    planted = distracting_ids(example)
    if not planted:
        return ""
    return ", which was planted" if planted.issuperset(prediction.blamed) else ", not (only) what was planted"


def _sage_line(prediction: Prediction) -> str:
    if prediction.answer is not None:
        cited = [f"{c.document_id}{'' if c.supported else ' (its text does not hold the answer)'}" for c in prediction.citations]
        return f'answers "{_one_line(prediction.answer)}", citing {", ".join(cited) or "nothing"}'
    if prediction.prompt is None:
        return "not called"
    return f'writes "{_one_line(prediction.output)}"' if prediction.output is not None else "no output"


def _verdict(example: Example, prediction: Prediction, judged: Judged) -> tuple[str, str]:
    """What became of the example, in words, and the colour to show it in."""
    gold = f'expected "{_one_line(example.answers[0])}"' if example.answers else "no gold answer"
    answerable = example.state is RetrievalState.ANSWERABLE
    if judged.outcome is Outcome.ERROR:
        return f"bad input: {_one_line(prediction.error or '')}", "red"
    if judged.outcome is Outcome.UNPARSED:
        return f"unreadable output; {gold if answerable else 'should have abstained'}", "red"
    if judged.outcome is Outcome.CORRECT:
        return "correct answer", "green"
    if judged.outcome is Outcome.WRONG:
        return _wrong_answer(judged, gold, answerable)
    reason = REASON_TITLES[Reason(prediction.reason)] if prediction.reason else "no reason"
    if answerable:
        return f"abstained needlessly ({reason}); {gold}", "yellow"
    if judged.state is not judged.gold:
        return f"abstained rightly, but not for the right cause ({reason})", "yellow"
    return f"abstained rightly: {reason}", "green"


def _wrong_answer(judged: Judged, gold: str, answerable: bool) -> tuple[str, str]:
    if answerable:
        return f"wrong answer, {gold}", "red"
    if judged.recovered and judged.matches_gold:
        how = RECOVERY_VERBS[judged.recovery[-1]] if judged.recovery else "filtering"
        return f"recovered: after {how}, the answer is the gold answer", "green"
    return f"answered, but should have abstained ({judged.gold.value})", "red"


def _one_line(value: str, limit: int = 160) -> str:
    """Untrusted text for a terminal: no control characters, no line breaks, cut with a mark."""
    line = " ".join("".join(char if char.isprintable() else " " for char in value).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
