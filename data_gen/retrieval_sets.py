"""Corpora to retrieve from, and questions with gold documents, from the files that people have."""

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from data_gen.sources import gold_passages
from rag.records import Document
from rag.retrieval.corpus import read_jsonl, read_psgs
from rag.retrieval.gold import GoldQuestion
from rag.settings import InputPath

logger = logging.getLogger(__name__)


class RetrievalSet(NamedTuple):
    """What a corpus is written from."""

    source: str
    documents: Iterable[Document]
    questions: Iterable[GoldQuestion] = ()
    """Questions whose gold documents are among the documents, where the source has any."""


def from_jsonl(path: InputPath) -> RetrievalSet:
    """A JSONL file of documents: `{"id": "d1", "title": "Peru", "text": "..."}`."""
    return RetrievalSet(path.name, read_jsonl(path))


def from_psgs(path: InputPath) -> RetrievalSet:
    """DPR's `psgs_w100.tsv` or `.tsv.gz`: 21 million passages of 100 words."""
    return RetrievalSet(path.name, read_psgs(path))


def from_gold_passages(path: InputPath) -> RetrievalSet:
    """The gold passages of `data_gen.sources.gold_passages` as a corpus, and their questions.

    A passage has the id of its first question; a question whose passage came before has that one as its gold document. Questions with a
    blank passage are left out, and their number is logged.
    """
    passages: dict[str, str] = {}
    questions = []
    blank = 0
    for material in gold_passages.materials(path):
        texts = [text for text in material.passages if text.strip()]
        if not texts:
            blank += 1
        else:
            gold = tuple(dict.fromkeys(passages.setdefault(text, f"{material.question_id}-passage") for text in texts))
            questions.append(GoldQuestion(id=material.question_id, question=material.question, gold=gold))
    if blank:
        logger.info("%s: %d questions with a blank passage left out", path, blank)
    return RetrievalSet(path.name, _documents(passages), questions)


def _documents(passages: dict[str, str]) -> Iterator[Document]:
    return (Document(id=name, text=text) for text, name in passages.items())
