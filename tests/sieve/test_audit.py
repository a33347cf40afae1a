"""The audit, operating points and card of a real checkpoint, from its training to its folder."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rag.checkpoint import MANIFEST, Manifest, read_manifest
from rag.errors import InputError
from rag.jsonl import write_records
from rag.models.lora import LoraSettings
from rag.records import Example
from sieve.audit import AuditData, AuditJob
from sieve.audit import run as run_audit
from sieve.card import write_card
from sieve.data import leave_out
from sieve.measure.audit import AUDIT, Audit, AuditSettings
from sieve.measure.audit_report import read_audit
from sieve.measure.groups import Limit
from sieve.measure.probes import Probe
from sieve.operating import OperatingJob
from sieve.operating import run as run_operating
from sieve.predict import Sieve, load
from sieve.settings import TrainJob
from sieve.threshold import ThresholdSettings, choose, rates
from sieve.train import train

Examples = Callable[..., list[Example]]
SETTINGS = AuditSettings(
    limits=(Limit(group="conflict", at_least=0.75), Limit(group="answerable", at_most=0.1)),
    rotated_sets=4,
    bag_of_words=False,
    resamples=50,
)


class Trained:
    """A tiny checkpoint that was trained with an audit, and the files of it."""

    def __init__(self, folder: Path, base: Path, job_in: Callable[..., TrainJob], make_examples: Examples) -> None:
        self.audited = folder / "audited.jsonl"
        write_records(self.audited, make_examples(6, start=80))
        job = job_in(folder, base, lora=LoraSettings(r=4, alpha=8), epochs=6)
        sieve = job.sieve.model_copy(update={"model": job.sieve.model.model_copy(update={"base_license": "Apache-2.0"})})
        data = job.data.model_copy(update={"audit": (self.audited,)})
        self.job = job.model_copy(update={"sieve": sieve, "data": data, "audit": SETTINGS})
        self.out = folder / "out"
        self.result = train(self.job, self.out)


@pytest.fixture(scope="module")
def trained(base: Callable[[str], Path], job_in: Any, make_examples: Examples, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp("trained"), base("llama"), job_in, make_examples)


def operating_job(trained: Trained, **changes: Any) -> OperatingJob:
    values = {
        "checkpoint": trained.out,
        "data": trained.audited,
        "thresholds": (0.0, 0.5, 1.0),
        "bins": 10,
        "resamples": 50,
        "batch_size": 5,
    }
    return OperatingJob.model_validate({**values, **changes})


def audit_job(trained: Trained, **changes: Any) -> AuditJob:
    data = AuditData(audit=(trained.audited,))
    return AuditJob(checkpoint=trained.out, data=data, audit=SETTINGS, device="cpu", **changes)


def test_training_audits_and_writes_a_card(trained: Trained) -> None:
    figures = read_audit(trained.out)
    assert figures is not None
    assert {group.group for group in figures.groups} == {"conflict", "answerable"}
    assert figures.threshold == trained.result.manifest.threshold
    assert list(figures.data) == ["audited.jsonl"]
    card = (trained.out / "README.md").read_text(encoding="utf-8")
    assert card == write_card(trained.result.manifest, figures)
    assert not (trained.out / "trainer").exists()


def test_the_served_scores_belong_to_the_stored_threshold_and_temperature(trained: Trained, make_examples: Examples) -> None:
    """What was measured on validation comes out again when the checkpoint is loaded and scores the same sets."""
    sets = make_examples(8, start=50)
    labels = [example.condition.value == "conflict" for example in sets]
    served = load(trained.out)
    scores = [s.score for s in served.screen([e.question for e in sets], [e.documents for e in sets])]
    manifest = trained.result.manifest
    assert manifest.temperature != 1.0
    assert served.temperature == manifest.temperature == trained.result.sieve.temperature
    at = rates(scores, labels, served.threshold)
    assert manifest.validation["macro_f1"] == at.macro_f1
    assert served.threshold == pytest.approx(choose(scores, labels), abs=1e-6)
    assert manifest.counts == {"train": {"answerable": 16, "conflict": 16}, "validation": {"answerable": 8, "conflict": 8}}


def test_an_old_manifest_without_temperature_loads_and_scores_as_before(trained: Trained, make_examples: Examples, tmp_path: Path) -> None:
    content = json.loads((trained.out / MANIFEST).read_text())
    for name in ("temperature", "intervals", "counts", "command"):
        del content[name]
    del content["settings"]["threshold"]
    manifest = Manifest.model_validate(content)
    assert manifest.temperature == 1.0
    assert "temperature 1 " in write_card(manifest, None)
    assert "Not audited" in write_card(manifest, None)


def test_the_job_repeats_the_audit_and_resumes(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_audit(audit_job(trained), tmp_path)
    at_training = read_audit(trained.out)
    assert at_training is not None
    assert [g.flagged for g in first.groups] == [g.flagged for g in at_training.groups]
    monkeypatch.setattr(Sieve, "score", lambda *_: pytest.fail("a rerun must not call the model"))
    again = run_audit(audit_job(trained), tmp_path)
    assert again == first
    assert Audit.model_validate_json((tmp_path / AUDIT).read_bytes()) == first
    assert "# Audit of a Sieve" in (tmp_path / "audit.md").read_text(encoding="utf-8")


def test_other_files_in_the_same_folder_are_refused(trained: Trained, make_examples: Examples, tmp_path: Path) -> None:
    run_audit(audit_job(trained), tmp_path / "out")
    other = tmp_path / "audited.jsonl"
    write_records(other, make_examples(3, start=90))
    job = audit_job(trained).model_copy(update={"data": AuditData(audit=(other,))})
    with pytest.raises(InputError, match="made from other content of audited.jsonl"):
        run_audit(job, tmp_path / "out")


def test_a_failed_audit_is_written_to_the_checkpoint_and_its_card_says_so(trained: Trained, tmp_path: Path) -> None:
    before = {name: (trained.out / name).read_bytes() for name in ("README.md", AUDIT)}
    hard = SETTINGS.model_copy(update={"limits": (Limit(group="conflict", at_most=0.0), Limit(group="absent", at_most=0.1))})
    figures = run_audit(audit_job(trained, write_to_checkpoint=True).model_copy(update={"audit": hard}), tmp_path)
    card = (trained.out / "README.md").read_text(encoding="utf-8")
    assert figures.verdict == "failed"
    assert read_audit(trained.out) == figures
    assert str(trained.out.parent) not in (trained.out / AUDIT).read_text(
        encoding="utf-8"
    )  # no folder of this machine goes with the weights
    assert "**This checkpoint fails its audit. Audit failed. Broken: conflict flagged 100.0%, limit at most 0%. Not measured" in card
    for name, content in before.items():
        (trained.out / name).write_bytes(content)


def test_an_audit_that_was_edited_by_hand_is_named(tmp_path: Path) -> None:
    assert read_audit(tmp_path) is None
    (tmp_path / AUDIT).write_text('{"treshold": 1}', encoding="utf-8")
    with pytest.raises(InputError, match=r"audit\.json: .*treshold: unknown field; did you mean 'threshold'\?.*run the audit again"):
        read_audit(tmp_path)


def test_operating_points_by_the_table_of_the_paper(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Table 10: at 0 everything is flagged and at 1 nothing; the stored threshold is among them."""
    result = run_operating(operating_job(trained), tmp_path)
    ends = {point.threshold: point for point in result.points}
    assert (ends[0.0].tpr, ends[0.0].fpr, ends[0.0].tnr, ends[0.0].fnr) == (1, 1, 0, 0)
    assert (ends[1.0].tpr, ends[1.0].fpr, ends[1.0].macro_f1) == (0, 0, pytest.approx(1 / 3))
    assert [point.threshold for point in result.points if point.stored] == [trained.result.manifest.threshold]
    assert (result.sets, result.distracted, result.questions) == (12, 6, 6)
    assert result.before.temperature == 1.0 and result.after.temperature == trained.result.manifest.temperature
    assert sum(part.n for part in result.before.bins) == sum(part.n for part in result.after.bins) == 12
    pictures = [(tmp_path / name).read_bytes() for name in ("rates.png", "reliability.png")]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert "(stored)" in (tmp_path / "operating.md").read_text(encoding="utf-8")
    monkeypatch.setattr(Sieve, "score", lambda *_: pytest.fail("a rerun must not call the model"))
    assert run_operating(operating_job(trained), tmp_path) == result
    assert [(tmp_path / name).read_bytes() for name in ("rates.png", "reliability.png")] == pictures


