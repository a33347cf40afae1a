"""Results of stages on disk: a sweep calls no model twice, a kill costs a line, and times are those that the model took."""

import gc
import json
import logging
import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag.checkpoint import Base, Manifest, write_manifest
from rag.errors import InputError
from rag.records import Document, Prediction, Query, Reason
from serve.systems import sieve_and_sage
from serve.systems.result_store import ResultStore
from serve.systems.sieve_and_sage import SieveAndSage
from serve.systems.stored import StoredSage, StoredSieve, identity, stored_sage, stored_sieve
from sieve.predict import Screening

TEXTS = ("The capital of Peru is Lima.", "The capital of Peru is Cusco.", "Llamas live in the Andes.")
KEY, OTHER_KEY = "a" * 64, "b" * 64


def refuse_to_load() -> Any:
    raise AssertionError("no model was to be loaded")


class Stages:
    """Two stages behind one store, counted; `fresh` opens the store again, as another run does."""

    def __init__(self, folder: Path, sieve: Any, sage: Any) -> None:
        self.folder, self.sieve, self.sage = folder, sieve, sage
        self.loaded: list[str] = []

    def _load(self, name: str) -> Any:
        self.loaded.append(name)
        return getattr(self, name)

    def fresh(self, who: str = "one", **settings: Any) -> SieveAndSage:
        return SieveAndSage(
            StoredSieve(lambda: self._load("sieve"), 0.5, self.folder / "sieve.jsonl", who),
            StoredSage(lambda: self._load("sage"), self.folder / "sage.jsonl", who),
            **settings,
        )

    @property
    def screened(self) -> list[str]:
        return [question for batch in self.sieve.screened for question in batch]

    @property
    def asked(self) -> list[str]:
        return [question for batch in self.sage.asked for question in batch]


@pytest.fixture
def stages(tmp_path: Path, make_sieve: Callable[..., Any], make_sage: Callable[..., Any]) -> Stages:
    def score(documents: Sequence[Document]) -> float:
        return len(documents) / 10 + 0.05

    def say(question: str, _: Sequence[Document]) -> str:
        return "unanswerable" if "Chile" in question else "Lima [d1]"

    return Stages(tmp_path, make_sieve(score), make_sage(say))


@pytest.fixture
def queries(query: Callable[..., Query]) -> list[Query]:
    made = [query(*(TEXTS * 3)[:n], id=f"e{n}", question=f"What is the capital of Peru, {n}?") for n in range(1, 9)]
    return [*made, query(*TEXTS, id="e9", question="What is the capital of Chile?")]


def without_times(predictions: Sequence[Prediction]) -> list[Prediction]:
    return [p.model_copy(update={"timings": {}, "stored": ()}) for p in predictions]


SWEEP = [round(1 - n / 10, 1) for n in range(11)]


def test_a_sweep_from_threshold_1_down_calls_each_stage_exactly_once_for_each_set(stages: Stages, queries: list[Query]) -> None:
    made = {threshold: stages.fresh(threshold=threshold).predict(queries) for threshold in SWEEP}
    assert sorted(stages.screened) == sorted(stages.asked) == sorted(query.question for query in queries)
    assert stages.loaded == ["sieve", "sage"], "loaded by the first run alone"
    for threshold, predictions in made.items():
        plain = SieveAndSage(stages.sieve, stages.sage, threshold=threshold).predict(queries)
        assert without_times(predictions) == without_times(plain)
    flagged = [sum(p.reason is Reason.DISTRACTED for p in predictions) for predictions in made.values()]
    assert flagged == sorted(flagged) and (flagged[0], flagged[-1]) == (0, 9)


def test_a_sweep_over_what_follows_a_flag_replays_what_it_has_examined(stages: Stages, queries: list[Query]) -> None:
    for _ in range(2):
        for limit in (1, None):
            for threshold in (1.0, 0.4, 0.0):
                stages.fresh(threshold=threshold, on_flag="filter", max_removals=limit).predict(queries)
        examined = sum(len(batch) for batch in stages.sieve.examined)
        if _ == 0:
            first = examined, len(stages.asked)
    assert (examined, len(stages.asked)) == first
    assert len(stages.screened) == 9


