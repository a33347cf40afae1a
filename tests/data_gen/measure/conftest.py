"""Cases, Examples and stand-in models to audit."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from data_gen.pipeline.cases import Candidate, Case, Judgement, Simulation
from data_gen.questions import Question
from rag.jsonl import write_records
from rag.models.chat import ChatFailure, ChatRequest, Completion, Reply
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState

ANSWERABLE, UNANSWERABLE, NEUTRAL = DocumentLabel.ANSWERABLE, DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL
CONFLICT, NEGATED, ADVERSARIAL = DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL


class Scorer:
    """Scores texts by a table; remembers what it was asked."""

    def __init__(self, scores: Mapping[str, float], name: str = "scorer") -> None:
        self.scores = scores
        self.name = name
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((question, tuple(texts)))
        return [self.scores[text] for text in texts]


class Scripted:
    """Replies by a function of the prompt; none is a failed request."""

    def __init__(self, reply: Callable[[str], str | None], name: str = "scripted") -> None:
        self.reply = reply
        self.name = name
        self.prompts: list[str] = []

    def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        prompts = [request.messages[-1].content for request in requests]
        self.prompts += prompts
        texts = [self.reply(prompt) for prompt in prompts]
        return [ChatFailure("the server is on fire") if text is None else Completion(text, 0, 0, True) for text in texts]


@pytest.fixture
def scorer() -> type[Scorer]:
    return Scorer


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


def _case(
    name: str,
    candidates: Sequence[tuple[str, DocumentLabel | None]],
    simulations: Sequence[tuple[DocumentLabel, str, str | None]] = (),
    **of: Any,
) -> Case:
    question = Question(id=name, question=of.get("question", f"Who built {name}?"), answers=of.get("answers", ("Ada",)), source="invented")
    documents = [Document(id=f"{name}-{n}", text=text, rank=n, label=label) for n, (text, label) in enumerate(candidates, start=1)]
    return Case(
        question=question,
        candidates=tuple(Candidate(document=document) for document in documents),
        reference=of.get("reference", f"Ada built {name}."),
        simulations=tuple(
            Simulation(
                kind=kind,
                maker="writer",
                text=text,
                rejected=rejected,
                sentence=of.get("sentence"),
                answer=of.get("answer"),
                judgement=Judgement(entailment=0.1, neutral=0.2, contradiction=0.7),
            )
            for kind, text, rejected in simulations
        ),
    )


@pytest.fixture
def make_case() -> Callable[..., Case]:
    """A case of (text, label) candidates and (kind, text, reason of rejection) simulations."""
    return _case


def _example(case: Case, condition: Condition, documents: Sequence[tuple[str, DocumentLabel]]) -> Example:
    states = {Condition.ANSWERABLE: RetrievalState.ANSWERABLE, Condition.UNANSWERABLE: RetrievalState.UNANSWERABLE}
    return Example(
        id=f"{case.question.id}-{condition}",
        question_id=case.question.id,
        question=case.question.question,
        documents=tuple(Document(id=text, text=text, rank=n, label=label) for n, (text, label) in enumerate(documents, start=1)),
        answers=case.question.answers,
        state=states.get(condition, RetrievalState.DISTRACTED),
        condition=condition,
    )


@pytest.fixture
def make_example() -> Callable[..., Example]:
    """An Example of a case from (text, label) documents, best first."""
    return _example


@pytest.fixture
def write_folder() -> Callable[..., Path]:
    """Write what a build leaves: cases in shards of one, and Examples, for one split."""

    def write(folder: Path, cases: Sequence[Case], examples: Sequence[Example], split: str = "test") -> Path:
        for number, case in enumerate(cases):
            write_records(folder / "steps" / "5_validate" / f"{split}-{number:05}.jsonl", [case])
        write_records(folder / f"{split}.jsonl", examples)
        return folder

    return write


@pytest.fixture
def bridge() -> Case:
    """A question with documents of all labels, and simulated ones of all kinds; one more was rejected."""
    return _case(
        "the bridge",
        [("Ada built the bridge.", ANSWERABLE), ("The bridge is long.", UNANSWERABLE), ("Ada likes bridges.", NEUTRAL), ("No Ada.", None)],
        [
            (CONFLICT, "Bo built the bridge.", None),
            (NEGATED, "Ada never built the bridge.", None),
            (ADVERSARIAL, "Cy built the tower.", None),
            (CONFLICT, "Ada and Bo built the bridge.", "the answer, or a form of it, is in it"),
        ],
    )
