"""Answers as text: normalisation, exact match, token F1, word-boundary containment and near-identical documents.

Two rules stand side by side. `squad_*` is the stock SQuAD rule, kept for comparison with published numbers. The others are the project's own,
stricter on what an answer says (signs, decimals, symbols) and more lenient on how it is typed (unicode, quotes, dashes, digit grouping).
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from rag.errors import InputError

SENTENCE_BREAK = re.compile(
    r"(?:(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[MD]r\.)(?<!\bM[rs]s\.)(?<!\bSt\.)(?<!\bvs\.)|(?<=[.!?][\"”’)]))\s+(?=[A-Z\"“‘(0-9])"
)
"""The space between two sentences of English text; the dots of initials and titles end none."""

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


# The same few gold answers are compared with one answer by several rules, and with the answers to all variants of a question.
@lru_cache(maxsize=1024)
def squad_normalize(text: str) -> str:
    """The stock SQuAD rule: lower case, ASCII punctuation and English articles removed, white space collapsed.

    Its known faults are kept on purpose: `A` becomes empty, `3.5` equals `35`, `-5` equals `5`, `C++` equals `C#`, while typographic quotes and
    dashes and the two spellings of `é` are kept apart.
    """
    lowered = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", lowered).split())


def squad_exact_match(prediction: str, golds: Sequence[str] | str) -> bool:
    """Whether the prediction equals any gold answer after `squad_normalize`. Raises InputError without golds."""
    expected = squad_normalize(prediction)
    return any(squad_normalize(gold) == expected for gold in _golds(golds))


def squad_f1(prediction: str, golds: Sequence[str] | str) -> float:
    """Token F1 after `squad_normalize`, best over all golds, 0 to 1. Raises InputError without golds.

    Where either side normalises to nothing the value is 1 if both do and 0 otherwise (the SQuAD 2.0 convention), so that it agrees with
    `squad_exact_match`; the SQuAD 1.1 script gives 0 for two empty sides.
    """
    return _best_f1(prediction, golds, lambda text: squad_normalize(text).split())


_QUOTES = dict.fromkeys("‘’‚‛‹›′‵`´ʹʻʼʽˈ", "'") | dict.fromkeys("“”„‟«»″‶〝〞〟「」『』", '"')
_DASHES = dict.fromkeys("‐‑‒–—―−⁃﹘⸺⸻", "-")
_TYPOGRAPHY = str.maketrans(_QUOTES | _DASHES | {"⁄": "/", "∕": "/"} | dict.fromkeys("™®©℠"))
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_MIXED_FRACTION = re.compile("(?<=[0-9])(?=[¼½¾⅐-⅞])")
_GROUPED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9]|,[0-9])")
_ARTICLES = re.compile(r"\A(?:(?:a|an|the) )+(?=.)")


@lru_cache(maxsize=1024)
def normalize(text: str) -> str:
    """The project's rule for comparing answers. Idempotent; empty only for blank text.

    - Unicode is brought to one form (NFKC, case folded); typographic quotes and dashes become ASCII; invisible characters, trademark and copyright
      signs go; a superscript becomes `^2` and a mixed fraction `2 1/2`, which NFKC alone would read as the digits of another number.
    - `1,000` equals `1000`; decimals, signs and symbols stay (`3.5`, `-5`, `C++`, `5%`).
    - Surrounding quotes, final full stops and leading English articles go when something remains: `A` stays `a`, `The The` becomes `the`.
    """
    return _trim(_fold(text)) or " ".join(text.split())


def exact_match(prediction: str, golds: Sequence[str] | str) -> bool:
    """Whether the prediction equals any gold answer after `normalize`; containment never counts.

    A bare string is one gold. Two blank texts are equal. Raises InputError without golds.
    """
    expected = normalize(prediction)
    return any(normalize(gold) == expected for gold in _golds(golds))


def token_f1(prediction: str, golds: Sequence[str] | str) -> float:
    """F1 over the words of the normalised texts, counted with repetition, best over all golds, 0 to 1.

    It is 1 wherever `exact_match` holds, two blank texts included; one blank text against another text gives 0. Raises InputError without golds.
    """
    return _best_f1(prediction, golds, lambda text: _words(normalize(text)))


def contains(text: str, answer: str) -> bool:
    """Whether the answer stands in the text as whole words, after the normalisation of `normalize`. A blank answer stands in no text.

    - A letter or digit next to the answer ends the match: `Peru` is not in `Peruvian`, `no` not in `not`, `5` neither in `15` nor in `5th`.
    - A number is one word with its sign, decimals and grouping, and so is a time, fraction or power: `5` is not in `5.3`, `-5`, `1,500`, `5/8` or
      `12:5`. A unit or currency sign is not part of it: `5` is in `$5` and in `5%`.
    - `+` and `#` end a name: `C` is in neither `C++` nor `C#`, and `C++` is in `uses C++.`
    - A hyphen between letters is a space (`Peru` is in `Peru-based`, `New York` in `New-York`); between digits it is a boundary (`10` is in `10-12`).
    - A possessive counts (`Peru's`), another word with an apostrophe does not (`can` is not in `can't`).
    - Scripts written without spaces have no boundaries: `東京` is in `東京都`.
    """
    needle = _separate(normalize(answer))
    if not needle.strip():
        return False
    haystack = _separate(_fold(text))
    # The two ends have few patterns, which stay compiled; one pattern for each needle would take milliseconds to compile.
    before, after = re.compile(_before(needle)), re.compile(_after(needle))
    place = haystack.find(needle)
    while place >= 0 and not (before.match(haystack, place) and after.match(haystack, place + len(needle))):
        place = haystack.find(needle, place + 1)
    return place >= 0


def near_identical(a: str, b: str, threshold: float = 0.9) -> bool:
    """Whether two documents say the same in the same words, so that removing only one of them leaves its content in the set.

    True when their words are equal in order, whatever their case, punctuation and white space. True also when the shorter is the longer one cut
    off: it ends inside a sentence, holds the first words of the longer (its last word may be cut too), at least `threshold` (0 to 1) of them, and
    the part cut off is longer than a name or number.

    One edited word makes two documents different, however long they are: a changed number or name, an inserted `not`, two names that changed
    places. A similarity above a threshold cannot tell such a conflict from a copy, so there is none here.
    """
    if not _start_alike(a, b):
        return False
    words_a, words_b = _words(_fold(a)), _words(_fold(b))
    if len(words_a) > len(words_b):
        return _is_cut_off(b, words_b, words_a, threshold)
    return words_a == words_b or _is_cut_off(a, words_a, words_b, threshold)


def _golds(golds: Sequence[str] | str) -> Sequence[str]:
    if isinstance(golds, str):
        return (golds,)
    if not golds:
        raise InputError("expected at least one gold answer to compare with, got none; set `answers` of the example")
    return golds


def _best_f1(prediction: str, golds: Sequence[str] | str, tokens: Callable[[str], list[str]]) -> float:
    predicted = tokens(prediction)
    return max(_f1(predicted, tokens(gold)) for gold in _golds(golds))


def _f1(predicted: list[str], expected: list[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    shared = (Counter(predicted) & Counter(expected)).total()
    return 2 * shared / (len(predicted) + len(expected))


def _fold(text: str) -> str:
    """Unicode, case, digit grouping and white space; what stands at the two ends is left as it is."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(r"^\g<0>", _MIXED_FRACTION.sub(" ", _INVISIBLE.sub("", text))).translate(_TYPOGRAPHY)
        # The Unicode standard's compatibility caseless form (chapter 3, D146): folding once leaves characters that fold again.
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
        text = unicodedata.normalize("NFKC", text.casefold())
    text = " ".join(text.casefold().translate(_TYPOGRAPHY).split())
    return _GROUPED.sub(lambda match: match[0].replace(",", ""), text)


