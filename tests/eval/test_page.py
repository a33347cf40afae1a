"""The page of a run: everything is in it, nothing in it runs or loads, counts close, and the same run gives the same bytes."""

import base64
import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eval.report.content import FORMAT, Details, Part, Run, details, total_milliseconds
from eval.report.curves import NONE, curves, judged_rows
from eval.report.explorer import ENDINGS, ending, explorer, sample
from eval.report.page import UNTIMED, comparison_page, run_page, script_json, write_comparison, write_page
from eval.report.pictures import run_pictures
from eval.score import score
from rag.records import Citation, Condition, Document, DocumentLabel, Example, Prediction, Reason, RetrievalState
from rag.settings import Component

STATES = {Condition.ANSWERABLE: RetrievalState.ANSWERABLE, Condition.UNANSWERABLE: RetrievalState.UNANSWERABLE}
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \u2028\u2029 <!-- {{ 7 * 7 }}"


def load(path: str = "pool.json", k: int = 2, deadline: float | None = None) -> Any:
    raise AssertionError("a page is made without a system")


def example(number: int, condition: Condition, text: str = "The mayor is Ada Lind.") -> Example:
    state = STATES.get(condition, RetrievalState.DISTRACTED)
    documents = [Document(id="d1", text=text, title="Ostvale", label=DocumentLabel.ANSWERABLE, metadata={"source": text})]
    if state is RetrievalState.DISTRACTED:
        documents.append(Document(id="d2", text="The mayor is Bo Falk.", label=DocumentLabel.CONFLICT))
    return Example(
        id=f"e{number:03}",
        question_id=f"q{number % 7}",
        question=f"Who is the mayor of Ostvale in year {number}? {text}",
        documents=tuple(documents),
        answers=("Ada Lind",),
        state=state,
        condition=condition,
    )


def prediction(example_: Example, number: int, text: str = "fine") -> Prediction:
    """All ways to end, in turn."""
    about = {"id": example_.id, "question_id": example_.question_id}
    scored: dict[str, Any] = {"sieve_score": (number % 10) / 10, "threshold": 0.5, "timings": {"sieve": 4.0, "total": 5.0 + number}}
    ways: list[dict[str, Any]] = [
        {"answer": "Ada Lind", "state": RetrievalState.ANSWERABLE, "confidence": (number % 5) / 5, "prompt": text, "output": text,
         "citations": (Citation(document_id="d1", supported=True),)},
        {"answer": f"Bo Falk {text}", "state": RetrievalState.ANSWERABLE, "confidence": 0.4, "prompt": text, "output": text},
        {"reason": Reason.DISTRACTED, "state": RetrievalState.DISTRACTED, "blamed": ("d2",), "leave_one_out": {"d1": 0.7, "d2": 0.2}},
        {"reason": Reason.UNANSWERABLE, "state": RetrievalState.UNANSWERABLE, "prompt": text, "output": "unanswerable"},
        {"reason": Reason.UNPARSED, "state": RetrievalState.ANSWERABLE, "prompt": text, "output": text},
        {"answer": "Ada Lind", "state": RetrievalState.DISTRACTED, "removed": ("d2",), "leave_one_out": {"d1": 0.7, "d2": 0.2}, "prompt": text},
    ]  # fmt: skip
    if number % 11 == 10:
        return Prediction(**about, error=f"question: blank {text}")
    return Prediction(**about, **scored, **ways[number % len(ways)])


CONDITIONS = (Condition.ANSWERABLE, Condition.UNANSWERABLE, Condition.CONFLICT, Condition.ADVERSARIAL)


def run(n: int = 44, text: str = "fine", name: str = "run", shuffled: bool = False) -> Run:
    examples = [example(number, CONDITIONS[number % 4], text) for number in range(n)]
    predictions = [prediction(example_, number, text) for number, example_ in enumerate(examples)]
    if shuffled:
        random.Random(0).shuffle(examples)
        random.Random(1).shuffle(predictions)
    report = score(examples, predictions, resamples=50)
    rows = judged_rows(examples, predictions, "exact")
    more = details(rows, Component(load, {"path": "data/pool.json", "k": 2}), Component(load, {"path": "data/pool.json", "deadline": None}))
    return Run(name, report, {"commit": "0123abc", "command": text}, more, rows, total_milliseconds(report))


