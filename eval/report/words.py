"""A report in words: what its metrics, rules and reasons are called, and single examples told in plain words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eval.metrics import Judged
from eval.outcomes import Match, distracting_ids, judge, pair
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
    "gold_given_answerable": "Gold answer given, answerable",
    "gold_given_unanswerable": "Gold answer given, unanswerable",
    "gold_given_conflict": "Gold answer given, conflict",
    "gold_given_negated": "Gold answer given, negated",
    "gold_given_adversarial": "Gold answer given, adversarial",
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
HEADLINES: Final = ("system_accuracy", "macro_f1", "selective_accuracy")
"""What to read first: the two axes of figure 3 of paper 002, and the accuracy of the answers given."""
MAIN: Final = (
    *("system_accuracy", "system_accuracy_strict", "coverage", "selective_accuracy", "macro_f1", "answerable_f1", "unanswerable_f1"),
    *("distracted_f1", "answered_when_it_should_not", "abstained_when_it_could_answer"),
)
"""Metrics that report.md shows unfolded."""


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
    words, style = verdict(example, prediction, judged)
    lines = [
        ("documents", Text(_given(example))),
        ("Sieve", Text(_sieve_line(example, prediction))),
        *([("", Text(_readings(prediction), style="italic dim"))] if prediction.readings else []),
        *_quotes(example, prediction.blamed, example.question),
        *([("then", Text(followed))] if (followed := _followed(prediction)) else []),
        ("Sage", Text(_sage_line(prediction))),
        *_quotes(example, [citation.document_id for citation in prediction.citations], prediction.answer or ""),
        ("verdict", Text(words, style=style)),
    ]
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("question"), Text(one_line(example.question), style="bold"))
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
    return [("", Text(f"{document.id}: {one_line(_nearest_sentence(document.text, wanted))}", style="italic dim")) for document in named]


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


def _followed(prediction: Prediction) -> str:
    """What followed a first abstention beside filtering, of which the Sieve's line tells."""
    found = f" ({', '.join(document.id for document in prediction.added)})" if prediction.added else ""
    steps = {step: RECOVERY_TITLES[step] + (found if step == "re_retrieved" else "") for step in prediction.recovery if step != "filtered"}
    return ", ".join(steps.values())


def _readings(prediction: Prediction) -> str:
    """What each document was read to answer, documents of one answer together; those that answer nothing come last."""
    by_answer: dict[str, list[str]] = {}
    for name, answer in prediction.readings.items():
        by_answer.setdefault(one_line(answer), []).append(name)
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
        return f'answers "{one_line(prediction.answer)}", citing {", ".join(cited) or "nothing"}'
    if prediction.prompt is None:
        return "not called"
    return f'writes "{one_line(prediction.output)}"' if prediction.output is not None else "no output"


def verdict(example: Example, prediction: Prediction, judged: Judged) -> tuple[str, str]:
    """What became of the example, in words, and the colour of the terminal to show it in."""
    gold = f'expected "{one_line(example.answers[0])}"' if example.answers else "no gold answer"
    answerable = example.state is RetrievalState.ANSWERABLE
    if judged.outcome is Outcome.ERROR:
        return f"bad input: {one_line(prediction.error or '')}", "red"
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


def one_line(value: str, limit: int = 160) -> str:
    """Untrusted text for a terminal or for Markdown: no control characters, no line breaks, cut with a mark."""
    line = " ".join("".join(char if char.isprintable() else " " for char in value).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
