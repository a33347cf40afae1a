"""Labels of retrieved documents, and of simulated ones."""

import pytest

from data_gen.pipeline.cases import Candidate, Case, Judgement, Simulation
from data_gen.pipeline.judge import label, label_candidates
from data_gen.pipeline.validate import validate
from rag.records import Document, DocumentLabel
from tests.data_gen.pipeline.stand_ins import QUESTION, Chat, Nli

REFERENCE = "The museum is in Lima."


@pytest.mark.parametrize(
    ("answer", "scores", "expected"),
    [
        ("Lima", (0.8, 0.1, 0.1), DocumentLabel.ANSWERABLE),
        (None, (0.1, 0.8, 0.1), DocumentLabel.UNANSWERABLE),
        ("Lima", (0.1, 0.8, 0.1), DocumentLabel.NEUTRAL),
        (None, (0.8, 0.1, 0.1), DocumentLabel.NEUTRAL),
        ("Lima", (0.1, 0.1, 0.8), None),
        (None, (0.1, 0.1, 0.8), None),
        ("Lima", (0.4, 0.4, 0.2), DocumentLabel.NEUTRAL),
    ],
)
def test_a_label_needs_both_the_words_and_the_inference(answer, scores, expected):
    entailment, neutral, contradiction = scores
    assert label(Judgement(answer=answer, entailment=entailment, neutral=neutral, contradiction=contradiction)) is expected


def test_candidates_are_labelled_and_contradictions_get_no_label():
    texts = ("It stands in Lima. [yes]", "It stands somewhere.", "Lima has a port.", "It is in Quito. [no]")
    case = Case(question=QUESTION, reference=REFERENCE, candidates=tuple(Candidate(document=Document(id=t, text=t)) for t in texts))
    failed = Case(question=QUESTION, failure="no document was found")
    done, same = label_candidates([case, failed], Nli())
    assert [c.document.label for c in done.candidates] == ["answerable", "unanswerable", "neutral", None]
    assert [c.document.answer for c in done.candidates] == ["Lima", None, None, None]
    assert done.made_by == {"nli": "stand-in nli"}
    assert same == failed


def _simulated(kind: str, text: str, maker: str = "stand-in chat") -> Simulation:
    return Simulation(kind=DocumentLabel(kind), maker=maker, text=text)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("conflict", "It is in Quito. [no]", None),
        ("conflict", "It is in Quito.", "it does not contradict the reference"),
        ("conflict", "It is in Quito, not Lima. [no]", "the answer, or a form of it, is in it"),
        ("conflict", "It is in the CIUDAD-DE-LOS-REYES' centre. [no]", "the answer, or a form of it, is in it"),
        ("negated", "It was never in Lima. [no]", None),
        ("negated", "It was never there. [no]", "the answer is not in it"),
        ("negated", "It is in Lima. [yes]", "it does not contradict the reference"),
        ("adversarial", "A theatre is in Cusco.", None),
        ("adversarial", "A theatre is in Cusco. [no]", "it contradicts the reference"),
        ("adversarial", "A theatre is in Lima.", "the answer, or a form of it, is in it"),
        ("conflict", "It stands   SOMEWHERE. [no]", "the same as another document of the question"),
    ],
)
def test_simulated_documents_are_validated_by_the_rules_of_their_kind(kind, text, reason):
    seen = Candidate(document=Document(id="d", text="It stands somewhere. [no]"))
    case = Case(question=QUESTION, reference=REFERENCE, candidates=(seen,), simulations=(_simulated(kind, text),))
    (done,) = validate([case], Nli(), None, seed=0)
    assert done.simulations[0].rejected == reason
    assert done.simulations[0].text == text, "rejected documents are kept"


def test_what_a_data_set_ships_needs_no_contradiction_but_must_not_hold_the_answer():
    shipped = tuple(_simulated("conflict", text, QUESTION.source) for text in ("It is in Quito.", "It is in Lima."))
    (done,) = validate([Case(question=QUESTION, reference=REFERENCE, simulations=shipped)], Nli(), None, seed=0)
    assert [s.rejected for s in done.simulations] == [None, "the answer, or a form of it, is in it"]


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ("Yes.", None),
        ("yes, it does", None),
        ("No", "the judge disagrees on contradiction"),
        ("Perhaps", "the judge gave no verdict"),
        (None, "the judge gave no verdict"),
    ],
)
def test_a_judge_must_agree(verdict, reason):
    case = Case(question=QUESTION, reference=REFERENCE, simulations=(_simulated("conflict", "It is in Quito. [no]"),))
    (done,) = validate([case], Nli(), Chat(lambda prompt: verdict), seed=0)
    assert done.simulations[0].rejected == reason
    assert done.made_by["judge"] == "stand-in chat"


def test_a_negated_document_says_what_it_denies_and_earlier_rejections_stay():
    given = (_simulated("negated", "It was never in Lima. [no]"), _simulated("conflict", "").model_copy(update={"rejected": "no passage"}))
    (done,) = validate([Case(question=QUESTION, reference=REFERENCE, simulations=given)], Nli(), None, seed=0)
    assert [s.answer for s in done.simulations] == ["not Lima", None]
    assert done.simulations[1] == given[1]
