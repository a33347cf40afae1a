"""What one text says about one question."""

import re
from collections.abc import Iterable
from functools import lru_cache

from rag.text import contains, normalize


def names(text: str, answer: str) -> bool:
    """What `rag.text.contains` says, mostly without its cost: builds ask this very often."""
    if text.isascii() and answer.isascii():
        needle = _needle(answer)
        if _PLAIN.fullmatch(needle) and f" {needle} " in _plain(text):
            return True
        # Folding changes no letter or digit of ASCII text, nor their order.
        if _NO_WORD.sub("", needle) not in _letters(text):
            return False
    return contains(text, answer)


_PLAIN = re.compile("[a-z0-9 ]+")
_NO_WORD = re.compile("[^a-z0-9]+")
_ENDS_A_WORD = re.compile(r'[()";?!]|[,.:](?=\s|\Z)')


_needle = lru_cache(maxsize=4096)(normalize)


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    """Words between spaces; no mark is taken off that can be a part of a word or number."""
    return f" {' '.join(_ENDS_A_WORD.sub(' ', text.casefold()).split())} "


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    return _NO_WORD.sub("", text.casefold())


def stated(text: str, forms: Iterable[str]) -> str | None:
    """The longest of an answer's forms that stands in the text by the word-boundary rule, in the spelling of the text; none without one."""
    found = max((form for form in forms if names(text, form)), key=len, default=None)
    if found is None:
        return None
    written = re.search(re.escape(found.strip()), text, re.IGNORECASE)
    return written[0] if written else found
