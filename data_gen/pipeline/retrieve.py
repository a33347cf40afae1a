"""First step: the candidates of each question, from a retriever or as the data set ships them."""

from collections.abc import Callable, Iterable, Sequence

from data_gen.documents import fingerprint
from data_gen.pipeline.cases import Candidate, Case
from data_gen.questions import Question
from rag.records import Document
from rag.retrieval.retriever import Retriever, search_all


def retrieve(questions: Sequence[Question], start: Callable[[], Retriever | None], candidates: int) -> list[Case]:
    """A Case for each question with at most `candidates` distinct, non-blank documents; without any it is a failure.

    Documents that a data set ships with are used as they are (the asterisks of paper 002's table 1); for the others `start` gives the retriever.
    """
    own = [question for question in questions if not question.documents]
    retriever = start() if own else None
    # Blank and repeated passages are left out below, so a few more are asked for.
    found = iter(next(search_all(retriever, [q.question for q in own], 2 * candidates, len(own)))) if retriever and own else iter(())
    cases = []
    for question in questions:
        if question.documents:
            cases.append(_with(question, question.documents, candidates, f"documents of {question.source}"))
        elif retriever is None:
            cases.append(Case(question=question, failure="the data set has no documents for the question and there is no retriever"))
        else:
            cases.append(_with(question, next(found), candidates, retriever.name))
    return cases


def _with(question: Question, documents: Iterable[Document], candidates: int, retriever: str) -> Case:
    distinct: dict[str, Document] = {}
    for document in documents:
        if document.text.strip():
            distinct.setdefault(fingerprint(document.text), document)
    kept = list(distinct.values())[:candidates]
    return Case(
        question=question,
        candidates=tuple(Candidate(document=d.model_copy(update={"rank": rank})) for rank, d in enumerate(kept, start=1)),
        failure=None if kept else "no document was found",
        made_by={"retriever": retriever},
    )
