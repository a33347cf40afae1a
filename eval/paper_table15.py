"""Table 15 of paper 002 recomputed from its own response counts: which printed figures follow from them. All numbers here are the paper's.

docs/table15.md is what `markdown` gives; a test holds the two together.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from eval import metrics
from eval.metrics import Judged
from rag import card
from rag.records import Condition, Outcome, RetrievalState

ANSWERABLE, UNANSWERABLE, DISTRACTED = RetrievalState.ANSWERABLE, RetrievalState.UNANSWERABLE, RetrievalState.DISTRACTED
PRINTED: Final = 0.00051
"""Half a unit of the third decimal, which is all that the paper prints."""


class PaperRow(NamedTuple):
    """One printed row, without its latency and speedup."""

    data: str
    system: str
    system_accuracy: float
    coverage: float
    selective: float
    macro_f1: float
    answerable_f1: float
    unanswerable_f1: float
    distracted_f1: float
    correct_answers: int
    incorrect_answers: int
    correct_abstentions: int
    incorrect_abstentions: int


SIZES: Final = {
    "NQ-google": (51, 49, 126),
    "NQ-wiki": (889, 483, 1925),
    "WebQ": (545, 296, 1255),
    "RealtimeQA": (34, 66, 87),
    "RAG-Bench": (912, 419, 2721),
    "MedQA": (116, 159, 216),
    "BioASQ": (75, 397, 138),
    "AstroQA": (99, 86, 104),
}
"""Answerable, unanswerable and distracted test sets, printed in table 1."""

ROWS: Final = (
    PaperRow("NQ-google", "vanilla LLM", 0.102, 1.000, 0.353, 0.179, 0.379, 0.143, 0.016, 18, 200, 8, 0),
    PaperRow("NQ-google", "Sage-only", 0.664, 0.471, 1.000, 0.487, 0.545, 0.164, 0.752, 24, 13, 162, 27),
    PaperRow("NQ-google", "DTA-RAAT", 0.128, 1.000, 0.569, 0.123, 0.368, 0.000, 0.000, 29, 197, 0, 0),
    PaperRow("NQ-google", "DTA-chatQA", 0.230, 0.961, 0.857, 0.221, 0.377, 0.254, 0.031, 42, 167, 15, 2),
    PaperRow("NQ-google", "Sieve and Sage", 0.796, 0.863, 0.886, 0.731, 0.672, 0.585, 0.937, 39, 41, 139, 7),
    PaperRow("NQ-wiki", "vanilla LLM", 0.154, 0.993, 0.465, 0.241, 0.439, 0.277, 0.008, 411, 2721, 159, 6),
    PaperRow("NQ-wiki", "Sage-only", 0.792, 0.938, 0.772, 0.730, 0.777, 0.454, 0.960, 644, 613, 1985, 55),
    PaperRow("NQ-wiki", "DTA-RAAT", 0.167, 1.000, 0.619, 0.142, 0.425, 0.000, 0.000, 550, 2747, 0, 0),
    PaperRow("NQ-wiki", "DTA-chatQA", 0.226, 0.922, 0.713, 0.267, 0.429, 0.355, 0.016, 585, 2348, 295, 69),
    PaperRow("NQ-wiki", "Sieve and Sage", 0.638, 0.810, 0.822, 0.632, 0.603, 0.556, 0.737, 592, 909, 1627, 169),
    PaperRow("WebQ", "vanilla LLM", 0.110, 0.976, 0.365, 0.198, 0.418, 0.171, 0.005, 194, 1805, 84, 13),
    PaperRow("WebQ", "Sage-only", 0.746, 0.927, 0.699, 0.667, 0.737, 0.322, 0.943, 353, 473, 1230, 40),
    PaperRow("WebQ", "DTA-RAAT", 0.153, 1.000, 0.587, 0.138, 0.413, 0.000, 0.000, 320, 1776, 0, 0),
    PaperRow("WebQ", "DTA-chatQA", 0.186, 0.798, 0.664, 0.219, 0.403, 0.241, 0.014, 289, 1324, 373, 110),
    PaperRow("WebQ", "Sieve and Sage", 0.578, 0.758, 0.719, 0.562, 0.555, 0.401, 0.730, 297, 645, 1022, 132),
    PaperRow("RealtimeQA", "vanilla LLM", 0.225, 1.000, 0.765, 0.238, 0.337, 0.376, 0.000, 26, 142, 19, 0),
    PaperRow("RealtimeQA", "Sage-only", 0.535, 0.059, 1.000, 0.314, 0.095, 0.189, 0.659, 2, 6, 147, 32),
    PaperRow("RealtimeQA", "DTA-RAAT", 0.134, 1.000, 0.735, 0.103, 0.308, 0.000, 0.000, 25, 162, 0, 0),
    PaperRow("RealtimeQA", "DTA-chatQA", 0.262, 0.971, 0.909, 0.253, 0.333, 0.427, 0.000, 30, 134, 22, 1),
    PaperRow("RealtimeQA", "Sieve and Sage", 0.802, 0.676, 1.000, 0.734, 0.541, 0.763, 0.899, 23, 28, 125, 11),
    PaperRow("RAG-Bench", "vanilla LLM", 0.125, 0.980, 0.497, 0.197, 0.370, 0.218, 0.002, 444, 3481, 109, 18),
    PaperRow("RAG-Bench", "Sage-only", 0.397, 0.928, 0.779, 0.415, 0.446, 0.354, 0.446, 659, 2220, 1107, 66),
    PaperRow("RAG-Bench", "DTA-RAAT", 0.179, 1.000, 0.796, 0.122, 0.367, 0.000, 0.000, 726, 3326, 0, 0),
    PaperRow("RAG-Bench", "DTA-chatQA", 0.191, 0.908, 0.775, 0.215, 0.370, 0.265, 0.012, 642, 2922, 404, 84),
    PaperRow("RAG-Bench", "Sieve and Sage", 0.368, 0.773, 0.814, 0.375, 0.405, 0.376, 0.344, 574, 1995, 1276, 207),
    PaperRow("MedQA", "vanilla LLM", 0.322, 0.931, 0.435, 0.412, 0.444, 0.793, 0.000, 47, 323, 113, 8),
    PaperRow("MedQA", "Sage-only", 0.489, 0.914, 0.425, 0.548, 0.613, 0.268, 0.765, 45, 185, 251, 10),
    PaperRow("MedQA", "DTA-RAAT", 0.041, 1.000, 0.172, 0.127, 0.382, 0.000, 0.000, 20, 471, 0, 0),
    PaperRow("MedQA", "DTA-chatQA", 0.297, 0.914, 0.509, 0.367, 0.434, 0.667, 0.000, 54, 319, 108, 10),
    PaperRow("MedQA", "Sieve and Sage", 0.682, 0.862, 0.460, 0.766, 0.662, 0.677, 0.959, 46, 140, 289, 16),
    PaperRow("BioASQ", "vanilla LLM", 0.333, 0.973, 0.000, 0.326, 0.308, 0.669, 0.000, 0, 399, 209, 2),
    PaperRow("BioASQ", "Sage-only", 0.428, 0.880, 0.000, 0.529, 0.365, 0.604, 0.617, 0, 287, 314, 9),
    PaperRow("BioASQ", "DTA-RAAT", 0.002, 1.000, 0.013, 0.073, 0.219, 0.000, 0.000, 1, 609, 0, 0),
    PaperRow("BioASQ", "DTA-chatQA", 0.456, 0.707, 0.038, 0.362, 0.305, 0.754, 0.027, 2, 270, 316, 22),
    PaperRow("BioASQ", "Sieve and Sage", 0.428, 0.853, 0.000, 0.552, 0.336, 0.551, 0.768, 0, 306, 293, 11),
    PaperRow("AstroQA", "vanilla LLM", 0.218, 0.828, 0.268, 0.347, 0.516, 0.526, 0.000, 22, 197, 53, 17),
    PaperRow("AstroQA", "Sage-only", 0.550, 0.434, 0.465, 0.620, 0.509, 0.608, 0.744, 20, 50, 163, 56),
    PaperRow("AstroQA", "DTA-RAAT", 0.093, 1.000, 0.273, 0.170, 0.510, 0.000, 0.000, 27, 262, 0, 0),
    PaperRow("AstroQA", "DTA-chatQA", 0.208, 0.798, 0.392, 0.296, 0.485, 0.384, 0.019, 31, 196, 42, 20),
    PaperRow("AstroQA", "Sieve and Sage", 0.630, 0.303, 0.433, 0.662, 0.420, 0.634, 0.933, 13, 31, 176, 69),
)


class Check(NamedTuple):
    """What the counts of one row say about its figures."""

    paper: PaperRow
    counts_add_up: bool
    """Whether the four counts are as many as the test sets of table 1."""
    coverage: float
    selective: float
    answerable_f1: float
    any_abstention: float
    """System Accuracy where any abstention on an unanswerable or distracted set is right."""
    right_state: tuple[float, ...]
    """All values that System Accuracy can have where an abstention must name the state of the set, given the two printed F1s of the states;
    empty where no split of the abstentions gives both F1s."""
    macro_f1: bool
    """Whether the printed mean can be that of the three printed F1s."""

    @property
    def agrees_by_any_abstention(self) -> bool:
        """Whether the printed System Accuracy is that one."""
        return abs(self.any_abstention - self.paper.system_accuracy) < PRINTED

    @property
    def agrees_by_right_state(self) -> bool:
        """Whether the printed System Accuracy can be that one."""
        return any(abs(value - self.paper.system_accuracy) < PRINTED for value in self.right_state)


def check(paper: PaperRow) -> Check:
    """Recompute one row with the project's own metrics."""
    rows = judged(paper)
    answers = (paper.correct_answers, paper.incorrect_answers)
    total = sum(SIZES[paper.data])
    found = {(paper.correct_answers + hits) / total for hits in _state_hits(paper)}
    mean = (paper.answerable_f1 + paper.unanswerable_f1 + paper.distracted_f1) / 3
    return Check(
        paper=paper,
        counts_add_up=sum(answers) + paper.correct_abstentions + paper.incorrect_abstentions == total,
        coverage=metrics.coverage(rows).value,
        selective=metrics.selective_accuracy(rows).value,
        answerable_f1=metrics.state_f1(rows, ANSWERABLE).value,
        any_abstention=metrics.system_accuracy(rows).value,
        right_state=tuple(sorted(found)),
        # Three rounded figures have a rounded mean that is off by one unit at most.
        macro_f1=abs(mean - paper.macro_f1) < 2 * PRINTED,
    )


