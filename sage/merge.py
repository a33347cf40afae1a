"""Merge a Sage's adapter into its base, checked on a probe before anything is written: `python -m sage.merge checkpoint=FOLDER out=FOLDER`."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import torch
from peft import PeftModel
from pydantic import Field
from transformers import PreTrainedModel

from conf.job import job
from rag.checkpoint import MANIFEST, Base, Manifest, read_manifest, require_same_base, sha256, write_manifest
from rag.errors import InputError
from rag.jsonl import read_examples
from rag.models.base import Precision, fingerprint, load_tokenizer, quiet
from rag.provenance import provenance
from rag.records import Document
from rag.settings import InputPath, JobSettings
from sage.inputs import InputSettings, build
from sage.model import ModelSettings, load_backbone

logger = logging.getLogger(__name__)

BOUNDS = {torch.float32: 1e-3, torch.bfloat16: 0.5}
"""How far a logit may move. In float32 merging only changes the order of sums. In bfloat16 the sum of base and adapter is rounded to 8
bits of mantissa, which the two are not while they are apart; logits themselves are then 0.06 to 0.12 apart between 8 and 32."""

PROBE = (
    ("What is the capital of Peru?", ("The capital of Peru is Lima.", "Cusco was the capital of the Inca.")),
    ("When was the bridge at Sunderland opened?", ("The bridge at Sunderland was opened in 1796.",)),
    ("Who wrote Middlemarch?", ("Middlemarch is a novel by George Eliot.", "Eliot also wrote Silas Marner.", "It appeared in 1871.")),
    ("How high is Ben Nevis?", ("Ben Nevis stands 1,345 metres above sea level.", "Snowdon is 1,085 metres high.")),
    ("Who is the mayor of Lille?", ("The museum of Lille is closed on Tuesdays.",)),
    ("When does the ferry leave?", ("Tickets are sold on board.", "The harbour has two piers.")),
    ("Which metal is liquid at room temperature?", ("Mercury is a metal that is liquid at room temperature.",)),
    ("Where was the treaty signed?", ("Delegates met for a month.", "The treaty was signed in Ghent.", "It ended the war.")),
)
"""Questions with their documents: fixed, so that reports of two merges can be compared."""


class MergeJob(JobSettings):
    """Settings of this job; the run's folder becomes the merged checkpoint."""

    checkpoint: InputPath
    """Sage checkpoint with an adapter."""
    base: str | None = None
    """Where to load the base from; as in training where it is none."""
    precision: Precision | None = None
    """Of the merged weights and of the check; as in training where it is none."""
    device: str = "auto"
    """`auto`, or a torch device."""
    probe: InputPath | None = None
    """JSONL of Examples to compare on, in place of the built-in ones."""
    max_drift: float | None = Field(default=None, gt=0)
    """Largest difference of a logit that is let pass; by precision where it is none."""
    max_changed: int = Field(default=0, ge=0)
    """Greedy answers that may change."""
    max_new_tokens: int = Field(default=32, ge=1)
    """Length limit of an answer, and of the positions that are compared."""


class Drift(NamedTuple):
    """How the merged model differs from base and adapter apart, over the probe."""

    drift: float
    """Largest absolute difference of any logit at any position where an answer's token is chosen."""
    changed: int
    """Greedy answers that are not the same, token for token."""
    probes: int
    """Prompts compared."""


