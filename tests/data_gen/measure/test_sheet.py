"""The page to look through."""

from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest

from data_gen.measure.sheet import page, sample
from data_gen.pipeline.cases import Case
from rag.records import DocumentLabel

CONFLICT, NEGATED, ADVERSARIAL = DocumentLabel.CONFLICT, DocumentLabel.NEGATED, DocumentLabel.ADVERSARIAL
HOSTILE = "<script>alert(1)</script> & \"quotes\" 'single' </article> <img src=x onerror=alert(2)>"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Checks that tags are balanced; collects them and the text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.words = ""
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


@pytest.fixture
def many(make_case: Any) -> list[Case]:
    """Ten questions: conflict used on all, negated rejected on two, adversarial used on three."""
    cases = []
    for n in range(10):
        made = [(CONFLICT, f"conflict {n}", None)]
        made += [(NEGATED, f"negated {n}", "the answer is not in it")] if n < 2 else []
        made += [(ADVERSARIAL, f"adversarial {n}", None)] if n < 3 else []
        cases.append(make_case(f"q{n}", [("Ada built it.", DocumentLabel.ANSWERABLE)], made))
    return cases


def test_a_sample_is_balanced_as_far_as_there_are_documents(many: list[Case]) -> None:
    groups = Counter(shown.group for shown in sample(many, 9, seed=0))
    assert groups == {(CONFLICT, "used"): 4, (NEGATED, "rejected"): 2, (ADVERSARIAL, "used"): 3}
    assert len(sample(many, 1000, seed=0)) == 15
    assert Counter(shown.group for shown in sample(many, 2, seed=0)) == {(CONFLICT, "used"): 1, (NEGATED, "rejected"): 1}


def test_the_same_seed_draws_the_same_and_another_seed_others(many: list[Case]) -> None:
    assert page(many, 6, seed=0) == page(many, 6, seed=0)
    assert sample(many, 6, seed=0) != sample(many, 6, seed=1)


def test_hostile_text_stays_text_wherever_it_comes_from(make_case: Any) -> None:
    case = make_case(
        HOSTILE,
        [(HOSTILE, DocumentLabel.ANSWERABLE)],
        [(CONFLICT, HOSTILE, None), (NEGATED, HOSTILE, HOSTILE)],
        question=HOSTILE,
        answers=("<script>", HOSTILE),
        reference=HOSTILE,
        sentence=HOSTILE + "!",
        answer="<b>",
    )
    case = case.model_copy(update={"question": case.question.model_copy(update={"source": HOSTILE})})
    case = case.model_copy(update={"simulations": tuple(s.model_copy(update={"maker": HOSTILE}) for s in case.simulations)})
    parsed = Page(page([case], 10, seed=0))
    assert parsed.tags["script"] == parsed.tags["img"] == 0
    assert parsed.tags["article"] == 2
    assert parsed.words.count("alert(1)") >= 10
    assert not any(name.startswith("on") for _, name, _ in parsed.attributes)


def test_the_page_needs_nothing_else_and_its_links_lead_into_it(many: list[Case]) -> None:
    content = page(many, 20, seed=0)
    parsed = Page(content)
    assert parsed.tags["script"] == parsed.tags["link"] == parsed.tags["img"] == 0
    assert parsed.values("src") == []
    assert "url(" not in content and "@import" not in content
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in parsed.values("href")} <= set(ids)
    assert {"conflict", "negated-rejected", "adversarial-used"} <= set(ids)
    assert "prefers-color-scheme: dark" in content


def test_a_card_shows_what_a_person_needs_to_judge(make_case: Any) -> None:
    case = make_case(
        "the bridge",
        [("Ada built the bridge in 1874.", DocumentLabel.ANSWERABLE)],
        [(NEGATED, "It was long. Ada never built the bridge.", "the judge gave no verdict")],
        sentence="Ada never built the bridge.",
    )
    content = page([case], 5, seed=0)
    words = " ".join(Page(content).words.split())
    for part in (
        "Who built the bridge?",
        "rejected: the judge gave no verdict",
        "entailment 0.10 · neutral 0.20 · contradiction 0.70",
        "Ada built the bridge in 1874.",
        "by writer",
        "1 × the judge gave no verdict",
    ):
        assert part in words, part
    assert '<mark class="answer">Ada</mark> <mark class="added">never</mark> built the bridge' in content


def test_an_edited_copy_is_compared_with_the_gold_document(make_case: Any) -> None:
    gold = "Ada built the bridge in 1874 for the town."
    case = make_case("q", [(gold, DocumentLabel.ANSWERABLE)], [(CONFLICT, gold.replace("Ada", "Bo"), None)], answer="Bo")
    content = page([case], 5, seed=0)
    assert '<mark class="answer removed">Ada</mark> built' in content
    assert '<mark class="added untrue">Bo</mark> built' in content
    assert "compared with the gold document" in content


def test_a_document_that_could_not_be_written_and_a_folder_without_any(make_case: Any) -> None:
    blank = make_case("q", [("Ada.", DocumentLabel.ANSWERABLE)], [(CONFLICT, "", "no passage: the reply is blank")])
    assert "No text." in Page(page([blank], 5, seed=0)).words
    empty = Page(page([make_case("q", [("Ada.", DocumentLabel.ANSWERABLE)])], 5, seed=0))
    assert empty.tags["article"] == 0
    assert "0 of 0 documents" in empty.words and "n/a" in empty.words
