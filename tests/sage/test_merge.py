"""Pitfall C1: a merged checkpoint answers as adapter and base did, serves alone, and is not written where it would not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import sage.merge
import sage.train
from rag.checkpoint import MANIFEST, read_manifest
from rag.errors import InputError
from rag.models.lora import LoraSettings
from rag.records import Example
from rag.rounding import TOLERANCE
from sage.merge import BOUNDS, PROBE, Drift, MergeJob, choices, compare, merge, probe
from sage.model import load_backbone
from sage.predict import Reply, Sage, load
from sage.train import TrainingResult

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


@pytest.fixture(scope="module")
def checkpoint(trained: TrainingResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny trained Sage with random adapter weights in place of its own, large enough to change what it says."""
    folder = tmp_path_factory.mktemp("checkpoint") / "sage"
    folder.mkdir()
    for path in trained.path.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    generator = torch.Generator().manual_seed(0)
    weights = load_file(folder / "adapter_model.safetensors")
    save_file(
        {name: torch.randn(tensor.shape, generator=generator) * 0.1 for name, tensor in weights.items()},
        folder / "adapter_model.safetensors",
    )
    return folder


def job(checkpoint: Path, **keys: Any) -> MergeJob:
    return MergeJob(checkpoint=checkpoint, device="cpu", max_new_tokens=4, **keys)


def replies(served: Sage, examples: list[Example]) -> list[tuple[str, float]]:
    answered = served.answer([example.question for example in examples], [example.documents for example in examples])
    return [(reply.output, reply.confidence) for reply in answered if isinstance(reply, Reply)]


