"""The audit on stand-in Sieves: one that reads, one that goes by style, one that goes by order. All figures by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from rag.errors import InputError
from rag.records import Condition, Document, Example
from sieve.measure.audit import Audit, AuditSettings, audit
from sieve.measure.audit_report import markdown, sections, verdict_line
from sieve.measure.groups import Check, Limit, check_all, verdict
from sieve.measure.probes import other_questions
from sieve.measure.rotations import rotated_sample

STYLE = "moreover"
LIMITS = (
    Limit(group="off_topic", at_most=0.1),
    Limit(group="lone_false", at_most=0.1),
    Limit(group="edited", at_least=0.75),
    Limit(group="golds", at_most=0.1),
)
SETTINGS = AuditSettings(limits=LIMITS, rotated_sets=40, bag_of_words=False, resamples=50, batch_size=7)


def doc(name: str, text: str, label: str) -> dict[str, str]:
    return {"id": name, "text": text, "label": label}


GOLD = doc("g1", "it is blue", "answerable"), doc("g2", "blue it is", "answerable")
SETS: dict[str, tuple[str, str, tuple[dict[str, str], ...]]] = {
    "edited": ("distracted", "conflict", (*GOLD, doc("f", "it is red", "conflict"))),
    "generated": ("distracted", "conflict", (*GOLD, doc("f", f"{STYLE} it is red", "conflict"))),
    "golds": ("answerable", "answerable", GOLD),
    "off_topic": ("answerable", "answerable", (*GOLD, doc("n", f"{STYLE} it is tall", "neutral"))),
    "lone_false": ("unanswerable", "unanswerable", (doc("u", "no word on it", "unanswerable"), doc("f", f"{STYLE} it is red", "neutral"))),
}


def example(number: int, kind: str, **fields: Any) -> Example:
    state, condition, documents = SETS[kind]
    values = {"id": f"{number}-{kind}", "question_id": f"q{number}", "question": f"question {number}", "documents": documents}
    return Example.model_validate({**values, "answers": ("blue",), "state": state, "condition": condition, "variant": kind, **fields})


EXAMPLES = [example(number, variant) for number in range(4) for variant in SETS]
FROM_TWO = [e.model_copy(update={"source": f"s{int(e.question_id[1:]) % 2}"}) for e in EXAMPLES]
"""The same examples from two sources."""


def run(sieve: Any, folder: Path, settings: AuditSettings = SETTINGS, examples: list[Example] = EXAMPLES, **options: Any) -> Audit:
    return audit(sieve, examples, settings, folder / "scores.jsonl", seed=0, **options)


def flagged(figures: Audit) -> dict[str, float]:
    return {group.group: group.flagged for group in figures.groups}


def test_a_sieve_that_reads_passes(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    figures = run(stand_ins.reads(), tmp_path)
    assert flagged(figures) == {"edited": 1, "generated": 1, "golds": 0, "off_topic": 0, "lone_false": 0}
    assert [(g.should_flag, g.sets, g.questions, g.low, g.high, g.auc) for g in figures.groups[:3]] == [
        (True, 4, 4, 1, 1, 1), (True, 4, 4, 1, 1, 1), (False, 4, 4, 0, 0, 1)
    ]  # fmt: skip
    assert (figures.auc, figures.verdict) == (1.0, "passed")
    assert verdict_line(figures) == "Audit passed."
    assert figures.flips.decision == figures.flips.each == 0.0
    assert figures.flips.blamed == 0.0  # only without the false document does nothing disagree


def test_a_sieve_that_goes_by_style_fails_and_the_audit_says_where(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    figures = run(stand_ins.style(), tmp_path)
    assert flagged(figures) == {"edited": 0, "generated": 1, "golds": 0, "off_topic": 1, "lone_false": 1}
    assert figures.verdict == "failed"
    assert verdict_line(figures) == (
        "Audit failed. Broken: off_topic flagged 100.0%, limit at most 10%; lone_false flagged 100.0%, limit at most 10%; "
        "edited flagged 0.0%, limit at least 75%."
    )
    # Of a distracted and another set, 4 of 8 against 8 of 12 have the style: 1/2 x 1/3 is won and half of the rest but 1/2 x 2/3 tied.
    assert figures.auc == pytest.approx(1 / 2 * 1 / 3 + (1 / 2 * 2 / 3 + 1 / 2 * 1 / 3) / 2)


def test_probes_tell_reading_from_style(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    """Single documents contradict nothing: 0.1 for each to a reader. Of the two false ones of a question one has the style."""
    reads = {(p.name, p.source): p for p in run(stand_ins.reads(), tmp_path / "a", examples=FROM_TWO).probes}
    style = {(p.name, p.source): p for p in run(stand_ins.style(), tmp_path / "b", examples=FROM_TWO).probes}
    single = "single_document", ""
    assert (reads[single].auc, style[single].auc) == (0.5, 0.75)
    assert (reads[single].positive, reads[single].negative) == (8, 8)  # of four questions: two false texts, two true ones
    assert {source for name, source in reads if name == "single_document"} == {"", "s0", "s1"}
    assert style["single_document", "s1"].positive == 4
    # This reader reads no questions, so it finds the conflict under any.
    assert reads["other_question", ""].auc == 1.0
    assert (reads["other_question", ""].positive, reads["other_question", ""].negative) == (8, 12)


def test_a_sieve_that_goes_by_order_is_caught_under_rotation(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    """Sets with `red` in them change their decision in the one rotation that puts it first: 3 of 5 groups, and no set is flagged before."""
    flips = run(stand_ins.order(), tmp_path).flips
    assert (flips.sets, flips.rotations) == (20, 4 * (2 + 2 + 1 + 2 + 1))
    assert flips.decision == pytest.approx(3 / 5)
    assert flips.each == pytest.approx(3 / 8)
    assert (flips.flagged_sets, flips.blamed) == (0, None)


def test_a_blamed_document_that_depends_on_order_is_counted(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    """Pitfall E10: one that always flags blames the last document by the tie rule, which rotation changes."""

    class Always(stand_ins.reads):
        def score(self, question: str, documents: Any) -> float:
            return 0.9

    flips = run(Always(), tmp_path).flips
    assert (flips.decision, flips.flagged_sets, flips.blamed) == (0.0, 20, 1.0)


def test_a_rerun_calls_no_model_and_gives_the_same_bytes(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    first = run(stand_ins.reads(), tmp_path)
    never = stand_ins.reads()
    assert run(never, tmp_path).model_dump_json() == first.model_dump_json()
    assert never.screened == 0
    assert Audit.model_validate_json(first.model_dump_json()) == first


def test_words_alone_tell_generated_data_and_not_edited_data(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    """In the training data given here every false document has the style and no true one."""
    training = [example(n, "generated", question=f"training {n}", question_id=f"t{n}", id=f"t{n}") for n in range(12)]
    settings = SETTINGS.model_copy(update={"bag_of_words": True})
    probes = {(p.name, p.source): p for p in run(stand_ins.reads(), tmp_path, settings, FROM_TWO, training=training).probes}
    found = probes["bag_of_words_training", ""]
    assert (found.auc, found.positive, found.negative) == (1.0, 12, 24)
    assert probes["bag_of_words", "s0"].positive == 4


def test_an_audit_on_training_questions_is_refused(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="question_id 'q1' in data.train .* and in data.audit"):
        run(stand_ins.reads(), tmp_path, training=[example(1, "golds")])


def test_a_blank_variant_goes_by_condition_and_a_group_of_both_kinds_gives_two_rows(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    mixed = [example(0, "edited", variant="mixed"), example(1, "golds", variant="mixed"), example(2, "golds", variant="", id="x")]
    figures = audit(stand_ins.reads(), mixed, SETTINGS, tmp_path / "scores.jsonl", seed=0)
    assert [(g.group, g.should_flag, g.flagged) for g in figures.groups] == [
        ("mixed", True, 1),
        ("mixed", False, 0),
        ("answerable", False, 0),
    ]
    checks = check_all((Limit(group="mixed", at_least=0.5), Limit(group="mixed", at_most=0.5)), figures.groups)
    assert [(c.bound, c.flagged, c.passed) for c in checks] == [("at_least", 1, True), ("at_most", 0, True)]


def test_each_source_has_rows_of_its_own_and_must_keep_to_the_limits(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    """In one of two sources every gold has the style."""
    stylish = [
        e.model_copy(update={"documents": tuple(d.model_copy(update={"text": f"{STYLE} {d.text}"}) for d in e.documents)})
        if (e.source, e.variant) == ("s1", "golds")
        else e
        for e in FROM_TWO
    ]
    limits = (
        Limit(group="golds", at_most=0.1),
        Limit(group="golds", source="s0", at_most=0.1),
        Limit(group="golds", source="s2", at_most=0.1),
    )
    figures = run(stand_ins.style(), tmp_path, SETTINGS.model_copy(update={"limits": limits}), stylish)
    assert [(g.source, g.sets, g.flagged) for g in figures.groups if g.group == "golds"] == [("s0", 2, 0), ("s1", 2, 1)]
    assert [(c.source, c.passed) for c in figures.checks] == [("s0", True), ("s1", False), ("s0", True), ("s2", None)]
    assert "Broken: golds (s1) flagged 100.0%, limit at most 10%. Not measured, no such group in the files: golds (s2)." in verdict_line(
        figures
    )


def test_a_group_that_is_not_there_leaves_the_verdict_open(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"limits": (*LIMITS, Limit(group="absent", at_most=0.1))})
    figures = run(stand_ins.reads(), tmp_path, settings)
    assert figures.verdict == "incomplete"
    assert verdict_line(figures) == "Audit incomplete. Not measured, no such group in the files: absent."


@pytest.mark.parametrize(
    ("passed", "expected"),
    [([True, True], "passed"), ([True, False, None], "failed"), ([True, None], "incomplete"), ([], "incomplete")],
)
def test_the_verdict(passed: list[bool | None], expected: str) -> None:
    assert verdict([Check(group="g", bound="at_most", limit=0.1, flagged=None, passed=p) for p in passed]) == expected


@pytest.mark.parametrize("bounds", [{}, {"at_most": 0.1, "at_least": 0.2}])
def test_a_limit_has_one_bound(bounds: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="group 'g': set one of at_most and at_least"):
        Limit(group="g", **bounds)


def test_every_question_gets_that_of_another() -> None:
    others = other_questions(EXAMPLES, 0)
    assert sorted(others.values()) == [f"question {n}" for n in range(4)]
    assert all(text != f"question {name[1:]}" for name, text in others.items())
    assert other_questions(EXAMPLES[:2], 0) == {}


def test_rotated_sets_are_drawn_from_all_groups_alike() -> None:
    single = example(9, "golds", id="single", documents=(Document(id="d", text="blue"),))
    drawn = rotated_sample([single, *EXAMPLES], 7, 0)
    assert len(drawn) == 7
    assert {example.variant for example in drawn} == set(SETS)
    assert single not in rotated_sample([single, *EXAMPLES], 99, 0)
    assert rotated_sample([], 5, 0) == []


def test_the_report_shows_every_group_and_cannot_be_broken_by_names(stand_ins: SimpleNamespace, tmp_path: Path) -> None:
    named = [*EXAMPLES, example(5, "golds", variant="a|b\n# c", condition=Condition.ANSWERABLE)]
    figures = audit(stand_ins.reads(), named, SETTINGS, tmp_path / "scores.jsonl", seed=0)
    text = markdown(figures)
    assert "| a\\|b # c | no | 1 | 1 | 0.0% |" in text
    assert all(f"| {variant} |" in text for variant in SETS)
    assert sections(figures)[0].title == "Flagged by group"
