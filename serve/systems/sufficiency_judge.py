"""A judge of the input, after "Sufficient Context" (Joren et al., ICLR 2025): does a chat model find that the documents suffice for an answer?"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from rag.models import cached_chat
from rag.models.cached_chat import Price
from rag.models.chat import ChatModel, ChatRequest, Completion, Message
from rag.records import Document, Prediction, Query, Reason, RetrievalState
from rag.render import Prompt, render
from rag.settings import InputPath, Target
from sage.predict import SageSettings, same
from serve.systems.stage import Item, SageStage, ask_chat, ask_sage, load_sage, open_items, require_deadlines, run, start, to_query

Verdict = Literal["sufficient", "insufficient", "conflicting"]

TASK = (
    "You check whether documents are enough to answer a question. Do not answer the question. "
    "The documents are sufficient if what they say, and nothing else, leads to a definite answer. "
    "They are insufficient if what is asked for is missing, if they are about something else, or if they leave the answer open."
)
CONFLICTS = "They are conflicting if they lead to answers that cannot both be right, or if one denies what another says."
ONE_WORD = "Reply with one word and nothing else: {verdicts}."
STEP_BY_STEP = (
    "Think step by step: what has to be known, and where do the documents say it? Then write one word alone on the last line: {verdicts}."
)


class Reading(NamedTuple):
    """What the judge said of one set."""

    verdict: Verdict | None
    """None where the reply was no verdict, or was cut at the token limit."""
    said: str
    """The reply as it came."""
    prompt: Prompt
    """What it read; the budget may have left documents out, a suffix of the ranking."""
    prompt_tokens: int
    """0 where the model does not tell."""
    completion_tokens: int


class Sufficiency:
    """Asks a chat model for a verdict. The wording is this project's own; that of the paper asks for an explanation and JSON.

    The reply must be one of the words it was asked for, whole: case, surrounding quotes and a final full stop aside (`sage.parse.same`). After
    thinking step by step it must stand alone on the last line. Anything else, and a reply that was cut, is no verdict.
    """

    def __init__(self, chat: ChatModel, *, conflicts: bool, think: bool, max_prompt_characters: int, seed: int = 0) -> None:
        """Keep the model; `conflicts` adds the third verdict, `max_prompt_characters` is the budget of the prompt."""
        self.chat = chat
        self.think = think
        self.max_prompt_characters = max_prompt_characters
        self.seed = seed
        self.verdicts: tuple[Verdict, ...] = get_args(Verdict) if conflicts else ("sufficient", "insufficient")
        words = f"{', '.join(self.verdicts[:-1])} or {self.verdicts[-1]}"
        last = (STEP_BY_STEP if think else ONE_WORD).format(verdicts=words)
        self.instruction = " ".join([TASK, *([CONFLICTS] if conflicts else []), last])

    def judge(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reading | Exception]:
        """What it says of each question and its documents, in order, or why it said nothing.

        Raises InputError when a question alone exceeds the budget, and RuntimeError when the model answers nothing.
        """
        prompts = [
            render(question, found, self.instruction, budget=self.max_prompt_characters, count=len)
            for question, found in zip(questions, documents, strict=True)
        ]
        replies = ask_chat(self.chat, [ChatRequest((Message("user", prompt.text),), self.seed) for prompt in prompts])
        return [
            reply if isinstance(reply, Exception) else self._read(prompt, reply) for prompt, reply in zip(prompts, replies, strict=True)
        ]

    def _read(self, prompt: Prompt, reply: Completion) -> Reading:
        lines = reply.text.strip().splitlines()
        last = lines[-1] if self.think and lines else reply.text
        verdict = next((verdict for verdict in self.verdicts if reply.finished and same(last, verdict)), None)
        return Reading(verdict, reply.text, prompt, reply.prompt_tokens, reply.completion_tokens)


class SufficiencyJudge:
    """A chat model in front of a Sage: only sets that it calls sufficient reach the Sage, which may still abstain in its own words.

    An insufficient set is abstained on as `insufficient` (state `unanswerable`), a conflicting one as `distracted`. A judge that crashes, runs
    out of time or cannot be read ends in an abstention with a reason of its own.
    """

    def __init__(
        self, judge: Sufficiency, sage: SageStage, *, judge_deadline: float | None = None, sage_deadline: float | None = None
    ) -> None:
        """Keep both; deadlines are seconds for each query, none means no limit. Raises InputError for one that lets nothing pass."""
        require_deadlines(judge_deadline=judge_deadline, sage_deadline=sage_deadline)
        self.judge = judge
        self.sage = sage
        self.judge_deadline = judge_deadline
        self.sage_deadline = sage_deadline

    def ask(self, question: str, documents: Sequence[Document | str]) -> Prediction:
        """Answer one question from its documents, best first; see `serve.systems.stage.to_query`."""
        return self.predict([to_query(question, documents)])[0]

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Give one prediction for each query, in order; both stages run on the whole batch, and a bad query sinks no other."""
        items = start(queries)
        run("judge", open_items(items), self.judge.judge, _read, self.judge_deadline)
        ask_sage(open_items(items), self.sage, self.sage_deadline)
        return [item.prediction() for item in items]


def _read(item: Item, reading: Reading) -> None:
    told = {"judge_prompt": reading.prompt_tokens, "judge_completion": reading.completion_tokens}
    item.tokens.update({name: count for name, count in told.items() if count})
    # A document that the judge could not read whole, or at all, was cut to fit a model.
    item.known["trimmed"] = (*reading.prompt.trimmed, *reading.prompt.dropped)
    if reading.verdict is None:
        raise ValueError(f"expected the judge to end with a verdict, got {reading.said[-200:]!r}")
    if reading.verdict == "insufficient":
        item.decide(reason=Reason.INSUFFICIENT, state=RetrievalState.UNANSWERABLE)
    elif reading.verdict == "conflicting":
        item.decide(reason=Reason.DISTRACTED, state=RetrievalState.DISTRACTED)


def load(
    chat: Target,
    sage: InputPath | None,
    conflicts: bool = True,
    think: bool = False,
    max_prompt_characters: Annotated[int, Field(ge=16)] = 100_000,
    replies: InputPath | None = None,
    price: Price | None = None,
    seed: int = 0,
    judge_deadline: Annotated[float, Field(gt=0)] | None = None,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
    sage_settings: SageSettings | None = None,
) -> SufficiencyJudge:
    """Load the chat model that a config names, and a Sage from its folder, or without one the untrained base of `sage_settings`.

    `replies` is a folder that keeps the judge's replies, `price` what they cost. Raises InputError as the two models do.
    """
    judge = Sufficiency(
        cached_chat.load(chat, replies, price), conflicts=conflicts, think=think, max_prompt_characters=max_prompt_characters, seed=seed
    )
    return SufficiencyJudge(judge, load_sage(sage, sage_settings, device), judge_deadline=judge_deadline, sage_deadline=sage_deadline)
