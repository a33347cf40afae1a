"""Compare two short answers by rules: are they the same, can they not both be right, or can text alone not tell?"""

import re
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from rag.text import contains, normalize, token_f1

DENIAL = "not "
"""How an answer begins that a document denies."""
SAME_WORDS = 0.6
"""Token F1 from which two answers count as two wordings of one."""
ROUNDED = 0.05
"""How far from an exact number one may be that is told as a rough one (`about 3,600` for 3,559), as a share of the larger."""


class Relation(StrEnum):
    """Of two answers to one question."""

    SAME = "same"
    DIFFERENT = "different"
    """They cannot both be right."""
    UNSURE = "unsure"
    """The rules know neither."""


def bare(answer: str) -> str:
    """The answer without the `not` by which a document denies it."""
    return answer[len(DENIAL) :] if answer.casefold().startswith(DENIAL) else answer


def compare(first: str, second: str) -> Relation:
    """Relation of two answers, neither denied; the order does not matter.

    Numbers and dates decide where both answers are one: `twelve` and 12 are the same, and so are `3 pm` and 15:00, a year and a date in
    it, `$1.2 million` and 1,200,000 dollars; a rough number agrees with an exact one that it may stand for. Names are the same where one
    holds the other's words, spells out its initials, or is its acronym.
    """
    one, other = normalize(first), normalize(second)
    if one == other:
        return Relation.SAME
    date_of_one, date_of_other = _date(one), _date(other)
    if date_of_one is not None and date_of_other is not None:
        return Relation.SAME if _dates_agree(date_of_one, date_of_other) else Relation.DIFFERENT
    times = _clock(one), _clock(other)
    if times[0] is not None and times[1] is not None:
        return Relation.SAME if times[0] == times[1] else Relation.DIFFERENT
    amounts = _quantities(one), _quantities(other)
    if amounts[0] and amounts[1]:
        return _numbers(one, other, amounts[0], amounts[1])
    if contains(one, other) or contains(other, one) or token_f1(one, other) >= SAME_WORDS:
        return Relation.SAME
    return Relation.SAME if _initials(first, second) or _initials(second, first) else Relation.UNSURE


def _numbers(one: str, other: str, left: "list[Quantity]", right: "list[Quantity]") -> Relation:
    """Of two answers that hold numbers: the same where each number of the one with fewer has its equal in the other."""
    fewer, more = sorted((left, right), key=len)
    agree = all(any(quantity.agrees(candidate) for candidate in more) for quantity in fewer)
    words = [{word for word in _WORD.findall(text) if word not in _NUMBER_WORDS and word not in _ROUGH} for text in (one, other)]
    if not agree:
        # `Apollo 11` and `Gemini 8` differ as names may; the words around the numbers tell what is counted.
        return Relation.DIFFERENT
    if not words[0] or not words[1] or words[0] <= words[1] or words[1] <= words[0] or words[0] & words[1]:
        return Relation.SAME
    return Relation.UNSURE


class Quantity(NamedTuple):
    """A number in an answer."""

    value: float
    rough: bool
    """Told as one that may be rounded."""

    def agrees(self, other: "Quantity") -> bool:
        """Whether both may stand for one number."""
        if self.value == other.value:
            return True
        largest = max(abs(self.value), abs(other.value))
        return (self.rough or other.rough) and abs(self.value - other.value) <= ROUNDED * largest


_UNITS = dict(
    zip(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
        ],
        range(17),
        strict=True,
    )
)
_UNITS |= {"seventeen": 17, "eighteen": 18, "nineteen": 19, "dozen": 12}
_TENS = dict(zip(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(20, 100, 10), strict=True))
_SCALES = {
    "hundred": 100,
    "thousand": 1000,
    "k": 1000,
    "million": 10**6,
    "m": 10**6,
    "mn": 10**6,
    "billion": 10**9,
    "bn": 10**9,
    "trillion": 10**12,
}
_ORDINALS = dict(
    zip(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"],
        range(1, 13),
        strict=True,
    )
)
_NUMBER_WORDS = {*_UNITS, *_TENS, *_SCALES, *_ORDINALS, "and", "a", "an"}
_ROUGH = frozenset(
    [
        "about",
        "around",
        "approximately",
        "approx",
        "roughly",
        "nearly",
        "almost",
        "some",
        "circa",
        "ca",
        "over",
        "than",
        "more",
        "least",
        "less",
        "under",
        "at",
        "to",
        "close",
        "upwards",
        "up",
        "of",
    ]
)
_ROUGHLY = re.compile(
    r"\b(?:about|around|approximately|approx|roughly|nearly|almost|some|circa|ca|over|more than|at least|less than|under|close to|up to)\b|[~≈+]"
)
_WORD = re.compile(r"[^\W\d_]+")
_PART = re.compile(r"[-+]?(?<![0-9])[0-9]+(?:\.[0-9]+)?|[^\W\d_]+")


