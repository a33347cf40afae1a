"""First step: the candidates of each question, from a retriever or as the data set ships them."""

from collections.abc import Iterable, Sequence

from data_gen.documents import fingerprint
from data_gen.pipeline.cases import Candidate, Case
from data_gen.questions import Question
from rag.records import Document
from rag.retrieval.retriever import Retriever


def retrieve(questions: Sequence[Question], retriever: Retriever | None, candidates: int) -> list[Case]:
    """A Case for each question with at most `candidates` distinct, non-blank documents; without any it is a failure.

    Documents that a data set ships with are used as they are (the asterisks of paper 002's table 1); the retriever is asked for the others.
    """
    return [_case(question, retriever, candidates) for question in questions]


def _case(question: Question, retriever: Retriever | None, candidates: int) -> Case:
    if question.documents:
        return _with(question, question.documents, candidates, {"retriever": f"documents of {question.source}"})
    if retriever is None:
        return Case(question=question, failure="the data set has no documents for the question and there is no retriever")
    # Blank and repeated passages are left out below, so a few more are asked for.
    return _with(question, retriever.search(question.question, 2 * candidates), candidates, {"retriever": retriever.name})


def _with(question: Question, documents: Iterable[Document], candidates: int, made_by: dict[str, str]) -> Case:
    distinct: dict[str, Document] = {}
    for document in documents:
        if document.text.strip():
            distinct.setdefault(fingerprint(document.text), document)
    kept = list(distinct.values())[:candidates]
    return Case(
        question=question,
        candidates=tuple(Candidate(document=d.model_copy(update={"rank": rank})) for rank, d in enumerate(kept, start=1)),
        failure=None if kept else "no document was found",
        made_by=made_by,
    )
