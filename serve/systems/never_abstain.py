"""The opposite constant baseline: the untrained base is never told that it may abstain, and whatever it says is taken for an answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from rag.records import Document
from sage.predict import Kind, Parsed, Reply, SageSettings
from serve.systems.sage_only import SageOnly
from serve.systems.stage import SageStage, Timed, load_sage


class Forced:
    """A Sage whose every non-blank output is an answer.

    So is a literal `unanswerable`, which nobody asked for: a wrong answer on every set. An output that was cut at the token limit, or that is
    nothing but punctuation, is one too. Only blank output stays unparsed.
    """

    def __init__(self, sage: SageStage) -> None:
        """Keep the Sage that is asked."""
        self.sage = sage

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply | Timed[Reply] | Exception]:
        """Answer each question from its documents."""
        return [_forced(reply) for reply in self.sage.answer(questions, documents)]


def _forced(reply: Reply | Timed[Reply] | Exception) -> Reply | Timed[Reply] | Exception:
    if isinstance(reply, Exception):
        return reply
    if isinstance(reply, Timed):
        return reply if isinstance(reply.result, Exception) else replace(reply, result=_answered(reply.result))
    return _answered(reply)


def _answered(reply: Reply) -> Reply:
    said = reply.output.strip()
    return reply._replace(parsed=Parsed(Kind.ANSWER, said) if said else Parsed(Kind.UNPARSED))


def load(sage_settings: SageSettings, sage_deadline: Annotated[float, Field(gt=0)] | None = None, device: str = "auto") -> SageOnly:
    """Load the base that the settings name, without an adapter, under table 14's Normal QA prompt.

    It still abstains where there is no document with text, and where it crashes or runs out of time: there is no answer then.
    Raises InputError for a base that is missing or has no chat template.
    """
    settings = sage_settings.model_copy(update={"inputs": sage_settings.inputs.under("normal")})
    return SageOnly(Forced(load_sage(None, settings, device)), sage_deadline=sage_deadline)
