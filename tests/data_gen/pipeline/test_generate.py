"""The steps in a row: files, resuming, lineage, splits, and two engines with one result."""

import json
from collections import Counter
from pathlib import Path

import pytest

from data_gen.build import BuildSettings, build
from data_gen.pipeline import generate
from data_gen.pipeline.cases import Case
from data_gen.pipeline.reference import refer
from data_gen.questions import Question
from data_gen.sources import columns
from rag.errors import InputError
from rag.jsonl import iter_records
from rag.records import Document, DocumentLabel
from rag.retrieval.bm25_index import Bm25Index
from rag.settings import Component
from tests.data_gen.pipeline.stand_ins import QUESTION, Chat, Nli, Shelf, writer

TEXTS = (
    "The museum is in Lima. [yes]",
    "Lima has a port.",
    "",
    "The museum is old.",
    "the museum  is OLD.",
    "It is in Quito. [no]",
    "Trams run daily.",
)


def questions(split: str, count: int = 5) -> list[Question]:
    """Questions with documents of their own but for one passage that every split has."""
    return [
        Question(
            id=f"{split}-{n}",
            question=f"where is museum {n} of {split}?",
            answers=("Lima",),
            documents=(
                Document(id=f"{split}-{n}-gold", text=f"Museum {n} of {split} is in Lima. [yes]"),
                Document(id=f"{split}-{n}-free", text=f"Museum {n} of {split} is old, and the paintings are many."),
                Document(id=f"{split}-{n}-all", text="Trams run daily."),
                Document(id=f"{split}-{n}-bad", text=f"Museum {n} of {split} is in Quito. [no]"),
            ),
            source="towns.json",
            split=split,
        )
        for n in range(count)
    ]


def towns(split: str, count: int = 5) -> list[Question]:
    return [Question(id=f"{split}-{n}", question=f"museum {n} {split}?", answers=("Lima",), source="towns.json") for n in range(count)]


def chat() -> Chat:
    return Chat(writer)


def killed() -> Chat:
    def reply(prompt: str) -> str | None:
        if "museum 3" in prompt:
            raise KeyboardInterrupt
        return writer(prompt)

    return Chat(reply)


def shelf() -> Shelf:
    return Shelf(TEXTS)


def _settings(**arguments) -> BuildSettings:
    given = {"questions": Component(questions, {}), "nli": Component(Nli, {}), "chat": Component(chat, {}), "k": 3, "shard": 2}
    return BuildSettings(dataset=Component(generate.load, {**given, **arguments}), splits=("train", "test"))


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "done.json"
    }


def test_a_build_goes_through_all_steps(tmp_path):
    report = build(_settings(), tmp_path)
    assert report.examples == {split: {"adversarial": 5, "answerable": 5, "conflict": 5, "negated": 5} for split in ("train", "test")}
    assert report.yields == {kind: {"used": 10} for kind in ("adversarial", "conflict", "negated")}
    assert report.shared_documents == 3, "the stand-in writes the same three passages for every question"
    assert report.dropped["train"]["document contradicts the reference: kept aside"] == 5
    assert report.dropped["train"]["document is used in another split"] == 5
    assert report.dropped["test"] == {"document contradicts the reference: kept aside": 5}
    cases = list(iter_records(tmp_path / "steps" / "5_validate" / "train-00000.jsonl", Case))
    assert [case.reference for case in cases] == ["The answer to it is Lima."] * 2
    assert [c.document.label for c in cases[0].candidates] == ["answerable", "unanswerable", "unanswerable", None]
    (line, *_) = (tmp_path / "test.jsonl").read_text(encoding="utf-8").splitlines()
    lineage = json.loads(line)["lineage"]
    assert set(lineage) == {"code", "seed", "prompts", "retriever", "reference", "nli", "simulation"}
    assert lineage["simulation"] == "stand-in chat"
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| conflict | used | 10 | 100% |" in card
    assert "| answerable | 5 | 5 |" in card