class Page(HTMLParser):
    """What a browser would see of the structure."""

    VOID = ("meta", "img", "input", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)

    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.tags if "id" in attributes]

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = next(json.loads(text) for attributes, text in self.scripts if attributes.get("id") == "data")
        return found


RUN = run()


@pytest.fixture(scope="module")
def page() -> str:
    return run_page(RUN, 1000, run_pictures(RUN.report, RUN.details.curves))


def test_every_section_is_there_and_every_picture_has_words(page: str) -> None:
    parsed = Page(page)
    sections = ["summary", "metrics", "responses", "certainty", "states", "details", "examples", "origin"]
    assert [id_ for id_ in parsed.ids() if id_ in sections] == sections
    assert {attributes["href"] for tag, attributes in parsed.tags if tag == "a"} >= {f"#{name}" for name in sections}
    figures = ["responses", "selective", "reliability", "risk_coverage", "sweep", "confusion", "latency"]
    assert [id_.removeprefix("figure-") for id_ in parsed.ids() if id_.startswith("figure-")] == figures
    assert all(len(attributes["alt"] or "") > 30 for tag, attributes in parsed.tags if tag == "img")
    assert len(parsed.ids()) == len(set(parsed.ids()))
    assert [tag for tag, _ in parsed.tags].count("h1") == 1
    assert "load" not in parsed.tags and "test_page on pool" in page


def test_the_page_loads_nothing(page: str) -> None:
    both = [page, comparison_page([RUN, run(name="other")], UNTIMED, None)]
    for text in both:
        tags = Page(text).tags
        links = [
            attributes[key] or "" for _, attributes in tags for key in ("href", "src", "data", "action", "poster") if key in attributes
        ]
        assert links and all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in links)
        assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in tags}
        assert not re.search(r"url\(|@import", text)
        policy = next(attributes["content"] or "" for tag, attributes in tags if "http-equiv" in attributes)
        assert policy.startswith("default-src 'none'; img-src data:;")


def test_no_text_from_outside_becomes_markup_or_script() -> None:
    """The policy lets the page's own script run and no other, and what the run holds reads back as the text that it was."""
    evil = run(text=EVIL)
    text = run_page(evil, 1000, [])
    parsed = Page(text)
    assert len(parsed.scripts) == 2 and "img" not in {tag for tag, _ in parsed.tags}
    assert "<img src=x" not in text and "{{ 7 * 7 }}" in text
    assert not any(key.startswith("on") for _, attributes in parsed.tags for key in attributes)
    own = parsed.scripts[1][1]
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "innerHTML" not in own and "insertAdjacent" not in own and "eval(" not in own
    texts = parsed.data["texts"]["e000"]
    assert texts["documents"][0]["text"] == EVIL and texts["prompt"] == EVIL and texts["documents"][0]["metadata"] == {"source": EVIL}
    assert EVIL in parsed.data["rows"][1]["answer"]
    compared = Page(comparison_page([evil, run(text=EVIL, name=EVIL)], UNTIMED, None))
    assert len(compared.scripts) == 1 and "img" not in {tag for tag, _ in compared.tags}


def test_data_in_a_script_holds_no_character_that_could_end_it() -> None:
    written = script_json({"text": EVIL})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {"text": EVIL}


