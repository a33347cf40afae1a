"""Embeddings: the right position of the right model, figures computed by hand, and a rerun that calls no model."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rag.errors import InputError
from rag.jsonl import read_examples, write_records
from rag.models.lora import LoraSettings
from rag.records import Condition, Document, Example, RetrievalState
from rag.rounding import TOLERANCE
from sieve.embed import EmbedJob, Source, probe, run, silhouette, stored_or_made, tsne
from sieve.joint.inputs import InputSettings, encode
from sieve.joint.model import Backbone
from sieve.predict import Sieve, load
from sieve.settings import TrainJob
from sieve.train import train

BackboneOf = Callable[[str], Backbone]
MakeExample = Callable[..., Example]
SETS = [
    ("w1 w2", [Document(id="a", text="w3 w4 w5"), Document(id="b", text="w9 w8 w7 w6")]),
    ("w3", [Document(id="a", text="w11 w12"), Document(id="b", text="w40 w41 w42"), Document(id="c", text="w50")]),
    ("w4 w5 w6", [Document(id="a", text="w20")]),
]


def sieve_of(backbone: Backbone, **inputs: Any) -> Sieve:
    settings = InputSettings(max_length=64, **inputs)
    return Sieve(backbone.model, backbone.tokenizer, settings, model_type=backbone.model.config.model_type, threshold=0.5)


@pytest.mark.parametrize(("family", "position"), [("bert", 0), ("longformer", 0), ("modernbert", 0), ("deberta-v2", 0), ("llama", -1)])
def test_an_embedding_is_the_last_hidden_state_that_the_head_reads(backbone: BackboneOf, family: str, position: int) -> None:
    """Of each set alone, whatever it is padded with in the batch; the scores are those of a screening."""
    loaded = backbone(family)
    sieve = sieve_of(loaded)
    questions, documents = [q for q, _ in SETS], [d for _, d in SETS]
    embeddings = sieve.embed(questions, documents)
    assert [e.score for e in embeddings] == pytest.approx([s.score for s in sieve.screen(questions, documents)], abs=TOLERANCE["float32"])
    for (question, docs), embedding in zip(SETS, embeddings, strict=True):
        ids = torch.tensor([encode(question, docs, loaded.tokenizer, sieve.inputs).ids])
        pattern = {"global_attention_mask": (torch.arange(ids.shape[1]) == 0).long()[None]} if family == "longformer" else {}
        with torch.inference_mode():
            expected = loaded.model.base_model(input_ids=ids, **pattern).last_hidden_state[0, position]
        assert embedding.vector == pytest.approx(expected.tolist(), abs=TOLERANCE["float32"])
    assert not loaded.model.base_model._forward_hooks


def test_of_pairs_the_highest_is_embedded(backbone: BackboneOf) -> None:
    loaded = backbone("bert")
    question, documents = SETS[1]
    (embedding,) = sieve_of(loaded, pooling="pairs").embed([question], [documents])
    pairs = [[documents[i], documents[j]] for i, j in ((0, 1), (0, 2), (1, 2))]
    highest = max(sieve_of(loaded).embed([question] * 3, pairs), key=lambda e: e.score)
    assert embedding.vector == pytest.approx(highest.vector, abs=TOLERANCE["float32"])
    assert embedding.score == pytest.approx(highest.score, abs=TOLERANCE["float32"])


def test_the_silhouette_by_hand() -> None:
    """Points 0, 1 and 10 of a, a and b: (10 - 1) / 10, (9 - 1) / 9, and 0 for a point alone, on average 0.5963."""
    vectors = np.array([[0.0], [1.0], [10.0]])
    assert silhouette(vectors, ["a", "a", "b"]) == pytest.approx((0.9 + 8 / 9 + 0) / 3)


def test_the_probe_sees_no_question_twice() -> None:
    """Embeddings that name the question and nothing else: known questions would be named perfectly, new ones are guessed."""
    questions = [f"q{i // 2}" for i in range(40)]
    conditions = ["a" if (i // 2) % 2 else "b" for i in range(40)]
    by_question = np.eye(20)[[i // 2 for i in range(40)]]
    assert sum(probe(by_question, conditions, questions, 5, 0)) / 40 <= 0.5
    by_condition = np.array([[1.0, i % 3] if c == "a" else [-1.0, i % 3] for i, c in enumerate(conditions)])
    assert all(probe(by_condition, conditions, questions, 5, 0))


def test_one_seed_is_one_picture() -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 5))
    first = tsne(vectors, 5, 0)
    assert first.shape == (20, 2)
    assert np.array_equal(first, tsne(vectors, 5, 0))


def three_ways(make_example: MakeExample, numbers: Sequence[int]) -> list[Example]:
    unanswerable = {"state": RetrievalState.UNANSWERABLE, "answers": (), "text": "w90 w91"}
    return [
        example
        for i in numbers
        for example in (
            make_example(i, Condition.ANSWERABLE),
            make_example(i, Condition.CONFLICT),
            make_example(i, Condition.UNANSWERABLE, **unanswerable),
        )
    ]


@pytest.fixture(scope="module")
def checkpoints(
    base: Callable[[str], Path], job_in: Callable[..., TrainJob], make_example: MakeExample, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Of all three objectives, with adapters and with all weights."""
    made = {}
    for objective, family, lora in (
        ("conflict", "llama", LoraSettings(r=4, alpha=8)),
        ("unanswerable", "bert", None),
        ("threeway", "llama", LoraSettings(r=4, alpha=8)),
    ):
        folder = tmp_path_factory.mktemp(f"{objective}-{family}")
        data = {"train": three_ways(make_example, range(8)), "validation": three_ways(make_example, range(50, 54))}
        job = job_in(folder, base(family), lora=lora, epochs=1, **data).model_copy(update={"objective": objective})
        train(job, folder / "out")
        made[f"{objective}-{family}"] = folder / "out"
    return made


