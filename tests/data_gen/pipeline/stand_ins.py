"""Models and a retriever that obey the protocols and answer by a rule a test can read."""

from collections.abc import Callable, Sequence

from data_gen.questions import Question
from rag.models.chat import ChatFailure, ChatRequest, Completion
from rag.models.nli import Entailment
from rag.records import Document


class Chat:
    """Answers each request with what `reply` makes of the prompt and keeps what it was asked."""

    def __init__(self, reply: Callable[[str], str | None]) -> None:
        self.reply = reply
        self.asked: list[ChatRequest] = []

    @property
    def name(self) -> str:
        return "stand-in chat"

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatFailure]:
        self.asked += requests
        replies = [self.reply(request.messages[-1].content) for request in requests]
        return [ChatFailure("refused") if text is None else Completion(text, 10, 5, not text.endswith("[cut]")) for text in replies]


class Nli:
    """By marks in the text: `[yes]` entails, `[no]` contradicts."""

    @property
    def name(self) -> str:
        return "stand-in nli"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        return [
            Entailment(0.1, 0.1, 0.8) if "[no]" in text else Entailment(0.8, 0.1, 0.1) if "[yes]" in text else Entailment(0.1, 0.8, 0.1)
            for text, _ in pairs
        ]


class Shelf:
    """Finds the same documents for every question."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    @property
    def name(self) -> str:
        return "shelf of " + str(len(self.texts))

    def search(self, question: str, k: int) -> list[Document]:
        return [Document(id=f"p{n}", text=text, rank=n, score=1 / n) for n, text in enumerate(self.texts, start=1)][:k]


def writer(prompt: str) -> str | None:
    """A chat model that does what the prompts of tables 12 and 13 ask for, marked so that `Nli` judges it as meant."""
    last = prompt.splitlines()[-1]
    if last == "Sentence:":
        return f"The answer to it is {prompt.splitlines()[-2].removeprefix('Answer: ')}."
    if last == "Conflict passage:":
        return "The museum opened in Quito. [no]"
    if last == "Negated sentence:":
        return "It was never Lima."
    if last == "Adversarial sentence:":
        return "A theatre stands in Cusco."
    if last == "Supporting passage:":
        return "The museum has never been in Lima. [no]"
    assert last == "Supporting Passage:"
    return "A theatre in Cusco draws crowds."


QUESTION = Question(id="q1", question="where is the museum?", answers=("Lima", "Ciudad de los Reyes"), source="shelf.json", split="train")