def judged(paper: PaperRow) -> list[Judged]:
    """Rows that have the printed response counts; every abstention on such a set names the gold state, as far as there are such sets."""
    answerable, unanswerable, _ = SIZES[paper.data]
    wrong_on_answerable = answerable - paper.correct_answers - paper.incorrect_abstentions
    abstained_unanswerable = min(paper.correct_abstentions, unanswerable)
    return [
        *[_row(ANSWERABLE, Outcome.CORRECT, ANSWERABLE)] * paper.correct_answers,
        *[_row(ANSWERABLE, Outcome.WRONG, ANSWERABLE)] * wrong_on_answerable,
        *[_row(ANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE)] * paper.incorrect_abstentions,
        *[_row(UNANSWERABLE, Outcome.ABSTAINED, UNANSWERABLE)] * abstained_unanswerable,
        *[_row(DISTRACTED, Outcome.ABSTAINED, DISTRACTED)] * (paper.correct_abstentions - abstained_unanswerable),
        *[_row(DISTRACTED, Outcome.WRONG, ANSWERABLE)] * (paper.incorrect_answers - wrong_on_answerable),
    ]


def _row(gold: RetrievalState, outcome: Outcome, state: RetrievalState) -> Judged:
    condition = Condition.CONFLICT if gold is DISTRACTED else Condition(gold.value)
    return Judged("q", gold, condition, outcome, state, None, None, None, None, True, False, None)