def _trim(text: str) -> str:
    """Take surrounding quotes, final full stops and leading articles off, each only while something remains."""
    while True:
        before = text
        text = text.rstrip(".。 ") or text
        text = _unquote(text)
        text = _ARTICLES.sub("", text)
        if text == before:
            return text


def _unquote(text: str) -> str:
    mark, inner = text[:1], text[1:-1].strip()
    # A mark inside that is no apostrophe means two quoted pieces, such as `"A" and "B"`, not one quoted whole.
    if mark not in ("'", '"') or not text.endswith(mark) or not inner or re.search(rf"(?<!\w){mark}|{mark}(?!\w)", inner):
        return text
    return inner


_HYPHEN = re.compile(r"(?<=[^\W\d])-(?=\w)|(?<=\w)-(?=[^\W\d])")


def _separate(folded: str) -> str:
    return _HYPHEN.sub(" ", folded)


def _words(folded: str) -> list[str]:
    """Words without the punctuation around them; text that is nothing but punctuation is kept as it is."""
    tokens = _separate(folded).split()
    return [word for word in map(_bare, tokens) if word] or tokens


def _bare(token: str) -> str:
    token = token.rstrip(".,;:!?\"')]}-、。").lstrip(",;:!?\"'([{、。")
    # Before a digit or a currency sign a hyphen or a dot belongs to the number.
    return re.sub(r"^[.-]+(?=[^\W\d])", "", token)


_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:[^\W{_UNSPACED}]|[{_MARKS}])"


def _before(needle: str) -> str:
    """What must not stand before the answer, as a pattern."""
    signed_number = re.match(r"[-+][0-9]", needle)
    if not signed_number and not re.match(_LETTER, needle):
        return ""
    if needle[0] in string.digits:
        return rf"(?<!{_LETTER})(?<![0-9][.,:/])(?<!(?<![\w.])\.)(?<!(?<!\w)[-+])"
    return rf"(?<!{_LETTER})"


def _after(needle: str) -> str:
    """What must not stand after the answer, as a pattern."""
    if needle[-1] in "+#":
        return "(?![+#])"
    if not re.match(_LETTER, needle[-1]):
        return ""
    number = r"(?![.,:/][0-9]|\^)" if needle[-1] in string.digits else ""
    return rf"(?!{_LETTER}|[+#]+(?!\w)|'(?!s(?!\w))\w){number}"


_START = 1000
"""Characters that settle the comparison of most documents, however long the rest is."""
_LONGEST_EDIT = 3
"""Words that a replaced name or number may add at the end of a document; a longer rest is a cut."""


def _start_alike(a: str, b: str) -> bool:
    # The last word may be cut, and with it what its characters fold to.
    return all(x == y for x, y in zip(_words(_fold(a[:_START]))[:-1], _words(_fold(b[:_START]))[:-1], strict=False))


def _is_cut_off(shorter: str, start: list[str], whole: list[str], threshold: float) -> bool:
    last = len(start) - 1
    if not start or len(whole) - len(start) <= _LONGEST_EDIT or len(start) < threshold * len(whole):
        return False
    sentence_ended = re.search(r"(?<![.…])[.!?。][\"'”’)]*\s*$", shorter[-100:]) is not None
    return not sentence_ended and start[:last] == whole[:last] and whole[last].startswith(start[last])
