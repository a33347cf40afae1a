"""Invented rows in WikiContradict's format."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from data_gen.sources.wikicontradict import load
from rag.errors import InputError
from rag.records import DocumentLabel, Example

FIELDS = ("question_ID", "question", "context1", "context2", "answer1", "answer2", "contradictType")
ROWS = [
    ("1", "How long is the river Varn?", "The river Varn is 480 km long.", "At 512 km, the Varn is the longest river.", "480 km", "512 km", "Explicit"),
    ("2", "When was the river fort of Ostel built?", "The fort was built in 1821.", "The fort of 1840 guards the river.", "1821", "1840", "Explicit"),
    ("3", "How high is Mount Tarn?", "Mount Tarn is 900 m high.", "mount  Tarn is 900 m high.", "900 m", "950 m", "Implicit"),
    ("4", "Who founded Lem?", "Ada Kol founded Lem.", "It was Ada Kol.", "Ada Kol", "ada kol", "Implicit"),
    ("5", "Who leads Lem?", "  ", "Bo leads Lem.", "Ada", "Bo", "Implicit"),
]  # fmt: skip


def write(path: Path, rows: list[tuple[str, ...]], fields: tuple[str, ...] = FIELDS) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([fields, *rows])
    return path


@pytest.fixture
def examples(tmp_path: Path) -> list[Example]:
    return load(write(tmp_path / "wiki.csv", ROWS))


def test_a_row_becomes_a_conflict_and_each_side_beside_another_subject(examples: list[Example]) -> None:
    conflict, first, second = examples[:3]
    assert [(e.condition, e.state, e.variant) for e in (conflict, first, second)] == [
        ("conflict", "distracted", "natural_conflict"),
        ("answerable", "answerable", "one_side"),
        ("answerable", "answerable", "one_side"),
    ]
    assert [d.answer for d in conflict.documents] == ["480 km", "512 km"]
    assert [d.label for d in conflict.documents] == [DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT]
    assert [e.answers for e in (conflict, first, second)] == [("480 km",), ("480 km",), ("512 km",)]
    for side, example in zip(conflict.documents, (first, second), strict=True):
        alone, stranger = example.documents
        assert (alone.text, alone.label) == (side.text, DocumentLabel.ANSWERABLE)
        assert stranger.label is DocumentLabel.NEUTRAL and "480" not in stranger.text and "512" not in stranger.text
    assert len({example.id for example in examples}) == len(examples) == 6


def test_what_cannot_be_used_is_counted(tmp_path: Path) -> None:
    dropped: Counter[str] = Counter()
    assert len(load(write(tmp_path / "wiki.csv", ROWS), limit=4, dropped=dropped)) == 4
    assert dropped == {"both passages are the same": 1, "both answers are the same": 1, "a passage or an answer is blank": 1}
    lonely: Counter[str] = Counter()
    assert [e.variant for e in load(write(tmp_path / "one.csv", ROWS[:1]), dropped=lonely)] == ["natural_conflict"]
    assert lonely == {"no passage of another question to put beside one side": 1}


def test_json_lines_hold_the_same(tmp_path: Path, examples: list[Example]) -> None:
    lines = tmp_path / "wiki.jsonl"
    lines.write_text(
        "\n".join(json.dumps({**dict(zip(FIELDS, row, strict=True)), "question_ID": int(row[0])}) for row in ROWS), encoding="utf-8"
    )
    assert [e.documents for e in load(lines)] == [e.documents for e in examples]


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.csv: No such file .* set dataset\.path"):
        load(tmp_path / "absent.csv")
    with pytest.raises(InputError, match=r"wiki\.csv: row 1: .*answer2"):
        load(write(tmp_path / "wiki.csv", [row[:5] for row in ROWS], FIELDS[:5]))
    with pytest.raises(InputError, match="found none"):
        load(write(tmp_path / "empty.csv", []))
    (tmp_path / "latin.csv").write_bytes(b"question\n\xe9")
    with pytest.raises(InputError, match="not UTF-8"):
        load(tmp_path / "latin.csv")
    with pytest.raises(InputError, match="for testing only"):
        load(tmp_path / "wiki.csv", split="train")