@pytest.mark.parametrize("threshold", [-0.1, 2, float("nan")])
def test_a_threshold_that_no_score_can_have_is_refused(trained: Trained, threshold: float) -> None:
    with pytest.raises(ValidationError, match="expected numbers from 0 to 1, as scores are, got"):
        operating_job(trained, thresholds=[threshold])


def test_sets_of_one_class_have_rates_of_that_class_only(trained: Trained, make_examples: Examples, tmp_path: Path) -> None:
    clean = tmp_path / "clean.jsonl"
    write_records(clean, [e for e in make_examples(3, start=80) if e.condition.value == "answerable"])
    result = run_operating(operating_job(trained, data=clean), tmp_path / "out")
    assert result.auc is None
    assert [(p.tpr, p.fnr) for p in result.points] == [(None, None)] * 3 or all(p.tpr is None for p in result.points)


def test_the_card_tells_what_a_reader_needs(trained: Trained) -> None:
    manifest = read_manifest(trained.out, "sieve")
    card = write_card(manifest, read_audit(trained.out))
    for part in (
        "Licence of the base: Apache-2.0.",
        manifest.base.fingerprint,
        f"{manifest.threshold:.6g}",
        f"temperature {manifest.temperature:.4g}",
        "best macro-F1 on validation",
        manifest.data["train.jsonl"],
        "| train | conflict | 16 |",
        "python -m sieve.train",
        manifest.provenance["commit"],
        manifest.provenance["machine"],
        "| torch |",
        "Audit passed.",
        "Trained on answerable, conflict only",
    ):
        assert part in card, part
    low, high = manifest.intervals["macro_f1"]
    assert f"| Macro-F1 at the threshold | {manifest.validation['macro_f1']:.4g} | {low:.3f} to {high:.3f} |" in card


