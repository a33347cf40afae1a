"""Each yaml of these systems, from the command line to predictions, on tiny random models."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rag.prompts import QA_PROMPTS
from rag.records import Query, Reason, RetrievalState
from rag.settings import Component
from sage.predict import Kind, Parsed

GOLD = "The capital of Peru is Lima."


@pytest.fixture
def untrained(chat_base: Path) -> list[str]:
    """Overrides that put a tiny untrained base in the place of the Sage."""
    return [f"sage.model.base={chat_base}", 'sage.model.pad_token="<pad>"', "sage.model.precision=fp32", "system.device=cpu"]


def test_the_base_that_never_abstains_is_asked_under_the_normal_prompt(
    untrained: list[str], composed: Callable[..., Component], query: Callable[..., Query]
) -> None:
    [made] = composed("system=never_abstain", *untrained).build().predict([query(GOLD)])
    assert made.prompt is not None and made.prompt.startswith(QA_PROMPTS["normal"])
    assert made.output is not None and (made.answer is not None) == bool(made.output.strip())
    assert made.state is RetrievalState.ANSWERABLE, "an output that is cut at the token limit is an answer too"


def test_what_an_untrained_base_says_is_unsupported(
    untrained: list[str], composed: Callable[..., Component], query: Callable[..., Query]
) -> None:
    """It babbles until the token limit, unparsed; what it says is judged where it ends its turn."""
    system = composed("system=output_judge", "system.sage=null", "nli@system.nli=lexical", *untrained).build()
    [made] = system.predict([query(GOLD)])
    assert (made.answer, made.reason) == (None, Reason.UNPARSED)
    whole = system.sage.answer
    system.sage.answer = lambda *given: [reply._replace(parsed=Parsed(Kind.ANSWER, "Cusco")) for reply in whole(*given)]
    [made] = system.predict([query("Llamas live in the Andes.")])
    assert (made.answer, made.reason) == (None, Reason.UNSUPPORTED)
    assert "judge" in made.timings


def test_a_chat_model_that_gives_no_verdict_lets_nothing_through(
    untrained: list[str], chat_base: Path, composed: Callable[..., Component], query: Callable[..., Query], tmp_path: Path
) -> None:
    chat = [f"system.chat.base={chat_base}", "system.chat.end_tokens=[]", "system.chat.precision=fp32", "system.chat.max_tokens=5"]
    overrides = ["system=sufficiency_judge", "chat@system.chat=smollm2", "system.sage=null", *chat, *untrained]
    system = composed(*overrides, f"system.replies={tmp_path}").build()
    [made] = system.predict([query(GOLD)])
    assert (made.answer, made.reason) == (None, Reason.JUDGE_FAILED)
    assert len(list(tmp_path.rglob("*.json"))) == 1


@pytest.mark.parametrize("profile", ["paper", "local"])
@pytest.mark.parametrize("name", ["output_judge", "sufficiency_judge"])
def test_a_judge_stands_beside_the_profile_s_own_sage(name: str, profile: str, composed: Callable[..., Component]) -> None:
    arguments = composed(f"system={name}", f"profile={profile}").arguments
    assert arguments["sage"] == Path(f"/root/checkpoints/{profile}/sage")
    assert arguments["sage_settings"].inputs.instruction == "unanswerable"


@pytest.mark.parametrize("prompt", list(QA_PROMPTS))
def test_vanilla_is_one_command_for_each_prompt_of_table_14(
    prompt: str, untrained: list[str], composed: Callable[..., Component], query: Callable[..., Query]
) -> None:
    [made] = composed("system=vanilla", f"system.prompt={prompt}", *untrained).build().predict([query(GOLD)])
    assert made.prompt is not None and made.prompt.startswith(QA_PROMPTS[prompt])  # type: ignore[index]
