"""Serving: scores that depend on the set alone, few forward passes, and the units of leave-one-out."""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.records import Document
from rag.rounding import TOLERANCE
from sieve.joint.inputs import InputSettings, encode
from sieve.joint.model import Backbone
from sieve.joint.predict import Sieve, log_odds, pooled
from sieve.screening import batches, units

BackboneOf = Callable[[str], Backbone]
FAMILIES = ("bert", "roberta", "longformer", "llama", "modernbert", "deberta-v2")


def document(name: str, text: str, **fields: Any) -> Document:
    return Document(id=name, text=text, **fields)


def words(count: int, start: int = 0) -> str:
    return " ".join(f"w{(start + 7 * i) % 100}" for i in range(count))


def sieve_of(backbone: Backbone, batch_tokens: int = 16_384, max_length: int = 120, pooling: Any = "set") -> Sieve:
    settings = InputSettings(max_length=max_length, pooling=pooling)
    return Sieve(
        backbone.model,
        backbone.tokenizer,
        settings,
        model_type=backbone.model.config.model_type,
        threshold=0.5,
        batch_tokens=batch_tokens,
    )


@contextmanager
def recorded(model: torch.nn.Module) -> Iterator[list[dict[str, torch.Tensor]]]:
    """The keyword arguments of every forward call inside the block."""
    calls: list[dict[str, torch.Tensor]] = []
    hook = model.register_forward_pre_hook(lambda _, args, kwargs: calls.append(kwargs), with_kwargs=True)
    try:
        yield calls
    finally:
        hook.remove()


@pytest.mark.parametrize("pooling", ["set", "pairs"])
def test_plain_texts_are_documents_in_the_order_given(backbone: BackboneOf, pooling: str) -> None:
    sieve = sieve_of(backbone("bert"), pooling=pooling)
    texts = [words(3), words(9, 5), words(5, 40)]
    made = [document(f"d{n}", text) for n, text in enumerate(texts, start=1)]
    assert sieve.screen(["w1"], [texts]) == sieve.screen(["w1"], [made])
    assert sieve.leave_one_out(["w1"], [texts]) == sieve.leave_one_out(["w1"], [made])
    with pytest.raises(InputError, match="expected a question and documents as text"):
        sieve.screen(["w1"], [[3]])  # type: ignore[list-item]