def test_counts_close_to_the_total_wherever_they_stand(page: str) -> None:
    data, report = Page(page).data, RUN.report
    ended = Counter(row["ending"] for row in data["rows"])
    assert {key: ended[key] for key in ENDINGS} == report.counts.model_dump()
    assert len(data["rows"]) == sum(ended.values()) == sum(map(sum, RUN.details.curves.states)) == report.n == 44
    assert all(ended[key] for key in ENDINGS), "each ending is among these examples"
    assert Counter((row["state"], row["named"]) for row in data["rows"]) == {
        (gold.value, named): count
        for gold, counts in zip(RetrievalState, RUN.details.curves.states, strict=True)
        for named, count in zip([*(state.value for state in RetrievalState), NONE], counts, strict=True)
        if count
    }
    assert " + ".join(str(report.counts.model_dump()[key]) for key in ENDINGS) + " = 44" in page
    assert Counter(row.judged.outcome for row in RUN.rows) == Counter(RUN.details.outcomes.values())


def test_an_example_says_what_was_blamed_and_removed_and_what_was_planted() -> None:
    by_id = {row["id"]: row for row in explorer(RUN.rows, 44)["rows"]}
    texts = explorer(RUN.rows, 44)["texts"]
    blamed, removed = "e002", "e011"
    assert by_id[blamed]["marks"] == ["planted", "blamed", "blamed what was planted"]
    assert [(d["id"], d["marks"], d["without"]) for d in texts[blamed]["documents"]] == [
        ("d1", [], 0.7),
        ("d2", ["planted", "blamed"], 0.2),
    ]
    assert by_id[removed]["marks"] == ["planted", "removed", "removed what was planted"]
    assert texts[removed]["documents"][1]["marks"] == ["planted", "removed"]
    assert by_id["e000"]["marks"] == ["cited"]


def test_a_page_that_holds_fewer_documents_says_so(page: str) -> None:
    cut = run_page(RUN, 10, [])
    data = Page(cut).data
    assert len(data["texts"]) == 10 and len(data["rows"]) == 44
    assert "10 of 44 examples are in this page" in cut and "of the other 34 it has the question" in cut and "html_examples=44" in cut
    assert 'id="cut"' not in page
    groups = Counter((row.example.condition, ending(row.judged)) for row in sample(RUN.rows, 10))
    assert set(groups.values()) == {1}, "there are more than ten groups: none comes twice"


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, again in (("one", False), ("two", True)):
        made = run(shuffled=again)
        write_page(tmp_path / name, made, 10)
        write_comparison(tmp_path / f"{name}-all", [made, made._replace(name="other")], UNTIMED)
    for first in (tmp_path / "one", tmp_path / "one-all"):
        second = tmp_path / first.name.replace("one", "two")
        files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
        assert Path("report.html") in files and sum(path.suffix == ".png" for path in files) >= 4
        assert all((first / path).read_bytes() == (second / path).read_bytes() for path in files)


