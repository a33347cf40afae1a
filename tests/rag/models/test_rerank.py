"""A cross-encoder with tiny random weights as a re-ranker."""

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForSequenceClassification

from rag.errors import InputError
from rag.models.base import load_tokenizer
from rag.models.rerank import CrossEncoderReranker, Reranker

QUESTION = "is the annex open"
TEXTS = [
    "the annex closed for good in 2011 .",
    "visitors see it all",
    "the museum opens at nine and closes every day .",
    "",
    "visitors see it all",
]


def small(base: Path, **changes: Any) -> CrossEncoderReranker:
    return CrossEncoderReranker(**{"base": str(base), "max_length": 32, "device": "cpu", **changes})


@pytest.fixture(scope="module")
def base(classifier: Callable[..., Path]) -> Path:
    return classifier(["LABEL_0"])


def test_scores_are_the_model_s_logits_in_the_order_of_the_texts(base: Path) -> None:
    reranker: Reranker = small(base)
    tokenizer, model = load_tokenizer(str(base)), AutoModelForSequenceClassification.from_pretrained(base).eval()
    expected = [model(**tokenizer([QUESTION], [text], return_tensors="pt")).logits.item() for text in TEXTS]
    assert reranker.score(QUESTION, TEXTS) == pytest.approx(expected, abs=1e-5)
    assert len(set(expected)) > 2
    assert reranker.score(QUESTION, []) == []


def test_a_score_depends_on_no_other_text(base: Path) -> None:
    together = small(base, batch_size=5).score(QUESTION, TEXTS)
    assert [small(base, batch_size=1).score(QUESTION, [text])[0] for text in TEXTS] == pytest.approx(together, abs=1e-5)
    assert together[1] == together[4]


def test_texts_that_are_cut_are_counted(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    small(base).score(QUESTION, [*TEXTS, "open " * 40])
    assert any(message.endswith("1 of 6 texts were cut at 32 tokens") for message in caplog.messages)


def test_what_cannot_be_used_is_refused(
    base: Path, classifier: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="expected a model with one output, a score; .* has 3"):
        small(classifier(["a", "b", "c"]))
    with pytest.raises(InputError, match="reranker.max_length=65: .* reads at most 64 tokens"):
        small(base, max_length=65)
    with pytest.raises(InputError, match="reranker.base: '.*nothing' cannot be loaded"):
        small(tmp_path / "nothing")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"pip install 'sieve-and-sage\[retrieval\]'"):
        small(base)


def test_the_name_covers_weights_and_length(base: Path, classifier: Callable[..., Path]) -> None:
    assert len({small(base).name, small(base, max_length=40).name, small(classifier(["LABEL_0"], seed=1)).name}) == 3
