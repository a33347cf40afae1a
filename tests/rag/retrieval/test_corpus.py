"""A corpus on disk: what goes in comes out, what is left out is counted, and what cannot be is refused."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.records import Document, DocumentLabel
from rag.retrieval.corpus import Corpus, write_corpus
from rag.retrieval.seen import Seen


def test_documents_come_back_as_they_were_by_row_and_in_order(tmp_path: Path, awkward_documents: list[Document]) -> None:
    corpus = write_corpus(iter(awkward_documents), tmp_path / "c", source="tests")
    assert len(corpus) == len(awkward_documents) and corpus.card.source == "tests"
    assert list(corpus) == awkward_documents == [corpus[row] for row in range(len(corpus))]
    assert list(corpus.read(2, 4)) == awkward_documents[2:4]
    assert list(corpus.read(9)) == awkward_documents[9:] and list(corpus.read(99)) == []
    for row in (-1, len(corpus)):
        with pytest.raises(IndexError):
            corpus[row]


def test_places_are_the_order_of_ids_and_find_goes_by_it(tmp_path: Path, awkward_documents: list[Document]) -> None:
    corpus = write_corpus(awkward_documents, tmp_path / "c")
    ids = [document.id for document in awkward_documents]
    assert [sorted(ids)[place] for place in corpus.places.tolist()] == ids
    assert [corpus.find(name) for name in ids] == list(range(len(ids)))
    assert [corpus.find(name) for name in ("", "d", "d11", "zz", "Éa")] == [None] * 5


def test_what_belongs_to_a_question_is_not_kept(tmp_path: Path) -> None:
    document = Document(id="a", text="x", rank=3, score=1.0, label=DocumentLabel.CONFLICT, answer="x", metadata={"source": "s"})
    assert write_corpus([document], tmp_path / "c")[0] == Document(id="a", text="x", metadata={"source": "s"})


def test_blank_and_repeated_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    texts = ["one", " \n", "two", "one", "", "one", "One"]
    documents = [Document(id=str(i), text=text) for i, text in enumerate(texts)]
    titled = [*documents, Document(id="t", title="T", text="one")]
    dropped = write_corpus(titled, tmp_path / "dropped")
    assert [d.id for d in dropped] == ["0", "2", "6", "t"], "the first stays, and another title or case is another document"
    assert dropped.card.left_out == {"blank": 2, "duplicate": 2} and dropped.card.duplicates_kept == 0
    kept = write_corpus(titled, tmp_path / "kept", duplicates="keep")
    assert [d.id for d in kept] == ["0", "2", "3", "5", "6", "t"]
    assert kept.card.left_out == {"blank": 2} and kept.card.duplicates_kept == 2


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path, awkward_documents: list[Document]) -> None:
    first = write_corpus(awkward_documents, tmp_path / "a", source="one")
    assert write_corpus(awkward_documents, tmp_path / "b", source="two").fingerprint == first.fingerprint
    changed = [awkward_documents[0].model_copy(update={"text": "a lake"}), *awkward_documents[1:]]
    assert write_corpus(changed, tmp_path / "d").fingerprint != first.fingerprint
    assert write_corpus(awkward_documents[::-1], tmp_path / "e").fingerprint != first.fingerprint


def test_an_id_that_comes_twice_is_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    documents = [Document(id="a", text="x"), Document(id="b", text="y"), Document(id="a", text="z")]
    with pytest.raises(InputError, match="distinct ids, got 'a' twice"):
        write_corpus(documents, tmp_path / "c")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"found none with text \(1 blank\)"):
        write_corpus([Document(id="a", text=" ")], tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_fails_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    def source() -> Iterator[Document]:
        yield Document(id="a", text="x")
        raise InputError("the file ends here")

    with pytest.raises(InputError, match="the file ends here"):
        write_corpus(source(), tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_the_same_corpus_may_be_written_again_and_another_may_not(tmp_path: Path, awkward_documents: list[Document]) -> None:
    folder = tmp_path / "c"
    first = write_corpus(awkward_documents, folder)
    (folder / "index").mkdir()
    assert write_corpus(awkward_documents, folder).fingerprint == first.fingerprint
    assert (folder / "index").is_dir()
    with pytest.raises(InputError, match="holds another corpus"):
        write_corpus(awkward_documents[1:], folder)
    assert list(Corpus.open(folder)) == awkward_documents
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="expected a new folder or a corpus"):
        write_corpus(awkward_documents, tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} == {"c", "other"}


def test_a_folder_that_is_no_corpus_or_is_damaged_is_refused(tmp_path: Path, awkward_documents: list[Document]) -> None:
    with pytest.raises(InputError, match=r"expected a folder that holds corpus.json.*python -m data_gen.corpus"):
        Corpus.open(tmp_path)
    corpus = write_corpus(awkward_documents, tmp_path / "c")
    with (corpus.folder / "documents.jsonl").open("ab") as out:
        out.write(b"{}\n")
    with pytest.raises(InputError, match=r"documents.jsonl: expected \d+ bytes, found \d+; it is damaged"):
        Corpus.open(corpus.folder)
    (corpus.folder / "places.bin").write_bytes(b"1234")
    with pytest.raises(InputError, match="places.bin: expected 88 bytes, found 4"):
        Corpus.open(corpus.folder)
    (corpus.folder / "places.bin").unlink()
    with pytest.raises(InputError, match="places.bin is missing"):
        Corpus.open(corpus.folder)


def test_a_pickled_corpus_holds_no_documents(corpus: Corpus) -> None:
    assert len(pickle.dumps(corpus)) < 400
    assert list(pickle.loads(pickle.dumps(corpus))) == list(corpus)


@given(st.lists(st.lists(st.text(max_size=2), min_size=1), max_size=12))
def test_seen_is_a_set(calls: list[list[str]]) -> None:
    seen, expected = Seen(), set()
    for strings in calls:
        known = []
        for string in strings:
            known.append(string in expected)
            expected.add(string)
        assert seen.add(strings) == known
