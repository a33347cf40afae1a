"""Reading comprehension as labelled sets: what each document says is what its label says."""

import gzip
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from data_gen.label import names
from data_gen.sources.reading import Near, deny, load
from rag.errors import InputError
from rag.records import Condition, DocumentLabel, Example, RetrievalState

BRIDGE = (
    "The Varna Bridge crosses the river Tolm. It was completed in 1967 by the firm of Ada Lindholm. "
    "The city of Greyhaven repainted it in 1988 at its own cost. Many people walk over it on Sundays."
)
ROWS = [
    {"question": "When was the Varna Bridge completed?", "passage": BRIDGE, "answers": ["1967", "in 1967"], "source": "made"},
    {
        "question": "Who built the Varna Bridge?",
        "passage": BRIDGE,
        "answers": ["Ada Lindholm", "the firm of Ada Lindholm"],
        "source": "made",
    },
    {
        "question": "Who paid for the Orla Tunnel?",
        "passage": "The Orla Tunnel is older than the Varna Bridge. Nobody knows who dug it.",
        "answers": [],
    },
    *(
        {
            "question": f"When was the Selm Bridge {n} completed?",
            "passage": f"The Selm Bridge {n} was completed in 18{n:02}. It is near the Varna Bridge and is crossed by carts every day.",
            "answers": [f"18{n:02}"],
        }
        for n in range(10, 40)
    ),
]
ALL = dict.fromkeys(Near, 1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return file


def by_variant(examples: list[Example], question: str) -> dict[str, Example]:
    ids = {example.question_id for example in examples if example.question == question}
    return {example.variant: example for example in examples if example.question_id in ids}


def test_no_document_holds_an_answer_that_its_label_denies(path: Path) -> None:
    examples = load(path, near=ALL, edited=1.0, denied=1.0, fillers=3)
    assert {example.variant for example in examples} == {"passage", "exchanged", "edited", "denied"}
    for example in examples:
        for document in example.documents:
            held = any(names(document.text, answer) for answer in example.answers)
            if document.label is DocumentLabel.ANSWERABLE:
                assert held and document.answer in document.text
            elif document.label is DocumentLabel.CONFLICT:
                assert not held and names(document.text, str(document.answer))
            elif document.label is DocumentLabel.NEGATED:
                assert held and str(document.answer).startswith("not ")
            else:
                assert not held and document.answer is None


def test_what_is_made_of_one_passage(path: Path) -> None:
    made = by_variant(load(path, near=ALL, edited=1.0, denied=1.0), "When was the Varna Bridge completed?")
    assert made["passage"].state is RetrievalState.ANSWERABLE and made["passage"].answers == ("1967", "in 1967")
    cut = next(d for d in made["passage"].documents if d.label is DocumentLabel.UNANSWERABLE)
    assert "1988" in cut.text and "1967" not in cut.text
    found = next(d for d in made["passage"].documents if d.label is DocumentLabel.NEUTRAL)
    assert "Selm Bridge" in found.text or "Orla" in found.text
    assert made["exchanged"].state is RetrievalState.UNANSWERABLE and made["exchanged"].answers == ()
    assert made["exchanged"].question in {f"When was the {name} completed?" for name in ("Greyhaven", "Tolm")} | {
        "When was the Varna Bridge completed?".replace("Varna Bridge", other) for other in ("Ada Lindholm", "Greyhaven")
    }
    assert made["edited"].condition is Condition.CONFLICT and made["denied"].condition is Condition.NEGATED
    assert {d.label for d in made["denied"].documents} == {DocumentLabel.ANSWERABLE, DocumentLabel.NEGATED}


def test_a_question_without_an_answer_is_one_silent_document(path: Path) -> None:
    (only,) = by_variant(load(path, near=ALL, edited=1.0, denied=1.0), "Who paid for the Orla Tunnel?").values()
    assert only.state is RetrievalState.UNANSWERABLE and [d.label for d in only.documents] == [DocumentLabel.UNANSWERABLE]


def test_a_long_passage_is_cut_around_its_answer(path: Path) -> None:
    (example,) = by_variant(load(path, words=12), "Who built the Varna Bridge?").values()
    (document,) = example.documents
    assert "Ada Lindholm" in document.text and len(document.text.split()) <= 14
    assert all(answer in document.text for answer in example.answers)


def test_a_passage_can_be_lost(path: Path) -> None:
    examples = load(path, near=ALL, lost=1.0, fillers=2)
    lost = [example for example in examples if example.variant == "lost"]
    assert len(lost) > 20 and all(example.state is RetrievalState.UNANSWERABLE for example in lost)
    assert not any(d.label is DocumentLabel.ANSWERABLE for example in lost for d in example.documents)


def test_the_same_seed_gives_the_same_sets_and_gzip_is_read(path: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed" / "train.jsonl.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(path.read_bytes()))
    shares = {"near": ALL, "edited": 0.5, "denied": 0.5}
    plain = load(path, **shares)
    assert [e.model_copy(update={"source": ""}) for e in load(packed, **shares)] == [e.model_copy(update={"source": ""}) for e in plain]
    assert len(load(path, limit=7)) == 7
    assert load(path, **shares, seed=1) != plain


def test_what_cannot_be_used_is_counted(tmp_path: Path) -> None:
    rows = [
        *ROWS[:2],
        ROWS[0],
        {"question": "Who?", "passage": "Nobody.", "answers": ["Ada"]},
        {"question": " ", "passage": "x", "answers": []},
    ]
    file = tmp_path / "few.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    dropped: Counter[str] = Counter()
    assert len(load(file, dropped=dropped)) == 2
    assert dropped == {"question and passage repeat others": 1, "no answer stands in the passage": 1, "question or passage is blank": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected lines of reading comprehension, found an empty file"),
        (b'{"question": "a", "passage": "b", "answers": [1]}\n', r"few.jsonl:1: answers"),
        (b"[]\n", r"few.jsonl:1"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "few.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load(file)


def test_a_file_that_is_missing_or_cut_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a file of reading comprehension, found nothing.*docs/data.md"):
        load(tmp_path / "none.jsonl")
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(path.read_bytes())[:200])
    with pytest.raises(InputError, match="expected a whole gzip file"):
        load(cut)
    with pytest.raises(InputError, match="dataset.denied: expected a share of the questions from 0 to 1, got 2"):
        load(path, denied=2.0)


@pytest.mark.parametrize("seed", range(12))
def test_a_denial_says_no_to_each_sentence_with_the_answer(seed: int) -> None:
    denied = deny(BRIDGE, ["1967"], Random(seed))
    assert denied is not None and "1967" in denied and denied != BRIDGE
    assert any(word in denied for word in ("not", "false", "mistake", "no evidence", "rejected", "wrong"))
    assert "repainted it in 1988" in denied


def test_what_cannot_be_denied_is_left() -> None:
    assert deny("Was it 1967?", ["1967"], Random(0)) is None
    assert deny(BRIDGE, ["1975"], Random(0)) is None
