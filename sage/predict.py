"""Ask a trained Sage: `load` a checkpoint, then `answer` batches of questions with their documents."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import torch
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rag.checkpoint import read_manifest, require_same_base, require_same_settings
from rag.errors import InputError
from rag.models.base import Precision, load_tokenizer, quiet
from rag.records import Document
from rag.render import Prompt
from sage.inputs import InputSettings, SageInput, build
from sage.model import ModelSettings, load_backbone
from sage.parse import Kind, Parsed, parse, same
from sage.settings import SageSettings

__all__ = ["Kind", "Parsed", "Reply", "Sage", "SageSettings", "load", "load_untrained", "parse", "same"]


class Reply(NamedTuple):
    """What the Sage said to one question."""

    output: str
    """The generated text as it came, without control tokens."""
    parsed: Parsed
    """The output that was read. One that was cut at the token limit is unparsed, whatever it says so far."""
    prompt: Prompt
    """The rendered prompt with its trace."""
    prompt_tokens: int
    """Ids that the model was given, chat template included."""
    completion_tokens: int
    """Ids that it generated, the end token included."""
    confidence: float | None
    """Geometric mean of the generated tokens' probabilities, the end token included; from 0 to 1. None where a model does not tell."""
    finished: bool
    """Whether the model ended its turn before the token limit."""


class Sage:
    """A language model with its tokenizer, its input settings and the tokens that end its turn."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        ends: Sequence[int],
        inputs: InputSettings,
        batch_size: int,
        max_new_tokens: int,
    ) -> None:
        """Keep a model whose generation config is greedy and names `ends` (see `sage.model.load_backbone`)."""
        self.model = model
        self.tokenizer = tokenizer
        self.ends = frozenset(ends)
        self.inputs = inputs
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply | InputError]:
        """Answer each question from its own documents, in order.

        An item that cannot be asked (no document with text, a question over budget) yields its error and leaves the others alone.
        Greedy, in batches of similar length; in float32 a reply does not depend on its batch mates, in bfloat16 rounding may change it.
        """
        asked = [self._build(question, found) for question, found in zip(questions, documents, strict=True)]
        replies: dict[int, Reply | InputError] = {i: item for i, item in enumerate(asked) if isinstance(item, InputError)}
        ready = {i: item for i, item in enumerate(asked) if isinstance(item, SageInput)}
        order = sorted(ready, key=lambda i: (len(ready[i].ids), i))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            replies.update(zip(batch, self._generate([ready[i] for i in batch]), strict=True))
        return [replies[i] for i in range(len(asked))]

    def _build(self, question: str, documents: Sequence[Document]) -> SageInput | InputError:
        try:
            return build(question, documents, self.tokenizer, self.inputs)
        except InputError as error:
            return error

    @torch.inference_mode()
    def _generate(self, batch: Sequence[SageInput]) -> list[Reply]:
        padded = self.tokenizer.pad({"input_ids": [item.ids for item in batch]}, padding_side="left", return_tensors="pt")
        generated = self.model.generate(  # type: ignore[operator]
            **padded.to(self.model.device), max_new_tokens=self.max_new_tokens, output_logits=True, return_dict_in_generate=True
        )
        new = generated.sequences[:, padded["input_ids"].shape[1] :]
        steps = [step.float().log_softmax(-1).gather(1, new[:, i : i + 1]) for i, step in enumerate(generated.logits)]
        log_probabilities = torch.cat(steps, dim=1).tolist()
        if any(math.isnan(value) for row in log_probabilities for value in row):
            raise RuntimeError("the Sage's logits are not numbers")
        return [self._reply(item, ids, row) for item, ids, row in zip(batch, new.tolist(), log_probabilities, strict=True)]

    def _reply(self, item: SageInput, ids: list[int], log_probabilities: list[float]) -> Reply:
        end = next((i for i, token in enumerate(ids) if token in self.ends), None)
        length = len(ids) if end is None else end + 1
        output = str(self.tokenizer.decode(ids[:end], skip_special_tokens=True))
        return Reply(
            output=output,
            parsed=Parsed(Kind.UNPARSED) if end is None else parse(output, self.inputs.abstention, self.inputs.conflict),
            prompt=item.prompt,
            prompt_tokens=len(item.ids),
            completion_tokens=length,
            confidence=min(1.0, math.exp(sum(log_probabilities[:length]) / length)),
            finished=end is not None,
        )


TRAINED_AS = ("inputs.instruction", "inputs.order", "inputs.abstention", "inputs.conflict")
"""Settings under which a checkpoint reads or says something else than it was trained to."""


def load(
    path: Path,
    device: str = "auto",
    precision: Precision = "auto",
    batch_size: int = 8,
    max_new_tokens: int = 32,
    base: str | None = None,
    expected: SageSettings | None = None,
) -> Sage:
    """Load a checkpoint that `sage.train` or `sage.merge` wrote; the latter needs no base.

    `base`, or else `expected`, names where to load the base from, such as a folder instead of the hub. Raises InputError when the folder is
    no complete Sage checkpoint, when it was not trained as `expected`, and when the base is not the one that the adapter was trained on.
    """
    manifest = read_manifest(path, "sage")
    inputs = InputSettings.model_validate(manifest.settings["inputs"])
    # A checkpoint from before an input setting existed was trained as that setting's default.
    manifest = manifest.model_copy(update={"settings": {**manifest.settings, "inputs": inputs.model_dump(mode="json")}})
    settings = ModelSettings.model_validate(manifest.settings["model"])
    changes: dict[str, str | None] = {"device": device, "precision": precision}
    if expected is not None:
        require_same_settings(path, manifest, expected.model_dump(mode="json"), TRAINED_AS)
        changes |= {"base": expected.model.base, "revision": expected.model.revision}
    if base is not None:
        changes |= {"base": base, "revision": None}
    if settings.lora is None:
        if base is not None:
            raise InputError(f"{path}: the adapter is merged into its base, so base={base} would not be used; leave it out")
        changes |= {"base": str(path), "revision": None}
    backbone = load_backbone(settings.model_copy(update=changes))
    require_same_base(path, manifest, backbone.fingerprint)
    tokenizer = load_tokenizer(str(path), pad_token=settings.pad_token)
    model = backbone.model
    if settings.lora is not None:
        with quiet():
            adapted = PeftModel.from_pretrained(backbone.model, str(path), autocast_adapter_dtype=False)
        # The base model, whose layers now hold the adapter: generation needs nothing of PEFT's wrapper.
        model = cast(PreTrainedModel, adapted.get_base_model())
    model.eval()
    return Sage(model, tokenizer, backbone.ends, inputs, batch_size, max_new_tokens)


def load_untrained(model: ModelSettings, inputs: InputSettings, batch_size: int = 8, max_new_tokens: int = 32) -> Sage:
    """Load a base without an adapter: the paper's vanilla model, under the same prompt and parser as a trained Sage."""
    backbone = load_backbone(model)
    return Sage(backbone.model, backbone.tokenizer, backbone.ends, inputs, batch_size, max_new_tokens)
