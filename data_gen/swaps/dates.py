"""Dates as texts write them: find, rewrite in the same form, move."""

import re
from random import Random
from typing import NamedTuple


class Date(NamedTuple):
    """A calendar date; the parts that its wording leaves out are none."""

    year: int | None
    month: int
    day: int | None

    @property
    def precision(self) -> str:
        """Such as `day-month-year` or `month-year`."""
        return "-".join(name for name, part in (("day", self.day), ("month", self.month), ("year", self.year)) if part is not None)


class DateMention(NamedTuple):
    """A date as a text writes it, from `start` to `end`."""

    start: int
    end: int
    date: Date
    parts: tuple[tuple[int, int, str], ...]
    """Where its day, month and year stand in the text."""

    def render(self, text: str, date: Date) -> str:
        """Another date of the same precision in this mention's own order, separators, abbreviations and case."""
        written, place = "", self.start
        # A month in digits is one of `1999-03-12`.
        padded = any(part == "month" and text[start].isdigit() for start, _, part in self.parts)
        for start, end, part in self.parts:
            written += text[place:start] + _render_part(part, text[start:end], date, padded)
            place = end
        return written + text[place : self.end]


MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
_NUMBER_OF = {name[:length].casefold(): number for number, name in enumerate(MONTHS, start=1) for length in (3, 4, len(name))}
MONTH = "|".join(rf"{name[:3]}(?:{name[3:]}|{name[3:4]}\.?|\.)?" for name in MONTHS)
"""Pattern of a month, in full or abbreviated, for matching in any case."""
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"[12]\d{3}"
_COMMA = r"(?:\s*,\s*|\s+)"
_DATE = re.compile(
    rf"""(?<![\w/-])(?:
      (?P<day_1>{_DAY})\s+(?:of\s+)?(?P<month_1>{MONTH}){_COMMA}(?P<year_1>{_YEAR})
    | (?P<month_2>{MONTH})\s*(?P<day_2>{_DAY}){_COMMA}(?P<year_2>{_YEAR})
    | (?P<year_3>{_YEAR})-(?P<month_3>0[1-9]|1[0-2])-(?P<day_3>0[1-9]|[12]\d|3[01])
    | (?P<month_4>{MONTH})(?:\s+of\s+|{_COMMA})(?P<year_4>{_YEAR})
    | (?P<month_5>{MONTH})\s+(?P<day_5>{_DAY})
    | (?P<day_6>{_DAY})\s+(?:of\s+)?(?P<month_6>{MONTH})
    )(?![\w/]|-\d)""",
    re.IGNORECASE | re.VERBOSE,
)
_DIGITS = re.compile(r"\d")


def dates(text: str) -> list[DateMention]:
    """The dates that a text spells out with their month, or writes as `1999-03-12`, from left to right."""
    found = []
    for match in _DATE.finditer(text):
        parts = sorted((*match.span(name), name[:-2]) for name, value in match.groupdict().items() if value is not None)
        values = {part: _part_value(text[start:end]) for start, end, part in parts}
        found.append(DateMention(*match.span(), Date(values.get("year"), values["month"], values.get("day")), tuple(parts)))
    return found


def parse_date(text: str) -> Date | None:
    """The date that a whole text is, or none."""
    mentions = dates(text) if _DIGITS.search(text) else []
    return mentions[0].date if len(mentions) == 1 and (mentions[0].start, mentions[0].end) == (0, len(text.rstrip("."))) else None


def _part_value(written: str) -> int:
    digits = "".join(filter(str.isdigit, written))
    return int(digits) if digits else _NUMBER_OF[written.rstrip(".").casefold()]


def _render_part(part: str, old: str, date: Date, padded: bool) -> str:
    value = {"day": date.day, "month": date.month, "year": date.year}[part]
    assert value is not None
    if part != "month" or old.isdigit():
        number = f"{value:02d}" if padded or old.startswith("0") else str(value)
        return number if old.isdigit() else number + (ordinal(value).upper() if old.isupper() else ordinal(value))
    name = MONTHS[value - 1]
    # `May` is its own abbreviation.
    if len(old.rstrip(".")) < 5 and old.rstrip(".").casefold() not in ("may", "june", "july"):
        name = name[:3] + ("." if old.endswith(".") else "")
    return name.upper() if old.isupper() else name.lower() if old.islower() else name


def ordinal(number: int) -> str:
    """What is written behind the number: `st`, `nd`, `rd` or `th`."""
    return "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


_LATEST = 2024
"""No year is moved past this one, so that a false year is not given away by lying in the future."""


def near_year(year: int, rng: Random) -> int:
    """Another year, at most 20 away and of four digits."""
    return rng.choice([other for other in range(max(1000, year - 20), max(year, min(year + 20, _LATEST)) + 1) if other != year])


def near_date(date: Date, rng: Random) -> Date:
    """Another day, month or year, at least one of them, each from its whole range."""
    changed = date
    while changed == date:
        changed = Date(
            date.year and rng.choice((date.year, near_year(date.year, rng))),
            rng.choice((date.month, rng.randint(1, 12))),
            date.day and rng.choice((date.day, rng.randint(1, 28))),
        )
    # The 30th and 31st stay where the month has them.
    return changed if changed.day is None or changed.day <= 28 else changed._replace(day=rng.randint(1, 27))
