import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.errors import InputError
from rag.jsonl import Journal, dump, iter_records, read_examples, read_files, read_json, write_records
from rag.records import Document, Example

ROW = '{"id": "%s", "question_id": "q", "question": "Who?", "documents": [], "answers": ["no"], "state": "answerable", "condition": "answerable"}\n'
DOCUMENTS = [Document(id=f"d{n}", text="Beyoncé “007” \u2028 \n C++", metadata={"source": "no"}, score=-0.5) for n in range(3)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_round_trip(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "rows.jsonl"
    assert write_records(file, DOCUMENTS) == 3
    assert list(iter_records(file, Document)) == DOCUMENTS
    assert file.read_text("utf-8").count("\n") == 3
    assert "Beyoncé" in file.read_text("utf-8")


def test_defaults_are_left_out() -> None:
    assert dump(Document(id="d1", text="x")) == '{"id":"d1","text":"x"}'


def test_blank_lines_and_a_byte_order_mark_are_skipped(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + (ROW % "a" + "\n  \n" + ROW % "b").encode())
    assert [example.id for example in read_examples(file)] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ROW % "a" + "{not json\n", r"rows\.jsonl:2: expected one JSON object: Invalid JSON: .*"),
        (
            "\n\n" + ROW.replace("Who?", "") % "a",
            r"rows\.jsonl:3: question: expected text with at least one visible character, got blank text",
        ),
        (ROW.replace('"%s"', "%s") % 7, r"rows\.jsonl:1: id: expected text, got int 7; write it in quotes, such as \"7\""),
        (ROW.replace('"no"', "false") % "a", r"rows\.jsonl:1: answers\.0: expected text, got bool False; .*"),
        (ROW.replace('"no"', "007") % "a", r"rows\.jsonl:1: expected one JSON object: Invalid JSON: invalid number .*"),
        (ROW.replace('"answers"', '"answer"') % "a", r"rows\.jsonl:1: answer: unknown field; did you mean 'answers'\?.*"),
        (
            ROW.replace("[]", '[{"id": "d", "txt": "x"}]') % "a",
            r"rows\.jsonl:1: documents\.0\.text: Field required; documents\.0\.txt: unknown field; did you mean 'text'\?",
        ),
        ("[]\n", r"rows\.jsonl:1: Input should be an object"),
        (ROW % "a" + "\n" + ROW % "b" + ROW % "a", r"rows\.jsonl:4: id: 'a' was already used in line 1; give each example its own"),
        ("", r"rows\.jsonl: expected at least one Example, found an empty file"),
        ("\n", r"rows\.jsonl: expected at least one Example, found an empty file"),
    ],
)
def test_a_fault_names_file_line_and_field(file: Path, content: str, message: str) -> None:
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=f"^{file.parent}/{message}$"):
        read_examples(file)


def test_bytes_that_are_not_utf8_are_named_by_line(file: Path) -> None:
    file.write_bytes((ROW % "a").encode() + b'{"id": "\xff"}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl:2: expected UTF-8 text"):
        read_examples(file)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none.jsonl: expected a JSONL file of Example records, found nothing at that path"):
        read_examples(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="expected a JSONL file of Document records, found a folder"):
        list(iter_records(tmp_path, Document))


def test_records_before_a_fault_are_yielded(file: Path) -> None:
    file.write_text(ROW % "a" + "broken\n", encoding="utf-8")
    records = iter_records(file, Example)
    assert next(records).id == "a"
    with pytest.raises(InputError, match=r"rows\.jsonl:2:"):
        next(records)


def test_a_failing_source_leaves_the_old_file_and_no_partial_one(file: Path) -> None:
    def failing() -> Iterator[Document]:
        yield DOCUMENTS[0]
        raise RuntimeError("source")

    write_records(file, DOCUMENTS)
    with pytest.raises(RuntimeError, match="source"):
        write_records(file, failing())
    assert list(iter_records(file, Document)) == DOCUMENTS
    assert os.listdir(file.parent) == [file.name]


def test_write_records_on_a_full_disk_keeps_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_records(file, DOCUMENTS[:1])
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match=r"rows\.jsonl: could not write \(No space left on device\); nothing was changed"):
        write_records(file, DOCUMENTS)
    assert list(iter_records(file, Document)) == DOCUMENTS[:1]
    assert os.listdir(file.parent) == [file.name]


