"""Mark stretches of a text for a reader: what two texts do not share, and where an answer stands; all of it as escaped HTML."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import pairwise
from typing import NamedTuple

from data_gen.label import names

_WORD = re.compile(r"\w+|[^\w\s]")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_LONG = 1000
"""Words from which on very frequent ones are no anchors of a comparison: its time would grow with their square."""


class Span(NamedTuple):
    """A stretch of characters and what to mark it as."""

    start: int
    end: int
    name: str
    """A CSS class: `removed`, `added`, `answer` or `untrue`."""


class Changes(NamedTuple):
    """What two texts do not share, by words without regard to case."""

    removed: tuple[Span, ...]
    """In the first text."""
    added: tuple[Span, ...]
    """In the second text."""
    likeness: float
    """Share of words that they have in common in order, 0 to 1."""


def changes(before: str, after: str) -> Changes:
    """Compare two texts word by word; punctuation marks are words."""
    old, new = list(_WORD.finditer(before)), list(_WORD.finditer(after))
    a, b = [word[0].casefold() for word in old], [word[0].casefold() for word in new]
    matcher = SequenceMatcher(None, a, b, autojunk=len(b) > _LONG)
    removed, added = [], []
    for kind, from_a, to_a, from_b, to_b in matcher.get_opcodes():
        if kind != "equal":
            removed += _span(old[from_a:to_a], "removed")
            added += _span(new[from_b:to_b], "added")
    return Changes(tuple(removed), tuple(added), matcher.ratio() if a or b else 1.0)


def nearest_sentence(text: str, sentence: str) -> Changes:
    """The changes of the sentence in the text that is most like it, the first of equals; spans of `added` are places in the text."""
    best = Changes((), (), 0.0)
    start = 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        found = changes(sentence, text[start:end])
        if found.likeness > best.likeness:
            best = found._replace(added=tuple(Span(start + s.start, start + s.end, s.name) for s in found.added))
        start = end
    return best


def occurrences(text: str, forms: Iterable[str], name: str) -> list[Span]:
    """Where the forms of an answer that the text names by the word-boundary rule are written in it."""
    spans = []
    for form in forms:
        if form.strip() and names(text, form):
            literal = re.escape(form.strip())
            found = list(re.finditer(rf"(?<!\w){literal}(?!\w)", text, re.IGNORECASE))
            # In scripts without spaces a word's neighbours are letters.
            spans += [Span(m.start(), m.end(), name) for m in found or re.finditer(literal, text, re.IGNORECASE)]
    return spans


def html(text: str, spans: Iterable[Span] = ()) -> str:
    """The text escaped, with a `mark` around each stretch of it that lies in a span; where spans overlap it has the names of all."""
    inside = [span for span in spans if span.start < span.end]
    edges = sorted({0, len(text), *(edge for span in inside for edge in (span.start, span.end))})
    parts = []
    for start, end in pairwise(edges):
        classes = sorted({span.name for span in inside if span.start <= start and end <= span.end})
        piece = escape(text[start:end])
        parts.append(f'<mark class="{" ".join(classes)}">{piece}</mark>' if classes else piece)
    return "".join(parts)


def _span(words: Sequence[re.Match[str]], name: str) -> list[Span]:
    return [Span(words[0].start(), words[-1].end(), name)] if words else []