def _quantities(text: str) -> list[Quantity]:
    """The numbers of a normalised text, in words or figures, with `million` and the like taken in."""
    rough = _ROUGHLY.search(text) is not None
    found: list[float] = []
    total = current = 0.0
    inside = False

    def close() -> None:
        nonlocal total, current, inside
        if inside:
            found.append(total + current)
        total = current = 0.0
        inside = False

    for word in _PART.findall(re.sub(r"(?<=\w)-(?=\w)", " ", text)):
        if word[-1].isdigit():
            close()
            current, inside = float(word), True
        elif word in _UNITS:
            if inside and (current % 10 or current < 20) and current % 100:
                close()
            current, inside = current + _UNITS[word] if word != "dozen" else max(current, 1) * 12, True
        elif word in _TENS:
            if inside and current % 100:
                close()
            current, inside = current + _TENS[word], True
        elif word in _ORDINALS:
            current, inside = current + _ORDINALS[word], True
            close()
        elif word in _SCALES and inside:
            scaled = max(current, 1) * _SCALES[word]
            if _SCALES[word] == 100:
                current = scaled
            else:
                total, current = total + scaled, 0.0
        elif word in ("st", "nd", "rd", "th") and inside:
            close()
        elif word == "and" and inside:
            continue
        else:
            close()
    close()
    return [Quantity(value, rough) for value in found]


_CLOCK = re.compile(r"(?<!\d)([01]?\d|2[0-3])(?:[:.]([0-5]\d))?\s*(a\.?m|p\.?m)?\.?(?!\w)")


def _clock(text: str) -> int | None:
    """Minutes since midnight of an answer that is a time of day."""
    match = _CLOCK.search(text)
    if match is None or (match[2] is None and match[3] is None) or re.search(r"[^\W\d_]{3,}", text[: match.start()]) or "%" in text:
        return None
    if match[3] is None and ("." in match[0] or ":" not in match[0]):
        return None
    hour = int(match[1]) % 12 if match[3] else int(match[1])
    return (hour + (12 if match[3] and match[3][0] == "p" else 0)) * 60 + int(match[2] or 0)


_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
_MONTH = rf"(?P<month>{'|'.join(f'{name}|{name[:3]}' for name in _MONTHS)})\.?"
_DATES = [
    re.compile(rf"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? {_MONTH},? ?(?P<year>\d{{4}})?"),
    re.compile(rf"{_MONTH} (?P<day>[0-3]?\d)(?:st|nd|rd|th)?(?!\d),? ?(?P<year>\d{{4}})?"),
    re.compile(rf"{_MONTH},? (?P<year>\d{{4}})(?P<day>)"),
    re.compile(r"(?P<year>\d{4})-(?P<month>[01]\d)-(?P<day>[0-3]\d)"),
    re.compile(r"(?P<year>1\d{3}|20\d\d)(?P<month>)(?P<day>)"),
]


class _Date(NamedTuple):
    year: int | None
    month: int | None
    day: int | None


def _date(text: str) -> _Date | None:
    """The date that an answer is, however much of one; none for an answer that says more than a weekday or a preposition beside it."""
    plain = re.sub(r"^(?:in|on|by|since|from|the|year|early|late|mid|around|circa)\s+", "", re.sub(r"^(?:\w+day),? ", "", text))
    for pattern in _DATES:
        match = pattern.fullmatch(plain.strip(" ,"))
        if match:
            month = match["month"]
            number = (int(month) if month.isdigit() else [m[:3] for m in _MONTHS].index(month[:3]) + 1) if month else None
            found = _Date(int(match["year"]) if match["year"] else None, number, int(match["day"]) if match["day"] else None)
            return found if _is_real(found) else None
    return None


def _is_real(found: _Date) -> bool:
    try:
        date(found.year or 2000, found.month or 1, found.day or 1)
    except ValueError:
        return False
    return True


def _dates_agree(first: _Date, second: _Date) -> bool:
    """Whether no part that both dates have differs."""
    return all(a is None or b is None or a == b for a, b in zip(first, second, strict=True))


def _initials(short: str, long: str) -> bool:
    """Whether `short` is an acronym of the words of `long`, or a name with initials where `long` has names."""
    words = [word for word in re.findall(r"[^\W\d_][\w'’-]*", long) if word[0].isupper()]
    letters = re.sub(r"[.\s]", "", short)
    if len(words) > 1 and letters.isupper() and len(letters) > 1 and letters == "".join(word[0] for word in words):
        return True
    parts = re.findall(r"[^\W\d_][\w'’-]*", short)
    if len(parts) < 2 or len(parts) > len(words) or parts[-1].casefold() != words[-1].casefold():
        return False
    rest = iter(words[:-1])
    initial = any(len(part) == 1 for part in parts[:-1])
    return initial and all(
        any(word[0].casefold() == part[0].casefold() and (len(part) == 1 or word.casefold() == part.casefold()) for word in rest)
        for part in parts[:-1]
    )
