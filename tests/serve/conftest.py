"""A Sieve, a Sage, a chat model and an NLI model that obey the protocols, do what a test tells them, and note what they were asked."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hydra
import pytest
import torch
from omegaconf import OmegaConf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from conf.job import check
from eval.settings import EvalJob
from rag.models.chat import ChatFailure, ChatRequest, Completion
from rag.models.chat import Reply as ChatReply
from rag.models.nli import Entailment
from rag.prompts import QA_PROMPTS
from rag.records import Document, Query
from rag.render import ranked, render
from rag.settings import Component
from sage.parse import parse
from sage.predict import Reply
from sieve.screening import Removal, Screening, units

Scorer = Callable[[Sequence[Document]], Any]
Speaker = Callable[[str, Sequence[Document]], str]


class FakeClock:
    """Time that passes only when a stand-in sleeps, and deadlines that end there: no test is late because the machine is busy."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def within(self, seconds: float | None, call: Callable[[], Any]) -> Any:
        """As `serve.deadline.within`, which leaves a call behind when its time is up."""
        started = self.seconds
        try:
            return call()
        finally:
            if seconds is not None and self.seconds - started > seconds:
                self.seconds = started + seconds
                raise TimeoutError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Time as the stages of a system see it."""
    made = FakeClock()
    monkeypatch.setattr("serve.systems.stage.now", made.now)
    monkeypatch.setattr("serve.systems.stage.within", made.within)
    return made


class StubSieve:
    """Scores a set by a function of its documents; groups and orders them as the real Sieve does."""

    def __init__(self, score: Scorer, threshold: float = 0.5) -> None:
        self.score = score
        self.threshold = threshold
        self.screened: list[list[str]] = []
        """Questions of each call of `screen`."""
        self.examined: list[list[str]] = []
        """Questions of each call of `leave_one_out`."""

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        self.screened.append(list(questions))
        return [Screening(self.score(found), (), 10 * len(found)) for found in documents]

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        self.examined.append(list(questions))
        return [self._removals(ranked(found)) for found in documents]

    def _removals(self, order: list[Document]) -> list[Removal]:
        places = {document.id: place for place, document in enumerate(order, start=1)}
        rests = {unit: [document for document in order if document.id not in unit] for unit in units(order)}
        return [Removal(unit, places[unit[0]], self.score(rest)) for unit, rest in rests.items() if rest]


class StubSage:
    """Renders the prompt as the real Sage does, with words for tokens, and says what a function of question and documents says."""

    def __init__(self, say: Speaker, budget: int = 10_000, conflict: str | None = None) -> None:
        self.say = say
        self.budget = budget
        self.conflict = conflict
        self.asked: list[list[str]] = []
        """Questions of each call of `answer`."""

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply]:
        self.asked.append(list(questions))
        return [self._reply(question, found) for question, found in zip(questions, documents, strict=True)]

    def _reply(self, question: str, documents: Sequence[Document]) -> Reply:
        instruction = QA_PROMPTS["unanswerable"]
        prompt = render(question, documents, instruction, budget=self.budget, count=lambda text: len(text.split()))
        output = self.say(question, documents)
        return Reply(output, parse(output, "unanswerable", self.conflict), prompt, prompt.tokens, 1 + len(output.split()), 0.75, True)


class StubChat:
    """Says what a function of the user's message says: text, a reply whole, or nothing for a request that failed for good."""

    name = "stub"

    def __init__(self, say: Callable[[str], str | ChatReply | None]) -> None:
        self.say = say
        self.asked: list[ChatRequest] = []

    def complete(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        self.asked += requests
        return [self._reply(request.messages[-1].content) for request in requests]

    def _reply(self, message: str) -> ChatReply:
        said = self.say(message)
        if said is None:
            return ChatFailure("gave up")
        return Completion(said, len(message.split()), 1 + len(said.split()), True) if isinstance(said, str) else said


class StubNli:
    """Judges each pair by a function of the document and the sentence."""

    name = "stub"

    def __init__(self, judge: Callable[[str, str], Any]) -> None:
        self.of = judge
        self.judged: list[tuple[str, str]] = []

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        self.judged += pairs
        return [self.of(*pair) for pair in pairs]


@pytest.fixture(scope="session")
def make_chat() -> Callable[..., StubChat]:
    """A chat model that says one thing to everything, or what a function of the user's message says."""
    return lambda say: StubChat(say if callable(say) else lambda _: say)


@pytest.fixture(scope="session")
def make_nli() -> Callable[..., StubNli]:
    """An NLI model that judges by a function of document and sentence."""
    return StubNli


@pytest.fixture(scope="session")
def make_sieve() -> Callable[..., StubSieve]:
    """A Sieve that gives a fixed score to every set, or one by a function of the documents."""

    def make(score: Any, threshold: float = 0.5) -> StubSieve:
        return StubSieve(score if callable(score) else lambda _: score, threshold)

    return make


@pytest.fixture(scope="session")
def make_sage() -> Callable[..., StubSage]:
    """A Sage that says one thing to every question, or what a function of question and documents says."""

    def make(say: Any = "Lima", budget: int = 10_000, conflict: str | None = None) -> StubSage:
        return StubSage(say if callable(say) else lambda *_: say, budget, conflict)

    return make


@pytest.fixture(scope="session")
def query() -> Callable[..., Query]:
    """A query on texts, best first, that get the ids d1, d2, ... and are all different unless a test says otherwise."""

    def make(*texts: str, id: str = "e1", question: str = "What is the capital of Peru?") -> Query:
        documents = tuple(Document(id=f"d{n}", text=text) for n, text in enumerate(texts, start=1))
        return Query(id=id, question_id=f"q-{id}", question=question, documents=documents)

    return make


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_base(folder: Path, template: str | None, eos: str) -> Path:
    """Save a tiny random Llama with a byte-level tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=280, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(["the capital of Peru"], trainer)
    tokens = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<pad>")
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token=eos, pad_token="<pad>", chat_template=template)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=4096,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def plain_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny base without a chat template."""
    return save_base(tmp_path_factory.mktemp("plain"), None, "</s>")


@pytest.fixture(scope="session")
def chat_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny base with one."""
    return save_base(tmp_path_factory.mktemp("chat"), CHATML, "<|im_end|>")


@pytest.fixture(scope="session")
def composed() -> Callable[..., Component]:
    """The system that a command line would build, its settings checked as the job checks them; relative paths are below /root."""

    def compose(*overrides: str) -> Component:
        with hydra.initialize_config_module("conf", version_base="1.3"):
            node = OmegaConf.to_container(hydra.compose("eval_pipeline", list(overrides)), resolve=True)
        return check(node, EvalJob, Path("/root")).system

    return compose
