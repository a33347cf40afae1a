"""Draw how a Sieve sees the conditions apart (paper 002, figure 5): embeddings by t-SNE, with a silhouette and a linear probe beside them.

python -m sieve.embed checkpoint=[runs/unanswerable,runs/conflict,runs/threeway] data=data/demo/validation.jsonl base=true
"""

import importlib.util
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from rich import box
from rich.console import Console
from rich.table import Table
from transformers import set_seed

from conf.job import job
from rag.checkpoint import MANIFEST, hashes, read_manifest, sha256
from rag.errors import InputError
from rag.jsonl import read_files
from rag.models.base import pick_device, pick_dtype
from rag.provenance import command, provenance
from rag.records import Example, Record, Text
from rag.settings import Files, JobSettings
from sieve.data import distinct, outputs
from sieve.joint.inputs import InputSettings
from sieve.joint.model import ModelSettings, load_backbone
from sieve.measure.intervals import share
from sieve.measure.scores import readable, request
from sieve.measure.settings import MeasureSettings
from sieve.predict import ExtractiveSieve, Sieve, load
from sieve.threshold import DEFAULT

FloatArray = npt.NDArray[np.float64]


class EmbedJob(JobSettings, MeasureSettings):
    """Settings of this job; the conditions of its examples are the colours."""

    checkpoint: Files
    """Folder that `sieve.train` wrote, or several: a panel for each."""
    base: bool
    """Also a panel for the base of the first checkpoint, before any training."""
    perplexity: float = Field(gt=0)
    """Of t-SNE: about how many neighbours count; less than the number of examples."""
    folds: int = Field(ge=2)
    """Of the probe's cross-validation; each condition needs as many questions."""


class Panel(Record):
    """How well one model tells the conditions apart, on its embeddings and not on the picture."""

    title: Text
    checkpoint: Text
    silhouette: float
    """From -1 to 1: how much nearer an example is to its own condition than to the nearest other one, on average (Euclidean)."""
    probe_accuracy: float
    """Share of examples whose condition a logistic regression on the embedding gets right, cross-validated with no question in two folds."""
    probe_low: float | None
    probe_high: float | None
    """Interval of the probe's accuracy, by question."""


class Embeddings(Record):
    """The content of `embed.json`."""

    examples: int
    questions: int
    conditions: dict[str, int]
    """Number of examples by condition."""
    majority: float
    """Accuracy of always naming the most frequent condition."""
    panels: tuple[Panel, ...]
    without_documents: int
    perplexity: float
    folds: int
    resamples: int
    seed: int
    data: dict[str, Text]
    provenance: dict[str, Text]


class Source(NamedTuple):
    """One model to embed with."""

    title: str
    checkpoint: Path
    trained: bool
    """Whether with the weights of the checkpoint, or with those of its base."""


def run(settings: EmbedJob, out: Path) -> Embeddings:
    """Embed the examples, and write `embeddings-N.npz` for each panel, `embed.png` and `embed.json` to `out`.

    Repeated with the same `out`, the job calls no model for embeddings that are there. Raises InputError without the extra `figures`, and
    for checkpoints or examples that it cannot use.
    """
    if missing := [name for name in ("matplotlib", "sklearn") if importlib.util.find_spec(name) is None]:
        raise InputError(f"sieve.embed needs {' and '.join(missing)}; pip install 'sieve-and-sage[figures]'")
    examples, blank = readable(read_files(settings.data))
    data = hashes(settings.data)
    conditions = [example.condition.value for example in examples]
    questions = [example.question_id for example in examples]
    require_enough(conditions, questions, settings)
    panels: list[Panel] = []
    maps: dict[str, FloatArray] = {}
    for number, source in enumerate(sources(settings), start=1):
        vectors = stored_or_made(out / f"embeddings-{number}.npz", source, examples, settings, data)
        right = probe(vectors, conditions, questions, settings.folds, settings.seed)
        accuracy = share(right, questions, resamples=settings.resamples, seed=settings.seed)
        panels.append(
            Panel(
                title=source.title,
                checkpoint=str(source.checkpoint),
                silhouette=silhouette(vectors, conditions),
                probe_accuracy=sum(right) / len(right),
                probe_low=accuracy.low,
                probe_high=accuracy.high,
            )
        )
        maps[caption(panels[-1])] = tsne(vectors, settings.perplexity, settings.seed)
    counts = Counter(conditions)
    result = Embeddings(
        examples=len(examples),
        questions=len(set(questions)),
        conditions=dict(sorted(counts.items())),
        majority=max(counts.values()) / len(examples),
        panels=tuple(panels),
        without_documents=blank,
        perplexity=settings.perplexity,
        folds=settings.folds,
        resamples=settings.resamples,
        seed=settings.seed,
        data=data,
        provenance={"command": command("sieve.embed"), **provenance()},
    )
    from sieve.measure.figures import plot_embeddings

    plot_embeddings(maps, conditions, out / "embed.png")
    (out / "embed.json").write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
    settings.tracking.log({f"{panel.title}/{n}": getattr(panel, n) for panel in panels for n in ("silhouette", "probe_accuracy")}, 0)
    for name in ("embed.json", "embed.png"):
        settings.tracking.file(out / name)
    show(result, out)
    return result