def _state_hits(paper: PaperRow) -> Iterator[int]:
    """Numbers of abstentions that name the gold state, for each split of the abstentions that gives both printed F1s and all counts."""
    _, unanswerable, distracted = SIZES[paper.data]
    right, needless = paper.correct_abstentions, paper.incorrect_abstentions
    for said_unanswerable in range(right + needless + 1):
        for first in _hits(paper.unanswerable_f1, unanswerable, said_unanswerable):
            for second in _hits(paper.distracted_f1, distracted, right + needless - said_unanswerable):
                # Abstentions on unanswerable sets: no more than there are sets, and the rest of what was said fits the other sets.
                others = right - second - (said_unanswerable - first)
                if max(first, right - distracted, others) <= min(unanswerable, right - second, others + needless):
                    yield first + second


def _hits(f1: float, gold: int, predicted: int) -> Iterator[int]:
    """Numbers of hits that print as this F1."""
    middle = round(f1 * (gold + predicted) / 2)
    slack = 2 + (gold + predicted) // 1000
    for count in range(max(0, middle - slack), min(gold, predicted, middle + slack) + 1):
        if abs(2 * count / (gold + predicted) - f1) < PRINTED:
            yield count


def markdown() -> str:
    """The list of what is consistent and what is not."""
    checks = [check(paper) for paper in ROWS]
    figures = ("Coverage", "Selective Acc.", "Ans. F1", "Unans. and Distract F1", "Macro-F1")
    header = ("data", "system", "counts", *figures, "System Acc. printed", "any abstention", "right state")
    return card.render(
        "Table 15 of the paper, recomputed from its own counts",
        {
            "": _INTRODUCTION,
            "Which figures agree": _summary(checks),
            "Row by row": "`=`: what follows from the counts is what is printed; otherwise both are given. System Accuracy by right state is a range, "
            "because the table does not say which state an abstention named.\n\n" + card.table(header, [_cells(each) for each in checks]),
        },
    )


