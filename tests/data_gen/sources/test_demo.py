"""The demo world: what each label promises, that no wording gives a label away, and the same bytes for the same seed."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from data_gen.sources import demo
from data_gen.world.kinds import KINDS
from data_gen.world.passages import MIN_WORDS
from data_gen.world.vocabulary import Attribute, SubjectKind
from rag.errors import InputError
from rag.jsonl import dump
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState
from rag.text import contains

DISTRACTED = (Condition.CONFLICT, Condition.NEGATED, Condition.ADVERSARIAL)


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Example]]:
    return {split: demo.load(split, questions=1000) for split in ("train", "validation", "test")}


@pytest.fixture(scope="module")
def examples(splits: dict[str, list[Example]]) -> list[Example]:
    return splits["test"]


def holds_answer(example: Example, document: Document) -> bool:
    return any(contains(f"{document.title}\n{document.text}", answer) for answer in example.answers)


def test_the_bytes_depend_on_the_seed_and_on_nothing_else_of_the_process() -> None:
    script = (
        "import hashlib; from data_gen.sources.demo import load; from rag.jsonl import dump; "
        "print(hashlib.sha256('\\n'.join(map(dump, load('test', seed=3, questions=40))).encode()).hexdigest())"
    )
    digests = [
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    here = hashlib.sha256("\n".join(map(dump, demo.load("test", seed=3, questions=40))).encode()).hexdigest()
    assert digests == [f"{here}\n", f"{here}\n"]
    assert demo.load("test", seed=4, questions=40) != demo.load("test", seed=3, questions=40)


def test_a_question_stays_the_same_when_more_are_asked_for() -> None:
    few = demo.load("train", questions=40)
    assert few == demo.load("train", questions=75)[: len(few)]


def test_each_question_has_one_example_of_each_condition(examples: list[Example]) -> None:
    assert Counter(example.condition for example in examples) == dict.fromkeys(
        (Condition.ANSWERABLE, Condition.UNANSWERABLE, *DISTRACTED), 250
    )
    assert {example.condition for example in examples if example.state is RetrievalState.DISTRACTED} == set(DISTRACTED)
    assert set(Counter(example.question_id for example in examples).values()) == {5}


def test_no_question_no_subject_and_no_document_crosses_the_splits(splits: dict[str, list[Example]]) -> None:
    """Pitfall G5."""
    assert {split: len(part) // 5 for split, part in splits.items()} == {"train": 600, "validation": 150, "test": 250}
    views: tuple[Callable[[Example], set[str]], ...] = (
        lambda example: {example.question_id},
        lambda example: {example.question},
        lambda example: {document.text for document in example.documents},
    )
    for of in views:
        sets = [{item for example in part for item in of(example)} for part in splits.values()]
        assert sum(map(len, sets)) == len(set.union(*sets))


def test_documents_hold_what_their_label_says(examples: list[Example]) -> None:
    expected = {
        DocumentLabel.ANSWERABLE: True,
        DocumentLabel.NEGATED: True,
        DocumentLabel.CONFLICT: False,
        DocumentLabel.ADVERSARIAL: False,
        DocumentLabel.UNANSWERABLE: False,
        DocumentLabel.NEUTRAL: False,
    }
    found = {(document.label, holds_answer(example, document)) for example in examples for document in example.documents}
    assert found == set(expected.items())


def test_sets_hold_what_their_condition_says(examples: list[Example]) -> None:
    quiet = {DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL}
    for example in examples:
        labels = Counter(document.label for document in example.documents)
        golds = labels.pop(DocumentLabel.ANSWERABLE, 0)
        if example.condition in DISTRACTED:
            assert golds >= 1
            assert labels.pop(DocumentLabel(example.condition)) == 1
            assert set(labels) <= quiet
        elif example.condition is Condition.ANSWERABLE:
            assert 1 <= golds <= 3
            assert set(labels) <= quiet
        else:
            assert golds == 0
            assert set(labels) == {DocumentLabel.UNANSWERABLE}


def test_two_documents_that_state_the_fact_are_as_common_in_answerable_sets(examples: list[Example]) -> None:
    keyed = {
        condition: Counter(
            sum(document.label in (DocumentLabel.ANSWERABLE, DocumentLabel(condition)) for document in example.documents)
            for example in examples
            if example.condition is condition
        )
        for condition in (Condition.ANSWERABLE, Condition.CONFLICT)
    }
    assert set(keyed[Condition.CONFLICT]) == {2, 3}
    assert set(keyed[Condition.ANSWERABLE]) == {1, 2, 3}
    assert abs(keyed[Condition.ANSWERABLE][2] / keyed[Condition.ANSWERABLE][3] - 0.45 / 0.35) < 0.3
    assert abs(keyed[Condition.CONFLICT][2] / keyed[Condition.CONFLICT][3] - 0.55 / 0.45) < 0.3


def asked(example: Example) -> tuple[SubjectKind, Attribute, str, str]:
    """Recover kind, attribute, name pattern and stem from the question's text."""
    kind = next(kind for kind in KINDS if example.question_id.startswith(f"{kind.name}-"))
    for attribute in kind.attributes:
        for question in attribute.questions:
            for name in kind.names:
                pattern = re.escape(question).replace(r"\{s\}", re.escape(name).replace(r"\{stem\}", r"(\w+)"))
                if match := re.fullmatch(pattern, example.question):
                    return kind, attribute, name, match[1]
    raise AssertionError(f"no template fits {example.question}")