SETS = [
    ("w1 w2", [document("a", words(3)), document("b", words(9, 5))]),
    ("w3", [document("a", words(90, 11)), document("b", words(40, 2))]),
    ("w4 w5 w6 w7 w8 w9", [document("a", words(20, 31))]),
    ("w1 w2", [document("a", words(3)), document("b", words(9, 6))]),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_score_depends_neither_on_batch_mates_nor_on_padding(backbone: BackboneOf, family: str) -> None:
    """Promise 7, in float32."""
    sieve = sieve_of(backbone(family))
    questions, documents = [q for q, _ in SETS], [d for _, d in SETS]
    alone = [sieve.screen([q], [d])[0].score for q, d in SETS]
    with recorded(sieve.model) as calls:
        together = [screening.score for screening in sieve.screen(questions, documents)]
    assert len(calls) == 1
    assert int((calls[0]["attention_mask"] == 0).sum()) > 100
    assert together == pytest.approx(alone, abs=TOLERANCE["float32"])
    assert [s.score for s in sieve.screen(questions[::-1], documents[::-1])] == pytest.approx(alone[::-1], abs=TOLERANCE["float32"])
    # The sets differ enough for a mix-up to show.
    assert min(abs(a - b) for a, b in itertools.combinations(alone, 2)) > 1e-4


def test_a_screening_reports_length_and_cuts(backbone: BackboneOf) -> None:
    sieve = sieve_of(backbone("bert"), max_length=32)
    whole, cut = sieve.screen(["w1", "w1"], [[document("a", words(5))], [document("a", words(50)), document("b", words(2))]])
    assert (whole.tokens, whole.truncated) == (9, ())
    assert (cut.tokens, cut.truncated) == (32, ("a",))
    assert 0 < whole.score < 1


def test_a_question_that_leaves_no_room_is_refused(backbone: BackboneOf) -> None:
    with pytest.raises(InputError, match="question of 40 tokens leaves no room for 1 documents in 32 tokens"):
        sieve_of(backbone("bert"), max_length=32).screen([words(40)], [[document("a", "w1")]])


FIVE = [document(f"d{i}", words(20, 13 * i)) for i in range(5)]


def test_screening_and_five_removals_are_two_forward_passes(backbone: BackboneOf) -> None:
    """Pitfall A6."""
    sieve = sieve_of(backbone("bert"))
    with recorded(sieve.model) as calls:
        sieve.screen(["w1 w2"], [FIVE])
        assert len(calls) == 1
        (removals,) = sieve.leave_one_out(["w1 w2"], [FIVE])
    assert len(calls) == 2
    assert calls[1]["input_ids"].shape[0] == len(removals) == 5


def test_a_forward_pass_holds_no_more_tokens_than_allowed(backbone: BackboneOf) -> None:
    loaded = backbone("bert")
    (expected,) = sieve_of(loaded).leave_one_out(["w1 w2"], [FIVE])
    with recorded(loaded.model) as calls:
        (removals,) = sieve_of(loaded, batch_tokens=200).leave_one_out(["w1 w2"], [FIVE])
    assert [tuple(call["input_ids"].shape) for call in calls] == [(2, 88), (2, 88), (1, 88)]
    assert [r.score for r in removals] == pytest.approx([r.score for r in expected], abs=TOLERANCE["float32"])


def test_a_model_fresh_from_training_serves_without_dropout(backbone: BackboneOf) -> None:
    loaded = backbone("bert")
    assert loaded.model.config.hidden_dropout_prob > 0
    loaded.model.train()
    sieve = sieve_of(loaded)
    assert sieve.screen(["w1"], [FIVE]) == sieve.screen(["w1"], [FIVE])


def test_nothing_to_score_is_no_forward_pass(backbone: BackboneOf) -> None:
    sieve = sieve_of(backbone("bert"))
    with recorded(sieve.model) as calls:
        assert sieve.screen([], []) == []
        assert sieve.leave_one_out(["w1"], [[]]) == [[]]
    assert calls == []


@pytest.mark.parametrize("pattern", ["first", "question"])
def test_the_mask_that_serving_sends_is_the_one_of_the_settings(backbone: BackboneOf, pattern: Any) -> None:
    """Pitfall A1; test_train.py compares it with the training loader's."""
    loaded = backbone("longformer")
    settings = InputSettings(max_length=120, global_attention=pattern)
    sieve = Sieve(loaded.model, loaded.tokenizer, settings, model_type="longformer", threshold=0.5)
    with recorded(sieve.model) as calls:
        sieve.screen([words(6), words(14)], [[document("a", words(5))], [document("a", words(30))]])
    (call,) = calls
    assert call["global_attention_mask"].shape == call["input_ids"].shape
    assert call["global_attention_mask"].sum(1).tolist() == ([1, 1] if pattern == "first" else [7, 15])


@given(st.lists(st.integers(1, 30), max_size=6), st.integers(1, 60))
def test_batches_are_as_few_as_the_budget_allows(lengths: list[int], budget: int) -> None:
    made = batches(lengths, budget)
    assert sorted(i for batch in made for i in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or fits([lengths[i] for i in batch], budget) for batch in made)
    assert len(made) == fewest(lengths, budget)


def fits(lengths: list[int], budget: int) -> bool:
    return len(lengths) == 1 or max(lengths) * len(lengths) <= budget


def fewest(lengths: list[int], budget: int) -> int:
    """Try every way to put the items into groups."""
    best = len(lengths)
    for assignment in itertools.product(range(len(lengths)), repeat=max(0, len(lengths) - 1)):
        groups: dict[int, list[int]] = {}
        for group, length in zip((0, *assignment), lengths, strict=False):
            groups.setdefault(group, []).append(length)
        if all(fits(group, budget) for group in groups.values()):
            best = min(best, len(groups))
    return best


OPENED = "The bridge over the river was opened in 1957 by the mayor of the town."


def test_near_identical_documents_are_one_unit() -> None:
    """Promise 3: the same words in another case, punctuation and spacing."""
    documents = [
        document("a", OPENED),
        document("b", "Ships pass below it."),
        document("c", OPENED.upper().replace(" ", "  ").replace(".", " !")),
        document("d", OPENED),
    ]
    assert units(documents) == [("a", "c", "d"), ("b",)]


@pytest.mark.parametrize("edited", [OPENED.replace("1957", "1975"), OPENED.replace("was", "was not"), OPENED.replace("mayor", "priest")])
def test_one_edited_word_makes_two_units(edited: str) -> None:
    """A conflict document often differs from the gold one in a single word."""
    assert units([document("a", OPENED), document("b", edited)]) == [("a",), ("b",)]


def test_units_of_nothing() -> None:
    assert units([]) == []


def test_leave_one_out_scores_what_remains(backbone: BackboneOf) -> None:
    """Ids and ranks are the ranking's, whatever the order of the list, and a unit leaves as a whole."""
    sieve = sieve_of(backbone("bert"))
    low, copy, high, middle = (
        document("low", words(6, 50), rank=9),
        document("copy", words(8, 1), rank=4),
        document("high", words(8, 1), rank=1),
        document("middle", words(7, 20), rank=2),
    )
    (removals,) = sieve.leave_one_out(["w1"], [[low, copy, high, middle]])
    assert [(r.ids, r.rank) for r in removals] == [(("high", "copy"), 1), (("middle",), 2), (("low",), 4)]
    rests = [[middle, low], [high, copy, low], [high, middle, copy]]
    expected = [screening.score for screening in sieve.screen(["w1"] * 3, rests)]
    assert [r.score for r in removals] == pytest.approx(expected, abs=TOLERANCE["float32"])


def test_sets_of_one_call_are_kept_apart(backbone: BackboneOf) -> None:
    """Document ids are unique within a set only."""
    sieve = sieve_of(backbone("bert"))
    questions = ["w1 w2", "w3"]
    sets = [
        [document("a", words(4)), document("b", words(9, 3))],
        [document("a", words(30, 9)), document("b", words(2)), document("c", "w5")],
    ]
    together = sieve.leave_one_out(questions, sets)
    assert [[r.ids for r in removals] for removals in together] == [[("a",), ("b",)], [("a",), ("b",), ("c",)]]
    for question, documents, removals in zip(questions, sets, together, strict=True):
        (alone,) = sieve.leave_one_out([question], [documents])
        assert [r.score for r in removals] == pytest.approx([r.score for r in alone], abs=TOLERANCE["float32"])


@pytest.mark.parametrize("documents", [[document("a", OPENED)], [document("a", OPENED), document("b", OPENED.lower())]])
def test_a_unit_that_is_the_whole_set_is_not_tried(backbone: BackboneOf, documents: list[Document]) -> None:
    """Promise 2: nothing would remain."""
    assert sieve_of(backbone("bert")).leave_one_out(["w1"], [documents]) == [[]]


def test_serving_reads_the_ids_that_training_does(backbone: BackboneOf) -> None:
    """Promise 6."""
    loaded = backbone("bert")
    sieve = sieve_of(loaded)
    with recorded(sieve.model) as calls:
        sieve.screen(["w1 w2"], [FIVE])
    assert calls[0]["input_ids"][0].tolist() == encode("w1 w2", FIVE, loaded.tokenizer, sieve.inputs).ids


def test_the_score_of_three_classes_is_the_softmax_of_the_second() -> None:
    """softmax(0, log 2, log 5) is 1/8, 2/8, 5/8; a single logit is its own log-odds."""
    three = torch.tensor([[0.0, math.log(2), math.log(5)], [90.0, 90.0, -90.0]])
    assert torch.sigmoid(log_odds(three)).tolist() == pytest.approx([0.25, 0.5])
    assert log_odds(torch.tensor([[0.0], [-3.0]])).tolist() == [0.0, -3.0]
    assert math.isnan(float(log_odds(torch.tensor([[0.0, math.nan, 0.0]]))))


def test_a_part_without_a_number_leaves_the_set_without_one() -> None:
    """Promise 1: `max` alone would pass it over, depending on the order."""
    assert pooled([0.2, 0.9, 0.4]) == 0.9
    assert all(math.isnan(pooled(scores)) for scores in itertools.permutations([0.2, math.nan, 0.4]))


class TestPairs:
    """`inputs.pooling=pairs`: each pair as a set of two, the highest score counts."""

    def test_a_set_scores_as_its_highest_pair(self, backbone: BackboneOf) -> None:
        whole, pairs = sieve_of(backbone("bert")), sieve_of(backbone("bert"), pooling="pairs")
        of_pairs = {ids: whole.screen(["w1 w2"], [list(two)])[0] for ids, two in named_pairs(FIVE)}
        (screening,) = pairs.screen(["w1 w2"], [FIVE])
        assert len(of_pairs) == 10
        assert screening.score == pytest.approx(max(s.score for s in of_pairs.values()), abs=TOLERANCE["float32"])
        assert screening.tokens == sum(s.tokens for s in of_pairs.values())
        assert len({s.score for s in of_pairs.values()}) == 10  # a mix-up would show

    def test_removals_are_the_highest_pairs_of_what_remains_and_cost_no_forward_pass(self, backbone: BackboneOf) -> None:
        whole, pairs = sieve_of(backbone("bert")), sieve_of(backbone("bert"), pooling="pairs")
        of_pairs = {ids: whole.screen(["w1 w2"], [list(two)])[0].score for ids, two in named_pairs(FIVE)}
        with recorded(pairs.model) as calls:
            pairs.screen(["w1 w2", "w3"], [FIVE, FIVE[:3]])
            screened = len(calls)
            removals, of_three = pairs.leave_one_out(["w1 w2", "w3"], [FIVE, FIVE[:3]])
        assert screened == len(calls) == 1
        assert [r.ids for r in removals] == [(f"d{i}",) for i in range(5)]
        expected = [max(score for ids, score in of_pairs.items() if f"d{i}" not in ids) for i in range(5)]
        assert [r.score for r in removals] == pytest.approx(expected, abs=TOLERANCE["float32"])
        alone = [whole.screen(["w3"], [[d for d in FIVE[:3] if d is not left]])[0].score for left in FIVE[:3]]
        assert [r.score for r in of_three] == pytest.approx(alone, abs=TOLERANCE["float32"])

    def test_what_was_forgotten_is_read_again(self, backbone: BackboneOf) -> None:
        pairs = sieve_of(backbone("bert"), pooling="pairs")
        with recorded(pairs.model) as calls:
            pairs.screen(["w1 w2"], [FIVE])
            remembered = pairs.leave_one_out(["w1 w2"], [FIVE])
            assert len(calls) == 1
            pairs.forget()
            again = pairs.leave_one_out(["w1 w2"], [FIVE])
        assert len(calls) == 2
        assert [removal.score for removal in again[0]] == pytest.approx(
            [removal.score for removal in remembered[0]], abs=TOLERANCE["float32"]
        )

    def test_without_a_screening_before_each_pair_is_read_once(self, backbone: BackboneOf) -> None:
        loaded = backbone("bert")
        screened, fresh = sieve_of(loaded, pooling="pairs"), sieve_of(loaded, pooling="pairs")
        screened.screen(["w1 w2"], [FIVE])
        fresh.screen(["w1"], [FIVE])  # another question's scores are not taken for this one's
        with recorded(loaded.model) as calls:
            removals = fresh.leave_one_out(["w1 w2"], [FIVE])
        assert sum(call["input_ids"].shape[0] for call in calls) == 10
        assert [r.score for r in removals[0]] == pytest.approx(
            [r.score for r in screened.leave_one_out(["w1 w2"], [FIVE])[0]], abs=TOLERANCE["float32"]
        )

    def test_another_temperature_is_not_served_from_memory(self, backbone: BackboneOf) -> None:
        sieve = sieve_of(backbone("bert"), pooling="pairs")
        sieve.screen(["w1 w2"], [FIVE])
        (before,) = sieve.leave_one_out(["w1 w2"], [FIVE])
        sieve.temperature = 50.0
        (after,) = sieve.leave_one_out(["w1 w2"], [FIVE])
        assert all(abs(r.score - 0.5) < 0.2 for r in after)
        assert [r.score for r in before] != pytest.approx([r.score for r in after], abs=1e-3)

    def test_the_order_of_documents_within_a_pair_is_the_ranking_s(self, backbone: BackboneOf) -> None:
        sieve = sieve_of(backbone("bert"), pooling="pairs")
        ordered = [document("a", words(5), rank=1), document("b", words(6, 9), rank=2), document("c", words(4, 33), rank=3)]
        with recorded(sieve.model) as calls:
            scores = [sieve.screen(["w1"], [list(order)])[0].score for order in itertools.permutations(ordered)]
        assert scores == pytest.approx([scores[0]] * 6, abs=TOLERANCE["float32"])
        assert all(torch.equal(call["input_ids"], calls[0]["input_ids"]) for call in calls)

    def test_near_identical_documents_are_one_document_of_a_pair(self, backbone: BackboneOf) -> None:
        """Promise 3: the copies make no pair with each other, and leave together."""
        loaded = backbone("bert")
        a, copy, b = document("a", words(9)), document("copy", words(9).upper()), document("b", words(6, 50))
        sieve = sieve_of(loaded, pooling="pairs")
        assert [[d.id for d in part] for part in sieve.parts([a, copy, b])] == [["a", "b"]]
        assert sieve.screen(["w1"], [[a, copy, b]])[0].score == pytest.approx(
            sieve_of(loaded).screen(["w1"], [[a, b]])[0].score, abs=TOLERANCE["float32"]
        )
        (removals,) = sieve.leave_one_out(["w1"], [[a, copy, b]])
        alone = [sieve_of(loaded).screen(["w1"], [[left]])[0].score for left in (b, a)]
        assert [(r.ids, r.rank) for r in removals] == [(("a", "copy"), 1), (("b",), 3)]
        assert [r.score for r in removals] == pytest.approx(alone, abs=TOLERANCE["float32"])

    @pytest.mark.parametrize("documents", [[], [document("a", words(5))], [document("a", words(9)), document("b", words(9).upper())]])
    def test_a_set_without_a_pair_is_scored_as_it_is(self, backbone: BackboneOf, documents: list[Document]) -> None:
        loaded = backbone("bert")
        (screening,) = sieve_of(loaded, pooling="pairs").screen(["w1"], [documents])
        assert screening == sieve_of(loaded).screen(["w1"], [documents[:1]])[0]

    def test_of_two_documents_either_is_left_alone(self, backbone: BackboneOf) -> None:
        loaded = backbone("bert")
        sieve, two = sieve_of(loaded, pooling="pairs"), FIVE[:2]
        with recorded(loaded.model) as calls:
            sieve.screen(["w1"], [two])
            (removals,) = sieve.leave_one_out(["w1"], [two])
        assert [call["input_ids"].shape[0] for call in calls] == [1, 2]
        alone = [sieve_of(loaded).screen(["w1"], [[left]])[0].score for left in (two[1], two[0])]
        assert [r.score for r in removals] == pytest.approx(alone, abs=TOLERANCE["float32"])

    def test_the_pairs_of_many_documents_keep_to_the_budget(self, backbone: BackboneOf) -> None:
        """Ten documents make 45 pairs of 45 tokens, four of which fit 200."""
        loaded = backbone("bert")
        ten = [document(f"d{i}", words(20, 13 * i)) for i in range(10)]
        with recorded(loaded.model) as calls:
            sieve_of(loaded, batch_tokens=200, pooling="pairs").screen(["w1"], [ten])
        assert sum(call["input_ids"].shape[0] for call in calls) == 45
        assert all(call["input_ids"].numel() <= 200 for call in calls)

    def test_a_document_cut_in_any_pair_is_named_once(self, backbone: BackboneOf) -> None:
        sieve = sieve_of(backbone("bert"), max_length=32, pooling="pairs")
        documents = [document("a", words(50)), document("b", words(2)), document("c", words(3, 9))]
        assert sieve.screen(["w1"], [documents])[0].truncated == ("a",)


def named_pairs(documents: list[Document]) -> list[tuple[tuple[str, str], tuple[Document, Document]]]:
    return [((a.id, b.id), (a, b)) for a, b in itertools.combinations(documents, 2)]
