"""Read the Sage's output: an answer, the abstention string, or neither."""

from enum import StrEnum
from typing import NamedTuple

QUOTES = "\"'`“”„‟‘’‚‛«»‹›「」『』"
FULL_STOPS = ".。"


class Kind(StrEnum):
    """What an output is."""

    ANSWER = "answer"
    ABSTENTION = "abstention"
    UNPARSED = "unparsed"


class Parsed(NamedTuple):
    """An output that was read; `answer` is none unless the kind is `answer`."""

    kind: Kind
    answer: str | None = None


def parse(output: str, abstention: str) -> Parsed:
    """Tell an abstention from an answer.

    An output abstains when it equals the abstention string after trimming, case folding, and removal of surrounding quotes and of one
    final full stop, inside or outside the quotes; it never does by merely containing it. An output of nothing but quotes, full stops
    and white space is unparsed. Everything else is an answer and is kept as it was written, without the white space around it: no
    prefix or further line is cut off, since a rule that guesses at them would also cut real answers.
    """
    text = output.strip()
    if not text.strip(QUOTES + FULL_STOPS + " \t\r\n"):
        return Parsed(Kind.UNPARSED)
    if _bare(text) == _bare(abstention):
        return Parsed(Kind.ABSTENTION)
    return Parsed(Kind.ANSWER, text)


def _bare(text: str) -> str:
    text = text.replace("’", "'").casefold().strip().strip(QUOTES)
    if text.endswith(tuple(FULL_STOPS)):
        text = text[:-1]
    return text.strip(QUOTES).strip()