def require_enough(conditions: Sequence[str], questions: Sequence[str], settings: EmbedJob) -> None:
    """Refuse examples that cannot be told apart, drawn or cross-validated. Raises InputError."""
    of_condition = {name: len({q for c, q in zip(conditions, questions, strict=True) if c == name}) for name in set(conditions)}
    if len(of_condition) < 2:
        raise InputError(f"data: expected examples of two conditions or more, found only {', '.join(of_condition)}")
    if few := {name: count for name, count in sorted(of_condition.items()) if count < settings.folds}:
        found = ", ".join(f"{name} has {count}" for name, count in few.items())
        raise InputError(
            f"data: expected at least folds={settings.folds} questions of each condition, but {found}; lower folds or add data"
        )
    if settings.perplexity >= len(conditions):
        raise InputError(f"perplexity={settings.perplexity:g}: expected less than the number of examples, {len(conditions)}")


def sources(settings: EmbedJob) -> list[Source]:
    """The panels in order. Raises InputError for a folder that is no Sieve checkpoint."""
    names = distinct(settings.checkpoint, "checkpoint")
    objectives = [read_manifest(path, "sieve").settings.get("objective", "conflict") for path in settings.checkpoint]
    trained = [Source(f"{o}: {n}", path, True) for o, n, path in zip(objectives, names, settings.checkpoint, strict=True)]
    if not settings.base:
        return trained
    first = settings.checkpoint[0]
    return [Source(f"untrained: {read_manifest(first, 'sieve').base.id}", first, False), *trained]


def stored_or_made(path: Path, source: Source, examples: Sequence[Example], settings: EmbedJob, data: dict[str, str]) -> FloatArray:
    """Embeddings, [examples, width], from `path` if it was made from the same checkpoint and data, or else made and written there."""
    made_from = " ".join([sha256(source.checkpoint / MANIFEST), *data.values()])
    if path.is_file():
        with np.load(path) as stored:
            if str(stored["made_from"]) == made_from:
                return np.asarray(stored["vectors"], dtype=np.float64)
    sieve = load(source.checkpoint, device=settings.device, gate=False) if source.trained else untrained(source.checkpoint, settings)
    if isinstance(sieve, ExtractiveSieve):
        raise InputError(f"checkpoint={source.checkpoint}: a reader has no embedding of a set, it reads documents one by one")
    asked = [request(example.id, example.question, example.documents) for example in examples]
    batches = [asked[start : start + settings.batch_size] for start in range(0, len(asked), settings.batch_size)]
    embeddings = [e for batch in batches for e in sieve.embed([r.question for r in batch], [r.documents for r in batch])]
    partial = path.with_suffix(".partial.npz")
    np.savez(
        partial,
        made_from=np.array(made_from),
        vectors=np.array([embedding.vector for embedding in embeddings], dtype=np.float32),
        scores=np.array([embedding.score for embedding in embeddings], dtype=np.float32),
        ids=np.array([example.id for example in examples]),
        question_ids=np.array([example.question_id for example in examples]),
        conditions=np.array([example.condition.value for example in examples]),
    )
    partial.replace(path)
    return np.array([embedding.vector for embedding in embeddings], dtype=np.float32).astype(np.float64)


def untrained(checkpoint: Path, settings: EmbedJob) -> Sieve:
    """The base of a checkpoint as it was before training, under a head that is drawn by the seed."""
    manifest = read_manifest(checkpoint, "sieve")
    model = ModelSettings.model_validate(manifest.settings["model"])
    set_seed(settings.seed)
    backbone = load_backbone(model, outputs("conflict"))
    device = pick_device(settings.device)
    module: torch.nn.Module = backbone.model
    return Sieve(
        module.to(device, pick_dtype(model.precision, device)),
        backbone.tokenizer,
        InputSettings.model_validate(manifest.settings["inputs"]),
        model_type=backbone.model.config.model_type,
        threshold=DEFAULT,
    )


def silhouette(vectors: FloatArray, conditions: Sequence[str]) -> float:
    """Mean silhouette coefficient of the conditions as clusters, from -1 to 1."""
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(vectors, np.array(conditions)))


def probe(vectors: FloatArray, conditions: Sequence[str], questions: Sequence[str], folds: int, seed: int) -> list[bool]:
    """Whether a logistic regression that has not seen an example's question names its condition, for each example."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    cut = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    predicted = cross_val_predict(model, vectors, np.array(conditions), groups=np.array(questions), cv=cut)
    return [str(p) == c for p, c in zip(predicted, conditions, strict=True)]


def tsne(vectors: FloatArray, perplexity: float, seed: int) -> FloatArray:
    """Places in the picture, [examples, 2]. Distances between clusters and their sizes mean nothing in it."""
    from sklearn.manifold import TSNE

    return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(vectors), dtype=np.float64)


def caption(panel: Panel) -> str:
    """Title of a panel with its two figures."""
    return f"{panel.title}\nsilhouette {panel.silhouette:.3f}, probe {panel.probe_accuracy:.3f}"


def show(result: Embeddings, out: Path) -> None:
    """Print the figures as a table."""
    console = Console(width=120)
    counts = ", ".join(f"{count} {name}" for name, count in result.conditions.items())
    table = Table("model", "silhouette", "linear probe", "interval", box=box.SIMPLE_HEAD, pad_edge=False)
    for panel in result.panels:
        between = "" if panel.probe_low is None or panel.probe_high is None else f"{panel.probe_low:.3f} to {panel.probe_high:.3f}"
        table.add_row(panel.title, f"{panel.silhouette:.3f}", f"{panel.probe_accuracy:.3f}", between)
    console.print(
        f"{result.examples} sets of {result.questions} questions: {counts}. Naming the most frequent: {result.majority:.3f}.", table
    )
    console.print(f"written to {out}", soft_wrap=True, markup=False)


main = job(run, EmbedJob, config_name="sieve_embed")

if __name__ == "__main__":
    main()
