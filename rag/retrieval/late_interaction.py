"""Late interaction (ColBERTv2): a vector for each token, MaxSim between question and document; as re-ranker and over a whole corpus.

An index has 2 bytes for each dimension of each token: 128 dimensions and 130 tokens are 33 KB a document, 33 GB for a million, and a search
reads all of it, once for all questions that are asked together. So it is for corpora of up to some hundred thousand documents; larger
ones are re-ranked.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag.errors import InputError
from rag.jsonl import read_json
from rag.records import Document
from rag.retrieval.corpus import Corpus, mapped
from rag.retrieval.encoders import (
    document_text,
    load_multi_vector_encoder,
    position_limit,
    stored_prompt,
    token_counts,
    weights_fingerprint,
)
from rag.retrieval.index import SCRATCH, IndexCard, open_or_build, progress, write_json
from rag.retrieval.selection import Candidates, ranked, require_k
from rag.settings import CachePath, InputPath

logger = logging.getLogger(__name__)

TOKENS, OFFSETS, _DONE = "tokens.bin", "offsets.bin", "done.json"
_BUILT_AT_ONCE = 512
_SCANNED = 2**16
"""Tokens of a block."""

LongQuestions = Literal["raise", "refuse"]
Vectors = npt.NDArray[np.float32]


class LateInteractionEncoder:
    """Question and document encoders of one model, and a re-ranker by MaxSim."""

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        document_length: int | None = None,
        long_questions: LongQuestions = "raise",
        batch_size: int = 32,
        device: str = "auto",
    ) -> None:
        """Load a model of sentence-transformers, PyLate or Stanford's ColBERT.

        Such models cut each question at a fixed number of tokens, 32 in ColBERTv2. `long_questions=raise` raises that limit for questions
        that are longer, up to what the model can read at all, and still pads shorter ones to it; `refuse` keeps the limit. Either way a
        question over the limit raises InputError. `document_length` replaces the number of tokens read of a document.
        """
        self._model = model
        self._encoder = load_multi_vector_encoder(model, revision, device)
        self._batch_size = batch_size
        transformer: Any = self._encoder[0]
        limit = position_limit(self._encoder)
        if document_length is not None:
            if not 1 <= document_length <= limit:
                raise InputError(f"document_length={document_length}: {model} reads at most {limit} tokens; set it to that or less")
            transformer.document_length = document_length
        self.document_limit = min(transformer.document_length or limit, limit)
        """Tokens read of a document, special ones and the prompt included."""
        expansion = transformer.query_expansion
        if long_questions == "raise":
            transformer.query_length = None
            if expansion is not None:
                transformer.query_expansion = {**expansion, "strategy": "min"}
            self.question_limit = limit
        elif expansion is not None and expansion["strategy"] == "fixed":
            self.question_limit = min(expansion["length"], limit)
        else:
            self.question_limit = min(transformer.query_length or limit, limit)
        self._query_prompt = stored_prompt(self._encoder, None, ("query",))
        self._document_prompt = stored_prompt(self._encoder, None, ("document", "passage", "corpus"))
        self.settings: dict[str, str | int | float | bool | None] = {
            "model": model,
            "weights": weights_fingerprint(self._encoder),
            "query_prompt": self._query_prompt,
            "document_prompt": self._document_prompt,
            "document_length": self.document_limit,
        }
        """What vectors depend on."""

    @property
    def name(self) -> str:
        """Model, its fingerprint and the lengths read."""
        return f"maxsim {self._model} {self.settings['weights']} {self.question_limit} {self.document_limit}"

    @property
    def width(self) -> int:
        """Dimensions of a vector."""
        width = self._encoder.get_embedding_dimension()
        if width is None:
            raise InputError(f"model '{self._model}': does not say how many dimensions its vectors have")
        return width

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """MaxSim of each text: over the question's tokens, the sum of the best cosine with any token of the text."""
        asked = self.question(question).astype(np.float64)
        return [maxsim(asked, vectors.astype(np.float64)) for vectors in self.documents(texts)]

    def question(self, text: str) -> Vectors:
        """Vectors of a question, [tokens, width]; alone, so that they do not depend on other questions. Raises InputError if it is too long."""
        [count] = token_counts(self._encoder, [text], self._query_prompt)
        if count > self.question_limit:
            raise InputError(
                f"a question has {count} tokens and the model reads {self.question_limit}: '{text[:80]}...'; "
                "set long_questions=raise for the most that the model can read, or shorten the question"
            )
        [vectors] = self._encoder.encode_query([text], show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    def documents(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of each text, [tokens, width]; a long text is cut at `document_limit`."""
        made: list[Vectors] = []
        for start in range(0, len(texts), self._batch_size):
            batch = list(texts[start : start + self._batch_size])
            vectors = self._encoder.encode_document(batch, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True)
            made.extend(np.asarray(v, dtype=np.float32) for v in vectors)
        return made

    def cut(self, texts: Sequence[str]) -> int:
        """How many texts are longer than what is read of a document."""
        return sum(count > self.document_limit for count in token_counts(self._encoder, texts, self._document_prompt))


def maxsim(question: npt.NDArray[np.float64], document: npt.NDArray[np.float64]) -> float:
    """Sum over the question's vectors of the largest dot product with any of the document's; 0 where either has none."""
    if not len(question) or not len(document):
        return 0.0
    return float((question @ document.T).max(axis=1).sum())


class LateInteraction:
    """A retriever by MaxSim over all documents of a corpus."""

    def __init__(
        self,
        corpus: InputPath,
        model: str,
        index: CachePath | None = None,
        revision: str | None = None,
        document_length: int | None = None,
        long_questions: LongQuestions = "raise",
        title_separator: str = " ",
        batch_size: int = 32,
        device: str = "auto",
    ) -> None:
        """Open the index, or make it on first use; a run that was stopped goes on where it was.

        The arguments are those of `LateInteractionEncoder` and of `Dense`. Raises InputError where the index was made for another corpus,
        model or length.
        """
        self.corpus = Corpus.open(corpus)
        self._encoder = LateInteractionEncoder(model, revision, document_length, long_questions, batch_size, device)
        self._separator = title_separator
        expected = IndexCard(
            kind="late_interaction",
            corpus=self.corpus.fingerprint,
            documents=len(self.corpus),
            settings={**self._encoder.settings, "title_separator": title_separator},
        )
        self._opened = open_or_build(index, self.corpus.folder, expected, self._build)
        folder, tokens = self._opened.folder, self._opened.card.counts["tokens"]
        self._offsets = mapped(folder / OFFSETS, np.dtype(np.int64), (len(self.corpus) + 1,))
        self._vectors = mapped(folder / TOKENS, np.dtype(np.float16), (tokens, self._encoder.width))

    @property
    def name(self) -> str:
        """Kind and fingerprint of the index, and the length of question that is read."""
        return f"{self._opened.card.name}-{self._encoder.question_limit}"

    @property
    def cut_documents(self) -> int:
        """Documents of which the encoder did not read the end."""
        return self._opened.card.counts["cut"]

    def search(self, question: str, k: int) -> list[Document]:
        """At most `k` documents, best first, with `rank` and MaxSim as `score`; equal scores go by document id."""
        return self.search_many([question], k)[0]

    def search_many(self, questions: Sequence[str], k: int) -> list[list[Document]]:
        """As `search` for each question, in one sweep over the index. Raises InputError for a question that is too long."""
        require_k(k)
        asked = [self._encoder.question(question) for question in questions]
        found = [Candidates(k, 1e-4 * len(vectors)) for vectors in asked]
        for start, stop in self._blocks():
            first, last = int(self._offsets[start]), int(self._offsets[stop])
            vectors = np.asarray(self._vectors[first:last], dtype=np.float32)
            begins = np.asarray(self._offsets[start:stop]) - first
            for candidates, question in zip(found, asked, strict=True):
                candidates.add(start, np.maximum.reduceat(vectors @ question.T, begins, axis=0).sum(axis=1))
        return [self._settle(candidates, vectors.astype(np.float64)) for candidates, vectors in zip(found, asked, strict=True)]

    def _settle(self, candidates: Candidates, question: npt.NDArray[np.float64]) -> list[Document]:
        def score(row: int) -> float:
            return maxsim(question, self._vectors[int(self._offsets[row]) : int(self._offsets[row + 1])].astype(np.float64))

        return ranked(self.corpus, *candidates.settle(score, self.corpus.places))

    def _blocks(self) -> list[tuple[int, int]]:
        """Ranges of rows of about `_SCANNED` tokens each, or of one long document."""
        blocks, start = [], 0
        while start < len(self.corpus):
            stop = int(np.searchsorted(self._offsets, self._offsets[start] + _SCANNED, side="right")) - 1
            blocks.append((start, stop := max(stop, start + 1)))
            start = stop
        return blocks

    def _build(self, folder: Path) -> dict[str, int]:
        note = folder / SCRATCH / _DONE
        note.parent.mkdir(exist_ok=True)
        state: Any = read_json(note) if note.is_file() else {"done": 0, "tokens": 0, "cut": 0}
        done, tokens, cut = int(state["done"]), int(state["tokens"]), int(state["cut"])
        total, width = len(self.corpus), self._encoder.width
        with (
            (folder / TOKENS).open("ab") as vectors,
            (folder / OFFSETS).open("ab") as offsets,
            progress("embedding tokens", total, done) as advance,
        ):
            # What a stopped run wrote after its last note is made again.
            vectors.truncate(tokens * width * 2)
            offsets.truncate((done + 1) * 8 if done else 0)
            if not done:
                offsets.write(np.int64(0).tobytes())
            while done < total:
                texts = [document_text(document, self._separator) for document in self.corpus.read(done, done + _BUILT_AT_ONCE)]
                cut += self._encoder.cut(texts)
                for made in self._encoder.documents(texts):
                    if not len(made):
                        raise InputError(
                            f"model '{self._encoder.name}': gives no vector for a document; its skiplist must keep special tokens"
                        )
                    vectors.write(made.astype(np.float16).tobytes())
                    tokens += len(made)
                    offsets.write(np.int64(tokens).tobytes())
                vectors.flush()
                offsets.flush()
                done += len(texts)
                write_json(note, {"done": done, "tokens": tokens, "cut": cut})
                advance(len(texts))
        if cut:
            logger.warning(
                "%d of %d documents are longer than the %d tokens that are read of one; their ends are not searched",
                cut,
                total,
                self._encoder.document_limit,
            )
        return {"tokens": tokens, "cut": cut}
