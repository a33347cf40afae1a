"""Corpora to retrieve from, as streams of documents: none of these functions holds more than one record of a file in memory.

- `pubmed`: the annual baseline of PubMed, https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/ (files such as `pubmed25n0001.xml.gz`; terms of the National
  Library of Medicine). About 37 million citations, a third of them without an abstract.
- `wikipedia`: DPR's passages of 100 words, https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz (21 million; CC-BY-SA as Wikipedia).
- `arxiv`: arXiv's metadata, https://www.kaggle.com/datasets/Cornell-University/arxiv (`arxiv-metadata-oai-snapshot.json`, CC0); for AstroQA those of
  the category `astro-ph`.
- `jsonl`: one document a line, with names of your own for the keys.

The passages that a data set of questions comes with are in its own module: `data_gen.sources.gold_passages.documents`, `astroqa.documents`. Ids are the
corpus' own, and `Question.gold` of the sources names them: BioASQ's are PMIDs, AstroQA's those of arXiv, those of DPR's questions the numbers of its
passages.

Every file may be gzipped. What has no text is left out, counted and logged at the end of the stream. Whether ids are unique is for
`rag.retrieval.corpus.write_corpus` to check.
"""

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast
from xml.etree import ElementTree

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from data_gen.sources.fields import NumberedId
from data_gen.sources.left_out import report
from data_gen.sources.origin import Origin, absent
from rag.errors import InputError, nearest
from rag.jsonl import describe
from rag.records import Document, Text
from rag.settings import Files

PUBMED = Origin(
    what="PubMed",
    where="https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/",
    how="pubmed*.xml.gz, as many as you want to search, in one folder",
)
WIKIPEDIA = Origin(
    what="DPR's Wikipedia passages",
    where="https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz",
    how="as it is, or unpacked",
)
ARXIV = Origin(
    what="arXiv's metadata",
    where="https://www.kaggle.com/datasets/Cornell-University/arxiv",
    how="arxiv-metadata-oai-snapshot.json, zipped or not",
)

_ID: TypeAdapter[str] = TypeAdapter(NumberedId)
_JSON_LINES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_PASSAGE_COLUMNS = ["id", "text", "title"]


def pubmed(path: Files, dropped: Counter[str] | None = None) -> Iterator[Document]:
    """The abstracts of PubMed files, or of all `*.xml` and `*.xml.gz` files of a folder in the order of their names; `id` is the PMID.

    A structured abstract is one text, each part after its label. Citations without an abstract are left out. Raises InputError that names the file for
    one that is not there, cut off, or no XML of PubMed.
    """
    reasons: Counter[str] = Counter()
    for file in _files(path, (".xml", ".xml.gz"), PUBMED):
        for article in _articles(file):
            citation = article.find("MedlineCitation")
            pmid = None if citation is None else citation.findtext("PMID")
            if citation is None or pmid is None or not pmid.strip():
                raise InputError(f"{file}: expected a PMID in each PubmedArticle, found one without")
            parts = [_abstract_part(part) for part in citation.iterfind("Article/Abstract/AbstractText")]
            text = " ".join(part for part in parts if part)
            if text:
                yield Document(id=pmid.strip(), title=_flat_text(citation.find("Article/ArticleTitle")), text=text)
            else:
                reasons["citation without an abstract"] += 1
    report(_names(path), reasons, dropped)


def wikipedia(path: Files, dropped: Counter[str] | None = None) -> Iterator[Document]:
    """The passages of DPR's `psgs_w100.tsv`: a tab-separated table with quoting and the columns `id`, `text`, `title`.

    Raises InputError that names file and row.
    """
    reasons: Counter[str] = Counter()
    for file in _files(path, (".tsv", ".tsv.gz"), WIKIPEDIA):
        rows = csv.reader((line for _, line in _lines(file)), delimiter="\t", strict=True)
        number = 0
        try:
            for number, row in enumerate(rows, start=1):
                if number == 1 and row != _PASSAGE_COLUMNS:
                    raise InputError(f"{file}: expected the columns {_PASSAGE_COLUMNS} in the first row, got {row}")
                if len(row) != len(_PASSAGE_COLUMNS):
                    raise InputError(f"{file}: row {number}: expected {len(_PASSAGE_COLUMNS)} cells, got {len(row)}")
                if number > 1:
                    yield from _document(row[0], row[2], row[1], f"{file}: row {number}", reasons)
        except csv.Error as error:
            raise InputError(f"{file}: row {number + 1}: {error}") from error
        if number == 0:
            raise InputError(f"{file}: expected a table of passages, found an empty file")
    report(_names(path), reasons, dropped)


