"""The constant baseline."""

from rag.records import Document, Query, Reason, RetrievalState
from serve.systems.always_abstain import AlwaysAbstain


def test_it_never_answers_and_gives_every_set_its_one_state() -> None:
    queries = [
        Query(id=f"e{n}", question_id="q1", question="Who?", documents=(Document(id="d1", text="Ada.") for _ in range(n))) for n in (1, 0)
    ]
    made = AlwaysAbstain(RetrievalState.UNANSWERABLE).predict(queries)
    assert [(p.id, p.question_id, p.answer, p.reason, p.state) for p in made] == [
        ("e1", "q1", None, Reason.POLICY, RetrievalState.UNANSWERABLE),
        ("e0", "q1", None, Reason.POLICY, RetrievalState.UNANSWERABLE),
    ]
