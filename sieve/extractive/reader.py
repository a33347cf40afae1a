"""A trained reader: what each document says to its question."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rag.records import Document
from sieve.extractive.inputs import Encoding, InputSettings, Window, encode, pad
from sieve.extractive.spans import Reading, read
from sieve.screening import batches


class Reader:
    """A span model in memory."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        inputs: InputSettings,
        *,
        segments: bool,
        batch_tokens: int = 16_384,
    ) -> None:
        """Serve `model` on the device it is on; a forward pass holds at most `batch_tokens` tokens, padding included."""
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.inputs = inputs
        self.segments = segments
        self.batch_tokens = batch_tokens

    def encode(self, pairs: Sequence[tuple[str, Document]]) -> list[Encoding]:
        """Questions, each with one document, as windows. Raises InputError for a question that leaves no room for a document."""
        return list(encode(pairs, self.tokenizer, self.inputs))

    def read(self, encodings: Sequence[Encoding]) -> list[Reading]:
        """What each document says, in order. Raises RuntimeError when the model's logits are not numbers."""
        windows = [window for encoding in encodings for window in encoding.windows]
        logits = iter(self._logits(windows))
        return [read(encoding, [next(logits) for _ in encoding.windows], self.inputs.max_answer_tokens) for encoding in encodings]

    @torch.inference_mode()
    def _logits(self, windows: Sequence[Window]) -> list[torch.Tensor]:
        """Of each window [tokens, 2]: where an answer begins and ends."""
        found: dict[int, torch.Tensor] = {}
        for batch in batches([len(window.ids) for window in windows], self.batch_tokens):
            inputs = pad([windows[i] for i in batch], int(self.tokenizer.pad_token_id), segments=self.segments)
            outputs = self.model(**{name: tensor.to(self.model.device) for name, tensor in inputs.items()})
            logits = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1).float().cpu()
            found |= {i: logits[row, : len(windows[i].ids)] for row, i in enumerate(batch)}
        return [found[i] for i in range(len(windows))]