@pytest.fixture
def job(checkpoints: dict[str, Path], make_example: MakeExample, tmp_path: Path) -> EmbedJob:
    write_records(tmp_path / "sets.jsonl", three_ways(make_example, range(70, 77)))
    return EmbedJob(
        checkpoint=tuple(checkpoints.values()), data=tmp_path / "sets.jsonl", base=True, perplexity=5, folds=3, resamples=20, batch_size=7
    )


def test_a_panel_for_each_checkpoint_and_for_the_base(
    job: EmbedJob, checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    result = run(job, out)
    assert [panel.title.partition(":")[0] for panel in result.panels] == ["untrained", "conflict", "unanswerable", "threeway"]
    assert result.conditions == {"answerable": 7, "conflict": 7, "unanswerable": 7}
    assert (result.examples, result.questions, result.majority) == (21, 7, pytest.approx(1 / 3))
    assert all(-1 <= panel.silhouette <= 1 and 0 <= panel.probe_accuracy <= 1 for panel in result.panels)
    assert len({panel.silhouette for panel in result.panels}) == 4  # each has a model of its own
    assert json.loads((out / "embed.json").read_text())["panels"][1]["checkpoint"] == str(checkpoints["conflict-llama"])
    picture = (out / "embed.png").read_bytes()
    assert picture.startswith(b"\x89PNG")

    examples = read_examples(job.data[0])
    expected = load(checkpoints["threeway-llama"]).embed([e.question for e in examples], [e.documents for e in examples])
    with np.load(out / "embeddings-4.npz") as stored:
        assert stored["vectors"] == pytest.approx(np.array([e.vector for e in expected]), abs=TOLERANCE["float32"])
        assert stored["scores"] == pytest.approx(np.array([e.score for e in expected]), abs=TOLERANCE["float32"])
        assert stored["ids"].tolist() == [e.id for e in examples]
        assert stored["conditions"].tolist() == ["answerable", "conflict", "unanswerable"] * 7

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a rerun loads no model")

    monkeypatch.setattr("sieve.embed.load", refuse)
    monkeypatch.setattr("sieve.embed.load_backbone", refuse)
    again = run(job, out)
    assert again.panels == result.panels
    assert (out / "embed.png").read_bytes() == picture


def test_embeddings_of_other_data_are_not_taken(job: EmbedJob, checkpoints: dict[str, Path], tmp_path: Path) -> None:
    source = Source("conflict", checkpoints["conflict-llama"], True)
    examples = read_examples(job.data[0])
    path = tmp_path / "embeddings-1.npz"
    first = stored_or_made(path, source, examples, job, {"sets.jsonl": "one"})
    np.savez(path, made_from=np.load(path)["made_from"], vectors=first * 0)
    assert not stored_or_made(path, source, examples, job, {"sets.jsonl": "one"}).any()
    assert np.array_equal(stored_or_made(path, source, examples, job, {"sets.jsonl": "two"}), first)


@pytest.mark.parametrize(
    ("changes", "kept", "message"),
    [
        ({"folds": 8}, range(21), "at least folds=8 questions of each condition, but answerable has 7, conflict has 7"),
        ({"perplexity": 21}, range(21), "perplexity=21: expected less than the number of examples, 21"),
        ({}, range(0, 21, 3), "expected examples of two conditions or more, found only answerable"),
    ],
)
def test_examples_that_cannot_be_drawn_are_refused_before_a_model_is_loaded(
    job: EmbedJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], kept: range, message: str
) -> None:
    monkeypatch.setattr("sieve.embed.load", None)
    lines = job.data[0].read_text().splitlines()
    job.data[0].write_text("\n".join(lines[i] for i in kept) + "\n")
    with pytest.raises(InputError, match=message):
        run(job.model_copy(update=changes), tmp_path)
