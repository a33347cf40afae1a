"""NLI: how parts of a document are pooled, and long documents, label orders and batches with tiny models."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification

from rag.errors import InputError
from rag.models.base import load_tokenizer
from rag.models.nli import NEUTRAL, Entailment, Nli, pool
from rag.models.nli_transformers import Relation, TransformersNli, load, relations_of

ORDERS: list[tuple[Relation, ...]] = list(permutations(("entailment", "neutral", "contradiction")))


def test_one_part_that_entails_or_contradicts_is_enough() -> None:
    says, denies = Entailment(0.75, 0.25, 0.0), Entailment(0.125, 0.125, 0.75)
    assert pool([NEUTRAL, says, NEUTRAL]) == Entailment(0.75, 0.25, 0.0)
    assert pool([denies, NEUTRAL]) == Entailment(0.125, 0.125, 0.75)


def test_a_document_that_says_and_denies_comes_out_half_and_half() -> None:
    assert pool([Entailment(0.9, 0.1, 0.0), Entailment(0.0, 0.1, 0.9)]) == pytest.approx((0.5, 0.0, 0.5))
    assert pool([Entailment(0.9, 0.1, 0.0), Entailment(0.0, 0.4, 0.6)]) == pytest.approx((0.6, 0.0, 0.4))


def test_one_part_stays_as_it_is_and_no_part_says_nothing() -> None:
    part = Entailment(0.3, 0.3, 0.4)
    assert pool([part]) is part
    assert pool([]) == NEUTRAL


@given(st.lists(st.tuples(*[st.floats(0.001, 1)] * 3), min_size=1, max_size=6))
def test_a_pooled_judgement_is_a_distribution_in_any_order(weights: list[tuple[float, float, float]]) -> None:
    parts = [Entailment(*(value / sum(row) for value in row)) for row in weights]
    pooled = pool(parts)
    assert sum(pooled) == pytest.approx(1.0)
    assert all(0 <= value <= 1 for value in pooled)
    assert pool(parts[::-1]) == pooled
    assert pool([*parts, *parts]) == pool([*parts, parts[0]])


class SeesClosed(torch.nn.Module):
    """A classifier that finds a contradiction where `closed` stands in the first text and `open` in the second, and neutral elsewhere."""

    device = torch.device("cpu")

    def __init__(self, vocabulary: dict[str, int], order: tuple[str, ...]) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.order = order
        self.lengths: list[int] = []

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        self.lengths += attention_mask.sum(1).tolist()
        closed = ((input_ids == self.vocabulary["closed"]) & (token_type_ids == 0)).any(1)
        asked = ((input_ids == self.vocabulary["open"]) & (token_type_ids == 1)).any(1)
        assert asked.all(), "the hypothesis is whole in every window"
        logits = torch.zeros(len(input_ids), 3)
        logits[:, self.order.index("neutral")] = 3
        logits[closed, self.order.index("contradiction")] = 6
        return SimpleNamespace(logits=logits)


FILLER = "Visitors see it all and the museum opens at nine and closes every day. " * 64
FACT = "The annex closed for good in 2011."


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("document", [FILLER + FACT, f"{FACT} {FILLER}"], ids=["last", "first"])
def test_the_sentence_that_matters_is_seen_wherever_it_stands(
    classifier: Callable[..., Path], order: tuple[Relation, ...], document: str
) -> None:
    """Pitfall A4: 900 words on opening hours, the fact last or first, the labels in any order."""
    tokenizer = load_tokenizer(str(classifier(list(order))))
    model: Any = SeesClosed(tokenizer.get_vocab(), order)
    nli = TransformersNli(model, tokenizer, order, "stub", max_length=64, overlap=16, batch_size=4)
    [judged, other] = nli.judge([(document, "The annex is open."), (FILLER, "The annex is open.")])
    assert len(document.split()) > 900
    assert judged.contradiction > 0.9
    assert other.neutral > 0.85
    assert sum(judged) == pytest.approx(1.0)
    assert max(model.lengths) == 64


def small(base: Path, **changes: Any) -> TransformersNli:
    return load(**{"base": str(base), "max_length": 32, "overlap": 8, "precision": "fp32", "device": "cpu", **changes})


def test_a_short_document_is_judged_as_the_model_does_and_labels_go_by_name(classifier: Callable[..., Path]) -> None:
    base = classifier(["CONTRADICTION", "Entailment", "neutral "])
    nli: Nli = small(base)
    tokenizer, model = load_tokenizer(str(base)), AutoModelForSequenceClassification.from_pretrained(base)
    expected = model(**tokenizer(FACT, "The annex is open.", return_tensors="pt")).logits.softmax(-1)[0].tolist()
    [judged] = nli.judge([(FACT, "The annex is open.")])
    assert judged == pytest.approx((expected[1], expected[2], expected[0]), abs=1e-6)


def test_premise_and_hypothesis_are_not_confused(classifier: Callable[..., Path]) -> None:
    nli = small(classifier(list(ORDERS[0])))
    one, other = nli.judge([(FACT, "The annex is open."), ("The annex is open.", FACT)])
    assert one != pytest.approx(other, abs=1e-3)


def test_a_judgement_depends_on_no_batch_mate(classifier: Callable[..., Path]) -> None:
    base = classifier(list(ORDERS[0]))
    documents = [FACT, FILLER[:300], "open", FILLER[:150] + FACT, ""]
    pairs = [(document, "The annex is open.") for document in documents]
    together = small(base, batch_size=7).judge(pairs)
    for pair, judged in zip(pairs, together, strict=True):
        [alone] = small(base, batch_size=1).judge([pair])
        assert judged == pytest.approx(alone, abs=1e-5)
    assert together[-1] == NEUTRAL


def test_windows_cover_the_document_and_share_the_overlap(classifier: Callable[..., Path]) -> None:
    """A window of 32 has room for 32 - 3 special tokens - 5 of the hypothesis = 24 tokens of the document."""
    nli = small(classifier(list(ORDERS[0])))
    words = [word for word, number in nli.tokenizer.get_vocab().items() if number > 3]
    document = [words[i % len(words)] for i in range(50)]
    windows = nli._windows(" ".join(document), "The annex is open.")
    premises = [[token for token, kind in zip(w["input_ids"], w["token_type_ids"], strict=True) if kind == 0][1:-1] for w in windows]
    ids = nli.tokenizer.convert_tokens_to_ids(document)
    # Steps of 24 - 8 = 16.
    assert premises == [ids[0:24], ids[16:40], ids[32:50]]
    assert {tuple(w["input_ids"][-6:]) for w in windows} == {tuple(nli.tokenizer("The annex is open.")["input_ids"][1:])}


@pytest.mark.parametrize(("sentence", "says"), [("open " * 21, "it takes 24 of the 32 tokens"), ("  ", "got blank text")])
def test_a_hypothesis_that_cannot_be_judged(classifier: Callable[..., Path], sentence: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        small(classifier(list(ORDERS[0]))).judge([(FACT, sentence)])
    assert small(classifier(list(ORDERS[0]))).judge([]) == []


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["LABEL_0", "LABEL_1", "LABEL_2"], r"set nli.labels, such as \[contradiction, entailment, neutral\]"),
        (["entailment", "not_entailment"], "'entailment', 'not_entailment'; expected entailment, neutral and contradiction"),
        (["contrasting", "reasoning", "entailment", "neutral"], "names its outputs 'contrasting'"),
        (["entailment", "neutral", "neutral"], "expected entailment, neutral and contradiction"),
    ],
)
def test_a_classifier_that_does_not_name_the_three_relations_is_refused(
    classifier: Callable[..., Path], names: list[str], says: str
) -> None:
    """Pitfall A4."""
    with pytest.raises(InputError, match=says):
        relations_of(dict(enumerate(names)), "base")
    if len(set(names)) == len(names):
        with pytest.raises(InputError, match=says):
            small(classifier(names))


def test_labels_can_be_given_where_the_model_has_no_names() -> None:
    unnamed, named = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, dict(enumerate(ORDERS[0]))
    assert relations_of(unnamed, "base", ORDERS[4]) == list(ORDERS[4])
    assert relations_of(named, "base", ORDERS[0]) == list(ORDERS[0])
    with pytest.raises(InputError, match="nli.labels: .* is not what base itself says"):
        relations_of(named, "base", ORDERS[1])
    with pytest.raises(InputError, match="expected entailment, neutral and contradiction, once each"):
        relations_of(unnamed, "base", ("entailment", "neutral", "neutral"))
    with pytest.raises(InputError, match="for 2 outputs"):
        relations_of({0: "entailment", 1: "not_entailment"}, "base", ORDERS[0])


def test_a_window_longer_than_the_model_reads_is_refused(classifier: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="nli.max_length=65: .* reads at most 64 tokens"):
        small(classifier(list(ORDERS[0])), max_length=65)


def test_the_name_covers_weights_and_windows(classifier: Callable[..., Path]) -> None:
    base = classifier(list(ORDERS[0]))
    names = {
        small(base).name,
        small(base, overlap=4).name,
        small(base, max_length=40).name,
        small(classifier(list(ORDERS[0]), seed=1)).name,
    }
    assert len(names) == 4
    assert small(base, batch_size=1).name == small(base).name
