"""From files of Examples to training rows, with everything left out counted."""

import logging
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rag.checkpoint import hashes, sha256
from rag.errors import InputError
from rag.records import Condition, Document, Example, RetrievalState
from sieve.data import DataSettings, Objective, classes, distinct, draw
from sieve.joint.data import Collator, rows
from sieve.joint.inputs import InputSettings
from sieve.joint.model import Backbone

SETTINGS = InputSettings(max_length=32)
STATES = {
    Condition.ANSWERABLE: RetrievalState.ANSWERABLE,
    Condition.UNANSWERABLE: RetrievalState.UNANSWERABLE,
    Condition.CONFLICT: RetrievalState.DISTRACTED,
    Condition.NEGATED: RetrievalState.DISTRACTED,
}
MakeExample = Callable[..., Example]
LEARNT = classes("conflict")


def test_conflict_is_learnt_against_answerable_and_the_rest_is_counted(
    backbone: Callable[[str], Backbone], make_example: MakeExample, caplog: pytest.LogCaptureFixture
) -> None:
    conditions = [Condition.CONFLICT, Condition.ANSWERABLE, Condition.NEGATED, Condition.CONFLICT, Condition.ADVERSARIAL, Condition.NEGATED]
    examples = [make_example(i, condition) for i, condition in enumerate(conditions)]
    examples.append(make_example(9, Condition.ANSWERABLE, text=" ".join(["w1"] * 60)))
    with caplog.at_level(logging.INFO, logger="sieve.joint.data"):
        made = rows(examples, backbone("bert").tokenizer, SETTINGS, LEARNT, "training")
    assert [row["label"] for row in made] == [1, 0, 1, 0]
    assert made[-1]["encoding"].truncated == ("d1",)
    assert caplog.messages == ["training: 2 answerable, 2 conflict; 1 cut to 32 tokens; not used: {'negated': 2, 'adversarial': 1}"]


@pytest.mark.parametrize(
    ("condition", "counts"),
    [
        (Condition.ANSWERABLE, "2 answerable, 0 conflict (not used: none)"),
        (Condition.CONFLICT, "0 answerable, 2 conflict (not used: none)"),
        (Condition.NEGATED, "0 answerable, 0 conflict (not used: {'negated': 2})"),
    ],
)
@pytest.mark.parametrize(("name", "key"), [("training", "data.train"), ("validation", "data.validation")])
def test_one_class_alone_is_refused(
    backbone: Callable[[str], Backbone], make_example: MakeExample, condition: Condition, counts: str, name: str, key: str
) -> None:
    examples = [make_example(i, condition) for i in range(2)]
    said = f"{name} data: expected examples of each class, found {counts}; check {key} and objective"
    with pytest.raises(InputError, match=re.escape(said)):
        rows(examples, backbone("bert").tokenizer, SETTINGS, LEARNT, name)


@pytest.mark.parametrize(
    ("objective", "clean", "labels"),
    [
        ("conflict", ("answerable",), {"answerable": 0, "conflict": 1}),
        ("conflict", ("answerable", "unanswerable"), {"answerable": 0, "unanswerable": 0, "conflict": 1}),
        ("unanswerable", ("answerable", "unanswerable"), {"answerable": 0, "unanswerable": 1}),
        ("threeway", ("answerable",), {"answerable": 0, "conflict": 1, "unanswerable": 2}),
    ],
)
def test_an_objective_numbers_its_classes(
    backbone: Callable[[str], Backbone], make_example: MakeExample, objective: Objective, clean: Any, labels: dict[str, int]
) -> None:
    """Figure 5: class 1 is the one whose probability is the score; `data.clean` is the business of `conflict` alone."""
    learnt = classes(objective, clean)
    assert learnt == labels
    conditions = [Condition.ANSWERABLE, Condition.UNANSWERABLE, Condition.CONFLICT, Condition.NEGATED]
    examples = [
        make_example(i, condition, state=STATES[condition], answers=() if condition is Condition.UNANSWERABLE else ("blue",))
        for i, condition in enumerate(conditions)
    ]
    made = rows(examples, backbone("bert").tokenizer, SETTINGS, learnt, "training")
    assert [row["label"] for row in made] == [labels[condition] for condition in conditions if condition in labels]


def test_a_class_of_two_conditions_needs_one_of_them(backbone: Callable[[str], Backbone], make_example: MakeExample) -> None:
    conflicts = [make_example(i, Condition.CONFLICT) for i in range(2)]
    with pytest.raises(InputError, match="found 0 answerable or unanswerable, 2 conflict"):
        rows(conflicts, backbone("bert").tokenizer, SETTINGS, classes("conflict", ("answerable", "unanswerable")), "training")


def test_pairs_are_learnt_from_sets_of_one_or_two(
    backbone: Callable[[str], Backbone], make_example: MakeExample, caplog: pytest.LogCaptureFixture
) -> None:
    documents = [Document(id=f"d{i}", text=f"w{i}") for i in range(3)]
    examples = [make_example(10 * k + i, c, documents=documents[:k]) for k in (1, 2, 3) for i, c in enumerate(LEARNT)]
    pairs = SETTINGS.model_copy(update={"pooling": "pairs"})
    with caplog.at_level(logging.INFO, logger="sieve.joint.data"):
        made = rows(examples, backbone("bert").tokenizer, pairs, LEARNT, "training")
    assert [len(row["encoding"].ids) for row in made] == [6, 6, 8, 8]  # first token, question of two, separator; a document, separator
    assert "not used: {'more than two documents': 2}" in caplog.text
    assert len(rows(examples, backbone("bert").tokenizer, SETTINGS, LEARNT, "training")) == 6


