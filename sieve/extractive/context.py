"""The sentences around a span: what a judge reads of a document."""

from itertools import pairwise

from rag.text import SENTENCE_BREAK

WORDS = 50
"""Words that sentences before and after the one with the span are added up to."""


def around(text: str, start: int, end: int, title: str = "", words: int = WORDS) -> str:
    """The sentence that holds the characters from `start` to `end`, with as many before it, then after it, as `words` allows.

    A sentence often names its subject by a pronoun, so those before it come first; the title, where the text does not begin with it, leads.
    """
    borders = [0, *(match.end() for match in SENTENCE_BREAK.finditer(text)), len(text)]
    sentences = [(a, b) for a, b in pairwise(borders) if a < b]
    inside = [place for place, (a, b) in enumerate(sentences) if a < end and b > start] or [0]
    first, last = inside[0], inside[-1]
    size = len(text[sentences[first][0] : sentences[last][1]].split())
    while first > 0 and (more := len(text[slice(*sentences[first - 1])].split())) + size <= words:
        first, size = first - 1, size + more
    while last < len(sentences) - 1 and (more := len(text[slice(*sentences[last + 1])].split())) + size <= words:
        last, size = last + 1, size + more
    found = text[sentences[first][0] : sentences[last][1]].strip()
    return f"{title}. {found}" if title and first > 0 else found
