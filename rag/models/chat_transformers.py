"""A causal language model of this machine as a chat model, through transformers and the model's own chat template."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import torch
from jinja2 import TemplateError
from pydantic import Field
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from rag.errors import InputError
from rag.models.base import Precision, control_tokens, fingerprint, load_model, load_tokenizer, pick_device, pick_dtype
from rag.models.chat import ChatFailure, ChatRequest, Completion, Message, Reply, in_order, sampling_seed, without_system_role
from rag.models.turns import end_ids
from rag.records import Text
from rag.render import neutralise

PROBE = "probe-of-the-system-role"


class SeededNoise(LogitsProcessor):
    """Adds Gumbel noise to the logits of each row, from a generator of the row's own.

    The most likely token after that is a sample of the softmax (the Gumbel-max trick), so greedy search samples, and what a row draws depends
    on its seed alone, not on the rows beside it.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        """Make one generator for each row; they are on the CPU, so that every device draws the same numbers."""
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The logits of one step, of shape (rows, vocabulary), with noise."""
        draws = torch.stack([torch.empty(scores.shape[1]).exponential_(generator=generator) for generator in self.generators])
        return scores - draws.log().to(scores.device)


class TransformersChat:
    """Answers chats in batches.

    A control token written in a message becomes plain text; the template alone places control tokens, and the one BOS where there is any.
    In float32 a reply does not depend on its batch mates; in bfloat16 rounding may change a token.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        ends: Sequence[int],
        name: str,
        *,
        batch_size: int,
        max_tokens: int,
        temperature: float,
        top_p: float,
    ) -> None:
        """Keep a model whose generation config is greedy and names `ends`, as `load` makes it; `name` covers all that decides a reply."""
        self.model = model
        self.tokenizer = tokenizer
        self.ends = frozenset(ends)
        self.name = name
        self.batch_size = batch_size
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.top_p = top_p
        self.has_system_role = _has_system_role(tokenizer)
        self._control_tokens = control_tokens(tokenizer)

    def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """One reply for each request, in order; a chat that leaves no room for a reply in the model's context is a ChatFailure."""
        return in_order(self.stream(requests))

    def stream(self, requests: Sequence[ChatRequest]) -> Iterator[tuple[int, Reply]]:
        """Replies batch by batch, chats of similar length together."""
        ids = [self.input_ids(request.messages) for request in requests]
        room = int(self.model.config.max_position_embeddings) - self.max_tokens
        for place, prompt in enumerate(ids):
            if len(prompt) > room:
                yield (
                    place,
                    ChatFailure(f"the chat has {len(prompt)} tokens; the model has room for {room} and a reply of {self.max_tokens}"),
                )
        order = sorted((place for place, prompt in enumerate(ids) if len(prompt) <= room), key=lambda place: (len(ids[place]), place))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            replies = self._generate([ids[place] for place in batch], [sampling_seed(requests[place], 63) for place in batch])
            yield from zip(batch, replies, strict=True)

    def input_ids(self, messages: Sequence[Message]) -> list[int]:
        """What the model is given: the chat up to where the assistant's turn begins; without a system role, its text opens the user's turn."""
        shown = messages if self.has_system_role else without_system_role(messages)
        chat = [{"role": message.role, "content": neutralise(message.content, self._control_tokens)} for message in shown]
        ids: Any = self.tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
        return list(ids)

    @torch.inference_mode()
    def _generate(self, batch: Sequence[list[int]], seeds: Sequence[int]) -> list[Reply]:
        padded = self.tokenizer.pad({"input_ids": list(batch)}, padding_side="left", return_tensors="pt")
        generated = self.model.generate(  # type: ignore[operator]
            **padded.to(self.model.device), max_new_tokens=self.max_tokens, logits_processor=self._sampling(seeds)
        )
        new = generated[:, padded["input_ids"].shape[1] :].tolist()
        return [self._reply(prompt, ids) for prompt, ids in zip(batch, new, strict=True)]

    def _sampling(self, seeds: Sequence[int]) -> LogitsProcessorList:
        if self.temperature == 0:
            return LogitsProcessorList()
        nucleus = [TopPLogitsWarper(self.top_p)] if self.top_p < 1 else []
        return LogitsProcessorList([TemperatureLogitsWarper(self.temperature), *nucleus, SeededNoise(seeds)])

    def _reply(self, prompt: Sequence[int], ids: list[int]) -> Completion:
        end = next((place for place, token in enumerate(ids) if token in self.ends), None)
        text = str(self.tokenizer.decode(ids[:end], skip_special_tokens=True))
        return Completion(text, len(prompt), len(ids) if end is None else end + 1, end is not None)


def _has_system_role(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the template shows what the system says; some refuse the role, others leave it out without a word."""
    chat = [{"role": "system", "content": PROBE}, {"role": "user", "content": "question"}]
    try:
        return PROBE in str(tokenizer.apply_chat_template(chat, tokenize=False))
    except TemplateError:
        return False


def load(
    base: Text,
    revision: Text | None = None,
    pad_token: Text | None = None,
    chat_template: Text | None = None,
    end_tokens: tuple[Text, ...] = (),
    precision: Precision = "auto",
    attention: Literal["sdpa", "eager"] | None = None,
    device: Text = "auto",
    batch_size: Annotated[int, Field(ge=1)] = 8,
    max_tokens: Annotated[int, Field(ge=1)] = 512,
    temperature: Annotated[float, Field(ge=0)] = 0.0,
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0,
) -> TransformersChat:
    """Load a hub id, a folder, or `artifact:NAME`.

    At a temperature of 0 it is greedy and a request's seed has no effect. Above 0 it samples from the most likely tokens that hold `top_p` of
    the probability, from a generator seeded by the request's seed and chat: the same request gives the same reply, whatever batch it is in.

    `chat_template` is a Jinja template in place of the base's own, or where it has none; it may join the messages' texts and nothing else, for a
    model that goes on with a plain text. It need not end a turn: the base's own end of sequence and `end_tokens` end a reply.

    Raises InputError for a base that cannot be found, has no chat template, or no padding token, and where `max_tokens` fills its context.
    """
    on = pick_device(device)
    tokenizer = load_tokenizer(base, revision, pad_token)
    if chat_template is not None:
        tokenizer.chat_template = chat_template
    model = load_model(AutoModelForCausalLM, base, revision, attn_implementation=attention, dtype=pick_dtype(precision, on))
    model.to(on)  # type: ignore[arg-type]
    if max_tokens >= model.config.max_position_embeddings:
        raise InputError(f"chat.max_tokens={max_tokens}: {base} has a context of {model.config.max_position_embeddings} tokens; lower it")
    ends = end_ids(tokenizer, model, end_tokens, "chat", turns=chat_template is None)
    # One greedy configuration that replaces the base's own, which may ask for sampling.
    model.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=list(ends), pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id
    )
    dtype = str(model.dtype).removeprefix("torch.")
    name = f"{base}@{fingerprint(model)} {dtype} max_tokens={max_tokens} temperature={temperature} top_p={top_p}"
    if chat_template is not None:
        name += f" template={hashlib.sha256(chat_template.encode()).hexdigest()[:8]}"
    return TransformersChat(
        model, tokenizer, ends, name, batch_size=batch_size, max_tokens=max_tokens, temperature=temperature, top_p=top_p
    )
