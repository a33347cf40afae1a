"""A page to look through: sampled simulated documents beside what they were made from, as one HTML file that needs nothing else."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from random import Random
from typing import NamedTuple

from data_gen.measure.folder import gold
from data_gen.measure.marks import Changes, Span, changes, html, nearest_sentence, occurrences
from data_gen.pipeline.cases import Case, Judgement, Simulation
from data_gen.pipeline.simulate import KINDS
from rag.records import DocumentLabel

_EDITED = 0.5
"""Likeness from which on a document is an edited copy of the gold one and is compared with the whole of it."""
_REWORDED = 0.3
"""Likeness below which marks would be on nearly every word and say nothing."""
_VERDICTS = ("used", "rejected")
_UNMARKED = Changes((), (), 0.0)


class Shown(NamedTuple):
    """One document of the sheet."""

    case: Case
    simulation: Simulation

    @property
    def group(self) -> tuple[DocumentLabel, str]:
        """Its kind, and whether it was `used` or `rejected`."""
        return self.simulation.kind, _VERDICTS[self.simulation.rejected is not None]


def sample(cases: Sequence[Case], size: int, seed: int) -> list[Shown]:
    """At most `size` documents, as many of each kind, used and rejected, as there are; by kind, used ones first, else in the order of cases."""
    pools: dict[tuple[DocumentLabel, str], list[Shown]] = {(kind, verdict): [] for kind in KINDS for verdict in _VERDICTS}
    for shown in _all(cases):
        pools[shown.group].append(shown)
    shares = dict.fromkeys(pools, 0)
    while sum(shares.values()) < min(size, sum(map(len, pools.values()))):
        # One more for the group that has the fewest, the first of equals.
        least = min((group for group in pools if shares[group] < len(pools[group])), key=lambda group: shares[group])
        shares[least] += 1
    chosen = []
    for (kind, verdict), pool in pools.items():
        places = Random(f"{seed}:sheet:{kind}:{verdict}").sample(range(len(pool)), shares[kind, verdict])
        chosen += [pool[place] for place in sorted(places)]
    return chosen


def page(cases: Sequence[Case], size: int, seed: int) -> str:
    """The sheet. The same cases and seed give the same bytes; text from outside is escaped, and the page may load and run nothing."""
    chosen = sample(cases, size, seed)
    style = files("data_gen.measure").joinpath("sheet.css").read_text(encoding="utf-8")
    sections = "\n".join(_section(kind, [shown for shown in chosen if shown.simulation.kind is kind]) for kind in KINDS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Simulated documents</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>Simulated documents</h1>
<p>{len(chosen)} of {sum(len(case.simulations) for case in cases)} documents that were made to distract, drawn with seed {seed} and balanced by
kind and verdict, each beside what it was made from.</p>
{_summary(cases, chosen)}
{_LEGEND}
</header>
<main>
{sections}
</main>
</body>
</html>
"""


_LEGEND = """<p class="legend">Marks:
<mark class="answer">a gold answer</mark>
<mark class="untrue">the false answer, where it is known</mark>
<mark class="removed">words that the simulated text does not have</mark>
<mark class="added">words that it has instead</mark></p>"""


def _all(cases: Sequence[Case]) -> Iterator[Shown]:
    return (Shown(case, simulation) for case in cases for simulation in case.simulations)


def _summary(cases: Sequence[Case], chosen: Sequence[Shown]) -> str:
    made = Counter(shown.group for shown in _all(cases))
    shown = Counter(one.group for one in chosen)
    reasons = Counter((one.simulation.kind, one.simulation.rejected) for one in _all(cases) if one.simulation.rejected is not None)
    rows = []
    for kind in KINDS:
        used, rejected = (made[kind, verdict] for verdict in _VERDICTS)
        why = sorted(((n, reason) for (of, reason), n in reasons.items() if of is kind and reason), key=lambda row: (-row[0], row[1]))
        listed = "<br>".join(f"{n} × {escape(reason)}" for n, reason in why)
        cells = "".join(
            f'<td class="number"><a href="#{kind}-{verdict}">{number}</a> <small>({shown[kind, verdict]} here)</small></td>'
            for verdict, number in zip(_VERDICTS, (used, rejected), strict=True)
        )
        share = f"{used / (used + rejected):.0%}" if used + rejected else "n/a"
        rows.append(
            f'<tr><th scope="row"><a class="kind {kind}" href="#{kind}">{kind}</a></th>'
            f'<td class="number">{used + rejected}</td>{cells}<td class="number">{share}</td><td>{listed}</td></tr>'
        )
    return (
        '<div class="wide"><table><thead><tr><th scope="col">kind</th><th scope="col" class="number">made</th>'
        '<th scope="col" class="number">used</th><th scope="col" class="number">rejected</th>'
        '<th scope="col" class="number">share used</th><th scope="col">rejected because</th></tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div>\n<nav>Show: <a href="#all" id="all">all</a> '
        + " ".join(
            f'· <a href="#{kind}">{kind}</a> (<a href="#{kind}-used">used</a>, <a href="#{kind}-rejected">rejected</a>)' for kind in KINDS
        )
        + "</nav>"
    )