def test_a_folder_that_cannot_be_made_is_an_error(file: Path) -> None:
    file.write_text("in the way")
    for write in (lambda path: write_records(path, []), Journal):
        with pytest.raises(InputError, match="could not make this folder .*; choose another place to write to"):
            write(file / "below" / "rows.jsonl")
    with pytest.raises(InputError, match="expected a file to append to, found a folder"):
        Journal(file.parent)


def test_a_journal_goes_on_after_the_rows_it_has(file: Path) -> None:
    Journal(file).append(DOCUMENTS[:1])
    Journal(file).append(DOCUMENTS[1:])
    assert list(iter_records(file, Document)) == DOCUMENTS


@pytest.mark.parametrize("torn", [b'{"id": "d9", "te', "{“".encode()[:-1], b"{"])
def test_a_journal_cuts_a_torn_last_line_off(file: Path, torn: bytes) -> None:
    Journal(file).append(DOCUMENTS[:1])
    with file.open("ab") as out:
        out.write(torn)
    Journal(file).append(DOCUMENTS[1:])
    assert list(iter_records(file, Document)) == DOCUMENTS


def test_a_journal_that_is_nothing_but_a_torn_line_starts_anew(file: Path) -> None:
    file.write_bytes(b'{"id"')
    Journal(file)
    assert file.read_bytes() == b""


def test_a_journal_on_a_full_disk_keeps_whole_lines_and_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(file)
    journal.append(DOCUMENTS[:1])
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(
        InputError, match=r"rows\.jsonl: could not write \(No space left on device\); rows written so far are kept, rerun to go on"
    ):
        journal.append(DOCUMENTS[1:2])
    assert file.read_bytes().endswith(b"\n")


def test_a_journal_that_runs_out_of_room_inside_a_line_cuts_it_off(file: Path) -> None:
    journal = Journal(file)
    journal.append(DOCUMENTS[:1])
    size = file.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * size + 5, hard))
    try:
        with pytest.raises(InputError, match="could not write"):
            journal.append(DOCUMENTS[1:])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(iter_records(file, Document)) == DOCUMENTS[:2]
    Journal(file).append(DOCUMENTS[2:])
    assert list(iter_records(file, Document)) == DOCUMENTS


def test_read_json(tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text('{"a": ["no"]}', encoding="utf-8")
    assert read_json(file) == {"a": ["no"]}
    file.write_text('{"a":\n nope}', encoding="utf-8")
    with pytest.raises(InputError, match=r"data\.json:2:2: not JSON: Expecting value"):
        read_json(file)
    file.write_bytes(b'"\xff"')
    with pytest.raises(InputError, match=r"data\.json: expected UTF-8 text"):
        read_json(file)
    with pytest.raises(InputError, match="expected a JSON file, found a folder"):
        read_json(tmp_path)


def test_json_nested_too_deeply_is_named(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match=r"deep\.json: not JSON that can be read: nested too deeply"):
        read_json(path)


def test_several_files_are_read_in_the_order_given(tmp_path: Path) -> None:
    for name, ids in (("a", ("1", "2")), ("b", ("1",))):
        (tmp_path / f"{name}.jsonl").write_text("".join(ROW % i for i in ids), "utf-8")
    files = [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    assert [example.id for example in read_files(files)] == ["1", "1", "2"]
    assert read_files([]) == []
    with pytest.raises(InputError, match="c.jsonl"):
        read_files([*files, tmp_path / "c.jsonl"])
