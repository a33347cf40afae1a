"""What style alone tells: a bag-of-words classifier of single documents, trained and tested without the question."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from rag.errors import InputError
from rag.records import DocumentLabel, Example

FALSE = (DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL)
FOLDS = 5
WORD = r"\w+|[^\w\s]"
"""A word, a number or a single mark: punctuation is style too."""


class Passage(NamedTuple):
    """One document of one question, with its label."""

    question_id: str
    question: str
    document_id: str
    text: str
    """Title and text."""
    false: bool
    """Labelled as distracting; the others are labelled as giving a true answer."""
    source: str
    """Where its example comes from."""


def passages(examples: Sequence[Example]) -> list[Passage]:
    """False documents of distracted sets, and documents that give a true answer; each text of a question once, other labels left out."""
    found: dict[tuple[str, str, bool], Passage] = {}
    for example in examples:
        for document in example.documents:
            false = document.label in FALSE
            if false or document.label is DocumentLabel.ANSWERABLE:
                text = f"{document.title}. {document.text}" if document.title else document.text
                passage = Passage(example.question_id, example.question, document.id, text, false, example.source)
                found.setdefault((example.question_id, text, false), passage)
    return list(found.values())


def bag_of_words(found: Sequence[Passage], seed: int) -> list[float] | None:
    """Score each passage by logistic regression on TF-IDF of words and word pairs, trained on the passages of other questions.

    Questions are dealt into five folds by the seed, or as many as there are questions if fewer. None where a fold would be trained on
    one class. Raises InputError when scikit-learn is not installed.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
    except ImportError as error:
        raise InputError(
            "audit.bag_of_words: scikit-learn is not installed; pip install 'sieve-and-sage[figures]' or set it to false"
        ) from error
    questions = sorted({passage.question_id for passage in found})
    random.Random(f"{seed}:folds").shuffle(questions)
    fold_of = {question: place % FOLDS for place, question in enumerate(questions)}
    scores = [0.0] * len(found)
    for fold in range(min(FOLDS, len(questions))):
        train = [passage for passage in found if fold_of[passage.question_id] != fold]
        held_out = [i for i, passage in enumerate(found) if fold_of[passage.question_id] == fold]
        if len({passage.false for passage in train}) < 2:
            return None
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD)
        classifier = make_pipeline(words, LogisticRegression(C=10, class_weight="balanced", max_iter=1000))
        classifier.fit([passage.text for passage in train], [passage.false for passage in train])
        predicted = classifier.decision_function([found[i].text for i in held_out])
        for i, score in zip(held_out, predicted, strict=True):
            scores[i] = float(score)
    return scores
