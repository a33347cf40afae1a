"""Documents to prompt text in three steps: select by rank within a budget, order, delimit; with a trace of what was dropped and trimmed."""

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from pydantic import ValidationError

from rag.errors import InputError
from rag.jsonl import describe
from rag.records import Document

Order = Literal["best_last", "best_first"]
"""Where the best document stands; `best_last` puts it next to the question."""


class Prompt(NamedTuple):
    """A rendered prompt and the trace of how it came about."""

    text: str
    """The user message: instruction, document blocks, question."""
    shown: tuple[str, ...]
    """Ids of the documents in the prompt, in prompt order."""
    dropped: tuple[str, ...]
    """Ids left out for the budget: a suffix of the ranking, in rank order."""
    trimmed: tuple[str, ...]
    """Ids whose text was cut to fit the budget."""
    tokens: int
    """Tokens of the whole prompt, as counted by `count`."""
    documents: tuple[Document, ...]
    """The documents as the model sees them, trimmed text included, in rank order."""


class Selection(NamedTuple):
    """Which documents fit a budget."""

    kept: tuple[Document, ...]
    """In rank order; the first may be trimmed."""
    dropped: tuple[Document, ...]
    """The rest of the ranking, in rank order."""
    trimmed: tuple[str, ...]
    """Id of the first document if its text was cut, else nothing."""


def as_documents(documents: Sequence[Document | str]) -> list[Document]:
    """Documents in the order given, best first; plain texts get the ids `d1`, `d2`, ... by their places.

    Raises InputError for what is not text, and when one text stands where a list of them is expected.
    """
    if isinstance(documents, str):
        raise InputError("documents: expected a list of documents, got one text; write [text]")
    try:
        return [d if isinstance(d, Document) else Document(id=f"d{n}", text=d) for n, d in enumerate(documents, start=1)]
    except ValidationError as error:
        raise InputError(f"expected a question and documents as text: {describe(error, Document)}") from error


def ranked(documents: Sequence[Document]) -> list[Document]:
    """Best first: by rank where it is given and by place in the list (from 1) where not; ties go by document id."""
    places = {id(document): place for place, document in enumerate(documents, start=1)}
    return sorted(documents, key=lambda document: (document.rank or places[id(document)], document.id))


def evidence(documents: Sequence[Document]) -> list[Document]:
    """The documents that are not blank, best first."""
    return [document for document in ranked(documents) if document.text.strip()]


def render(
    question: str,
    documents: Sequence[Document],
    instruction: str,
    *,
    budget: int,
    count: Callable[[str], int],
    order: Order = "best_last",
    control_tokens: Sequence[str] = (),
) -> Prompt:
    """Build the user message for a question and its documents.

    `count` gives the tokens of the whole prompt for a user message, chat template included, so that the budget covers delimiters, metadata and
    template. `control_tokens` are the model's own (`<|eot_id|>`); written in a document or in the question they become plain text.

    Raises InputError when the budget has no room for the question and a first word of the best document, for repeated document ids and for
    metadata keys that cannot be attribute names.
    """
    _require_unique_ids(documents)

    def text_of(kept: Sequence[Document]) -> str:
        blocks = "\n".join(delimit(document, control_tokens) for document in arrange(kept, order))
        asked = f"Question: {_plain(question, control_tokens)}"
        return "\n\n".join(part for part in (instruction, blocks, asked) if part)

    selection = select(documents, budget, lambda kept: count(text_of(kept)))
    text = text_of(selection.kept)
    return Prompt(
        text=text,
        shown=tuple(document.id for document in arrange(selection.kept, order)),
        dropped=tuple(document.id for document in selection.dropped),
        trimmed=selection.trimmed,
        tokens=count(text),
        documents=selection.kept,
    )


def select(documents: Sequence[Document], budget: int, tokens: Callable[[Sequence[Document]], int]) -> Selection:
    """Keep the longest prefix of the ranking that fits; trim the best document if it alone does not.

    `tokens` counts the whole prompt around the given documents. Once a document is dropped no lower rank is considered, so `dropped` is always a
    suffix of the ranking.

    Raises InputError when the budget has no room for the question, or none beside it for text of the best document.
    """
    ranking = ranked(documents)
    kept: list[Document] = []
    for document in ranking:
        # A prefix this long does not fit in practice; it saves the tokens of a book behind it.
        start = document.model_copy(update={"text": document.text[: 16 * budget]})
        if tokens([*kept, start]) > budget or (start.text != document.text and tokens([*kept, document]) > budget):
            break
        kept.append(document)
    if kept:
        return Selection(tuple(kept), tuple(ranking[len(kept) :]), ())
    if (alone := tokens([])) > budget:
        raise InputError(
            f"the question with its instruction takes {alone} tokens, more than the budget of {budget}; "
            "shorten the question or raise `max_prompt_tokens`"
        )
    if not ranking:
        return Selection((), (), ())
    return Selection((_trim(ranking[0], budget, tokens),), tuple(ranking[1:]), (ranking[0].id,))