class _Paper(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NumberedId
    title: Text
    abstract: Text
    categories: Text


def arxiv(path: Files, category: str = "astro-ph", dropped: Counter[str] | None = None) -> Iterator[Document]:
    """The abstracts of arXiv's metadata (JSON lines) of one category with all below it; line breaks become spaces.

    Raises InputError that names file, line and field.
    """
    reasons: Counter[str] = Counter()
    for file in _files(path, _JSON_LINES, ARXIV):
        for number, line in _lines(file):
            where = f"{file}:{number}"
            try:
                paper = _Paper.model_validate_json(line)
            except ValidationError as error:
                raise InputError(f"{where}: {describe(error, _Paper)}") from error
            if any(one == category or one.startswith(f"{category}.") for one in paper.categories.split()):
                yield from _document(paper.id, " ".join(paper.title.split()), " ".join(paper.abstract.split()), where, reasons)
            else:
                reasons["paper of another category"] += 1
    report(_names(path), reasons, dropped)


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


def jsonl(
    path: Files,
    id: str = "id",
    title: str | None = "title",
    text: str = "text",
    metadata: str | None = "metadata",
    dropped: Counter[str] | None = None,
) -> Iterator[Document]:
    """One document a line; `id`, `title` and `text` name the keys, a `title` of none says that there are no titles.

    `metadata` names a key with an object of texts (`Document.metadata`), for lines that have it.

    Raises InputError that names file, line and key.
    """
    reasons: Counter[str] = Counter()
    for file in _files(path, _JSON_LINES):
        for number, line in _lines(file):
            where = f"{file}:{number}"
            try:
                cells: dict[str, Any] = _Line.model_validate_json(line).model_extra or {}
            except ValidationError as error:
                raise InputError(f"{where}: {describe(error, _Line)}") from error
            for key in (id, text, *([] if title is None else [title])):
                if key not in cells:
                    raise InputError(
                        f"{where}: no key '{key}'{nearest(key, cells)}; set documents.id, documents.title and documents.text to the keys that hold "
                        "them (documents.title=null: there are no titles)"
                    )
            extra = {} if metadata is None else cells.get(metadata) or {}
            yield from _document(cells[id], "" if title is None else cells[title] or "", cells[text] or "", where, reasons, extra)
    report(_names(path), reasons, dropped)


def _document(identifier: Any, title: Any, text: Any, where: str, reasons: Counter[str], metadata: Any = None) -> Iterator[Document]:
    try:
        document = Document(id=_ID.validate_python(identifier), title=title, text=text, metadata=metadata or {})
    except ValidationError as error:
        raise InputError(f"{where}: {describe(error, Document)}") from error
    if document.text.strip():
        yield document
    else:
        reasons["document without text"] += 1


def _names(path: Files) -> str:
    return ", ".join(map(str, path))


def _files(paths: Files, endings: tuple[str, ...], origin: Origin | None = None) -> Iterator[Path]:
    """The files, and those of the folders that end so, by name. Raises InputError that says where to get what is not there."""
    for path in paths:
        if path.is_file():
            yield path
        elif found := sorted(file for file in path.glob("*") if file.name.endswith(endings)):
            yield from found
        elif origin is not None:
            raise absent(path, origin, "documents.path", endings)
        else:
            raise InputError(
                f"{path}: expected a corpus file or a folder of {' or '.join(endings)} files, found neither; set documents.path"
            )


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers, line ends included: a quoted cell may hold one."""
    with _open(path) as file:
        try:
            for number, raw in enumerate(file, start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if line.strip():
                    yield number, line
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: expected UTF-8 text: {error}") from error
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"{path}: could not be read to its end ({error}); get it again") from error


def _articles(path: Path) -> Iterator[ElementTree.Element]:
    """Each PubmedArticle once it is read, freed before the next.

    ElementTree loads no external entity or DTD, and expat (2.4.1 and later) stops entities that expand too far, so a hostile file ends in an error.
    """
    with _open(path) as file:
        try:
            events = ElementTree.iterparse(file, events=("start", "end"))  # noqa: S314
            _, root = next(events)
            if root.tag != "PubmedArticleSet":
                raise InputError(f"{path}: expected a PubmedArticleSet, got '{root.tag}'")
            for event, element in events:
                if event == "end" and element.tag == "PubmedArticle":
                    yield element
                    root.clear()
        except ElementTree.ParseError as error:
            raise InputError(f"{path}: not XML: {error}") from error
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"{path}: could not be read to its end ({error}); get it again") from error


def _abstract_part(part: ElementTree.Element) -> str:
    text, label = _flat_text(part), part.get("Label")
    return f"{label}: {text}" if text and label and label != "UNLABELLED" else text


def _flat_text(element: ElementTree.Element | None) -> str:
    """The text of an element without its mark-up (`<i>`, `<sup>`), on one line."""
    return "" if element is None else re.sub(r"\s+", " ", "".join(element.itertext())).strip()