def test_a_replay_has_the_times_of_the_model_and_says_so(stages: Stages, queries: list[Query]) -> None:
    first, again = (stages.fresh(threshold=1.0).predict(queries) for _ in range(2))
    assert [p.timings for p in again] == [p.timings for p in first]
    assert {p.stored for p in first} == {()}
    assert {p.stored for p in again} == {("sieve", "sage")}


def test_loading_is_no_part_of_a_stage_s_time(stages: Stages, queries: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("serve.systems.stored.now", lambda: now[0])
    load = stages._load
    stages._load = lambda name: now.__setitem__(0, now[0] + 60) or load(name)  # type: ignore[method-assign]
    assert {p.timings["total"] for p in stages.fresh(threshold=1.0).predict(queries)} == {0.0}
    assert now[0] == 120


def test_a_set_that_stands_twice_in_a_batch_is_asked_once(stages: Stages, query: Callable[..., Query]) -> None:
    made = stages.fresh().predict([query(*TEXTS, id="e1"), query(*TEXTS, id="e2")])
    assert [p.answer for p in made] == ["Lima", "Lima"]
    assert (len(stages.screened), len(stages.asked)) == (1, 1)


def change(part: str, query: Query) -> Query:
    first, *rest = query.documents
    changed = {
        "question": query.model_copy(update={"question": "What is the capital of Bolivia?"}),
        "text": query.model_copy(update={"documents": (first.model_copy(update={"text": "Peru has a capital."}), *rest)}),
        "title": query.model_copy(update={"documents": (first.model_copy(update={"title": "Peru"}), *rest)}),
        "metadata": query.model_copy(update={"documents": (first.model_copy(update={"metadata": {"status": "superseded"}}), *rest)}),
        "id": query.model_copy(update={"documents": (first.model_copy(update={"id": "peru"}), *rest)}),
        "order": query.model_copy(update={"documents": (*rest, first)}),
        "number": query.model_copy(update={"documents": tuple(rest)}),
    }
    return changed[part]


@pytest.mark.parametrize("part", ["question", "text", "title", "metadata", "id", "order", "number"])
def test_whatever_a_stage_reads_makes_another_set(part: str, stages: Stages, query: Callable[..., Query]) -> None:
    for asked in (query(*TEXTS), change(part, query(*TEXTS))):
        stages.fresh().predict([asked])
    assert (len(stages.screened), len(stages.asked)) == (2, 2)


def test_what_a_stage_does_not_read_makes_none(stages: Stages, query: Callable[..., Query]) -> None:
    asked = query(*TEXTS)
    ranked = tuple(d.model_copy(update={"rank": 10 * n, "score": 1 / n}) for n, d in enumerate(asked.documents, start=1))
    for other in (asked, asked.model_copy(update={"id": "e2", "question_id": "q2", "documents": ranked})):
        stages.fresh().predict([other])
    assert (len(stages.screened), len(stages.asked)) == (1, 1)


def test_another_checkpoint_shares_nothing(stages: Stages, query: Callable[..., Query]) -> None:
    for who in ("one", "two", "one"):
        stages.fresh(who).predict([query(*TEXTS)])
    assert (len(stages.screened), len(stages.asked)) == (2, 2)


class TestFailures:
    @pytest.mark.parametrize("score", [float("nan"), 1.5, None])
    def test_a_score_that_is_none_is_no_memory(self, score: Any, stages: Stages, query: Callable[..., Query]) -> None:
        stages.sieve.score = lambda _: score
        [failed] = stages.fresh().predict([query(*TEXTS)])
        assert (failed.reason, failed.answer) == (Reason.SIEVE_FAILED, None)
        stages.sieve.score = lambda _: 0.1
        assert stages.fresh().predict([query(*TEXTS)])[0].answer == "Lima"

    def test_a_crash_is_no_memory_and_sinks_no_other(self, stages: Stages, queries: list[Query]) -> None:
        whole = stages.sage.say

        def poisoned(question: str, documents: Sequence[Document]) -> str:
            if "3?" in question:
                raise RuntimeError("out of memory")
            return str(whole(question, documents))

        stages.sage.say = poisoned
        assert [p.reason for p in stages.fresh(threshold=1.0).predict(queries)].count(Reason.SAGE_FAILED) == 1
        stages.sage.say = whole
        stages.sage.asked.clear()
        made = stages.fresh(threshold=1.0).predict(queries)
        assert [p.answer for p in made] == ["Lima"] * 8 + [None]
        assert stages.asked == ["What is the capital of Peru, 3?"]

    def test_a_question_that_cannot_be_asked_is_refused_again_without_a_model(self, stages: Stages, query: Callable[..., Query]) -> None:
        stages.sage.answer = lambda questions, _: [InputError("over budget") for _ in questions]
        first, again = (stages.fresh().predict([query(*TEXTS)])[0] for _ in range(2))
        assert first.error == again.error == "over budget"
        assert stages.loaded == ["sieve", "sage"]

    @pytest.mark.parametrize("stage", ["sieve", "sage"])
    def test_a_model_that_does_not_load_ends_the_run_and_fails_no_query(
        self, stage: str, stages: Stages, query: Callable[..., Query]
    ) -> None:
        def load(name: str) -> Any:
            if name == stage:
                raise InputError("base: not found; set sieve.model.base")
            return getattr(stages, name)

        stages._load = load  # type: ignore[method-assign]
        with pytest.raises(InputError, match="base: not found"):
            stages.fresh().predict([query(*TEXTS)])

    def test_neither_does_a_full_disk(self, stages: Stages, query: Callable[..., Query], monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("serve.systems.result_store.os.fsync", full)
        with pytest.raises(InputError, match=r"sieve\.jsonl: could not write \(No space left on device\)"):
            stages.fresh().predict([query(*TEXTS)])

    def test_a_line_of_another_shape_is_made_again(self, stages: Stages, query: Callable[..., Query]) -> None:
        stages.fresh().predict([query(*TEXTS)])
        path = stages.folder / "sieve.jsonl"
        line = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**line, "result": ["high"]}) + "\n", encoding="utf-8")
        [made] = stages.fresh().predict([query(*TEXTS)])
        assert (made.answer, made.stored) == ("Lima", ("sage",))
        assert len(stages.screened) == 2