def merge(settings: MergeJob, out: Path) -> Manifest:
    """Merge, compare with the model before, and write weights, tokenizer and manifest to `out`, a checkpoint that needs no base.

    Raises InputError, and writes no weights, when the two differ by more than the bounds; for a checkpoint trained on a 4-bit base, whose
    whole base the adapter has never seen; and for one that holds no adapter.
    """
    if (out / MANIFEST).is_file():
        logger.info("%s already holds a complete checkpoint", out)
        return read_manifest(out, "sage")
    folder = settings.checkpoint
    manifest = read_manifest(folder, "sage")
    trained = ModelSettings.model_validate(manifest.settings["model"])
    if trained.lora is None:
        raise InputError(f"checkpoint={folder}: expected a checkpoint with an adapter, found merged weights")
    if trained.quantization is not None:
        raise InputError(
            f"checkpoint={folder}: trained on a base in 4 bits ({trained.quantization}), into which nothing can be merged without damage; "
            "serve the adapter on that base, or train with sage.model.quantization=null"
        )
    precision = settings.precision or ("bf16" if manifest.settings["dtype"] == str(torch.bfloat16) else "fp32")
    changes = {"device": settings.device, "precision": precision} | ({"base": settings.base, "revision": None} if settings.base else {})
    backbone = load_backbone(trained.model_copy(update=changes))
    require_same_base(folder, manifest, backbone.fingerprint)
    with quiet():
        adapted = PeftModel.from_pretrained(backbone.model, str(folder), autocast_adapter_dtype=False).eval()
    tokenizer = load_tokenizer(str(folder), pad_token=trained.pad_token)
    inputs = InputSettings.model_validate(manifest.settings["inputs"])
    prompts = [build(question, documents, tokenizer, inputs).ids for question, documents in probe(settings.probe)]

    before = cast(PreTrainedModel, adapted.get_base_model())
    answers = [greedy(before, prompt, settings.max_new_tokens) for prompt in prompts]
    logits = [choices(before, prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]
    merged = cast(PreTrainedModel, adapted.merge_and_unload())
    seen = compare(merged, prompts, answers, logits, settings.max_new_tokens)
    bound = BOUNDS[merged.dtype] if settings.max_drift is None else settings.max_drift
    logger.info(
        "merged in %s: largest drift of a logit %.3g (bound %.3g), %d of %d answers changed", merged.dtype, seen.drift, bound, *seen[1:]
    )
    # Written so that a drift that is no number fails too.
    if not (seen.drift <= bound and seen.changed <= settings.max_changed):
        raise InputError(
            f"checkpoint={folder}: the merged model is not the one before: a logit moved by {seen.drift:.3g} (max_drift={bound:g}) and "
            f"{seen.changed} of {seen.probes} answers changed (max_changed={settings.max_changed}); nothing was written; "
            "merge with precision=fp32, or serve the adapter on its base"
        )

    with quiet():
        merged.save_pretrained(out)
    tokenizer.save_pretrained(out)
    written = manifest.model_copy(
        update={
            "base": Base(id=manifest.base.id, revision=manifest.base.revision, fingerprint=fingerprint(merged)),
            "settings": {
                **manifest.settings,
                "model": trained.model_copy(update={"lora": None}).model_dump(mode="json"),
                "dtype": str(merged.dtype),
                "merged": {
                    **seen._asdict(),
                    "lora": trained.lora.model_dump(mode="json"),
                    "adapter": sha256(folder / "adapter_model.safetensors"),
                    "base": manifest.base.fingerprint,
                },
            },
            "provenance": provenance(),
        }
    )
    write_manifest(out, written)
    return written


def probe(path: Path | None) -> list[tuple[str, Sequence[Document]]]:
    """Questions with their documents: the built-in ones, or those of a file."""
    if path is None:
        return [(question, [Document(id=f"d{i}", text=text) for i, text in enumerate(texts, 1)]) for question, texts in PROBE]
    return [(example.question, example.documents) for example in read_examples(path)]


@torch.inference_mode()
def greedy(model: PreTrainedModel, prompt: Sequence[int], max_new_tokens: int) -> list[int]:
    """Ids of the greedy answer to one prompt, its end token included."""
    ids = torch.tensor([list(prompt)], device=model.device)
    generated = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=max_new_tokens)  # type: ignore[operator]
    return [int(i) for i in generated[0, len(prompt) :]]


@torch.inference_mode()
def choices(model: PreTrainedModel, prompt: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
    """Logits from which each token of `answer` is chosen, given those before it: [tokens, vocabulary], float32, on the CPU."""
    ids = torch.tensor([[*prompt, *answer]], device=model.device)
    logits: torch.Tensor = model(input_ids=ids, attention_mask=torch.ones_like(ids), logits_to_keep=len(answer) + 1).logits
    return logits[0, :-1].float().cpu()


def compare(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    logits: Sequence[torch.Tensor],
    max_new_tokens: int,
) -> Drift:
    """Compare `model` with the answers and logits of another on the same prompts."""
    moved = [
        float((choices(model, prompt, answer) - before).abs().max())
        for prompt, answer, before in zip(prompts, answers, logits, strict=True)
    ]
    changed = sum(greedy(model, prompt, max_new_tokens) != list(answer) for prompt, answer in zip(prompts, answers, strict=True))
    # `max` passes over what is no number; a sum does not.
    return Drift(max(moved) if sum(moved) < float("inf") else float("nan"), changed, len(prompts))


main = job(merge, MergeJob, config_name="sage_merge")

if __name__ == "__main__":
    main()
