"""A certificate in words and as Markdown."""

from collections.abc import Sequence

from eval.certainty.certificate import Certificate, Required, Risk, Tested
from eval.certainty.confidence import Half
from eval.certainty.intervals import Certain
from eval.certainty.learn_then_test import Limits
from eval.certainty.replies import FULL_RUN, Run
from rag import card
from rag.calibration import HIGHEST, LOWEST

SHOWN = 25
"""Points in the table of the report; all are in the JSON."""


def said(rows: Sequence[Tested], chosen: Tested | None, required: Required | None, limits: Limits, run: Run, questions: int) -> str:
    """The result in words: what is certified, or why nothing is and what it would take."""
    asked = (
        f"at most {limits.alpha:.1%} of the answers wrong and at most {limits.beta:.1%} of the answerable sets without an answer, "
        f"with confidence {1 - limits.delta:.1%}"
    )
    if chosen is not None:
        number = sum(row.certified for row in rows)
        return f"Certified: {asked}. Serve with {_point(chosen)}. Certified points: {number} of {len(rows)}."
    first = rows[0]
    lines = [f"Not certified: {asked}. The first point tested, {_point(first)}, had {_rates(first)}."]
    if required is not None:
        lines.append(
            f"If the rates seen on all {questions} questions are the true ones, about {required.questions} labelled questions would do, "
            f"for {required.answers} answers and {required.clean} answerable sets at {_point(required)}; "
            "at just that number it succeeds about every other time, so plan for more."
        )
        if required.questions <= questions:
            lines.append(
                "That many are at hand, but another point was tested first, and after the first failure nothing may be tested: more questions "
                "to learn the order from (learn=), or thresholds fixed beforehand, would help."
            )
    else:
        lines.append(_hopeless(rows, limits))
    if run.reach < 1:
        lines.append(f"Thresholds above {run.reach:g} cannot be told from this run: {FULL_RUN}.")
    return " ".join(lines)


def _hopeless(rows: Sequence[Tested], limits: Limits) -> str:
    """Why no number of examples will do: which risk is above its limit."""
    wrong = [row for row in rows if row.wrong.rate is not None]
    if not wrong:
        return "No answer was given at any point, so that nothing can be said of wrong ones."
    if not any(row.refused.n for row in rows):
        return "There is no answerable set to test needless abstentions on."
    near = min(wrong, key=lambda row: max((row.wrong.rate or 0.0) / limits.alpha, (row.refused.rate or 0.0) / limits.beta))
    return (
        "If the rates seen on these questions are the true ones, no number of examples will do: at every point one of them is at or above "
        f"its limit. Nearest comes {_point(near)}, with {_rates(near)}."
    )


def _point(row: Tested | Required) -> str:
    floor = "" if row.least_confidence is None else f" and answers of confidence {row.least_confidence:.6g} or more"
    return f"threshold {row.threshold:.6g}{floor}"


def _rates(row: Tested) -> str:
    return f"{_share(row.wrong)} of its answers wrong and {_share(row.refused)} of the answerable sets without an answer"


def _share(risk: Risk) -> str:
    return f"{risk.events} of {risk.n}" + ("" if risk.rate is None else f" ({risk.rate:.1%})")


def markdown(certificate: Certificate, figures: Sequence[Certain], half: Half | None) -> str:
    """The certificate as a page."""
    sections = {
        "": certificate.said,
        "What this rests on": _assumptions(certificate),
        "Points, in the order tested": _points(certificate),
        "On questions that played no part": _check(certificate),
        "Confidence of the answers": _calibration(figures, half),
        "System": card.table(("", ""), list(certificate.system.items())),
        "Data": card.table(("file", "SHA-256"), [(f"`{name}`", f"`{digest}`") for name, digest in certificate.data.items()]),
        "Where the numbers come from": card.table(("", ""), list(certificate.provenance.items())),
    }
    return card.render("Certificate" if certificate.certified else "No certificate", sections)


def _assumptions(c: Certificate) -> str:
    return (
        f"{c.questions} questions: the points and their order were learnt on {c.learnt_on}, and tested on the other {c.tested_on}. At each "
        f"point an exact binomial test of each limit; the larger p-value counts; the points are tested in order, each at {c.delta:g}, until "
        "the first that fails. Answers are counted on one set of each question, answerable sets on one of each, drawn by the seed "
        f"{c.seed}. It holds for questions drawn as these were, with their mix of states, for this system unchanged, and if these questions "
        f"chose none of its parts. An answer counts as right by `match={c.match}`. `bound` is of each point alone."
    )


def _points(c: Certificate) -> str:
    header = ("threshold", "least confidence", "wrong / answers", "p", "bound", "refused / answerable", "p", "bound", "certified")
    rows = [_cells(row) for row in c.points[:SHOWN]]
    rest = f"\n\n{len(c.points) - SHOWN} more are in `certificate.json`." if len(c.points) > SHOWN else ""
    return card.table(header, rows) + rest


def _cells(row: Tested) -> tuple[str, ...]:
    risks = [cell for r in (row.wrong, row.refused) for cell in (f"{r.events} / {r.n}", f"{r.p_value:.3g}", f"{r.bound:.3f}")]
    floor = "" if row.least_confidence is None else f"{row.least_confidence:.6g}"
    return (f"{row.threshold:.6g}", floor, *risks, "yes" if row.certified else "no")


def _check(c: Certificate) -> str:
    if c.check is None:
        return ""
    verdict = "both rates are within their limits" if c.check.certified else "a rate is above its limit"
    return f"At {_point(c.check)}: {_rates(c.check)}; {verdict}. A check of the certificate and no test of its own."


def _at_bound(temperature: float) -> str:
    return " (a bound: no temperature makes these scores fit)" if temperature in (LOWEST, HIGHEST) else ""


def _calibration(figures: Sequence[Certain], half: Half | None) -> str:
    if not figures:
        return "No answer has a confidence that can be read."
    rows = [
        (f.name, f"{f.value:.3f}", "" if f.low is None or f.high is None else f"{f.low:.3f} to {f.high:.3f}", str(f.n), str(f.questions))
        for f in figures
    ]
    parts = [
        card.table(("figure", "value", "95 % interval", "answers", "questions"), rows),
        *dict.fromkeys(f"{f.note}." for f in figures if f.note),
    ]
    if half is not None:
        parts.append(
            f"Temperature {half.temperature:.3g}{_at_bound(half.temperature)}, fitted on {half.fitted_on} questions: on the other "
            f"{half.reported_on} ({half.n} answers) the calibration error goes from {half.ece_before:.3f} to {half.ece_after:.3f}, "
            f"the Brier score from {half.brier_before:.3f} to {half.brier_after:.3f}."
        )
    return "\n\n".join(parts)