class TestKills:
    def test_every_place_where_a_kill_can_cut_the_last_line(self, stages: Stages, queries: list[Query]) -> None:
        expected = without_times(stages.fresh(threshold=1.0).predict(queries[:3]))
        path = stages.folder / "sieve.jsonl"
        whole = path.read_bytes()
        last = whole.rindex(b"\n", 0, -1) + 1
        for end in range(last, len(whole), 7):
            path.write_bytes(whole[:end])
            stages.sieve.screened.clear()
            assert without_times(stages.fresh(threshold=1.0).predict(queries[:3])) == expected
            assert len(stages.screened) == 1, "only the result that was cut"
            stages.fresh(threshold=1.0).predict(queries[:3])
            assert len(stages.screened) == 1, "made again, and kept behind the cut line"

    def test_the_last_of_two_lines_counts(self, tmp_path: Path) -> None:
        store = ResultStore(tmp_path / "s.jsonl")
        store.put({KEY: {"result": 1}})
        store.put({KEY: {"result": 2}, OTHER_KEY: {"result": 3}})
        assert [ResultStore(tmp_path / "s.jsonl").get(key) for key in (KEY, OTHER_KEY, "c" * 64)] == [
            {"key": KEY, "result": 2},
            {"key": OTHER_KEY, "result": 3},
            None,
        ]

    def test_what_another_process_appends_is_found(self, tmp_path: Path) -> None:
        mine, theirs = (ResultStore(tmp_path / "s.jsonl") for _ in range(2))
        assert mine.get(KEY) is None
        theirs.put({KEY: {"result": "Lima – ‘capital’"}})
        assert mine.get(KEY) == {"key": KEY, "result": "Lima – ‘capital’"}

    def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl"
        ResultStore(path).put({KEY: {"result": 1}})
        line = path.read_bytes()
        path.write_bytes(line[:-4])
        store = ResultStore(path)
        assert store.get(KEY) is None
        with path.open("ab") as out:
            out.write(line[-4:])
        assert store.get(KEY) == {"key": KEY, "result": 1}

    def test_a_folder_that_cannot_be_made_is_a_clear_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match=r"file: could not make this folder .* choose another store"):
            ResultStore(tmp_path / "file" / "s.jsonl")


