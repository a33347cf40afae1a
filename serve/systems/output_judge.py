"""A judge of the output: the Sage answers first, then NLI tells whether the documents bear the answer out."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from rag.errors import InputError
from rag.models.nli import Entailment, Nli
from rag.records import Document, Prediction, Query, Reason, RetrievalState, Text
from rag.render import fill
from rag.settings import InputPath, Target
from sage.predict import SageSettings
from serve.systems.stage import Item, SageStage, ask_sage, is_probability, load_sage, open_items, require_deadlines, run, start, to_query

HYPOTHESIS = 'The answer to "{question}" is {answer}.'
"""What an answer states, as a sentence that a document may entail or contradict."""


class Judgement(NamedTuple):
    """What the documents of one set are to an answer."""

    support: float
    """The highest probability with which any document entails it."""
    contradiction: float
    """The highest probability with which any document contradicts it."""


class OutputJudge:
    """A Sage, and an NLI model that reads each document of the set against what it answered.

    An answer stands where some document entails it with at least `support` and none contradicts it with `contradiction` or more. Without
    support the system abstains as `unsupported` (state `unanswerable`), whatever contradicts it: the answer is then the Sage's own, and the set
    may be clean. Supported by one document and contradicted by another it abstains as `contradicted` (state `distracted`). A judge that crashes,
    runs out of time, cannot read the answer or gives no probability ends in an abstention with a reason of its own: no answer goes out unjudged.
    """

    def __init__(
        self,
        sage: SageStage,
        nli: Nli,
        *,
        support: float,
        contradiction: float | None = None,
        hypothesis: str = HYPOTHESIS,
        judge_deadline: float | None = None,
        sage_deadline: float | None = None,
    ) -> None:
        """Keep both. Without `contradiction` only support is asked for; deadlines are seconds for each query, none means no limit.

        Raises InputError for a threshold, a deadline or a hypothesis that would let everything or nothing pass.
        """
        require_deadlines(judge_deadline=judge_deadline, sage_deadline=sage_deadline)
        for name, threshold in (("support", support), ("contradiction", contradiction)):
            if threshold is not None and not 0 < threshold <= 1:
                raise InputError(f"{name}: expected a number above 0, up to 1, got {threshold}")
        if "{answer}" not in hypothesis:
            raise InputError(
                f"hypothesis: expected a sentence with {{answer}} in it, and {{question}} where it is of use, got '{hypothesis}'"
            )
        self.sage = sage
        self.nli = nli
        self.support = support
        self.contradiction = contradiction
        self.hypothesis = hypothesis
        self.judge_deadline = judge_deadline
        self.sage_deadline = sage_deadline

    def ask(self, question: str, documents: Sequence[Document | str]) -> Prediction:
        """Answer one question from its documents, best first; see `serve.systems.stage.to_query`."""
        return self.predict([to_query(question, documents)])[0]

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Give one prediction for each query, in order; both stages run on the whole batch, and a bad query sinks no other."""
        items = start(queries)
        ask_sage(open_items(items), self.sage, self.sage_deadline)
        answered = [item for item in items if item.known.get("answer") is not None]
        run("judge", answered, self._judge, self._read, self.judge_deadline, about=self._stated)
        return [item.prediction() for item in items]

    def _stated(self, item: Item) -> str:
        return fill(self.hypothesis, question=item.query.question.strip(), answer=str(item.known["answer"]).rstrip("."))

    def _judge(self, hypotheses: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Judgement]:
        pairs = [(document.text, hypothesis) for hypothesis, found in zip(hypotheses, documents, strict=True) for document in found]
        judged = self.nli.judge(pairs)
        if len(judged) != len(pairs):
            raise RuntimeError(f"{self.nli.name}: expected {len(pairs)} judgements, got {len(judged)}")
        rest = iter(judged)
        return [_pool([next(rest) for _ in found]) for found in documents]

    def _read(self, item: Item, judgement: Judgement) -> None:
        if not all(map(is_probability, judgement)):
            raise ValueError(f"{judgement} holds what is not a probability")
        if judgement.support < self.support:
            item.withdraw(Reason.UNSUPPORTED, RetrievalState.UNANSWERABLE)
        elif self.contradiction is not None and judgement.contradiction >= self.contradiction:
            item.withdraw(Reason.CONTRADICTED, RetrievalState.DISTRACTED)


def _pool(judged: Sequence[Entailment]) -> Judgement:
    values = [value for one in judged for value in (one.entailment, one.contradiction)]
    if not all(map(is_probability, values)):
        # A maximum would lose a NaN, or keep it, by its place.
        return Judgement(float("nan"), float("nan"))
    return Judgement(max(one.entailment for one in judged), max(one.contradiction for one in judged))


def load(
    sage: InputPath | None,
    nli: Target,
    support: Annotated[float, Field(gt=0, le=1)],
    contradiction: Annotated[float, Field(gt=0, le=1)] | None = None,
    hypothesis: Text = HYPOTHESIS,
    judge_deadline: Annotated[float, Field(gt=0)] | None = None,
    sage_deadline: Annotated[float, Field(gt=0)] | None = None,
    device: str = "auto",
    sage_settings: SageSettings | None = None,
) -> OutputJudge:
    """Load a Sage from its checkpoint folder, or without one the untrained base of `sage_settings`, and the NLI model that a config names.

    Raises InputError as `serve.systems.stage.load_sage` and the NLI model do.
    """
    return OutputJudge(
        load_sage(sage, sage_settings, device),
        nli.build(),
        support=support,
        contradiction=contradiction,
        hypothesis=hypothesis,
        judge_deadline=judge_deadline,
        sage_deadline=sage_deadline,
    )
