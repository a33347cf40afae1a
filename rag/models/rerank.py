"""Re-rankers: how well does a text answer a question, read together?"""

import logging
from collections.abc import Sequence
from typing import Annotated, Protocol

from pydantic import Field

from rag.errors import InputError
from rag.records import Text

logger = logging.getLogger(__name__)


class Reranker(Protocol):
    """Scores texts by a question."""

    @property
    def name(self) -> str:
        """Model and settings that decide a score."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, in order; higher is better, the scale is the model's own."""
        ...


class CrossEncoderReranker:
    """A cross-encoder with one output, through sentence-transformers (the extra `retrieval`).

    Scores are logits: the probability that some models turn them into is 1.0 for many good texts, which would tie them. In float32 a score does
    not depend on the other texts.
    """

    def __init__(
        self,
        base: Text,
        revision: Text | None = None,
        max_length: Annotated[int, Field(ge=16)] = 512,
        batch_size: Annotated[int, Field(ge=1)] = 32,
        device: Text = "auto",
    ) -> None:
        """Load a hub id, a folder, or `artifact:NAME`, in float32.

        `max_length` is in tokens, question, text and special tokens together; what is longer is cut, the longer of the two first. Raises
        InputError without the library, for a base that cannot be found, one that has several outputs, and one that reads fewer tokens.
        """
        try:
            from sentence_transformers import CrossEncoder
        except ModuleNotFoundError as error:
            raise InputError("a re-ranker needs sentence-transformers; pip install 'sieve-and-sage[retrieval]'") from error
        import torch

        from rag.models.base import fingerprint, locate, max_positions, pick_device, quiet

        try:
            with quiet():
                self._model = CrossEncoder(
                    locate(base),
                    revision=revision,
                    device=str(pick_device(device)),
                    max_length=max_length,
                    activation_fn=torch.nn.Identity(),
                    model_kwargs={"dtype": torch.float32},
                )
        except (OSError, ValueError) as error:
            raise InputError(
                f"reranker.base: '{base}' cannot be loaded ({str(error).splitlines()[0]}); check the id and the network"
            ) from error
        if self._model.num_labels != 1:
            raise InputError(f"reranker.base: expected a model with one output, a score; {base} has {self._model.num_labels}")
        limit = max_positions(self._model.model)
        if limit is not None and max_length > limit:
            raise InputError(f"reranker.max_length={max_length}: {base} reads at most {limit} tokens; lower it")
        self.name = f"{base}@{fingerprint(self._model.model)} max_length={max_length}"
        self.max_length = max_length
        self.batch_size = batch_size

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One logit for each text, in order; texts that were cut are counted in the log."""
        if not texts:
            return []
        lengths = [len(ids) for ids in self._model.tokenizer([question] * len(texts), list(texts))["input_ids"]]
        if cut := sum(length > self.max_length for length in lengths):
            logger.info("%s: %s of %s texts were cut at %s tokens", self.name, cut, len(texts), self.max_length)
        scores = self._model.predict([(question, text) for text in texts], batch_size=self.batch_size, show_progress_bar=False)
        return [float(score) for score in scores]
