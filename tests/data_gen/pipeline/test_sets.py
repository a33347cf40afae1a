"""Sets of K documents by state and condition."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.documents import fingerprint
from data_gen.pipeline.cases import Candidate, Case, Simulation
from data_gen.pipeline.sets import SetSettings, sets
from rag.records import Document, DocumentLabel
from tests.data_gen.pipeline.stand_ins import QUESTION

LABELS = {"a": DocumentLabel.ANSWERABLE, "u": DocumentLabel.UNANSWERABLE, "n": DocumentLabel.NEUTRAL, "x": None}


DEFAULT = SetSettings()


def _case(labels: str, *simulations: Simulation) -> Case:
    candidates = tuple(
        Candidate(document=Document(id=f"{label}{n}", text=f"Text {n} of {label}.", rank=n, label=LABELS[label]))
        for n, label in enumerate(labels, start=1)
    )
    return Case(question=QUESTION, reference="It is in Lima.", candidates=candidates, simulations=simulations, made_by={"nli": "rule"})


def _simulation(kind: str, text: str = "It is in Quito.", rejected: str | None = None) -> Simulation:
    return Simulation(kind=DocumentLabel(kind), maker="chat", text=text, answer="Quito", rejected=rejected)


def _made(case: Case, settings: SetSettings = DEFAULT, belongs: dict[str, str] | None = None):
    dropped: Counter[str] = Counter()
    return sets(case, settings, belongs or {}, "train", {"code": "abc"}, dropped), {k: v for k, v in dropped.items() if v}


@pytest.mark.parametrize(
    ("labels", "state"),
    [("auuuu", "answerable"), ("uuuua", "answerable"), ("uuuuu", "unanswerable"), ("annuu", "answerable"), ("uuuuua", "unanswerable")],
)
def test_the_state_is_that_of_the_best_k(labels, state):
    (made,), dropped = _made(_case(labels))
    assert (made.state, made.condition, len(made.documents)) == (state, state, 5)
    assert made.id == f"q1-{state}"
    assert made.lineage == {"code": "abc", "nli": "rule"}
    assert set(dropped) <= {f"{kind} set: fewer documents of this kind than distractors" for kind in ("conflict", "negated", "adversarial")}


def test_neutral_without_answerable_fits_no_state():
    assert _made(_case("uunuu")) == ([], {"question: no state, as a document is neutral and none is answerable": 1})


def test_a_document_that_contradicts_is_kept_aside_and_the_next_takes_its_place():
    (made,), dropped = _made(_case("xuuuua"))
    assert made.state == "answerable"
    assert {d.text for d in made.documents} == {"Text 2 of u.", "Text 3 of u.", "Text 4 of u.", "Text 5 of u.", "Text 6 of a."}
    assert dropped["document contradicts the reference: kept aside"] == 1


def test_a_passage_is_left_to_the_split_that_it_belongs_to():
    case = _case("auuuuu")
    mark = fingerprint("Text 1 of a.")
    (made,), dropped = _made(case, belongs={mark: "test"})
    assert made.state == "unanswerable"
    assert dropped["document is used in another split"] == 1
    assert _made(case, belongs={mark: "train"})[0][0].state == "answerable"


def test_failures_and_small_sets_are_counted():
    assert _made(Case(question=QUESTION, failure="no document was found")) == ([], {"question: no document was found": 1})
    assert _made(_case("a")) == ([], {"question: fewer documents than k_min": 1})


def test_a_distracted_set_differs_in_one_document_and_keeps_an_answerable_one():
    conflict, negated = _simulation("conflict"), _simulation("negated", "Never in Lima.")
    made, dropped = _made(_case("auuuu", conflict, negated, _simulation("adversarial", rejected="the answer is in it")))
    clean, *distracted = made
    assert [e.condition for e in distracted] == ["conflict", "negated"]
    for example, label in zip(distracted, ("conflict", "negated"), strict=True):
        assert example.state == "distracted"
        labels = [d.label for d in example.documents]
        assert labels.count(DocumentLabel(label)) == 1
        assert labels.count(DocumentLabel.ANSWERABLE) == 1
        same = [a.id == b.id for a, b in zip(clean.documents, example.documents, strict=True)]
        assert same.count(False) == 1, "the simulated document stands where another one stood"
        assert [d.rank for d in example.documents] == [1, 2, 3, 4, 5]
    assert dropped == {"adversarial set: fewer documents of this kind than distractors": 1}


def test_nothing_but_its_text_and_label_tells_a_simulated_document():
    case = _case("auuuu", _simulation("conflict"), _simulation("negated", "Never in Lima."))
    given = {"title": "Lima", "metadata": {"source": "wiki"}, "score": 3.5}
    candidates = tuple(c.model_copy(update={"document": c.document.model_copy(update=given)}) for c in case.candidates)
    made, _ = _made(case.model_copy(update={"candidates": candidates}))
    assert len(made) == 3
    for document in (d for example in made for d in example.documents):
        assert document.id == f"q1-{fingerprint(document.text)}"
        assert (document.title, document.metadata, document.score) == ("Lima", {"source": "wiki"}, None)


def test_several_distractors_need_as_many_documents_to_replace():
    three = [_simulation("conflict", f"It is in Quito {n}.") for n in range(3)]
    (_, made), _ = _made(_case("auuuu", *three), SetSettings(distractors=2))
    assert sum(d.label is DocumentLabel.CONFLICT for d in made.documents) == 2
    (_,), dropped = _made(_case("au", *three), SetSettings(distractors=2))
    assert dropped["conflict set: no document to replace beside an answerable one"] == 1


def test_neutral_documents_come_beside_the_k_and_lacking_ones_are_counted():
    made, dropped = _made(_case("auuuunun", _simulation("conflict")), SetSettings(neutral=3))
    assert [len(e.documents) for e in made] == [7, 7]
    assert [sum(d.label is DocumentLabel.NEUTRAL for d in e.documents) for e in made] == [2, 2]
    assert dropped["neutral document to add: the question has no more"] == 1


def test_order_of_retrieval_is_kept_without_shuffling():
    (made,), _ = _made(_case("uauuu"), SetSettings(shuffle=False))
    assert [d.text for d in made.documents] == ["Text 1 of u.", "Text 2 of a.", "Text 3 of u.", "Text 4 of u.", "Text 5 of u."]


@given(st.text("aunx", min_size=0, max_size=9), st.integers(2, 6), st.integers(0, 3), st.integers(0, 5))
def test_whatever_is_made_keeps_the_rules(labels, k, neutral, seed):
    case = _case(labels, _simulation("conflict"), _simulation("negated", "Never in Lima."))
    made, _ = _made(case, SetSettings(k=k, neutral=neutral, seed=seed))
    assert made == _made(case, SetSettings(k=k, neutral=neutral, seed=seed))[0]
    for example in made:
        found = Counter(d.label for d in example.documents)
        assert len(example.documents) <= k + neutral
        assert None not in found
        distracting = found[DocumentLabel.CONFLICT] + found[DocumentLabel.NEGATED]
        assert distracting == (example.state == "distracted")
        assert bool(found[DocumentLabel.ANSWERABLE]) == (example.state != "unanswerable")