def test_in_float32_the_merged_checkpoint_serves_alone_and_says_the_same(
    checkpoint: Path, memorised: list[Example], chatml_base: Path, tmp_path: Path
) -> None:
    manifest = merge(job(checkpoint), tmp_path / "merged")
    before, after = (load(folder, device="cpu", precision="fp32", max_new_tokens=8) for folder in (checkpoint, tmp_path / "merged"))
    said = replies(before, memorised)
    assert len(said) == len(memorised)
    assert [output for output, _ in replies(after, memorised)] == [output for output, _ in said]
    assert [c for _, c in replies(after, memorised)] == pytest.approx([c for _, c in said], abs=1e-4)
    names = {path.name for path in (tmp_path / "merged").iterdir()}
    assert {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja", MANIFEST} <= names
    assert not any("adapter" in name for name in names)
    assert str(chatml_base) not in (tmp_path / "merged" / "config.json").read_text()
    merged = manifest.settings["merged"]
    assert (merged["changed"], merged["probes"]) == (0, len(PROBE))
    assert 0 < merged["drift"] < BOUNDS[torch.float32]
    assert manifest.settings["model"]["lora"] is None
    assert (manifest.abstention, manifest.validation) == ("unanswerable", read_manifest(checkpoint, "sage").validation)


def test_the_random_adapter_does_change_what_the_base_says(checkpoint: Path) -> None:
    """Else the comparison above would pass for a merge that forgot the adapter."""
    adapted = load(checkpoint, device="cpu", precision="fp32")
    base = load_backbone(load_settings(checkpoint)).model
    [(question, documents), *_] = probe(None)
    ids = sage.merge.build(question, documents, adapted.tokenizer, adapted.inputs).ids
    answer = sage.merge.greedy(adapted.model, ids, 4)
    assert (choices(base, ids, answer) - choices(adapted.model, ids, answer)).abs().max() > 1


def load_settings(checkpoint: Path) -> Any:
    settings = sage.merge.ModelSettings.model_validate(read_manifest(checkpoint, "sage").settings["model"])
    return settings.model_copy(update={"device": "cpu"})


def test_in_bfloat16_the_drift_is_reported(checkpoint: Path, tmp_path: Path) -> None:
    """Rounding moves logits by more than in float32; this tiny model's are large, so the bound is set for it."""
    manifest = merge(job(checkpoint, precision="bf16", max_drift=20.0, max_changed=len(PROBE)), tmp_path / "merged")
    assert manifest.settings["dtype"] == "torch.bfloat16"
    assert manifest.settings["merged"]["drift"] > 0.01
    assert json.loads((tmp_path / "merged" / MANIFEST).read_text())["settings"]["merged"]["probes"] == len(PROBE)
    assert {tensor.dtype for tensor in load_file(tmp_path / "merged" / "model.safetensors").values()} == {torch.bfloat16}


def test_beyond_the_bound_nothing_is_written(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a logit moved by .* \(max_drift=1e-09\) and \d of 8 answers changed .*nothing was written"):
        merge(job(checkpoint, max_drift=1e-9), tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_changed_answers_and_logits_that_are_no_numbers_fail_too(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seen in (Drift(0.0, 1, 8), Drift(float("nan"), 0, 8)):
        monkeypatch.setattr(sage.merge, "compare", lambda *_, seen=seen: seen)
        with pytest.raises(InputError, match="the merged model is not the one before"):
            merge(job(checkpoint), tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_the_comparison_by_hand(checkpoint: Path) -> None:
    """Against itself nothing moves; against logits that are 0.5 higher at one place, that is the drift; NaN is not passed over."""
    served = load(checkpoint, device="cpu", precision="fp32")
    [(question, documents), *_] = probe(None)
    ids = sage.merge.build(question, documents, served.tokenizer, served.inputs).ids
    answer = sage.merge.greedy(served.model, ids, 5)
    logits = choices(served.model, ids, answer)
    assert logits.shape == (len(answer), len(served.tokenizer))
    assert logits.argmax(-1).tolist() == answer
    against_itself = compare(served.model, [ids], [answer], [logits], 5)
    assert against_itself == Drift(pytest.approx(0, abs=TOLERANCE["float32"]), 0, 1)
    moved = logits.clone()
    moved[0, 3] += 0.5
    assert compare(served.model, [ids], [[*answer[:-1], 3]], [moved], 5).changed == 1
    assert compare(served.model, [ids], [answer], [moved], 5).drift == pytest.approx(0.5, abs=1e-5)
    moved[0, 3] = float("nan")
    drift = compare(served.model, [ids, ids], [answer, answer], [logits, moved], 5).drift
    assert drift != drift


def with_model_settings(checkpoint: Path, folder: Path, **changes: Any) -> Path:
    """A copy of the checkpoint whose manifest says that it was trained otherwise."""
    folder.mkdir()
    for path in checkpoint.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["settings"]["model"] |= changes
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def test_an_adapter_of_a_4_bit_base_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    folder = with_model_settings(checkpoint, tmp_path / "packed", quantization="nf4")
    with pytest.raises(InputError, match=r"trained on a base in 4 bits \(nf4\).*train with sage.model.quantization=null"):
        merge(job(folder), tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_another_base_is_refused(checkpoint: Path, new_base: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trained on .* with fingerprint"):
        merge(job(checkpoint, base=str(new_base(seed=1))), tmp_path / "merged")


def test_a_merged_checkpoint_needs_no_base_and_is_not_merged_again(checkpoint: Path, chatml_base: Path, tmp_path: Path) -> None:
    first = merge(job(checkpoint), tmp_path / "merged")
    assert merge(job(checkpoint), tmp_path / "merged") == first
    with pytest.raises(InputError, match="expected a checkpoint with an adapter, found merged weights"):
        merge(job(tmp_path / "merged"), tmp_path / "again")
    with pytest.raises(InputError, match="the adapter is merged into its base, so base=.* would not be used"):
        load(tmp_path / "merged", base=str(chatml_base))


def test_merged_weights_that_were_changed_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    merge(job(checkpoint), tmp_path / "merged")
    weights = load_file(tmp_path / "merged" / "model.safetensors")
    weights["model.embed_tokens.weight"] += 1
    save_file(weights, tmp_path / "merged" / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match="fingerprint"):
        load(tmp_path / "merged", device="cpu")


def test_a_probe_of_one_s_own(memorised: list[Example], tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text("".join(example.model_dump_json() + "\n" for example in memorised))
    assert [question for question, _ in probe(tmp_path / "own.jsonl")] == [example.question for example in memorised]


def test_training_without_an_adapter_is_refused(
    job_in: Callable[..., Any], chatml_base: Path, memorised: list[Example], tmp_path: Path
) -> None:
    settings = job_in(tmp_path, chatml_base, memorised)
    assert settings.sage.model.lora == LoraSettings(r=8, alpha=16)
    without = settings.sage.model_copy(update={"model": settings.sage.model.model_copy(update={"lora": None})})
    with pytest.raises(InputError, match="sage.model.lora: expected the settings of the adapter to train, got none"):
        sage.train.train(settings.model_copy(update={"sage": without}), tmp_path / "out")