def test_without_matplotlib_the_page_comes_without_pictures_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("matplotlib", "eval.report.pictures", "eval.figures"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delattr("eval.report.pictures", raising=False)
    write_page(tmp_path, RUN, 10)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No pictures: matplotlib is not installed" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_run_without_scores_confidences_or_times_has_a_page(tmp_path: Path) -> None:
    examples = [example(number, Condition.UNANSWERABLE) for number in range(3)]
    predictions = [Prediction(id=e.id, question_id=e.question_id, reason=Reason.POLICY, state=e.state) for e in examples]
    report = score(examples, predictions, resamples=20)
    rows = judged_rows(examples, predictions, "exact")
    nothing = Run("none", report, {}, details(rows, Component(load, {}), Component(load, {})), rows, None)
    write_page(tmp_path, nothing, 10)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "no set has a Sieve score" in text and "no answer came with a confidence" in text
    assert sorted(path.stem for path in (tmp_path / "figures").iterdir()) == ["confusion", "responses"]


def test_runs_side_by_side_show_each_number_once_for_each_run() -> None:
    runs = [run(name="first"), run(n=30, name="second")]
    text = comparison_page(runs, UNTIMED, None)
    for made in runs:
        row = next(row for row in made.report.metrics if row.name == "macro_f1")
        assert f"{row.value:.3f}<br><small>{row.low:.3f} to {row.high:.3f}</small>" in text
    assert "each run&#39;s own hour" in text
    assert "0.750 / 0.733" in text, "what always abstaining would reach differs between the two"


def swept(scores: Sequence[float], distracted: Sequence[bool]) -> dict[float, tuple[float | None, float | None, float]]:
    conditions = [Condition.CONFLICT if flag else Condition.ANSWERABLE for flag in distracted]
    examples = [example(number, condition) for number, condition in enumerate(conditions)]
    predictions = [
        Prediction(
            id=e.id, question_id=e.question_id, reason=Reason.DISTRACTED, state=RetrievalState.DISTRACTED, sieve_score=s, threshold=0.5
        )
        for e, s in zip(examples, scores, strict=True)
    ]
    rows = judged_rows(examples, predictions, "exact")
    sweep = curves(rows).sweep
    assert sweep is not None and sweep.used == (0.5,)
    report = score(examples, predictions, resamples=5)
    points = {p.threshold: (p.true_positive_rate, p.false_positive_rate, p.macro_f1) for p in sweep.points}
    reported = {row.name: row.value for row in report.metrics}
    assert points[0.5] == (reported["sieve_true_positive_rate"], reported["sieve_false_positive_rate"], reported["sieve_macro_f1"])
    return points


def test_the_sweep_is_what_the_metrics_say_at_the_threshold_in_use() -> None:
    """A score equal to the threshold is flagged. At 0.5: two of three distracted sets, and one of two others (F1 2/3 and 1/2)."""
    points = swept([0.5, 0.9, 0.2, 0.6, 0.1], [True, True, True, False, False])
    assert points[0.5] == (pytest.approx(2 / 3), 0.5, pytest.approx((2 / 3 + 1 / 2) / 2))
    assert points[0.0][:2] == (1.0, 1.0) and points[1.0][:2] == (0.0, 0.0)
    assert swept([0.4, 0.6], [True, True])[0.5][:2] == (0.5, None)


def test_predictions_of_equal_confidence_enter_the_curve_together() -> None:
    """Hand-computed: a right answer at 0.9, then a right and a wrong one at 0.5, of four examples."""
    examples = [example(number, Condition.ANSWERABLE) for number in range(4)]
    said = [("Ada Lind", 0.5), ("Bo", 0.5), ("Ada Lind", 0.9), ("Bo", None)]
    predictions = [
        Prediction(id=e.id, question_id=e.question_id, answer=answer, confidence=confidence, state=RetrievalState.ANSWERABLE)
        for e, (answer, confidence) in zip(examples, said, strict=True)
    ]
    drawn = curves(judged_rows(examples, predictions, "exact"))
    assert [(point.confidence, point.kept, point.coverage) for point in drawn.risk] == [(0.9, 1, 0.25), (0.5, 3, 0.75)]
    assert [point.value for point in drawn.risk] == [0.0, pytest.approx(1 / 3)]
    assert [point.value for point in drawn.selective] == [1.0, pytest.approx(2 / 3)]
    assert drawn.unconfident == 1
    (sage,) = drawn.reliability
    assert (sage.of, sage.n) == ("sage", 3)
    assert [(part.low, part.n, part.frequency) for part in sage.bins] == [(0.5, 2, 0.5), (0.9, 1, 1.0)]
    assert drawn.states[0] == (4, 0, 0, 0)


def test_report_json_holds_what_the_page_shows_except_the_texts(tmp_path: Path) -> None:
    from eval.report import write_report

    write_report(tmp_path, RUN.report, RUN.provenance, RUN.details)
    written = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert written["format"] == FORMAT == 1
    assert sorted(written) == ["curves", "dataset", "format", "outcomes", "provenance", "report", "system"]
    assert Details.model_validate_json(json.dumps({key: written[key] for key in Details.model_fields})) == RUN.details
    assert written["system"] == Part(name="test_page", settings={"path": "data/pool.json", "k": "2"}).model_dump()
    assert "The mayor" not in json.dumps(written)
