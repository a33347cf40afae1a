"""The vanilla baseline: an untrained base that is only told when to abstain, by one of the four prompts of paper 002, table 14."""

from typing import Annotated

from pydantic import Field

from rag.prompts import QaPrompt
from sage.predict import SageSettings
from serve.systems.sage_only import SageOnly
from serve.systems.stage import load_sage


def load(
    sage_settings: SageSettings,
    prompt: QaPrompt = "unanswerable_conflict",
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
) -> SageOnly:
    """Load the base that the settings name, without an adapter.

    It reads what a trained Sage reads, under `prompt`. The default asks for both strings: the paper's vanilla rows have an F1 for each state.
    A reply counts as `conflict` only where the prompt asks for it. Raises InputError for a base that is missing or has no chat template.
    """
    settings = sage_settings.model_copy(update={"inputs": sage_settings.inputs.under(prompt)})
    return SageOnly(load_sage(None, settings, device), sage_deadline=sage_deadline)
