"""Fields that files of several formats have."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from rag.records import Id


def _text_of(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


NumberedId = Annotated[Id, BeforeValidator(_text_of)]
"""An id that a file may give as a number; everywhere else in the project an id is text."""
