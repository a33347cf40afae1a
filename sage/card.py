"""The model card of a Sage, made from its manifest."""

from rag import card
from rag.checkpoint import Manifest

METRICS = {
    "loss": "cross-entropy of the answers, in nats a token",
    "token_accuracy": "answer tokens right, given those before",
    "step": "optimiser step",
}


def write_card(manifest: Manifest) -> str:
    """The card as Markdown. It has no date, so that the same checkpoint gives the same bytes."""
    return card.render(
        "Sage checkpoint",
        {
            "": f"{_what(manifest)} {card.base(manifest)}",
            "Validation": card.metrics(manifest, METRICS) + "\n\nThe step was chosen on these examples, so the figures flatter.",
            "Known failures": _failures(manifest),
            "Data": card.data(manifest),
            "How it was made": card.origin(manifest),
        },
    )


def _what(manifest: Manifest) -> str:
    says = [f"`{word}`" for word in (manifest.abstention, manifest.conflict) if word]
    form = "An adapter (LoRA) on the base below that" if manifest.settings.get("model", {}).get("lora") else "A model that"
    return f"{form} answers a question from its documents or says {' or '.join(says)}. `sage.predict.load(folder)` loads it."


def _failures(manifest: Manifest) -> str:
    kept = manifest.counts.get("train", {})
    taught = ", ".join(f"{kept[name]} {name}" for name in ("answerable", "unanswerable", "conflict") if kept.get(name))
    lines = [f"Trained on {taught} examples; other kinds are new to it."] if taught else []
    if not manifest.conflict:
        lines.append("It takes the documents at their word: a false one among them can be what it answers from. Screen them first.")
    lines.append("Validation measures how it writes known answers, not how often it abstains rightly; `eval.pipeline` measures that.")
    return "\n".join(f"- {line}" for line in lines)
