"""A user's own questions: JSON lines, CSV, and a data set that `datasets` reads from a local folder."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import pytest

from data_gen.sources.columns import Columns, from_csv, from_huggingface, from_jsonl
from rag.errors import InputError

ROWS = [
    {"nr": "007", "q": "Who keeps the light (N°1)?", "a": ["Ada Kol", "A.*"], "docs": [{"title": "L", "text": "Ada."}, "Ada keeps it.", ""],
     "ref": "Ada does."},
    {"nr": 8, "q": "東京はどこ?", "a": "no", "docs": None, "ref": " "},
]  # fmt: skip
NAMES = Columns(question="q", answers="a", id="nr", documents="docs", reference="ref")


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["lines", "list"])
def test_json_rows_become_questions(form: str, tmp_path: Path) -> None:
    content = json.dumps(ROWS) if form == "list" else "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
    dropped: Counter[str] = Counter()
    first, second = from_jsonl(write(tmp_path / "own.jsonl", content), NAMES, dropped=dropped)
    assert (first.id, first.question, first.answers, first.reference) == (
        "own-007",
        "Who keeps the light (N°1)?",
        ("Ada Kol", "A.*"),
        "Ada does.",
    )
    assert [(d.title, d.text, d.rank) for d in first.documents] == [("L", "Ada.", 1), ("", "Ada keeps it.", 2)]
    assert (second.id, second.answers, second.documents, second.reference) == ("own-8", ("no",), (), None)
    assert dropped == {"document without text": 1}


def test_cells_of_a_table_stay_text(tmp_path: Path) -> None:
    table = (
        '\ufeffnr,q,a,docs,ref\n007,Is it?,no,,\n,"When, ""exactly""?",12:30,"[""Text 1"", {""title"": ""T"", ""text"": ""007""}]",At 12:30.\n'
        '3,Which?,007,"[]",\n'
    )
    first, second, third = from_csv(write(tmp_path / "own.csv", table), NAMES)
    assert [q.answers for q in (first, second, third)] == [("no",), ("12:30",), ("007",)]
    assert first.id == "own-007" and second.question == 'When, "exactly"?' and second.id.startswith("own-")
    assert [(d.title, d.text) for d in second.documents] == [("", "Text 1"), ("T", "007")]
    assert (second.reference, third.reference, third.documents) == ("At 12:30.", None, ())


@pytest.mark.parametrize(
    ("how", "cell", "answers"),
    [
        ({}, "a|b", ("a|b",)),
        ({}, '["a"]', ('["a"]',)),
        ({"answers_as": "json"}, '["no", "007"]', ("no", "007")),
        ({"answers_as": "separated"}, "no | 007||no", ("no", "007")),
        ({"answers_as": "separated", "separator": ".*"}, "a.*b|c", ("a", "b|c")),
    ],
)
def test_what_a_cell_of_answers_holds_is_a_setting(how: dict[str, str], cell: str, answers: tuple[str, ...], tmp_path: Path) -> None:
    columns = Columns.model_validate({"question": "q", "answers": "a", **how})
    quoted = '"' + cell.replace('"', '""') + '"'
    (found,) = from_csv(write(tmp_path / "own.tsv", f"q\ta\nWhich?\t{quoted}\n"), columns, delimiter="\t")
    assert found.answers == answers


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "question,answer\nWho?,Ada\n",
            r"row 1: no column 'answers'; did you mean 'answer'\?; set dataset\.questions\.columns\.answers to one of question, answer",
        ),
        ("question,answers\nWho?,Ada\nWhat?\n", "row 2: expected 2 cells"),
        ("question,answers\nWho?,Ada,Bo\n", "row 1: expected 2 cells"),
        ("question,answers\n ,Ada\n", "row 1: question: expected text with at least one visible character"),
        ("question,answers\nWho?,\n", r"row 1: answers\.0: expected text with at least one visible"),
        ("question,answers\n", "expected rows .* found none"),
        ('question,answers\nWho?,"Ada"x\n', "row 1: .*expected after"),
    ],
)
def test_tables_that_do_not_fit_are_named(table: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"own\.csv: {message}"):
        from_csv(write(tmp_path / "own.csv", table))


def test_other_faults_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"question,answers\n\xe9,x\n")
    with pytest.raises(InputError, match="expected UTF-8 text"):
        from_csv(tmp_path / "latin.csv")
    with pytest.raises(InputError, match=r"absent\.csv: .*found nothing.* set dataset\.questions\.path"):
        from_csv(tmp_path / "absent.csv")
    for row, message in (
        ({"question": "Who?", "answers": [7]}, r"answers\.0: expected text, got int 7"),
        ({"question": "Who?", "answers": True}, r"answers"),
        ({"question": "Who?", "answers": None}, r"answers: .*at least 1"),
    ):
        with pytest.raises(InputError, match=r"own\.jsonl: record 1: " + message):
            from_jsonl(write(tmp_path / "own.jsonl", json.dumps(row)))
    path = write(tmp_path / "own.jsonl", json.dumps({"question": "Who?", "answers": "[1"}))
    with pytest.raises(InputError, match="record 1: answers: expected a JSON list, got text that is not JSON"):
        from_jsonl(path, Columns(answers_as="json"))
    path = write(tmp_path / "own.jsonl", json.dumps({"question": "Who?", "answers": '{"a": 1}'}))
    with pytest.raises(InputError, match="record 1: answers: expected a JSON list, got dict"):
        from_jsonl(path, Columns(answers_as="json"))
    path = write(tmp_path / "own.jsonl", json.dumps({"question": "Who?", "answers": "a", "documents": "loose text"}))
    with pytest.raises(InputError, match="record 1: documents: expected a JSON list, got text that is not JSON"):
        from_jsonl(path, Columns(documents="documents"))
    with pytest.raises(InputError, match="names two questions"):
        from_jsonl(write(tmp_path / "own.jsonl", json.dumps([{**ROWS[0], "nr": 8}, ROWS[1]])), NAMES)


@pytest.fixture
def hub_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    folder = tmp_path / "lights"
    folder.mkdir()
    train: list[dict[str, Any]] = [{"question": f"Who keeps light {i}?", "answers": [f"Keeper {i}", "007"]} for i in range(20)]
    test = [{"question": "WHO keeps light 3", "answers": ["Keeper 3"]}, {"question": "Où est l'île?", "answers": ["là"]}]
    for name, rows in (("train", train), ("test", test)):
        write(folder / f"{name}.jsonl", "\n".join(map(json.dumps, rows)))
    return folder


def test_a_data_set_of_the_hub_is_dealt_out_by_its_own_splits(hub_folder: Path) -> None:
    splits = {"train": "train", "validation": "train", "test": "test"}
    shares = {"train": 0.5, "validation": 0.5}
    dropped: Counter[str] = Counter()
    found = {split: from_huggingface(str(hub_folder), splits=splits, split=split, shares=shares, dropped=dropped) for split in splits}
    assert [q.question for q in found["test"]] == ["WHO keeps light 3", "Où est l'île?"]
    assert len(found["train"]) + len(found["validation"]) == 19 and found["train"] and found["validation"]
    assert dropped == {"question is in the test split too": 1}
    assert all(q.id.startswith("lights-") and q.answers[1] == "007" for q in found["train"])
    with pytest.raises(InputError, match=r"could not load the split 'dev' of this data set: .* questions\.name"):
        from_huggingface(str(hub_folder), splits={"test": "dev"})
    with pytest.raises(InputError, match=r"train: row 1: no column 'reply'; set dataset\.questions\.columns\.answers"):
        from_huggingface(str(hub_folder), Columns(answers="reply"), splits={"test": "train"})
    with pytest.raises(InputError, match="could not load"):
        from_huggingface(str(hub_folder / "absent"), splits={"test": "test"})