def test_lengths_asked_for_are_those_of_the_passages(tmp_path):
    build(_settings(), tmp_path)
    lengths = {len(d.text) for split in ("train", "test") for q in questions(split) for d in q.documents}
    asked = {
        (s.shortest, s.longest)
        for path in (tmp_path / "steps" / "5_validate").glob("*.jsonl")
        for case in iter_records(path, Case)
        for s in case.simulations
    }
    assert len(asked) > 1
    assert asked <= {(round(n * 0.9), round(n * 1.1)) for n in lengths}


def test_the_same_inputs_give_the_same_bytes(tmp_path):
    build(_settings(), tmp_path / "a")
    build(_settings(), tmp_path / "b")
    assert _files(tmp_path / "a") == _files(tmp_path / "b")


def test_a_run_that_was_killed_goes_on_and_ends_in_the_same_files(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(_settings(chat=Component(killed, {})), tmp_path / "a")
    done = sorted(path.name for path in (tmp_path / "a" / "steps" / "2_reference").glob("*.jsonl"))
    assert done == ["train-00000.jsonl"]
    kept = (tmp_path / "a" / "steps" / "2_reference" / "train-00000.jsonl").stat().st_mtime_ns
    build(_settings(), tmp_path / "a")
    assert (tmp_path / "a" / "steps" / "2_reference" / "train-00000.jsonl").stat().st_mtime_ns == kept
    build(_settings(), tmp_path / "b")
    assert _files(tmp_path / "a") == _files(tmp_path / "b")


def test_a_retriever_is_asked_for_questions_without_documents(tmp_path):
    settings = _settings(questions=Component(towns, {}), retriever=Component(shelf, {}), candidates=4)
    report = build(settings.model_copy(update={"splits": ("test",)}), tmp_path)
    (case, *_) = iter_records(tmp_path / "steps" / "1_retrieve" / "test-00000.jsonl", Case)
    assert [c.document.text for c in case.candidates] == [TEXTS[0], TEXTS[1], TEXTS[3], TEXTS[5]], "no blank passage, none twice"
    assert [c.document.rank for c in case.candidates] == [1, 2, 3, 4]
    assert case.made_by == {"retriever": "shelf of 7"}
    assert report.examples["test"]["answerable"] == 5


def no_index() -> Shelf:
    raise AssertionError("the retriever was started")


def test_no_retriever_is_started_where_the_data_set_ships_its_documents(tmp_path):
    assert build(_settings(retriever=Component(no_index, {})), tmp_path).examples["test"]["answerable"] == 5


def test_a_split_that_lost_everything_says_why(tmp_path):
    with pytest.raises(InputError, match="no examples for 'train'.*what was left out: 15 document is used in another split"):
        build(_settings(questions=Component(towns, {}), retriever=Component(shelf, {}), candidates=4), tmp_path)


def test_without_documents_and_retriever_every_question_is_counted(tmp_path):
    dropped: Counter[str] = Counter()
    made = generate.load(Component(towns, {}), Component(Nli, {}), tmp_path, chat=Component(chat, {}), dropped=dropped)
    assert made == []
    assert dropped == {"question: the data set has no documents for the question and there is no retriever": 5}


def test_shipped_documents_take_the_place_of_written_ones(tmp_path):
    report = build(_settings(questions=Component(_with_conflict, {})), tmp_path)
    texts = [
        d["text"]
        for line in (tmp_path / "test.jsonl").read_text().splitlines()
        for d in json.loads(line)["documents"]
        if d.get("label") == "conflict"
    ]
    assert texts == [f"Museum {n} of test is in Quito, they say." for n in range(5)]
    assert report.yields["conflict"] == {"used": 10}


def _with_conflict(split: str) -> list[Question]:
    return [
        q.model_copy(
            update={
                "simulated": (
                    Document(
                        id=f"{q.id}-s", text=f"Museum {n} of {split} is in Quito, they say.", label=DocumentLabel.CONFLICT, answer="Quito"
                    ),
                )
            }
        )
        for n, q in enumerate(questions(split))
    ]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Lima is " + "so " * 100, "no reference sentence: more than 100 words"),
        ("It is in Quito.", "no reference sentence: the answer is not in it"),
        ("Lima", "no reference sentence: it is no more than the answer"),
    ],
)
def test_a_reference_that_cannot_be_used_ends_the_question_with_a_reason(tmp_path, reply, reason):
    dropped: Counter[str] = Counter()
    fixed = Component(lambda: Chat(lambda prompt: reply), {})
    assert generate.load(Component(questions, {}), Component(Nli, {}), tmp_path, chat=fixed, dropped=dropped) == []
    assert dropped == {f"question: {reason}": 5}


