"""Build the chat that the Sage reads, once for training and serving, so that both see the same ids."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import control_tokens
from rag.prompts import QA_PROMPTS, QaPrompt
from rag.records import Document, Text
from rag.render import Order, Prompt, evidence, render
from rag.settings import Settings
from sage.parse import same

Message = dict[str, str]


class InputSettings(Settings):
    """What the Sage reads and the strings it says instead of an answer."""

    max_prompt_tokens: int = Field(ge=16)
    """Budget of the whole prompt in tokens: instruction, question, documents, delimiters and chat template."""
    instruction: QaPrompt = "unanswerable"
    """Which prompt of the paper's table 14."""
    order: Order = "best_last"
    """Order of the documents in the prompt."""
    abstention: Text = Field(default="unanswerable", pattern=r"\S")
    """What the Sage is trained to say when the documents hold no answer; takes the place of 'unanswerable' in the instruction."""
    conflict: Text | None = Field(default=None, pattern=r"\S")
    """What it is trained to say when the documents give different answers, in place of 'conflict' in the instruction. None where the
    instruction does not ask for it: the Sage behind a Sieve."""

    @model_validator(mode="after")
    def _conflict_is_asked_for_and_told_apart(self) -> Self:
        asked = "'conflict'" in QA_PROMPTS[self.instruction]
        if asked and self.conflict is None:
            raise ValueError(
                f"instruction '{self.instruction}' asks for a reply of its own to a conflict; set sage.inputs.conflict=conflict"
            )
        if not asked and self.conflict is not None:
            raise ValueError(
                f"conflict='{self.conflict}' is not asked for by instruction '{self.instruction}'; "
                "set sage.inputs.instruction=unanswerable_conflict, or sage.inputs.conflict=null"
            )
        if self.conflict is not None and same(self.conflict, self.abstention):
            raise ValueError(f"conflict: expected another string than sage.inputs.abstention, got '{self.conflict}' for both")
        return self

    def under(self, instruction: QaPrompt) -> "InputSettings":
        """These settings under another prompt of table 14, with the table's word for a conflict where it asks for one."""
        conflict = (self.conflict or "conflict") if "'conflict'" in QA_PROMPTS[instruction] else None
        return InputSettings.model_validate({**self.model_dump(), "instruction": instruction, "conflict": conflict})

    def instruction_text(self) -> str:
        """The words of the instruction, with this model's own strings."""
        own = {"'unanswerable'": f"'{self.abstention}'", "'conflict'": f"'{self.conflict}'"}
        return re.sub("'(?:unanswerable|conflict)'", lambda match: own[match[0]], QA_PROMPTS[self.instruction])


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
        settings.instruction_text(),
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