def stated(attribute: Attribute, subject: str, document: Document) -> set[str]:
    """The values that the document states or denies of the subject's attribute."""
    value = r"((?:Dr\. )?[\w&-]+(?: [\w&-]+){0,2})"
    found = []
    for claim in attribute.claims:
        pattern = re.escape(claim).replace(r"\{s\}", re.escape(subject)).replace(r"\{v\}", value)
        found += re.findall(rf"(?:^|(?<=[.,] )|(?<=that )){pattern}(?=[.,]| has been)", document.text, re.IGNORECASE)
    return {value.casefold() for value in found}


def test_key_documents_state_the_gold_value_another_value_or_another_subject(examples: list[Example]) -> None:
    checked: Counter[str] = Counter()
    for example in examples:
        kind, attribute, name, stem = asked(example)
        subject = name.format(stem=stem)
        answers = {answer.casefold() for answer in example.answers}
        twins = [other.format(stem=stem) for other in kind.names if other != name]
        for document in example.documents:
            values = stated(attribute, subject, document)
            if document.label in (DocumentLabel.ANSWERABLE, DocumentLabel.NEGATED):
                assert len(values) == 1 and values <= answers, (document, values)
            elif document.label is DocumentLabel.CONFLICT:
                assert len(values) == 1 and not values & answers, (document, values)
            else:
                assert not values, (document, values)
            of_twins = [value for twin in twins for value in stated(attribute, twin, document)]
            assert bool(of_twins) == (document.label is DocumentLabel.ADVERSARIAL), (document, of_twins)
            checked[str(document.label)] += 1
    assert min(checked[label] for label in DocumentLabel) >= 250


def test_documents_have_40_to_150_words(examples: list[Example]) -> None:
    lengths = [len(document.text.split()) for example in examples for document in example.documents]
    assert min(lengths) >= MIN_WORDS >= 40
    assert max(lengths) <= 150


def test_document_ids_are_no_positions_and_order_says_nothing_about_labels(examples: list[Example]) -> None:
    assert all([d.rank for d in example.documents] == [1, 2, 3, 4, 5] for example in examples)
    places = [e.documents.index(d) for e in examples for d in e.documents if d.label is DocumentLabel.CONFLICT]
    assert Counter(places).keys() == {0, 1, 2, 3, 4}
    assert abs(sum(places) / len(places) - 2) < 0.3
    numbers = [int(d.id.rpartition("-d")[2]) for e in examples for d in e.documents if d.label is DocumentLabel.CONFLICT]
    assert abs(sum(numbers) / len(numbers) - 7.5) < 1


def auc(train: list[tuple[str, bool]], test: list[tuple[str, bool]]) -> float:
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True), LogisticRegression(max_iter=1000))
    model.fit(*zip(*train, strict=True))
    texts, labels = zip(*test, strict=True)
    return float(roc_auc_score(labels, model.predict_proba(texts)[:, 1]))


def single_documents(examples: list[Example], other: DocumentLabel) -> list[tuple[str, bool]]:
    texts = {
        document.id: (f"{document.title}. {document.text}", document.label is other)
        for example in examples
        for document in example.documents
        if document.label in (DocumentLabel.ANSWERABLE, other)
    }
    return list(texts.values())


def whole_sets(examples: list[Example], other: Condition) -> list[tuple[str, bool]]:
    return [
        (" ".join(f"{document.title}. {document.text}" for document in example.documents), example.condition is other)
        for example in examples
        if example.condition in (Condition.ANSWERABLE, other)
    ]


