"""What the steps hand on: one Case for each question, to which each step adds its part."""

from pydantic import Field

from data_gen.questions import Question
from rag.records import Document, DocumentLabel, Record, Text


class Judgement(Record):
    """What one text says about one question's answer, by words and by inference."""

    answer: Text | None = None
    """The form of a gold answer that the text contains by the word-boundary rule; none without one."""
    entailment: float
    """That the text entails the reference sentence; the three add up to 1."""
    neutral: float
    contradiction: float

    @property
    def entails(self) -> bool:
        """Whether entailment is likelier than both others."""
        return self.entailment > max(self.neutral, self.contradiction)

    @property
    def contradicts(self) -> bool:
        """Whether contradiction is likelier than both others."""
        return self.contradiction > max(self.neutral, self.entailment)


class Candidate(Record):
    """A retrieved document and what was found in it."""

    document: Document
    """With its rank and score, and with a label once it has one; contradicting documents get none."""
    judgement: Judgement | None = None


class Simulation(Record):
    """A distracting document that was made for a question, whether it can be used or not."""

    kind: DocumentLabel
    """`conflict`, `negated` or `adversarial`."""
    maker: Text
    """The model that wrote it, or the data set that it came with."""
    sentence: Text | None = None
    """The sentence that it was written to support; conflicting passages are written from the reference sentence itself."""
    text: Text = ""
    """The passage, without what a model said around it; blank where it wrote none."""
    answer: Text | None = None
    """The false answer, where it is known."""
    seed: int = 0
    """Seed of the passage's request."""
    shortest: int | None = None
    longest: int | None = None
    """Length in characters that was asked for."""
    judgement: Judgement | None = None
    rejected: Text | None = None
    """Why it cannot be used; none where it can, or was not validated yet."""


class Case(Record):
    """A question on its way through the steps."""

    question: Question
    candidates: tuple[Candidate, ...] = ()
    """Best first."""
    reference: Text | None = None
    """A sentence that states the answer: the hypothesis of every judgement."""
    simulations: tuple[Simulation, ...] = ()
    failure: Text | None = None
    """Why the question goes no further; later steps pass it on as it is."""
    made_by: dict[Text, Text] = Field(default_factory=dict)
    """Retriever (with its index), models and prompts by the step that used them."""
