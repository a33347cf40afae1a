import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from rag.checkpoint import MANIFEST, read_manifest, sha256
from rag.errors import InputError
from rag.jsonl import iter_records, write_records
from rag.models.lora import LoraSettings
from rag.records import Condition, Document, DocumentLabel, Example, RetrievalState
from rag.trackers.json_lines import METRICS, JsonLines, Line
from rag.tracking import Run, Tracking
from sieve.data import DataSettings
from sieve.predict import load
from sieve.reader.agreement import AgreementSettings
from sieve.reader.inputs import InputSettings
from sieve.reader.model import ModelSettings
from sieve.reader.predict import ReaderSieve
from sieve.reader.settings import ReaderSettings, TrainSettings
from sieve.reader.trainer import reading_loss
from sieve.settings import TrainJob
from sieve.train import train

COLOURS = ("red", "blue")


def example(number: int, condition: Condition) -> Example:
    """Two documents that name a colour, the same one or not, and one that names none."""
    true = COLOURS[number % 2]
    stated = (true, COLOURS[1 - number % 2] if condition is Condition.CONFLICT else true)
    labels = (DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT if condition is Condition.CONFLICT else DocumentLabel.ANSWERABLE)
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
        state=RetrievalState.DISTRACTED if condition is Condition.CONFLICT else RetrievalState.ANSWERABLE,
        condition=condition,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSettings:
    folder = tmp_path_factory.mktemp("data")
    for name, numbers in (("train", range(40)), ("validation", range(40, 50))):
        write_records(folder / f"{name}.jsonl", [example(n, c) for n in numbers for c in (Condition.ANSWERABLE, Condition.CONFLICT)])
    return DataSettings(train=(folder / "train.jsonl",), validation=(folder / "validation.jsonl",))


def job(base: Path, data: DataSettings, **changes: object) -> TrainJob:
    return TrainJob(
        sieve=ReaderSettings(
            form="reader",
            model=ModelSettings(base=str(base), lora=LoraSettings(r=8, alpha=32), precision="fp32"),
            inputs=InputSettings(max_length=64, max_answer_tokens=4),
            train=TrainSettings(
                epochs=20,
                learning_rate=2e-2,
                warmup_ratio=0.1,
                batch_size=8,
                gradient_accumulation=1,
                scheduler="linear",
                weight_decay=0.0,
                patience=20,
                evals_per_epoch=1,
            ),
        ),
        data=data,
        out=None,
        seed=0,
        **changes,
    )


