"""Dense retrieval with any model of sentence-transformers: embeddings in one file on disk, searched exactly, block by block.

The file has 2 bytes (float16) or 4 (float32) for each dimension of each document: 0.8 GB for a million documents of 384 dimensions, 32 GB
for 21 million of 768, in float16. A search reads all of it, once for all questions that are asked together.
"""

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from rag.errors import InputError
from rag.jsonl import read_json
from rag.records import Document
from rag.retrieval.corpus import Corpus, mapped
from rag.retrieval.encoders import document_text, load_encoder, position_limit, stored_prompt, token_counts, weights_fingerprint
from rag.retrieval.index import SCRATCH, IndexCard, open_or_build, progress, write_json
from rag.retrieval.selection import Candidates, ranked, require_k
from rag.settings import CachePath, InputPath

logger = logging.getLogger(__name__)

EMBEDDINGS, _DONE = "embeddings.bin", "done.json"
_BUILT_AT_ONCE = 512
_SCANNED = 2**26
"""Bytes of a block of embeddings in float32."""

Vectors = npt.NDArray[np.float32]


class Dense:
    """A retriever by the similarity of two vectors."""

    def __init__(
        self,
        corpus: InputPath,
        model: str,
        index: CachePath | None = None,
        query_model: str | None = None,
        revision: str | None = None,
        query_revision: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        title_separator: str = " ",
        similarity: Literal["cosine", "dot"] = "cosine",
        dtype: Literal["float16", "float32"] = "float16",
        max_length: int | None = None,
        long_questions: Literal["refuse", "cut"] = "refuse",
        batch_size: int = 64,
        device: str = "auto",
    ) -> None:
        """Open the index, or make it on first use; a run that was stopped goes on where it was.

        `model` encodes the documents, and the questions too unless `query_model` does (DPR has one encoder for each). A prompt that is none
        is what the checkpoint stores, where it stores one; blank is no prompt. A title stands before its text, `title_separator` between
        them. `cosine` normalises the vectors. `max_length` replaces the number of tokens that the checkpoint reads. Documents that are
        longer are cut and counted; a question that is longer is refused, or with `long_questions=cut` cut with a warning, and counted in
        `cut_questions`. Raises InputError where the index was made for another corpus, model or prompt.
        """
        self.corpus = Corpus.open(corpus)
        self._encoder = load_encoder(model, revision, device)
        self._asker = load_encoder(query_model, query_revision, device) if query_model else self._encoder
        for encoder, name in ((self._encoder, model), (self._asker, query_model or model)):
            _set_length(encoder, max_length, name)
        self._document_prompt = stored_prompt(self._encoder, document_prompt, ("document", "passage", "corpus"))
        self._query_prompt = stored_prompt(self._asker, query_prompt, ("query",))
        self._separator = title_separator
        self._normalise = similarity == "cosine"
        self._dtype = np.dtype(dtype)
        self._long_questions = long_questions
        self._batch_size = batch_size
        self.cut_questions = 0
        """Questions so far of which the encoder did not read the end."""
        width = self._encoder.get_embedding_dimension()
        if width is None or width != self._asker.get_embedding_dimension():
            raise InputError(f"query_model={query_model}: expected vectors of {width} dimensions, as model={model} has them")
        self._width = width
        expected = IndexCard(
            kind="dense",
            corpus=self.corpus.fingerprint,
            documents=len(self.corpus),
            settings={
                "model": model,
                "weights": weights_fingerprint(self._encoder),
                "query_model": query_model,
                "query_weights": weights_fingerprint(self._asker),
                "query_prompt": self._query_prompt,
                "document_prompt": self._document_prompt,
                "title_separator": title_separator,
                "similarity": similarity,
                "dtype": dtype,
                "max_length": position_limit(self._encoder),
            },
        )
        self._opened = open_or_build(index, self.corpus.folder, expected, self._build)
        self._vectors = mapped(self._opened.folder / EMBEDDINGS, self._dtype, (len(self.corpus), width))

    @property
    def name(self) -> str:
        """Kind and fingerprint of the index."""
        return self._opened.card.name

    @property
    def cut_documents(self) -> int:
        """Documents of which the encoder did not read the end."""
        return self._opened.card.counts["cut"]

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents, best first, with `rank` and the similarity as `score`; equal scores go by document id."""
        return self.search_many([question], k)[0]

    def search_many(self, questions: Sequence[str], k: int) -> list[list[Document]]:
        """As `search` for each question, in one sweep over the embeddings. Raises InputError for a question that is too long."""
        require_k(k)
        self._check_length(questions)
        if not questions:
            return []
        asked = np.stack([self._embed_question(question) for question in questions])
        # What float32 may round off in a sum of products, several times over.
        margins = 1e-4 * self._opened.card.counts["largest_norm"] * np.linalg.norm(asked, axis=1)
        found = [Candidates(k, float(margin)) for margin in margins]
        device = self._encoder.device
        columns = torch.from_numpy(asked.T.copy()).to(device)
        step = max(1, _SCANNED // (4 * self._width))
        for start in range(0, len(self.corpus), step):
            block = torch.from_numpy(np.array(self._vectors[start : start + step], dtype=np.float32)).to(device)
            scores = (block @ columns).T.cpu().numpy()
            for candidates, row in zip(found, scores, strict=True):
                candidates.add(start, row)
        return [self._settle(candidates, vector) for candidates, vector in zip(found, asked.astype(np.float64), strict=True)]

    def _settle(self, candidates: Candidates, question: npt.NDArray[np.float64]) -> list[Document]:
        def similarity(row: int) -> float:
            return float((self._vectors[row].astype(np.float64) * question).sum())

        return ranked(self.corpus, *candidates.settle(similarity, self.corpus.places))

    def _embed_question(self, question: str) -> Vectors:
        # Alone, so that the vector does not depend on the other questions of a batch.
        vector: Vectors = _float32(self._asker.encode_query([question], prompt=self._query_prompt, **self._options))[0]
        return vector

    @property
    def _options(self) -> dict[str, Any]:
        return {"normalize_embeddings": self._normalise, "show_progress_bar": False, "convert_to_numpy": True}

    def _check_length(self, questions: Sequence[str]) -> None:
        limit = position_limit(self._asker)
        counts = token_counts(self._asker, questions, self._query_prompt)
        for question, count in zip(questions, counts, strict=True):
            if count <= limit:
                continue
            if self._long_questions == "refuse":
                raise InputError(
                    f"a question has {count} tokens with its prompt and the encoder reads {limit}: '{question[:80]}...'; "
                    "set max_length higher if the model allows it, or long_questions=cut to search with its beginning"
                )
            self.cut_questions += 1
            logger.warning("long_questions=cut: of %d tokens of a question the encoder reads %d: '%s...'", count, limit, question[:80])

    def _build(self, folder: Path) -> dict[str, int]:
        total = len(self.corpus)
        note = folder / SCRATCH / _DONE
        note.parent.mkdir(exist_ok=True)
        done, cut, norm = _progress_of(note)
        path = folder / EMBEDDINGS
        if not path.is_file():
            with path.open("wb") as out:
                out.truncate(total * self._width * self._dtype.itemsize)
        vectors = np.memmap(path, dtype=self._dtype, mode="r+", shape=(total, self._width))
        limit = position_limit(self._encoder)
        with progress("embedding documents", total, done) as advance:
            while done < total:
                documents = self.corpus.read(done, done + _BUILT_AT_ONCE)
                texts = [document_text(document, self._separator) for document in documents]
                cut += sum(count > limit for count in token_counts(self._encoder, texts, self._document_prompt))
                for start in range(0, len(texts), self._batch_size):
                    batch = texts[start : start + self._batch_size]
                    made = _float32(
                        self._encoder.encode_document(batch, prompt=self._document_prompt, batch_size=self._batch_size, **self._options)
                    )
                    with np.errstate(over="ignore"):
                        stored = made.astype(self._dtype)
                    if not np.isfinite(stored).all():
                        raise InputError(f"the model gives numbers that {self._dtype} cannot hold; set dtype=float32")
                    norm = max(norm, math.ceil(np.linalg.norm(made, axis=1).max()))
                    vectors[done + start : done + start + len(batch)] = stored
                    advance(len(batch))
                vectors.flush()
                done += len(texts)
                write_json(note, {"done": done, "cut": cut, "largest_norm": norm})
        if cut:
            logger.warning(
                "%d of %d documents are longer than the %d tokens that the encoder reads; their ends are not searched", cut, total, limit
            )
        return {"cut": cut, "largest_norm": norm}


def _set_length(encoder: Any, max_length: int | None, name: str) -> None:
    if max_length is None:
        return
    positions = encoder.config.max_position_embeddings if encoder.config is not None else max_length
    if not 1 <= max_length <= positions:
        raise InputError(f"max_length={max_length}: {name} has {positions} positions; set it to that or less")
    encoder.max_seq_length = max_length


def _float32(vectors: Any) -> Vectors:
    return np.asarray(vectors, dtype=np.float32)


def _progress_of(path: Path) -> tuple[int, int, int]:
    """Rows done, documents cut so far, and the largest norm of a vector, rounded up."""
    if not path.is_file():
        return 0, 0, 0
    content: Any = read_json(path)
    return int(content["done"]), int(content["cut"]), int(content["largest_norm"])
