"""Build the chat that the Sage reads, once for training and serving, so that both see the same ids."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import control_tokens
from rag.prompts import QA_PROMPTS, QaPrompt
from rag.records import Document, Text
from rag.render import Order, Prompt, evidence, render
from rag.settings import Settings

Message = dict[str, str]


class InputSettings(Settings):
    """What the Sage reads and the string it abstains with."""

    max_prompt_tokens: int = Field(ge=16)
    """Budget of the whole prompt in tokens: instruction, question, documents, delimiters and chat template."""
    instruction: QaPrompt = "unanswerable"
    """Which prompt of the paper's table 14."""
    order: Order = "best_last"
    """Order of the documents in the prompt."""
    abstention: Text = Field(default="unanswerable", pattern=r"\S")
    """What the Sage is trained to say when the documents hold no answer; takes the place of 'unanswerable' in the instruction."""


class SageInput(NamedTuple):
    """One prompt: as messages, as text with its trace, and as the ids that the model gets."""

    messages: list[Message]
    prompt: Prompt
    ids: list[int]


def build(question: str, documents: Sequence[Document], tokenizer: PreTrainedTokenizerBase, settings: InputSettings) -> SageInput:
    """Render the documents and apply the chat template, which alone places control tokens (and the one BOS, if it has any).

    Raises InputError when no document has text, and when the question alone exceeds the budget.
    """
    shown = evidence(documents)
    if not shown:
        raise InputError("documents: the Sage needs at least one document with text, found none")
    prompt = render(
        question,
        shown,
        QA_PROMPTS[settings.instruction].replace("unanswerable", settings.abstention),
        budget=settings.max_prompt_tokens,
        count=lambda text: len(template_ids(_user(text), tokenizer)),
        order=settings.order,
        control_tokens=control_tokens(tokenizer),
    )
    messages = _user(prompt.text)
    return SageInput(messages, prompt, template_ids(messages, tokenizer))


def _user(text: str) -> list[Message]:
    # No system message: some chat templates refuse that role.
    return [{"role": "user", "content": text}]


def template_ids(messages: Sequence[Message], tokenizer: PreTrainedTokenizerBase, add_generation_prompt: bool = True) -> list[int]:
    """Ids of a chat, with every control token where the template puts it; by default up to where the assistant's turn begins."""
    ids: Any = tokenizer.apply_chat_template(list(messages), add_generation_prompt=add_generation_prompt, tokenize=True, return_dict=False)
    return list(ids)


def completion(answer: str) -> list[Message]:
    """The assistant's turn that training teaches."""
    return [{"role": "assistant", "content": answer}]