def test_the_card_tells_the_sieve_s_own_style_from_that_of_the_data(trained: Trained) -> None:
    figures = read_audit(trained.out)
    assert figures is not None
    values = {"positive": 5, "negative": 5, "auc": 0.8, "low": 0.7, "high": 0.9}
    names = ("single_document", "bag_of_words", "bag_of_words_training")
    probes = tuple(Probe.model_validate({"name": name, **values}) for name in names)
    card = write_card(trained.result.manifest, figures.model_copy(update={"probes": probes}))
    lines = [line for line in card.splitlines() if line.startswith("- ") and "0.800 (0.700 to 0.900)" in line]
    assert [line.split(":")[0] for line in lines] == [
        "- Style tells",
        "- Of the audit's data, in which style alone would tell, not a failure of this Sieve",
        "- Of the training data, whose label could be learnt from style",
    ]


def test_a_sieve_that_flags_nothing_says_so_in_its_card(trained: Trained) -> None:
    silent = trained.result.manifest.model_copy(update={"validation": {"tpr": 0.0}})
    assert "**It flags no distracted validation set.**" in write_card(silent, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ThresholdSettings(rule="target_fpr", target_fpr=0.05), "largest recall with at most 0.05 of the clean validation sets flagged"),
        (
            ThresholdSettings(rule="costs", cost_wrong=10, cost_abstain=1, prior=0.2),
            "lowest expected cost: 10 for a distracted set that passes and 1 for a clean one that is flagged, 0.2 of all sets distracted",
        ),
    ],
)
def test_the_card_says_the_rule(trained: Trained, settings: ThresholdSettings, words: str) -> None:
    manifest = trained.result.manifest
    changed = manifest.model_copy(update={"settings": {**manifest.settings, "threshold": settings.model_dump()}})
    assert words in write_card(changed, None)


def test_an_audit_needs_settings_and_a_gate(trained: Trained) -> None:
    values = trained.job.model_dump()
    with pytest.raises(ValidationError, match="data.audit is set, but not how to audit"):
        TrainJob.model_validate({**values, "audit": None})
    with pytest.raises(ValidationError, match="objective=unanswerable makes no gate"):
        TrainJob.model_validate({**values, "objective": "unanswerable"})


def test_training_on_audited_questions_is_refused_before_training(trained: Trained, tmp_path: Path) -> None:
    data = trained.job.data.model_copy(
        update={"audit": trained.job.data.train if isinstance(trained.job.data.train, tuple) else (trained.job.data.train,)}
    )
    with pytest.raises(InputError, match=r"in data\.train .* and in data\.audit"):
        train(trained.job.model_copy(update={"data": data}), tmp_path / "out")
    assert not (tmp_path / "out" / "trainer").exists()


def test_leaving_a_generator_out_goes_by_variant_condition_or_source(make_examples: Examples, caplog: pytest.LogCaptureFixture) -> None:
    plain = make_examples(2)
    made = [e.model_copy(update={"id": f"m{e.id}", "variant": "edited", "source": "llm"}) for e in plain]
    splits = {"train": [*plain, *made], "validation": plain}
    with caplog.at_level(logging.INFO):
        assert leave_out(splits, ["edited"]) == leave_out(splits, ["llm"]) == [plain, plain]
    assert "train: 4 of 8 examples left out (data.leave_out)" in caplog.text
    assert [len(kept) for kept in leave_out(splits, ["conflict"])] == [6, 2]
    assert leave_out(splits, []) == [splits["train"], plain]
    with pytest.raises(InputError, match=r"no example has the variant or source 'edit'; did you mean 'edited'\?"):
        leave_out(splits, ["edit"])
