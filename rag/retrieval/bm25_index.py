"""BM25 over a corpus on disk: the same scores as in memory, from an index that bm25s maps and that is made with bounded memory.

bm25s would hold all tokens of a corpus as Python lists while it makes an index, 60 GB and more for 21 million passages of 100 words. Here
blocks of documents are counted to disk, and the counts are then spread over its arrays block by block; memory holds the vocabulary and
one block. The files are those of bm25s' own `save`.
"""

import hashlib
import json
import logging
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bm25s
import numpy as np
import numpy.typing as npt

from rag.errors import InputError
from rag.records import Document
from rag.retrieval.bm25 import tokenize
from rag.retrieval.corpus import Corpus
from rag.retrieval.index import SCRATCH, IndexCard, open_or_build, progress
from rag.retrieval.selection import best, ranked, require_k
from rag.settings import CachePath, InputPath

_PROBE = "The U.S.’s ÉCOLE—№5, snake_case don't 12:30 C++ ＡＢ ǅ İ ß straße 東京都 हिन्दी ไทย x²"


class Bm25Index:
    """A retriever over a corpus on disk; title and text are searched as one."""

    def __init__(self, corpus: InputPath, index: CachePath | None = None, k1: float = 1.5, b: float = 0.75, block: int = 200_000) -> None:
        """Open the index, or make it on first use.

        `corpus` is a folder of `write_corpus`, `index` a folder for this index (inside the corpus' folder where it is none). `k1` and `b`
        are those of `Bm25`. `block` is how many documents are in memory at a time while the index is made (about 4 kB each for 100 words);
        the result does not depend on it. Raises InputError where the index was made for another corpus, tokenizer, `k1` or `b`.
        """
        if k1 < 0 or not 0 <= b <= 1 or block < 1:
            raise InputError(f"expected k1 of 0 and up, b from 0 to 1 and block of 1 and up, got k1={k1}, b={b}, block={block}")
        self.corpus = Corpus.open(corpus)
        # The library sets its own logger to DEBUG, so a job would log every step of it.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        probe = hashlib.sha256("\n".join(tokenize(_PROBE)).encode()).hexdigest()[:8]
        expected = IndexCard(
            kind="bm25",
            corpus=self.corpus.fingerprint,
            documents=len(self.corpus),
            settings={"method": "lucene", "k1": float(k1), "b": float(b), "tokenizer": f"words of casefolded NFKC, {probe}"},
        )
        self._opened = open_or_build(
            index, self.corpus.folder, expected, lambda folder: _Builder(self.corpus, folder, k1, b, block).build()
        )
        self._index = _load(self._opened.folder) if self._opened.card.counts["postings"] else None

    @property
    def name(self) -> str:
        """Kind and fingerprint of the index."""
        return self._opened.card.name

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents that share a term with the question, best first, with `rank` and `score`; equal scores go by document id.

        Holds one score for each document of the corpus while it searches, 4 bytes each.
        """
        require_k(k)
        terms = tokenize(question)
        if self._index is None or not terms:
            return []
        scores = self._index.get_scores(terms)
        matching = np.flatnonzero(scores)
        return ranked(self.corpus, *best(matching, scores[matching], self.corpus.places, k))


def _load(folder: Path) -> Any:
    try:
        return bm25s.BM25.load(folder, mmap=True, show_progress=False)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"index={folder}: bm25s cannot read it ({error}); delete the folder to make it again") from error


class _Counts(NamedTuple):
    """How often which term stands in which document, for a block of documents; documents in order."""

    terms: npt.NDArray[np.int32]
    frequencies: npt.NDArray[np.int32]
    distinct: npt.NDArray[np.int32]
    """Number of distinct terms of each document."""
    lengths: npt.NDArray[np.int32]
    """Number of tokens of each document."""


class _Builder:
    """Makes an index in two sweeps: documents to counts on disk, kept over a stop; counts to bm25s' arrays."""

    def __init__(self, corpus: Corpus, folder: Path, k1: float, b: float, block: int) -> None:
        self._corpus = corpus
        self._folder = folder
        self._scratch = folder / SCRATCH
        self._scratch.mkdir(exist_ok=True)
        self._k1 = k1
        self._b = b
        self._block = block
        self._vocabulary: dict[str, int] = {}

    def build(self) -> dict[str, int]:
        blocks = self._count()
        containing = np.zeros(len(self._vocabulary), dtype=np.int64)
        tokens = 0
        for path in blocks:
            counts = _read(path)
            np.add.at(containing, counts.terms, 1)
            tokens += int(counts.lengths.sum(dtype=np.int64))
        postings = int(containing.sum())
        if postings:
            self._spread(blocks, containing, tokens / len(self._corpus))
        return {"postings": postings, "vocabulary": len(self._vocabulary), "tokens": tokens}

    def _count(self) -> list[Path]:
        """Blocks of counts; those that a stopped run left are taken over, with the terms that they brought."""
        paths: list[Path] = []
        done = 0
        while (path := self._path("counts", len(paths), "npz")).is_file() and self._path("terms", len(paths), "json").is_file():
            for term in json.loads(self._path("terms", len(paths), "json").read_text(encoding="utf-8")):
                self._vocabulary[term] = len(self._vocabulary)
            done += len(_read(path).lengths)
            paths.append(path)
        with progress("counting terms", len(self._corpus), done) as advance:
            while done < len(self._corpus):
                known = len(self._vocabulary)
                counts = self._counts(self._corpus.read(done, done + self._block))
                new = list(self._vocabulary)[known:]
                # The counts come last: a block without them is counted again.
                _replace_text(self._path("terms", len(paths), "json"), json.dumps(new, ensure_ascii=False))
                paths.append(_write(self._path("counts", len(paths), "npz"), counts))
                done += len(counts.lengths)
                advance(len(counts.lengths))
        return paths

    def _path(self, what: str, number: int, suffix: str) -> Path:
        return self._scratch / f"{what}-{number:06d}.{suffix}"

    def _counts(self, documents: Any) -> _Counts:
        terms: list[int] = []
        frequencies: list[int] = []
        distinct: list[int] = []
        lengths: list[int] = []
        for document in documents:
            tokens = tokenize(f"{document.title} {document.text}")
            counted = Counter(tokens)
            terms.extend(self._vocabulary.setdefault(token, len(self._vocabulary)) for token in counted)
            frequencies.extend(counted.values())
            distinct.append(len(counted))
            lengths.append(len(tokens))
        return _Counts(*(np.array(values, dtype=np.int32) for values in (terms, frequencies, distinct, lengths)))

    def _spread(self, blocks: Sequence[Path], containing: npt.NDArray[np.int64], average: float) -> None:
        """Write the scores of each term's documents side by side: for each block one sweep over the arrays, in the order of terms."""
        number = len(self._corpus)
        # Lucene's weight of a term, with the logarithm that bm25s takes: numpy's differs in the last bit.
        frequencies, of_term = np.unique(containing, return_inverse=True)
        weights = [math.log(1 + (number - n + 0.5) / (n + 0.5)) for n in frequencies.tolist()]
        rarity = np.array(weights, dtype=np.float32)[of_term]
        starts = np.concatenate([[0], np.cumsum(containing)])
        data = np.memmap(self._scratch / "data.bin", dtype=np.float32, mode="w+", shape=(int(starts[-1]),))
        indices = np.memmap(self._scratch / "indices.bin", dtype=np.int32, mode="w+", shape=(int(starts[-1]),))
        heads = starts[:-1].copy()
        first = 0
        with progress("scoring terms", number) as advance:
            for path in blocks:
                counts = _read(path)
                documents = np.repeat(np.arange(len(counts.lengths)), counts.distinct)
                norm = self._k1 * ((1 - self._b) + self._b * counts.lengths / average)
                scores = rarity[counts.terms] * (counts.frequencies / (norm[documents] + counts.frequencies))
                order = np.argsort(counts.terms, kind="stable")
                sorted_terms = counts.terms[order]
                present, begins, sizes = np.unique(sorted_terms, return_index=True, return_counts=True)
                places = heads[sorted_terms] + np.arange(len(order)) - np.repeat(begins, sizes)
                data[places] = scores[order]
                indices[places] = documents[order] + first
                heads[present] += sizes
                first += len(counts.lengths)
                advance(len(counts.lengths))
        index = bm25s.BM25(method="lucene", k1=self._k1, b=self._b)
        index.scores = {"data": data, "indices": indices, "indptr": starts, "num_docs": number}
        index.vocab_dict = self._vocabulary
        index.nonoccurrence_array = None
        index.save(self._folder, show_progress=False)


def _write(path: Path, counts: _Counts) -> Path:
    partial = path.with_suffix(".partial")
    with partial.open("wb") as out:
        np.savez(out, **counts._asdict())
    return partial.replace(path)


def _read(path: Path) -> _Counts:
    with np.load(path) as stored:
        return _Counts(*(stored[field] for field in _Counts._fields))


def _replace_text(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
