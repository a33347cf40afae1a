"""From files of Examples to training rows, with everything left out counted."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rag.checkpoint import hashes, sha256
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Condition, Example
from sieve.data import Collator, paths, read, rows
from sieve.inputs import InputSettings
from sieve.model import Backbone

SETTINGS = InputSettings(max_length=32)
MakeExample = Callable[..., Example]


def test_conflict_is_learnt_against_answerable_and_the_rest_is_counted(
    backbone: Callable[[str], Backbone], make_example: MakeExample, caplog: pytest.LogCaptureFixture
) -> None:
    conditions = [Condition.CONFLICT, Condition.ANSWERABLE, Condition.NEGATED, Condition.CONFLICT, Condition.ADVERSARIAL, Condition.NEGATED]
    examples = [make_example(i, condition) for i, condition in enumerate(conditions)]
    examples.append(make_example(9, Condition.ANSWERABLE, text=" ".join(["w1"] * 60)))
    with caplog.at_level(logging.INFO, logger="sieve.data"):
        made = rows(examples, backbone("bert").tokenizer, SETTINGS, "training")
    assert [row["label"] for row in made] == [1.0, 0.0, 1.0, 0.0]
    assert made[-1]["encoding"].truncated == ("d1",)
    assert caplog.messages == [
        "training: 2 conflict and 2 answerable sets, 1 of them cut to 32 tokens; not used: {'negated': 2, 'adversarial': 1}"
    ]


@pytest.mark.parametrize(
    ("condition", "counts"), [(Condition.ANSWERABLE, "2 and 0"), (Condition.CONFLICT, "0 and 2"), (Condition.NEGATED, "0 and 0")]
)
@pytest.mark.parametrize(("name", "key"), [("training", "data.train"), ("validation", "data.validation")])
def test_one_class_alone_is_refused(
    backbone: Callable[[str], Backbone], make_example: MakeExample, condition: Condition, counts: str, name: str, key: str
) -> None:
    examples = [make_example(i, condition) for i in range(2)]
    with pytest.raises(InputError, match=f"{name} data: expected both `answerable` and `conflict` examples, found {counts}; check {key}$"):
        rows(examples, backbone("bert").tokenizer, SETTINGS, name)


def test_a_question_without_room_is_refused_by_the_id_of_its_example(
    backbone: Callable[[str], Backbone], make_example: MakeExample
) -> None:
    long = make_example(3, Condition.CONFLICT, question=" ".join(["w1"] * 40))
    with pytest.raises(InputError, match="example 'e3-conflict': question of 40 tokens leaves no room for 2 documents in 32 tokens"):
        rows([long], backbone("bert").tokenizer, SETTINGS, "training")


def test_a_batch_has_the_inputs_of_serving_and_float_labels(backbone: Callable[[str], Backbone], make_example: MakeExample) -> None:
    loaded = backbone("longformer")
    made = rows([make_example(1, Condition.ANSWERABLE), make_example(2, Condition.CONFLICT)], loaded.tokenizer, SETTINGS, "training")
    batch = Collator(loaded.tokenizer, SETTINGS, "longformer")(made)
    assert set(batch) == {"input_ids", "attention_mask", "global_attention_mask", "labels"}
    assert batch["labels"].tolist() == [0.0, 1.0]
    assert batch["labels"].dtype == torch.float32


def test_several_files_are_read_in_order(make_example: MakeExample, tmp_path: Path) -> None:
    first, second = make_example(1, Condition.ANSWERABLE), make_example(2, Condition.CONFLICT)
    write_records(tmp_path / "a.jsonl", [first])
    write_records(tmp_path / "b.jsonl", [second])
    assert read(paths((tmp_path / "b.jsonl", tmp_path / "a.jsonl"))) == [second, first]
    assert paths(tmp_path / "a.jsonl") == (tmp_path / "a.jsonl",)


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