def _section(kind: DocumentLabel, chosen: Sequence[Shown]) -> str:
    parts = []
    for verdict in _VERDICTS:
        cards = [_card(shown, f"{kind}-{verdict}-{number}") for number, shown in enumerate(_of(chosen, verdict), start=1)]
        body = "\n".join(cards) or '<p class="empty">None.</p>'
        parts.append(f'<section class="verdict" id="{kind}-{verdict}">\n<h3>{kind}: {verdict}</h3>\n{body}\n</section>')
    return f'<section class="group" id="{kind}">\n<h2>{kind}</h2>\n' + "\n".join(parts) + "\n</section>"


def _of(chosen: Sequence[Shown], verdict: str) -> list[Shown]:
    return [shown for shown in chosen if shown.group[1] == verdict]


def _card(shown: Shown, name: str) -> str:
    case, simulation = shown
    verdict = "used" if simulation.rejected is None else f"rejected: {escape(simulation.rejected)}"
    answers = "; ".join(f'<mark class="answer">{escape(answer)}</mark>' for answer in case.question.answers)
    untrue = f' · false answer: <mark class="untrue">{escape(simulation.answer)}</mark>' if simulation.answer else ""
    left, right = _texts(case, simulation)
    return f"""<article id="{name}">
<header>
<p class="tags"><span class="kind {simulation.kind}">{simulation.kind}</span> <span class="verdict-{shown.group[1]}">{verdict}</span>
<a class="permalink" href="#{name}">#</a></p>
<h4>{escape(case.question.question)}</h4>
<p class="answers">Gold answers: {answers}{untrue}</p>
</header>
<div class="pair">
<div class="side"><h5>Made from</h5>{left}</div>
<div class="side made"><h5>Simulated document</h5>{right}</div>
</div>
{_judgement(simulation.judgement)}
<p class="facts">{_facts(case, simulation)}</p>
</article>"""


def _texts(case: Case, simulation: Simulation) -> tuple[str, str]:
    """The two sides of a card: reference, sentence and gold document; the simulated document.

    An edited copy is compared with the gold document. A document that was written anew shares few words with it, so its sentence that is
    most like the reference is compared with that.
    """
    untrue = (simulation.answer,) if simulation.answer and simulation.kind is not DocumentLabel.NEGATED else ()

    def text(value: str, spans: Sequence[Span]) -> str:
        return html(value, [*spans, *occurrences(value, case.question.answers, "answer"), *occurrences(value, untrue, "untrue")])

    best, reference = gold(case), case.reference or ""
    copied = _at_least(_EDITED, changes(best.text if best else "", simulation.text))
    passage = _at_least(_REWORDED, nearest_sentence(simulation.text, reference)) if copied is _UNMARKED else copied
    sentence = _at_least(_REWORDED, changes(reference, simulation.sentence)) if simulation.sentence else _UNMARKED
    against_reference = sentence if simulation.sentence else passage if copied is _UNMARKED else _UNMARKED
    left = [_text("reference sentence", text(reference, against_reference.removed))]
    if simulation.sentence:
        left.append(_text("rewritten sentence", text(simulation.sentence, sentence.added)))
    if best is not None:
        left.append(_text(f"gold document: {best.title}" if best.title else "gold document", text(best.text, copied.removed)))
    if not simulation.text:
        return "".join(left), '<p class="empty">No text.</p>'
    beside = "the sentence nearest to the reference is compared with it" if copied is _UNMARKED else "compared with the gold document"
    return "".join(left), _text(beside if passage is not _UNMARKED else "", text(simulation.text, passage.added))


def _at_least(likeness: float, found: Changes) -> Changes:
    return found if found.likeness >= likeness else _UNMARKED


def _text(title: str, body: str) -> str:
    return (f'<p class="label">{escape(title)}</p>' if title else "") + f'<p class="text">{body or "none"}</p>'


def _judgement(judgement: Judgement | None) -> str:
    if judgement is None:
        return '<p class="facts">Not judged.</p>'
    shares = {"entailment": judgement.entailment, "neutral": judgement.neutral, "contradiction": judgement.contradiction}
    bar = "".join(f'<span class="{name}" style="flex-grow: {share:.4f}"></span>' for name, share in shares.items())
    words = " · ".join(f'<span class="{name}">{name} {share:.2f}</span>' for name, share in shares.items())
    found = f"names the answer as “{escape(judgement.answer)}”" if judgement.answer is not None else "does not name the answer"
    return (
        f'<div class="bar" aria-hidden="true">{bar}</div>\n<p class="scores">Against the reference sentence: {words} · the text {found}</p>'
    )


def _facts(case: Case, simulation: Simulation) -> str:
    length = f"{len(simulation.text)} characters"
    if simulation.shortest is not None and simulation.longest is not None:
        length += f", {simulation.shortest} to {simulation.longest} asked for"
    parts = (f"question {case.question.id}", f"by {simulation.maker}", f"seed {simulation.seed}", length, f"source {case.question.source}")
    return escape(" · ".join(parts))