@pytest.fixture(scope="module")
def trained(causal_base: Path, data: DataSettings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "reader"
    tracking = Tracking({"jsonl": JsonLines})
    with tracking.running(Run("sieve_train", out, {}, {})):
        train(job(causal_base, data, tracking=tracking), out)
    return out


def test_the_trackers_are_told_what_training_measures_by_step(trained: Path) -> None:
    lines = list(iter_records(trained / METRICS, Line))
    losses = [line.metrics["validation/loss"] for line in lines if "validation/loss" in line.metrics]
    assert len(losses) == 20 and losses[-1] < losses[0]
    assert [line.step for line in lines] == sorted(line.step for line in lines)
    assert lines[-1].metrics["checkpoint/macro_f1"] == read_manifest(trained, "sieve").validation["macro_f1"]


def test_a_tiny_reader_learns_to_read_and_so_to_see_conflict(trained: Path) -> None:
    reader = load(trained)
    assert isinstance(reader, ReaderSieve)
    unseen = [example(n, c) for n in (60, 61) for c in (Condition.ANSWERABLE, Condition.CONFLICT)]
    screenings = reader.screen([e.question for e in unseen], [e.documents for e in unseen])
    assert [s.score >= reader.threshold for s in screenings] == [False, True, False, True]
    assert dict(screenings[1].readings) == {"d0": "red", "d1": "blue", "none": ""}
    (removals,) = reader.leave_one_out([unseen[1].question], [unseen[1].documents])
    assert {removal.ids for removal in removals if removal.score < reader.threshold} == {("d0",), ("d1",)}


def test_the_manifest_says_what_was_learnt_and_fitted(trained: Path) -> None:
    manifest = read_manifest(trained, "sieve")
    assert manifest.settings["form"] == "reader"
    assert set(manifest.settings["agreement"]) == set(AgreementSettings.model_fields)
    agreement = AgreementSettings.model_validate(manifest.settings["agreement"])
    assert agreement.quieter > 0 and agreement.slope > 0
    assert agreement.model_copy(update={"floor": 0.05}) != AgreementSettings()
    assert manifest.counts["train"] == {"answerable": 80, "conflict": 40, "unanswerable": 40}
    assert manifest.validation["sets"] == 20
    assert not (trained / "trainer").exists()


def test_a_reader_is_not_loaded_as_something_else(trained: Path, causal_base: Path, data: DataSettings) -> None:
    settings = job(causal_base, data).sieve
    assert isinstance(load(trained, expected=settings), ReaderSieve)
    with pytest.raises(InputError, match="objective=threeway: a reader compares answers"):
        train(job(causal_base, data, objective="threeway"), trained.parent / "other")


def test_training_can_go_on_from_a_reader(trained: Path, causal_base: Path, data: DataSettings, tmp_path: Path) -> None:
    settings = job(causal_base, data, init=(trained,))
    short = settings.model_copy(
        update={
            "sieve": settings.sieve.model_copy(
                update={"train": settings.sieve.train.model_copy(update={"epochs": 0.1, "learning_rate": 1e-5})}
            )
        }
    )
    result = train(short, tmp_path / "more")
    assert result.manifest.settings["init"] is not None
    assert result.manifest.validation["macro_f1"] > 0.9


def test_a_limit_draws_as_many_sets_of_each_class(trained: Path, causal_base: Path, data: DataSettings, tmp_path: Path) -> None:
    """Of the first four sets of the file, or of four that come as they come, two of each class would be luck."""
    settings = without_training(causal_base, data.model_copy(update={"limit": 4}), trained)
    for seed in (0, 1):
        result = train(settings.model_copy(update={"seed": seed}), tmp_path / str(seed))
        assert result.manifest.counts["train"] == {"answerable": 6, "conflict": 2, "unanswerable": 4}
        assert result.manifest.settings["data"]["examples"] == 4


def without_training(base: Path, data: DataSettings, *init: Path) -> TrainJob:
    settings = job(base, data, init=init)
    still = settings.sieve.model_copy(update={"train": settings.sieve.train.model_copy(update={"epochs": 0.0})})
    return settings.model_copy(update={"sieve": still})


def test_without_epochs_only_the_fit_is_made_anew(trained: Path, causal_base: Path, data: DataSettings, tmp_path: Path) -> None:
    result = train(without_training(causal_base, data, trained), tmp_path / "again")
    before, after = (load_file(folder / "adapter_model.safetensors") for folder in (trained, tmp_path / "again"))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert result.manifest.threshold == pytest.approx(read_manifest(trained, "sieve").threshold, abs=1e-6)


def test_the_weights_of_several_readers_are_averaged(trained: Path, causal_base: Path, data: DataSettings, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    weights = load_file(trained / "adapter_model.safetensors")
    save_file({name: 2 * tensor for name, tensor in weights.items()}, other / "adapter_model.safetensors", {"format": "pt"})
    result = train(without_training(causal_base, data, trained, other), tmp_path / "mean")
    mean = load_file(tmp_path / "mean" / "adapter_model.safetensors")
    assert set(mean) == set(weights)
    for name, tensor in weights.items():
        torch.testing.assert_close(mean[name].float(), 1.5 * tensor.float(), rtol=1e-2, atol=1e-6)
    assert result.manifest.settings["init"] == [sha256(folder / MANIFEST) for folder in (trained, other)]


def test_nothing_to_train_and_nothing_to_go_on_from_is_refused(causal_base: Path, data: DataSettings) -> None:
    with pytest.raises(ValueError, match="sieve.train.epochs=0 trains nothing"):
        TrainJob.model_validate(without_training(causal_base, data, causal_base).model_copy(update={"init": None}).model_dump())


def test_long_and_short_answers_weigh_the_same_and_speaking_as_much_as_silence() -> None:
    end = 3
    logits = torch.zeros(3, 3, 4)
    logits[0, :, 0] = 5.0
    labels = torch.tensor([[0, 0, 0], [-100, 1, end], [-100, -100, end]])
    certain = -torch.log_softmax(logits[0, 0], -1)[0] - torch.log1p(-torch.softmax(logits[0, 0], -1)[end])
    even = torch.log(torch.tensor(4.0)) - torch.log(torch.tensor(3 / 4))
    silent = torch.log(torch.tensor(4.0))
    outputs = type("Outputs", (), {"logits": logits})
    expected = float((certain + even + silent) / 3)
    assert float(reading_loss(outputs, labels, end_id=end)) == pytest.approx(expected)
    assert float(reading_loss(outputs, labels, 4, end_id=end, accumulation=2)) == pytest.approx(expected / 2)


def test_the_loss_of_a_sure_mistake_is_finite() -> None:
    logits = torch.full((2, 1, 4), -1e4)
    logits[0, 0, 3] = logits[1, 0, 0] = 1e4
    outputs = type("Outputs", (), {"logits": logits.requires_grad_()})
    loss = reading_loss(outputs, torch.tensor([[0], [3]]), end_id=3)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.isfinite() and logits.grad is not None and logits.grad.isfinite().all()
