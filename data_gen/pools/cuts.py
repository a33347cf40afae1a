"""Stretches of a text that are as long as asked, around what must stay."""

import re
from random import Random

from data_gen.label import names

_SHORTEST = 8
"""Words that a passage is cut down to at most, beside the answer's own."""


def window(rng: Random, text: str, words: int, around: str = "") -> str:
    """At most `words` words in a row of the text, marked `...` where it was cut; a random stretch of them, or one that holds `around`."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    if len(spans) <= words:
        return text
    start = text.find(around) if around else rng.choice(spans)[0]
    end = start + max(len(around), 1)
    inside = [place for place, span in enumerate(spans) if span[0] < end and span[1] > start]
    first, last = (inside[0], inside[-1]) if inside else (0, 0)
    room = max(0, words - (last - first + 1))
    after = min(len(spans) - 1 - last, rng.randint(0, room))
    before = min(first, room - after)
    after = min(len(spans) - 1 - last, room - before)
    low, high = first - before, last + after
    piece = text[spans[low][0] : spans[high][1]]
    before_it = "... " if low and not piece.startswith("...") else ""
    after_it = " ..." if high < len(spans) - 1 and not piece.endswith("...") else ""
    return before_it + piece + after_it


def cuts(rng: Random, text: str, answer: str, words: int | None, *, shorter: bool) -> list[str]:
    """The passage, of at most `words` words, and with `shorter` two shorter cuts of it, all with the answer."""
    most = len(text.split()) if words is None else min(words, len(text.split()))
    sizes = [most]
    if shorter:
        sizes += [max(_SHORTEST + len(answer.split()), int(most * rng.uniform(0.5, 0.9))) for _ in range(2)]
    found = dict.fromkeys(window(rng, text, size, answer) for size in sizes)
    return [cut for cut in found if names(cut, answer)] or [text]
