"""Read the Sage's output: an answer, one of the strings it was taught to say instead of one, or neither."""

from enum import StrEnum
from typing import NamedTuple

QUOTES = "\"'`“”„‟‘’‚‛«»‹›「」『』"
FULL_STOPS = ".。"


class Kind(StrEnum):
    """What an output is."""

    ANSWER = "answer"
    ABSTENTION = "abstention"
    """The documents hold no answer."""
    CONFLICT = "conflict"
    """The documents give different answers."""
    UNPARSED = "unparsed"


class Parsed(NamedTuple):
    """An output that was read; `answer` is none unless the kind is `answer`."""

    kind: Kind
    answer: str | None = None


def parse(output: str, abstention: str, conflict: str | None = None) -> Parsed:
    """Tell an abstention and, where there is a string for it, a conflict from an answer.

    An output is one of the two strings when it equals it after trimming, case folding, and removal of surrounding quotes and of one
    final full stop, inside or outside the quotes; it never is by merely containing it. An output of nothing but quotes, full stops
    and white space is unparsed. Everything else is an answer and is kept as it was written, without the white space around it: no
    prefix or further line is cut off, since a rule that guesses at them would also cut real answers.
    """
    text = output.strip()
    if not text.strip(QUOTES + FULL_STOPS + " \t\r\n"):
        return Parsed(Kind.UNPARSED)
    if same(text, abstention):
        return Parsed(Kind.ABSTENTION)
    if conflict is not None and same(text, conflict):
        return Parsed(Kind.CONFLICT)
    return Parsed(Kind.ANSWER, text)


def same(a: str, b: str) -> bool:
    """Whether two texts are one string by the rule of `parse`."""
    return _bare(a) == _bare(b)


def _bare(text: str) -> str:
    text = text.replace("’", "'").casefold().strip().strip(QUOTES)
    if text.endswith(tuple(FULL_STOPS)):
        text = text[:-1]
    return text.strip(QUOTES).strip()