def test_words_do_not_tell_a_conflict_from_a_gold_document(splits: dict[str, list[Example]]) -> None:
    train, test = (single_documents(splits[split], DocumentLabel.CONFLICT) for split in ("train", "test"))
    assert 0.4 < auc(train, test) < 0.6


@pytest.mark.parametrize("condition", DISTRACTED)
def test_words_do_not_tell_a_distracted_set_from_an_answerable_one(splits: dict[str, list[Example]], condition: Condition) -> None:
    train, test = (whole_sets(splits[split], condition) for split in ("train", "test"))
    assert 0.38 < auc(train, test) < 0.62


def test_the_words_of_a_denial_do_not_tell_a_negated_document(splits: dict[str, list[Example]]) -> None:
    """Clean documents deny other things in the same words; only reading what is denied tells the two apart."""
    train, test = (single_documents(splits[split], DocumentLabel.NEGATED) for split in ("train", "test"))
    assert auc(train, test) < 0.66


@pytest.mark.parametrize("k", [3, 4, 6, 7, 8, 9, 10])
def test_any_number_of_documents_makes_a_full_set(k: int) -> None:
    assert {len(example.documents) for example in demo.load("test", questions=40, k=k)} == {k}


def test_the_size_is_drawn_for_each_set_where_there_is_a_most() -> None:
    examples = demo.load("test", questions=100, k=2, k_max=10)
    assert {len(example.documents) for example in examples} == set(range(2, 11))
    assert len({len(example.documents) for example in examples if example.question_id == examples[0].question_id}) > 1


def test_what_each_document_says_is_known() -> None:
    """Gold, conflict and adversarial documents state a value as their text has it, a negated one denies it, the others say nothing."""
    for example in demo.load("test", questions=100, k=5):
        for document in example.documents:
            if document.label in (DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL):
                assert document.answer is None
                continue
            assert document.answer is not None
            value = document.answer.removeprefix("not ")
            assert value in document.text
            assert (value != document.answer) == (document.label is DocumentLabel.NEGATED)
            is_gold = any(value.casefold() == answer.casefold() for answer in example.answers)
            assert is_gold == (document.label in (DocumentLabel.ANSWERABLE, DocumentLabel.NEGATED))


def test_thousands_of_questions_have_subjects_of_their_own() -> None:
    questions = [example.question for example in demo.load("validation", questions=3000)]
    assert len(set(questions)) == 450 == len(questions) // 5


def test_the_limit_keeps_whole_questions_in_order() -> None:
    assert demo.load("test", questions=40, limit=10) == demo.load("test", questions=40)[:10]


@pytest.mark.parametrize(
    ("key", "value"), [("questions", 19), ("questions", 10_000), ("k", 1), ("k", 11), ("k_max", 4), ("k_max", 11), ("limit", 0)]
)
def test_a_number_out_of_range_is_refused_by_name(key: str, value: int) -> None:
    arguments: dict[str, Any] = {key: value}
    with pytest.raises(InputError, match=f"{key}: expected a number from .*, got {value}"):
        demo.load(**arguments)


def test_lessons_are_pairs_of_short_documents_in_one_wording() -> None:
    """What the local Sieve learns from first: two documents that agree or disagree, each fact in the first of its clauses."""
    lesson = demo.load("train", questions=60, k=2, words=1, wordings=1)
    conflicts = [example for example in lesson if example.condition is Condition.CONFLICT]
    assert {len(example.documents) for example in lesson} == {2}
    assert all({document.label for document in e.documents} == {DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT} for e in conflicts)
    words = [len(document.text.split()) for example in lesson for document in example.documents]
    assert sum(words) / len(words) < 35
    assert len({e.question_id for e in lesson} & {e.question_id for e in demo.load("test", questions=60)}) == 0


@pytest.mark.parametrize(("key", "value"), [("words", 0), ("words", 43), ("wordings", 0), ("wordings", 5)])
def test_a_lesson_out_of_range_is_refused_by_name(key: str, value: int) -> None:
    with pytest.raises(InputError, match=f"{key}: expected a number from"):
        demo.load("test", questions=40, **{key: value})


def test_a_corpus_of_the_world_grows_without_changing() -> None:
    few, more = list(demo.documents(20)), list(demo.documents(40))
    assert more[:20] == few
    assert len({document.id for document in more}) == len({document.text for document in more}) == 40
    assert all(len(document.text.split()) >= MIN_WORDS for document in more)
    assert list(demo.documents(20, seed=1)) != few
    with pytest.raises(InputError, match="count: expected a number of at least 1, got 0"):
        next(demo.documents(0))
