"""Errors that a user can act on; a job prints them without a traceback, bugs keep theirs."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that cannot be used. The message says what was expected, what came and which key or file to change."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the valid name closest to `name`, or an empty string when none is close."""
    matches = difflib.get_close_matches(name, list(valid), n=1, cutoff=0.6)
    return f"; did you mean '{matches[0]}'?" if matches else ""
