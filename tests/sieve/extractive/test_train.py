"""A tiny extractive Sieve learns to read, to judge and to decide; what it wrote is served, resumed, refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from rag.checkpoint import MANIFEST, read_manifest
from rag.errors import InputError
from rag.jsonl import iter_records, write_records
from rag.models.lora import LoraSettings
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState
from rag.trackers.json_lines import METRICS, JsonLines, Line
from rag.tracking import Run, Tracking
from sieve import training
from sieve.data import DataSettings
from sieve.extractive.decision import DecisionSettings
from sieve.extractive.inputs import InputSettings
from sieve.extractive.load import JUDGE, READER
from sieve.extractive.model import ModelSettings
from sieve.extractive.predict import ExtractiveSieve
from sieve.extractive.settings import ExtractiveSettings, JudgeSettings, TrainSettings
from sieve.predict import load
from sieve.settings import TrainJob
from sieve.train import train

COLOURS = ("red", "blue")
COMMON = {
    "warmup_ratio": 0.1,
    "batch_size": 8,
    "gradient_accumulation": 1,
    "scheduler": "linear",
    "weight_decay": 0.0,
    "patience": 50,
    "evals_per_epoch": 1,
}


def example(number: int, condition: Condition) -> Example:
    """Two documents that name a colour, the same one or not, and one that names none."""
    true = COLOURS[number % 2]
    distracted = condition is Condition.CONFLICT
    stated = (true, COLOURS[1 - number % 2] if distracted else true)
    labels = (DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT if distracted else DocumentLabel.ANSWERABLE)
    documents = [
        Document(id=f"d{i}", text=f"the answer is {colour} w{number} w{10 * i}", label=label, answer=colour)
        for i, (colour, label) in enumerate(zip(stated, labels, strict=True))
    ]
    return Example(
        id=f"e{number}-{condition}",
        question_id=f"q{number}",
        question=f"the answer w{number}",
        documents=(*documents, Document(id="none", text=f"w{number} w50 w51 w52", label=DocumentLabel.UNANSWERABLE)),
        answers=(true,),
        state=RetrievalState.DISTRACTED if distracted else RetrievalState.ANSWERABLE,
        condition=condition,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSettings:
    folder = tmp_path_factory.mktemp("data")
    for name, numbers in (("train", range(40)), ("validation", range(40, 50))):
        write_records(folder / f"{name}.jsonl", [example(n, c) for n in numbers for c in (Condition.ANSWERABLE, Condition.CONFLICT)])
    pairs = [{"first": f"the answer is {c}", "second": c, "relation": "entails", "source": "made"} for c in COLOURS]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    return DataSettings(train=(folder / "train.jsonl",), validation=(folder / "validation.jsonl",), pairs=folder / "pairs.jsonl")


def job(model: ModelSettings, inputs: InputSettings, data: DataSettings, **changes: object) -> TrainJob:
    return TrainJob(
        sieve=ExtractiveSettings(
            form="extractive",
            model=model,
            inputs=inputs,
            train=TrainSettings(epochs=12, learning_rate=5e-3, validation_rows=100, **COMMON),
            judge=JudgeSettings(
                lora=LoraSettings(r=4, alpha=8, target_modules=("query", "value", "dense")),
                train=training.TrainSettings(epochs=6, learning_rate=5e-3, **COMMON),
                documents=120,
                validation_documents=40,
                pairs=2,
            ),
        ),
        data=data,
        out=None,
        seed=0,
        **changes,
    )


@pytest.fixture(scope="module")
def settings(model_settings: ModelSettings, inputs: InputSettings, data: DataSettings) -> Callable[..., TrainJob]:
    return lambda **changes: job(model_settings, inputs, data, **changes)


@pytest.fixture(scope="module")
def trained(settings: Callable[..., TrainJob], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "extractive"
    tracking = Tracking({"jsonl": JsonLines})
    with tracking.running(Run("sieve_train", out, {}, {})):
        train(settings(tracking=tracking), out)
    return out


def test_a_tiny_encoder_learns_to_read_and_so_to_see_conflict(trained: Path) -> None:
    sieve = load(trained)
    assert isinstance(sieve, ExtractiveSieve)
    unseen = [example(n, c) for n in (60, 61) for c in (Condition.ANSWERABLE, Condition.CONFLICT)]
    screenings = sieve.screen([e.question for e in unseen], [e.documents for e in unseen])
    assert [s.score >= sieve.threshold for s in screenings] == [False, True, False, True]
    assert dict(screenings[1].readings) == {"d0": "red", "d1": "blue", "none": ""}
    (removals,) = sieve.leave_one_out([unseen[1].question], [unseen[1].documents])
    assert {removal.ids for removal in removals if removal.score < sieve.threshold} == {("d0",), ("d1",)}


def test_neither_order_nor_mates_nor_silent_documents_change_a_score(trained: Path) -> None:
    sieve = load(trained)
    one = example(62, Condition.CONFLICT)
    alone = sieve.screen([one.question], [one.documents])[0].score
    sieve.forget()
    turned = tuple(document.model_copy(update={"rank": None}) for document in reversed(one.documents))
    mates = [example(n, Condition.ANSWERABLE) for n in range(70, 75)]
    among = sieve.screen([one.question, *(m.question for m in mates)], [turned, *(m.documents for m in mates)])[0].score
    assert among == pytest.approx(alone, abs=1e-5)
    assert sieve.screen([one.question], [one.documents[:2]])[0].score == pytest.approx(alone, abs=1e-5)
    assert sieve.screen([one.question], [one.documents[:1]])[0].score == pytest.approx(sieve.screen([one.question], [()])[0].score)


def test_the_manifest_says_what_was_learnt_and_fitted(trained: Path) -> None:
    manifest = read_manifest(trained, "sieve")
    assert manifest.settings["form"] == "extractive"
    decision = DecisionSettings.model_validate(manifest.settings["decision"])
    assert decision != DecisionSettings(floor=decision.floor) and decision.slope > 0
    assert manifest.counts["train"] == {"answerable": 120, "conflict": 40, "unanswerable": 80}
    assert manifest.validation["sets"] == 20
    assert set(manifest.data) == {"train.jsonl", "validation.jsonl", "pairs.jsonl"}
    assert not (trained / "trainer").exists()


def test_the_trackers_are_told_what_training_measures(trained: Path) -> None:
    losses = [line.metrics["validation/loss"] for line in iter_records(trained / METRICS, Line) if "validation/loss" in line.metrics]
    assert len(losses) >= 12 + 6 and losses[11] < losses[0]  # of the reader, then of the judge


def test_only_what_was_trained_is_written(trained: Path, encoder: Path) -> None:
    weights = load_file(trained / READER)
    assert "qa_outputs.weight" in weights and not any("word_embeddings" in name for name in weights)
    base = load_file(encoder / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.allclose(weights[f"bert.{name}"], base[name])


def test_a_run_that_stopped_after_a_step_goes_on_with_the_next(trained: Path, settings: Callable[..., TrainJob], tmp_path: Path) -> None:
    for name in (READER, JUDGE):
        (shutil.copytree if (trained / name).is_dir() else shutil.copy)(trained / name, tmp_path / name)
    before = (tmp_path / READER).read_bytes()
    result = train(settings(), tmp_path)
    assert (tmp_path / READER).read_bytes() == before
    again = DecisionSettings.model_validate(result.manifest.settings["decision"])
    first = DecisionSettings.model_validate(read_manifest(trained, "sieve").settings["decision"])
    assert again.model_dump() == pytest.approx(first.model_dump(), abs=1e-3)


def test_training_goes_on_from_a_checkpoint(trained: Path, settings: Callable[..., TrainJob], tmp_path: Path) -> None:
    given = settings(init=trained)
    short = given.sieve.model_copy(update={"train": given.sieve.train.model_copy(update={"epochs": 0})})
    train(given.model_copy(update={"sieve": short}), tmp_path)
    kept, new = load_file(trained / READER), load_file(tmp_path / READER)
    assert all(torch.allclose(kept[name], new[name]) for name in kept)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda w: {k: v for k, v in w.items() if not k.startswith("qa_outputs")}, r"missing \['qa_outputs.bias', 'qa_outputs.weight'\]"),
        (lambda w: {f"base_model.model.{k}": v for k, v in w.items()}, r"missing .*unexpected \['base_model.model"),
        (lambda w: {k: v[:1] if k == "qa_outputs.weight" else v for k, v in w.items()}, r"of another shape \['qa_outputs.weight'\]"),
        (lambda w: {k: v * torch.nan if k == "qa_outputs.weight" else v for k, v in w.items()}, r"\['qa_outputs.weight'\] are not numbers"),
    ],
)
def test_weights_that_are_not_those_of_this_model_are_refused(
    trained: Path, tmp_path: Path, spoil: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]], message: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(trained, folder)
    save_file({k: v.contiguous() for k, v in spoil(load_file(folder / READER)).items()}, folder / READER)
    with pytest.raises(InputError, match=message):
        load(folder)


def test_a_folder_without_its_parts_is_refused(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / JUDGE)
    with pytest.raises(InputError, match="expected the judge's adapter in judge/, found none"):
        load(tmp_path / "copy")
    (tmp_path / "copy" / READER).write_bytes(b"cut")
    with pytest.raises(InputError, match="expected weights in safetensors, could not read them"):
        load(tmp_path / "copy")


def test_another_base_is_refused(trained: Path, new_base: Callable[..., Path], tmp_path: Path) -> None:
    from tests.sieve.extractive.conftest import with_template

    other = with_template(new_base("bert", seed=9))
    shutil.copytree(trained, tmp_path / "copy")
    manifest = json.loads((tmp_path / "copy" / MANIFEST).read_text())
    manifest["settings"]["model"]["base"] = str(other)
    (tmp_path / "copy" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="base"):
        load(tmp_path / "copy")


def test_a_reader_compares_answers_and_so_has_one_objective(settings: Callable[..., TrainJob], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an extractive Sieve compares answers, so it learns `conflict` alone"):
        train(settings(objective="unanswerable"), tmp_path)