def test_numbers_that_cannot_be_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"shard: expected a number of at least 1, got 0; set dataset\.shard"):
        build(_settings(shard=0), tmp_path)


def test_what_the_source_left_out_and_what_is_over_the_limit_is_counted(tmp_path):
    lines = [{"question": q, "answers": "Lima"} for q in ("Where?", "where", "When?", "Why?")]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    own = Component(columns.from_jsonl, {"path": tmp_path / "own.jsonl"})
    dropped: Counter[str] = Counter()
    towers = {"retriever": Component(shelf, {}), "chat": Component(chat, {}), "limit": 2, "dropped": dropped}
    generate.load(own, Component(Nli, {}), tmp_path / "out", **towers)
    assert dropped["question repeats an earlier one, merged with it"] == 1
    assert dropped["question over limit"] == 1
    with pytest.raises(InputError, match=r"limit: expected a number of at least 1, got 0; set dataset\.limit"):
        generate.load(own, Component(Nli, {}), tmp_path / "out", limit=0)


def test_without_a_folder_for_its_steps_it_says_where_to_go():
    with pytest.raises(InputError, match=r"data_gen\.build.*dataset=jsonl"):
        generate.load(Component(questions, {}), Component(Nli, {}))


def test_a_reference_without_the_answer_is_asked_for_again():
    replies = iter(["It is in Quito.", "Lima", "It is in Lima.", "never asked for"])
    chat = Chat(lambda prompt: next(replies))
    (done,) = refer([Case(question=QUESTION)], chat, 4, seed=0)
    assert (done.reference, done.failure) == ("It is in Lima.", None)
    assert len({request.seed for request in chat.asked}) == 3


def test_a_model_that_answers_nothing_ends_the_build_and_leaves_it_to_be_repeated(tmp_path):
    with pytest.raises(InputError, match=r"none of 5 requests to stand-in chat was answered \(refused\).*repeat the command"):
        build(_settings(chat=Component(lambda: Chat(lambda prompt: None), {}), shard=5), tmp_path)
    assert not list((tmp_path / "steps" / "2_reference").glob("*.jsonl"))
    build(_settings(shard=5), tmp_path)


def test_questions_that_changed_are_done_again(tmp_path):
    build(_settings(), tmp_path)
    build(_settings(questions=Component(questions, {"count": 3})), tmp_path)
    lines = (tmp_path / "test.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["question_id"] for line in lines} == {"test-0", "test-1", "test-2"}


def test_a_passage_much_shorter_than_asked_for_is_rejected(tmp_path):
    def reply(prompt: str) -> str | None:
        return "Quito." if prompt.endswith("Conflict passage:") else writer(prompt)

    report = build(_settings(chat=Component(lambda: Chat(reply), {})), tmp_path)
    assert report.yields["conflict"] == {"no passage: less than half of the length asked for": 10}
    assert report.yields["negated"] == {"used": 10}


def test_a_corpus_that_is_not_there_is_missed_only_where_a_question_needs_it(tmp_path):
    retriever = Component(Bm25Index, {"corpus": tmp_path / "nowhere"})
    build(_settings(retriever=retriever), tmp_path / "shipped")
    with pytest.raises(InputError, match="nowhere"):
        build(_settings(questions=Component(towns, {}), retriever=retriever), tmp_path / "retrieved")