def write_many(path: Path, start: int) -> None:
    store = ResultStore(path)
    for n in range(start, start + 60):
        store.put({f"{n:064x}": {"result": "x" * (n * 37 % 5000)}})


def test_two_processes_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=write_many, args=(path, start)) for start in (0, 60, 30)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    store = ResultStore(path)
    assert [len((store.get(f"{n:064x}") or {})["result"]) for n in range(120)] == [n * 37 % 5000 for n in range(120)]


def test_the_end_says_how_many_came_from_where(stages: Stages, queries: list[Query], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for threshold in (1.0, 0.5):
        stages.fresh(threshold=threshold).predict(queries)
        gc.collect()
    told = [r.message.replace(f"{stages.folder}/", "") for r in caplog.records if str(stages.folder) in r.message]
    assert sorted(told) == sorted(
        [
            "sieve.jsonl: screened 9, stored 0",
            "sage.jsonl: asked 9, stored 0",
            "sieve.jsonl: screened 0, stored 9",
            "sage.jsonl: asked 0, stored 5",
        ]
    )


def test_readings_come_back(stages: Stages, query: Callable[..., Query]) -> None:
    stages.sieve.screen = lambda questions, documents: [Screening(0.1, ("d2",), 5, {"d1": "Lima", "d2": ""})] * len(questions)
    first, again = (stages.fresh().predict([query(*TEXTS)])[0] for _ in range(2))
    assert first.readings == again.readings == {"d1": "Lima", "d2": ""}
    assert first.trimmed == again.trimmed == ("d2",)


class TestCheckpoints:
    def checkpoint(self, folder: Path, stage: Any = "sieve", threshold: float | None = 0.7) -> Path:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "README.md").write_text("a card")
        base = Base(id="base", fingerprint="f")
        write_manifest(folder, Manifest(stage=stage, base=base, settings={}, threshold=threshold))
        return folder

    def test_the_threshold_is_there_without_the_model(self, tmp_path: Path) -> None:
        folder = self.checkpoint(tmp_path / "c")
        assert stored_sieve(refuse_to_load, tmp_path, folder, None, "cpu").threshold == 0.7

    def test_with_a_deadline_it_is_loaded_at_once(self, tmp_path: Path, make_sieve: Callable[..., Any]) -> None:
        folder = self.checkpoint(tmp_path / "c")
        loaded: list[int] = []
        stored_sieve(lambda: loaded.append(1) or make_sieve(0.1), tmp_path, folder, None, "cpu", lazy=False)
        assert loaded == [1]

    def test_weights_and_manifest_make_the_identity_and_a_card_does_not(self, tmp_path: Path) -> None:
        folder = self.checkpoint(tmp_path / "c")
        before = identity(folder, None, "cpu")
        (folder / "README.md").write_text("another card")
        (folder / "audit.json").write_text("{}")
        assert identity(folder, None, "cpu") == before
        assert identity(folder, Base(id="a", fingerprint="f"), "cpu") != before
        (folder / "model.safetensors").write_bytes(b"weightz")
        assert identity(folder, None, "cpu") != before
        assert identity(self.checkpoint(tmp_path / "d", threshold=0.6), None, "cpu") != before

    def test_a_folder_of_the_other_stage_is_refused_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="expected a sage checkpoint"):
            stored_sage(refuse_to_load, tmp_path, self.checkpoint(tmp_path / "c"), None, "cpu")

    def test_the_system_s_loader_puts_both_stages_behind_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sieve_and_sage.sieve_stage, "load", refuse_to_load)
        monkeypatch.setattr(sieve_and_sage, "load_sage", refuse_to_load)
        sieve, sage = self.checkpoint(tmp_path / "c"), self.checkpoint(tmp_path / "d", "sage", None)
        system = sieve_and_sage.load(sieve, sage, device="cpu", store=tmp_path / "store", max_removals=None)
        assert isinstance(system.sieve, StoredSieve) and isinstance(system.sage, StoredSage)
        assert (system.threshold, system.max_removals) == (0.7, None)
