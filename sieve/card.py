"""The model card of a Sieve, made from its manifest and its audit."""

from rag import card
from rag.checkpoint import Manifest
from sieve.measure.audit import Audit
from sieve.measure.audit_report import between, named, number, numbers, percent, probe_title, verdict_line
from sieve.threshold import ThresholdSettings

METRICS = {
    "sets": "sets",
    "questions": "questions",
    "macro_f1": "Macro-F1 at the threshold",
    "tpr": "distracted sets flagged",
    "fpr": "clean sets flagged",
    "auc": "AUC",
    "ece_uncalibrated": "expected calibration error, temperature 1",
    "ece": "expected calibration error",
}

STYLE = {
    "other_question": "Style tells",
    "single_document": "Style tells",
    "bag_of_words": "Of the audit's data, in which style alone would tell, not a failure of this Sieve",
    "bag_of_words_training": "Of the training data, whose label could be learnt from style",
}
"""What a probe above 0.5 says: of the Sieve's own scores that style moves them, of words alone only what the data would allow."""


def write_card(manifest: Manifest, audit: Audit | None) -> str:
    """The card as Markdown. It has no date, so that the same checkpoint gives the same bytes."""
    return card.render(
        "Sieve checkpoint",
        {
            "": f"{_what(manifest)} {card.base(manifest)}\n\n**{_verdict(audit)}**",
            "Threshold": _threshold(manifest),
            "Validation": card.metrics(manifest, METRICS)
            + "\n\nThreshold, temperature and checkpoint were chosen on these sets, so the figures flatter.",
            "Audit": _audit(audit),
            "Known failures": _failures(manifest, audit),
            "Data": card.data(manifest),
            "How it was made": card.origin(manifest),
        },
    )


def _what(manifest: Manifest) -> str:
    model = manifest.settings.get("model", {})
    layers = f"the first {model['num_layers']} layers of " if model.get("num_layers") else ""
    form = "an adapter (LoRA) on " if model.get("lora") else ""
    if manifest.settings.get("form") == "extractive":
        form = "an encoder that finds each document's answer and an adapter (LoRA) that judges what is contested, trained from "
    return (
        f"Reads a question and its retrieved documents and gives P(the set is distracted): {form}{layers}the base below. "
        "`sieve.predict.load(folder)` loads it."
    )


def _verdict(audit: Audit | None) -> str:
    if audit is None:
        return "Not audited: whether it detects conflict or the style of its training data is not known."
    if audit.verdict == "failed":
        return f"This checkpoint fails its audit. {verdict_line(audit)}"
    return verdict_line(audit)


def _threshold(manifest: Manifest) -> str:
    threshold = f"{manifest.threshold:.6g}" if manifest.threshold is not None else "none"
    rule = ThresholdSettings.model_validate(manifest.settings.get("threshold", {})).describe()
    flags_nothing = " **It flags no distracted validation set.**" if manifest.validation.get("tpr") == 0 else ""
    return (
        f"A set is flagged when its score is at least {threshold}. Rule: {rule}. Logits are divided by the temperature "
        f"{manifest.temperature:.4g} before they become scores.{flags_nothing}"
    )


def _audit(audit: Audit | None) -> str:
    if audit is None:
        return "None. `python -m sieve.audit checkpoint=FOLDER data.audit=[FILES] write_to_checkpoint=true` adds one."
    rows = [
        (named(g), "yes" if g.should_flag else "no", f"{g.sets} ({g.questions})", percent(g.flagged), between(g.low, g.high), number(g.auc))
        for g in audit.groups
    ]
    probes = [(probe_title(p), f"{p.positive}, {p.negative}", number(p.auc), numbers(p.low, p.high)) for p in audit.probes]
    flips = audit.flips
    return "\n\n".join(
        [
            card.table(("group", "should flag", "sets (questions)", "flagged", "95 % interval", "AUC"), rows),
            f"Under rotation of the documents {percent(flips.decision)} of {flips.sets} sets change the decision in some rotation, and "
            f"{percent(flips.blamed)} of {flips.flagged_sets} flagged sets the document to blame.",
            card.table(("style alone: AUC that should be about 0.5", "n", "AUC", "95 % interval"), probes),
        ]
    )


def _failures(manifest: Manifest, audit: Audit | None) -> str:
    """What the figures show, worst first: broken limits, groups that are mostly decided wrongly, style that tells, order that matters."""
    trained = sorted(name for name in manifest.counts.get("train", {}))
    found = [f"Trained on {', '.join(trained)} only; other kinds of sets are new to it."] if trained else []
    if audit is None:
        return "\n".join(f"- {line}" for line in [*found, "Nothing else is known: it was not audited."])
    wrong = [(g.flagged if not g.should_flag else 1 - g.flagged, g) for g in audit.groups]
    for share, group in sorted(wrong, key=lambda pair: -pair[0]):
        if share > 0.25:
            said = "flagged, though nothing in them is distracted" if not group.should_flag else "not flagged, though they are distracted"
            found.append(f"{named(group)}: {percent(share)} of {group.sets} sets are {said}.")
    for probe in audit.probes:
        if probe.low is not None and probe.low > 0.5:
            found.append(f"{STYLE[probe.name]}: {probe_title(probe)}, AUC {number(probe.auc)} ({numbers(probe.low, probe.high)}).")
    if audit.flips.decision:
        found.append(f"The order of the documents changes the decision on {percent(audit.flips.decision)} of {audit.flips.sets} sets.")
    return "\n".join(f"- {line}" for line in found) or "None found by the audit."