_INTRODUCTION: Final = (
    "Every number on this page is the paper's or follows from the paper's; none was measured with this project. Table 15 of Sieve and Sage prints, "
    "for each row, how often a system answered and abstained, rightly and wrongly. With the test sets of table 1, these counts determine Coverage, "
    "Selective Accuracy, Answerable F1 (an answer says `answerable`) and System Accuracy where any abstention on a set that should not be answered "
    "is right. They bound, but do not determine, Unanswerable F1, Distract F1 and System Accuracy where an abstention must name the right state. "
    "The functions of `eval/metrics.py` were run on rows that have the printed counts (`eval/paper_table15.py`, from which this page is made)."
)


def _summary(checks: Sequence[Check]) -> str:
    n = len(checks)

    def agree(name: str, of: Sequence[bool], failing: str = "") -> str:
        without = [f"{each.paper.data} {each.paper.system}" for each, good in zip(checks, of, strict=True) if not good]
        told = f" {failing}: {', '.join(without)}." if without and failing else ""
        return f"- {name}: {sum(of)} of {n} rows.{told}"

    lines = [
        agree("Counts that add up to the test sets of table 1", [each.counts_add_up for each in checks], "Not"),
        agree("Coverage", [_same(each.coverage, each.paper.coverage) for each in checks], "Not"),
        agree("Selective Accuracy", [_same(each.selective, each.paper.selective) for each in checks], "Not"),
        agree("Answerable F1", [_same(each.answerable_f1, each.paper.answerable_f1) for each in checks], "Not"),
        agree(
            "Unanswerable F1 and Distract F1: some split of the abstentions gives both",
            [bool(each.right_state) for each in checks],
            "None does in",
        ),
        agree("Macro-F1 is the mean of the three printed F1s", [each.macro_f1 for each in checks], "Not"),
        agree("System Accuracy, any abstention counting as right", [each.agrees_by_any_abstention for each in checks])
        + " They are "
        + ", ".join(f"{each.paper.data} {each.paper.system}" for each in checks if each.agrees_by_any_abstention)
        + ".",
        agree("System Accuracy, an abstention having to name the state", [each.agrees_by_right_state for each in checks], "Not"),
        agree(
            "System Accuracy by one or the other",
            [each.agrees_by_right_state or each.agrees_by_any_abstention for each in checks],
            "By neither",
        ),
    ]
    more = [each for each in checks if each.paper.system_accuracy > each.any_abstention + PRINTED]
    lines.append(
        "- Printed System Accuracy above what the counts allow by any definition: "
        + ", ".join(f"{c.paper.data} {c.paper.system} ({c.paper.system_accuracy:.3f}, at most {c.any_abstention:.3f})" for c in more)
        + "."
    )
    return "\n".join(lines)


def _same(recomputed: float, printed: float) -> bool:
    return abs(recomputed - printed) < PRINTED


def _cells(each: Check) -> tuple[str, ...]:
    paper = each.paper
    pairs = ((each.coverage, paper.coverage), (each.selective, paper.selective), (each.answerable_f1, paper.answerable_f1))
    ends = (*each.right_state[:1], *each.right_state[-1:])
    right_state = " to ".join(dict.fromkeys(f"{value:.3f}" for value in ends)) or "impossible"
    return (
        paper.data,
        paper.system,
        "=" if each.counts_add_up else "do not add up",
        *("=" if _same(*pair) else f"{pair[0]:.3f}, printed {pair[1]:.3f}" for pair in pairs),
        "possible" if each.right_state else "impossible",
        "=" if each.macro_f1 else "not the mean",
        f"{paper.system_accuracy:.3f}",
        f"{each.any_abstention:.3f}" + (" =" if each.agrees_by_any_abstention else ""),
        right_state + (" =" if each.agrees_by_right_state else ""),
    )
