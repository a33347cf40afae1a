"""Fields that files of several formats have."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from rag.records import Id, Text


def _text_of(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


NumberedId = Annotated[Id, BeforeValidator(_text_of)]
"""An id that a file may give as a number; everywhere else in the project an id is text."""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else () if value is None else value


Texts = Annotated[tuple[Text, ...], BeforeValidator(_as_list)]
"""Texts that a file may give as a list, as one text, or as null for none."""
Answers = Annotated[tuple[Id, ...], BeforeValidator(_as_list), Field(min_length=1)]
"""At least one answer, the main one first; a file may give a single one bare."""
