"""Examples from a JSONL file that the project or a user wrote: `python -m eval.pipeline dataset=jsonl dataset.path=data/demo/test.jsonl`."""

from rag.errors import InputError
from rag.jsonl import read_examples
from rag.records import Example
from rag.settings import InputPath


def load(path: InputPath, limit: int | None = None) -> list[Example]:
    """All Examples of the file, or the first `limit`. Raises InputError for a file, line or field that cannot be read."""
    if limit is not None and limit < 1:
        raise InputError(f"limit: expected a number of at least 1, got {limit}")
    return read_examples(path)[:limit]