@given(
    conditions=st.lists(st.sampled_from([Condition.ANSWERABLE, Condition.CONFLICT]), max_size=30),
    one=st.integers(0, 32),
    other=st.integers(0, 32),
    seed=st.integers(0, 3),
)
def test_a_draw_is_balanced_and_part_of_a_larger_one(
    make_example: MakeExample, conditions: list[Condition], one: int, other: int, seed: int
) -> None:
    """Appendix B: the 100 examples are among the 200; the file's order stays."""
    examples = [make_example(i, condition) for i, condition in enumerate(conditions)]
    small, large = (draw(examples, LEARNT, limit, seed) for limit in sorted((one, other)))
    ids = [example.id for example in examples]
    assert len(small) == min(one, other, len(examples))
    assert {e.id for e in small} <= {e.id for e in large}
    assert [e.id for e in small] == [i for i in ids if i in {e.id for e in small}]
    counts, available = (Counter(e.condition for e in of) for of in (small, examples))
    few, many = sorted(LEARNT, key=lambda condition: counts[condition])
    assert counts[many] - counts[few] <= 1 or counts[few] == available[few]


def test_another_seed_draws_others(make_example: MakeExample) -> None:
    examples = [make_example(i, condition) for i in range(20) for condition in LEARNT]
    drawn = {tuple(example.id for example in draw(examples, LEARNT, 10, seed)) for seed in range(3)}
    assert len(drawn) == 3
    assert draw(examples, LEARNT, 10, 0) == draw(examples, LEARNT, 10, 0)


def test_a_limit_counts_what_can_be_learnt_from(
    backbone: Callable[[str], Backbone], make_example: MakeExample, caplog: pytest.LogCaptureFixture
) -> None:
    """Examples of other conditions do not use it up, and what it leaves out is counted."""
    examples = [make_example(i, condition) for condition in (Condition.NEGATED, *LEARNT) for i in range(5)]
    with caplog.at_level(logging.INFO, logger="sieve.joint.data"):
        made = rows(examples, backbone("bert").tokenizer, SETTINGS, LEARNT, "training", limit=4)
    assert sorted(row["label"] for row in made) == [0, 0, 1, 1]
    assert "2 answerable, 2 conflict; 0 cut to 32 tokens; not used: {'negated': 5, 'over data.limit': 6}" in caplog.text
    whole = rows(examples, backbone("bert").tokenizer, SETTINGS, LEARNT, "training")
    assert rows(examples, backbone("bert").tokenizer, SETTINGS, LEARNT, "training", limit=10) == whole


def test_a_question_without_room_is_refused_by_the_id_of_its_example(
    backbone: Callable[[str], Backbone], make_example: MakeExample
) -> None:
    long = make_example(3, Condition.CONFLICT, question=" ".join(["w1"] * 40))
    with pytest.raises(InputError, match="example 'e3-conflict': question of 40 tokens leaves no room for 2 documents in 32 tokens"):
        rows([long], backbone("bert").tokenizer, SETTINGS, LEARNT, "training")


def test_a_batch_has_the_inputs_of_serving_and_the_classes(backbone: Callable[[str], Backbone], make_example: MakeExample) -> None:
    loaded = backbone("longformer")
    examples = [make_example(1, Condition.ANSWERABLE), make_example(2, Condition.CONFLICT)]
    made = rows(examples, loaded.tokenizer, SETTINGS, LEARNT, "training")
    batch = Collator(loaded.tokenizer, SETTINGS, "longformer")(made)
    assert set(batch) == {"input_ids", "attention_mask", "global_attention_mask", "labels"}
    assert batch["labels"].tolist() == [0, 1]
    assert batch["labels"].dtype == torch.int64


def test_one_file_or_several(tmp_path: Path) -> None:
    one = DataSettings.model_validate({"train": tmp_path / "a.jsonl", "validation": [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]})
    assert (one.train, one.validation) == ((tmp_path / "a.jsonl",), (tmp_path / "b.jsonl", tmp_path / "a.jsonl"))


def test_files_of_one_name_have_a_hash_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no path of this machine in it, however they were named."""
    for name, text in (("demo/train.jsonl", "1"), ("web/train.jsonl", "2"), ("demo/validation.jsonl", "3")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    made = hashes([Path("demo/train.jsonl"), tmp_path / "web/train.jsonl", Path("demo/validation.jsonl")])
    assert made == {name: sha256(tmp_path / name) for name in ("demo/train.jsonl", "web/train.jsonl", "demo/validation.jsonl")}
    assert len(set(made.values())) == 3
    assert set(hashes([tmp_path / "demo/train.jsonl", tmp_path / "demo/validation.jsonl"])) == {"train.jsonl", "validation.jsonl"}


def test_paths_are_named_by_as_few_parts_as_tell_them_apart(tmp_path: Path) -> None:
    assert distinct([tmp_path / "a" / "sieve", tmp_path / "b" / "other"], "checkpoints") == ["sieve", "other"]
    assert distinct([tmp_path / "a" / "sieve", tmp_path / "b" / "sieve"], "checkpoints") == ["a/sieve", "b/sieve"]
    with pytest.raises(InputError, match="data: expected each path once, got .*sieve twice"):
        distinct([tmp_path / "a" / "sieve", tmp_path / "a" / "." / "sieve"], "data")
