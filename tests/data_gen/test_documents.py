"""Documents whose ids come from their text, and their ranks."""

from data_gen.documents import document, fingerprint, ranked
from rag.records import DocumentLabel


def test_a_document_s_id_depends_on_its_words_alone() -> None:
    true = document("q1", "Lima  waits.", DocumentLabel.ANSWERABLE, "Lima")
    assert true.id == document("q1", "lima waits.", DocumentLabel.CONFLICT).id == f"q1-{fingerprint('LIMA WAITS.')}"
    assert (true.text, true.answer, true.label) == ("Lima  waits.", "Lima", DocumentLabel.ANSWERABLE)


def test_ranks_go_from_one_in_the_order_given() -> None:
    first, second = (document("q1", text, DocumentLabel.NEUTRAL) for text in ("a", "b"))
    again = ranked(ranked((first, second))[::-1])
    assert [(d.id, d.rank) for d in again] == [(second.id, 1), (first.id, 2)]
    assert first.rank is None
