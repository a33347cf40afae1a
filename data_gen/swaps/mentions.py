"""Where a text names an entity: whole words, in any case, dotted, hyphenated or possessive form, and dates in any order."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from data_gen.swaps.dates import Date, dates, parse_date
from data_gen.swaps.entities import form_letters, squash
from rag.text import contains


class Mention(NamedTuple):
    """One place where a text names an entity."""

    start: int
    end: int
    form: str
    """The form of the entity that was looked for."""
    text: str
    """What the text writes."""
    date: Date | None
    """Set where form and text are a date."""


def mentions(text: str, forms: tuple[str, ...], own_case: frozenset[str] = frozenset()) -> list[Mention]:
    """What the text names of the forms, from left to right; of mentions that overlap, the longest, so that one pass can replace them.

    Forms are literal text. A form with an article is found without it too. Forms in `own_case` are found as they are written only.
    """
    letters = squash(text)
    wanted = {date: form for form in reversed(forms) if (date := parse_date(form))}
    found = [
        Mention(d.start, d.end, wanted[d.date], text[d.start : d.end], d.date) for d in (dates(text) if wanted else []) if d.date in wanted
    ]
    written = tuple(form for form in forms if form_letters(form) in letters and form.strip())
    if written:
        pattern, form_of = _pattern(written, own_case)
        found += [Mention(*match.span(), form_of[match.lastindex or 1], match[0], None) for match in pattern.finditer(text)]
    kept: list[Mention] = []
    for mention in sorted(found, key=lambda mention: (mention.start - mention.end, mention.start)):
        if all(mention.end <= other.start or other.end <= mention.start for other in kept):
            kept.append(mention)
    return sorted(kept, key=lambda mention: mention.start)


def names_any(text: str, forms: Iterable[str]) -> bool:
    """Whether the text names a form, by the search of `mentions` or by the project's rule for answers, `rag.text.contains`."""
    letters = squash(text)
    return any(mentions(text, (form,)) or (form_letters(form) in letters and contains(text, form)) for form in forms if form.strip())


# Ranges inside a pattern that ignores case take milliseconds to compile, so they keep case.
_HYPHEN = "(?-i:[-\u2010-\u2015\u2212])"
_SAME = {mark: f"[{marks}]" for marks in ("'’‘ʼ`´", '"“”„«»') for mark in marks}
_ARTICLE = re.compile(r"(?:the|an|a)\s+(?=\S)", re.IGNORECASE)
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]{3,}")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\.?|[A-Z]{2,5}")
_SHORT = 4
"""Letters of a word that may be an abbreviation and end in a full stop inside a name: `St.`, `Mt.`, `Prof.`"""


@lru_cache(maxsize=2048)
def _pattern(forms: tuple[str, ...], own_case: frozenset[str]) -> tuple[re.Pattern[str], dict[int, str]]:
    """Alternatives from the longest to the shortest, and the form of each group."""
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    groups = [rf"(?<!\w)(?-i:{re.escape(form)})(?!\w)" if form in own_case else _form_pattern(form) for form in ordered]
    return re.compile("|".join(f"({group})" for group in groups), re.IGNORECASE), dict(enumerate(ordered, start=1))


def _form_pattern(form: str) -> str:
    form = unicodedata.normalize("NFC", form.strip())
    article = _ARTICLE.match(form)
    core = form[article.end() :] if article else form
    pieces = re.split(rf"(\s+|(?<=\w){_HYPHEN}(?=\w))", core)
    words = [_word_pattern(word, last=word is pieces[-1]) for word in pieces[::2]]
    pattern = words[0] + "".join(_separator(written, word) + word for written, word in zip(pieces[1::2], words[1:], strict=True))
    optional = rf"(?:{article[0].strip()}\s+)?" if article else ""
    return _before(core) + optional + pattern + _after(pieces[-1])


def _separator(written: str, following: str) -> str:
    if written.isspace():
        return rf",?(?:\s+|\s*{_HYPHEN}\s*)"
    # Between digits a hyphen makes a range; between words it may be a space or nothing.
    return rf"\s*{_HYPHEN}\s*" if following[0].isdigit() else rf"(?:\s+|\s*{_HYPHEN}\s*)?"


def _word_pattern(word: str, last: bool) -> str:
    if _INITIALS.fullmatch(word):
        letters = word.replace(".", "")
        dotted = r"\.\s?".join(letters)
        return rf"(?:{dotted}\.?|{letters})"
    if _GROUPED.fullmatch(word):
        digits = word.replace(",", "")
        return ",?".join([digits[: len(digits) % 3]] * (len(digits) % 3 > 0) + re.findall("...", digits[len(digits) % 3 :]))
    stem = word.rstrip(".,") or word
    may_end_in_a_dot = stem != word or (not last and word.isalpha() and len(word) <= _SHORT)
    return "".join(map(_character_pattern, stem)) + (r"\.?" if may_end_in_a_dot else "")


def _character_pattern(character: str) -> str:
    decomposed = unicodedata.normalize("NFD", character)
    if decomposed != character:
        return f"(?:{character}|{decomposed})"
    return _SAME.get(character) or re.escape(character)


def _before(core: str) -> str:
    """A number is one word with its sign, decimals and grouping, as in `rag.text.contains`."""
    number = r"(?<![0-9][.,:/])(?<!(?<![\w.])\.)(?<!(?<!\w)[-+])" if core[0].isdigit() else ""
    return rf"(?-i:(?<!\w){number})"


def _after(word: str) -> str:
    if _INITIALS.fullmatch(word):
        return r"(?!\w)(?!\.?[^\W\d_]\.)"
    last = word.rstrip(".,")[-1:] or word[-1]
    if last in "+#":
        return "(?![+#])"
    if not last.isalnum():
        return r"(?!\w)"
    number = r"(?![.,:/][0-9]|\^)" if last.isdigit() else ""
    return rf"(?-i:(?![\w\u0300-\u036f])(?!['’‘ʼ](?![sS](?!\w))\w)(?![+#]+(?!\w)){number})"
