"""A model that others fine-tuned or aligned to abstain, under its own prompt and with its own words for an abstention."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, field_validator

from rag.errors import InputError
from rag.models import cached_chat
from rag.models.cached_chat import Price
from rag.models.chat import ChatModel, ChatRequest, Completion, Message
from rag.records import Document, RetrievalState, Text
from rag.render import Order, Prompt, arrange, delimit, evidence, fill, select
from rag.settings import InputPath, Settings, Target
from rag.text import contains, normalize
from sage.predict import Kind, Parsed, Reply, parse, same
from serve.systems.sage_only import SageOnly
from serve.systems.stage import ask_chat

Match = Literal["exact", "starts", "contains"]
"""When an output is an abstention: it is a phrase and nothing else, begins with one, or holds one as whole words."""

_KINDS = {RetrievalState.UNANSWERABLE: Kind.ABSTENTION, RetrievalState.DISTRACTED: Kind.CONFLICT}


class Layout(Settings):
    """What the model reads. Nothing is added to it: each character of the prompt is here, in the documents or in the question."""

    template: Text
    """The user's message, with `{documents}` and `{question}` in it."""
    system: Text | None = None
    """A system message before it."""
    document: Text | None = None
    """One document, with `{text}` in it, and `{n}` (1 is the first in the prompt), `{id}`, `{title}` where they are wanted. None: the project's own
    `<doc>` block, which no text in a document can close; another layout has no such guard."""
    separator: Text = "\n"
    """Between two documents."""
    order: Order = "best_last"
    """Order of the documents in the prompt."""
    max_prompt_characters: int = Field(default=100_000, ge=16)
    """Budget of the message. What does not fit is dropped from the end of the ranking; the best document alone is trimmed instead."""

    @field_validator("template")
    @classmethod
    def _both_have_a_place(cls, template: str) -> str:
        if missing := [place for place in ("{documents}", "{question}") if place not in template]:
            raise ValueError(f"expected a prompt with {' and '.join(missing)} in it, got '{template[:80]}'")
        return template

    @field_validator("document")
    @classmethod
    def _the_text_has_a_place(cls, document: str | None) -> str | None:
        if document is not None and "{text}" not in document:
            raise ValueError(f"expected a layout with {{text}} in it, got '{document[:80]}'")
        return document

    def prompt(self, question: str, documents: Sequence[Document]) -> Prompt:
        """The message for a question and its documents, with its trace; lengths are in characters.

        Raises InputError when no document has text, and when the budget has no room for the question and a first word of the best document.
        """
        shown = evidence(documents)
        if not shown:
            raise InputError("documents: the model needs at least one document with text, found none")

        def text_of(kept: Sequence[Document]) -> str:
            blocks = [self._block(n, document) for n, document in enumerate(arrange(kept, self.order), start=1)]
            return fill(self.template, documents=self.separator.join(blocks), question=question)

        try:
            selection = select(shown, self.max_prompt_characters, lambda kept: len(text_of(kept)))
        except InputError as error:
            raise InputError(f"{error} (counted in characters here: layout.max_prompt_characters)") from error
        text = text_of(selection.kept)
        return Prompt(
            text=text,
            shown=tuple(document.id for document in arrange(selection.kept, self.order)),
            dropped=tuple(document.id for document in selection.dropped),
            trimmed=selection.trimmed,
            tokens=len(text),
            documents=selection.kept,
        )

    def _block(self, n: int, document: Document) -> str:
        if self.document is None:
            return delimit(document)
        return fill(self.document, n=str(n), id=document.id, title=document.title, text=document.text)


class Wording(Settings):
    """How what the model says is read."""

    abstentions: dict[Literal["unanswerable", "distracted"], tuple[Annotated[Text, Field(pattern=r"\S")], ...]]
    """What it says instead of an answer, by the state that this names; phrases of the first state named are looked for first."""
    match: Match = "exact"
    """`exact`: the output is the phrase after trimming, case folding, and removal of surrounding quotes and of one final full stop.
    `starts` and `contains` are for models that say their phrase in a longer sentence; they also turn an answer that holds it into an abstention."""
    answer_after: Text | None = None
    """What stands before the answer, such as `Answer:`; an output without it is unparsed."""
    first_line: bool = False
    """The answer is the first line that is not blank; what follows it is not read. For models that do not know when to stop."""

    def read(self, output: str, finished: bool) -> Parsed:
        """An answer, an abstention or, for blank output and for one that was cut at the token limit before it was whole, neither."""
        text = output
        if self.answer_after is not None:
            _, found, text = output.partition(self.answer_after)
            if not found:
                return Parsed(Kind.UNPARSED)
        if self.first_line:
            text, whole, _ = text.lstrip().partition("\n")
            finished = finished or bool(whole)
        if not finished:
            return Parsed(Kind.UNPARSED)
        for state, phrases in self.abstentions.items():
            if any(self._is(text, phrase) for phrase in phrases):
                return Parsed(_KINDS[RetrievalState(state)])
        return parse(text, abstention="")

    def _is(self, text: str, phrase: str) -> bool:
        if self.match == "exact":
            return same(text, phrase)
        if self.match == "contains":
            return contains(text, phrase)
        start, rest = normalize(phrase), normalize(text).lstrip("\"'")
        return rest.startswith(start) and not rest[len(start) :][:1].isalnum()


class Tuned:
    """A chat model in the place of a Sage; it tells no probabilities, so its predictions have no confidence."""

    def __init__(self, chat: ChatModel, layout: Layout, wording: Wording, seed: int = 0) -> None:
        """Keep the model, what it reads and how it is read; the seed is that of sampling."""
        self.chat = chat
        self.layout = layout
        self.wording = wording
        self.seed = seed

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply | Exception]:
        """Answer each question from its documents, in order; one over budget, and one whose request failed for good, yields its error.

        Raises RuntimeError when the model answers nothing at all.
        """
        prompts = [self._prompt(question, found) for question, found in zip(questions, documents, strict=True)]
        replies = iter(ask_chat(self.chat, [self._request(prompt) for prompt in prompts if isinstance(prompt, Prompt)]))
        return [self._reply(prompt, next(replies)) if isinstance(prompt, Prompt) else prompt for prompt in prompts]

    def _prompt(self, question: str, documents: Sequence[Document]) -> Prompt | InputError:
        try:
            return self.layout.prompt(question, documents)
        except InputError as error:
            return error

    def _request(self, prompt: Prompt) -> ChatRequest:
        said = () if self.layout.system is None else (Message("system", self.layout.system),)
        return ChatRequest((*said, Message("user", prompt.text)), self.seed)

    def _reply(self, prompt: Prompt, reply: Completion | Exception) -> Reply | Exception:
        if isinstance(reply, Exception):
            return reply
        parsed = self.wording.read(reply.text, reply.finished)
        return Reply(reply.text, parsed, prompt, reply.prompt_tokens, reply.completion_tokens, None, reply.finished)


def load(
    chat: Target,
    layout: Layout,
    wording: Wording,
    replies: InputPath | None = None,
    price: Price | None = None,
    seed: int = 0,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
) -> SageOnly:
    """Put the chat model that a config names behind its own prompt; it stands where a Sage stands, without a Sieve.

    `replies` is a folder that keeps what it said, `price` what that cost; the deadline is in seconds for each query. Raises InputError as the
    model does.
    """
    return SageOnly(Tuned(cached_chat.load(chat, replies, price), layout, wording, seed), sage_deadline=sage_deadline)
