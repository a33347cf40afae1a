"""Which sentences cite which documents, and whether the cited text supports them. Citations are document ids, never places in a list."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rag.records import Citation, Document
from rag.render import ranked
from rag.text import contains, normalize

_MARKER = r"(?<!\[)\[++[^\[\]\n]++\]++"
_SENTENCE = re.compile(
    rf"""
    (?=\S) (?: (?P<own>{_MARKER}) | . )*?
    (?: (?<=[.!?]) ["')”’]*+ (?=\s|\[|\Z) | (?<=[。！？]) | (?=\n) | \Z )
    (?(own) | (?: \s*+{_MARKER} )*+ [.!?]*+ )  # a marker after the full stop belongs to the sentence before it, unless that has one
    """,
    re.DOTALL | re.VERBOSE,
)
_FIGURE = re.compile(r"(?:(?<!\w)[-+])?[0-9](?:[0-9.,:/]*[0-9])?")


class CitedSentence(NamedTuple):
    """One sentence of a model's output."""

    text: str
    """The sentence without its markers."""
    cited: tuple[str, ...]
    """Ids in its markers, in order, each once."""


class Citations(NamedTuple):
    """What an answer rests on."""

    citations: tuple[Citation, ...]
    """Documents that were shown, each once."""
    rejected: tuple[str, ...]
    """Ids in the output's markers that name no shown document, each once."""


class UnsupportedClaim(NamedTuple):
    """A sentence with figures that stand in none of the documents it cites."""

    sentence: str
    """The sentence without its markers."""
    cited: tuple[str, ...]
    """The ids it cites."""
    figures: tuple[str, ...]
    """The figures that no cited document holds."""


def parse_citations(output: str) -> tuple[CitedSentence, ...]:
    """Split an output into sentences and read the ids in square brackets: `[d4]`, `[d1, d2]`, `[d1][d2]`.

    A sentence ends at `.`, `!` or `?` before white space, at their full-width forms, or at the end of the line; markers after the full stop are
    its own if it has no other. Ids may hold anything but brackets, commas, semicolons and line breaks (`pricing/plans-current.md#0`).
    """
    sentences = (CitedSentence(_without_markers(match[0]), _ids(match[0])) for match in _SENTENCE.finditer(output))
    return tuple(sentence for sentence in sentences if sentence.cited or re.search(r"\w", sentence.text))


def strip_citations(output: str) -> str:
    """The output without its markers; unchanged where a bracket is all there is, such as the answer `[Fe/H]`."""
    return _without_markers(output) or output.strip()


def _without_markers(text: str) -> str:
    """The text without anything in square brackets, which may leave nothing."""
    return re.sub(rf"(?<!\s)\s*+{_MARKER}", "", text).strip()


def cite(answer: str, output: str, shown: Sequence[Document]) -> Citations:
    """Name the documents behind an answer.

    With markers in the output: those that name a document of `shown` are its citations, each with whether the document's text or title contains
    the answer; the others are rejected. A bracket that is part of the answer is no marker. Without markers, as in paper 002's single-term answers:
    all documents of `shown` that contain the answer, best first.

    `shown` are the documents that were in the prompt, as the model saw them (`rag.render.Prompt.documents`).
    """
    documents = {document.id: document for document in shown}
    cited = [document_id for document_id in _ids(output) if f"[{document_id}]" not in answer]
    if not cited:
        return Citations(tuple(Citation(document_id=d.id, supported=True) for d in ranked(shown) if _supports(d, answer)), ())
    return Citations(
        tuple(Citation(document_id=i, supported=_supports(documents[i], answer)) for i in cited if i in documents),
        tuple(i for i in cited if i not in documents),
    )


def unsupported_claims(output: str, documents: Sequence[Document]) -> tuple[UnsupportedClaim, ...]:
    """Sentences that cite documents and hold a figure that none of those documents holds (source 001, `unsupported_citations`).

    Figures are compared whole, with sign and decimals and without digit grouping, against text, title and metadata. A sentence without a figure or
    without a citation is not judged; a cited id that is not among `documents` supports nothing.
    """
    known = {document.id: _figures(" ".join((document.text, document.title, *document.metadata.values()))) for document in documents}
    claims = []
    for text, cited in parse_citations(output):
        held = {figure for document_id in cited for figure in known.get(document_id, ())}
        missing = tuple(figure for figure in _figures(text) if figure not in held)
        if cited and missing:
            claims.append(UnsupportedClaim(text, cited, missing))
    return tuple(claims)


def _ids(text: str) -> tuple[str, ...]:
    parts = (part.strip() for marker in re.findall(_MARKER, text) for part in re.split("[,;]", marker.strip("[]")))
    return _once(part for part in parts if part)


def _figures(text: str) -> tuple[str, ...]:
    return _once(_FIGURE.findall(normalize(text)))


def _supports(document: Document, answer: str) -> bool:
    return contains(document.text, answer) or contains(document.title, answer)


def _once(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