def arrange(ranking: Sequence[Document], order: Order) -> list[Document]:
    """Put selected documents, given best first, into prompt order."""
    return list(ranking) if order == "best_first" else list(reversed(ranking))


def delimit(document: Document, control_tokens: Sequence[str] = ()) -> str:
    """One `<doc>` block: id, title and metadata (by name, blank ones left out) as attributes, the text between the tags.

    Nothing in the document can open or close a block. Raises InputError for a metadata key that is no plain attribute name.
    """
    for key in document.metadata:
        if key in ("id", "title") or not re.fullmatch(r"[a-z_][a-z0-9_-]*", key):
            raise InputError(
                f"document '{document.id}': metadata key '{key}' cannot be an attribute of its block; "
                "expected lower-case letters, digits, '_' and '-', starting with a letter or '_', other than 'id' and 'title'"
            )
    pairs = [("id", document.id), ("title", document.title), *sorted(document.metadata.items())]
    attributes = " ".join(f'{name}="{_attribute(value, control_tokens)}"' for name, value in pairs if value.strip())
    return f"<doc {attributes}>\n{_plain(document.text, control_tokens)}\n</doc>"


_PLACE = re.compile(r"\{([a-z]+)\}")


def fill(template: str, **values: str) -> str:
    """Put values in the places that a template names, such as `{question}`, in one pass.

    Braces in a value are text, and so are those of a template around what is no value's name.
    """
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), template)


def neutralise(text: str, control_tokens: Sequence[str]) -> str:
    """Make plain text of model control tokens written in it: a space goes in after the first character (`< |eot_id|>`).

    Raises InputError for a control token that is shorter than two characters or holds white space, which a space cannot break.
    """
    for token in control_tokens:
        if len(token) < 2 or re.search(r"\s", token):
            raise InputError(f"control_tokens: expected at least two characters and no white space, got {token!r}")
    if not control_tokens:
        return text
    # The lookahead finds tokens that overlap, so one pass leaves none; a token without white space cannot arise from adding some.
    starts = "|".join(re.escape(token) for token in control_tokens)
    return re.sub(rf"(?={starts})(.)", r"\1 ", text)


_INVISIBLE = "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_GAP = rf"[\s{_INVISIBLE}]*+"
_DOC_TAG = re.compile(rf"[<＜﹤](?={_GAP}(?:/{_GAP})?d[{_INVISIBLE}]*+o[{_INVISIBLE}]*+c(?!\w))", re.IGNORECASE)
"""The bracket that would open a `<doc>` or `</doc>`, in any case and width, with white space or invisible characters in it."""


def _plain(text: str, control_tokens: Sequence[str]) -> str:
    return neutralise(_DOC_TAG.sub("&lt;", text), control_tokens)


def _attribute(value: str, control_tokens: Sequence[str]) -> str:
    quoted = " ".join(value.split()).replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return _plain(quoted, control_tokens)


def _require_unique_ids(documents: Sequence[Document]) -> None:
    ids = [document.id for document in documents]
    if len(set(ids)) < len(ids):
        repeated = ", ".join(sorted({i for i in ids if ids.count(i) > 1}))
        raise InputError(f"documents: ids must be unique within a prompt, repeated: {repeated}")


def _trim(document: Document, budget: int, tokens: Callable[[Sequence[Document]], int]) -> Document:
    """Cut the text to the longest start that fits, at a word boundary where there is one."""

    def cut(characters: int) -> Document:
        return document.model_copy(update={"text": _whole_words(document.text, characters)})

    def fits(characters: int) -> bool:
        return tokens([cut(characters)]) <= budget

    # Growing before bisecting: counting the tokens of a start costs by its length, and the budget bounds the start, not the document.
    low, high = 0, 64
    while high < len(document.text) and fits(high):
        low, high = high, 2 * high
    high = min(high, len(document.text))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if not (trimmed := cut(low)).text.strip():
        raise InputError(
            f"the question, the instruction and the tags of document '{document.id}' leave no room for its text in the budget of {budget} tokens; "
            "raise `max_prompt_tokens`"
        )
    return trimmed


def _whole_words(text: str, characters: int) -> str:
    """The first characters, less the word that they cut in two; a word of more than 40 characters, or a script without spaces, is cut inside."""
    start = text[:characters]
    if characters >= len(text) or text[characters].isspace():
        return start.rstrip()
    boundary = re.search(r"\s\S{0,40}\Z", start[-41:])
    return (start[: boundary.start() - len(start[-41:])] if boundary else start).rstrip() or start.rstrip()
