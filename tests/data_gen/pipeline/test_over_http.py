"""The whole build with a server over real HTTP, an index on disk and questions from a file: what the server does wrong, and a kill in the middle."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from data_gen.build import BuildSettings, build
from data_gen.card import BuildReport
from data_gen.pipeline import generate
from data_gen.pipeline.cases import Case
from data_gen.pipeline.steps import DONE, STEPS, VALIDATED, totals
from data_gen.sources import columns
from rag.jsonl import iter_records, read_examples
from rag.models.cached_chat import Price
from rag.models.chat_server import ChatServer
from rag.records import Document, Example
from rag.retrieval.bm25_index import Bm25Index
from rag.retrieval.corpus import write_corpus
from rag.settings import Component
from tests.data_gen.pipeline.stand_ins import Nli

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

ROOT = Path(__file__).parents[3]
ANSWERS = {
    "which language did the Vela probe run on?": "C++ (lang.)",
    "what did a ticket to Ostra cost?": "$5.00",
    "which pattern matches every line of Nemo?": ".*",
    "where does the 東京 choir sing?": "日本橋 \\d+",
    "where is the Río museum?": "São Tomé",
}
VELA, OSTRA, NEMO, CHOIR, RIO = ANSWERS.values()
RETRIES = 3


def pages() -> Iterator[Document]:
    """A page with the answer to each question, a repetition of it, a blank page, and pages without it."""
    for number, (question, answer) in enumerate(ANSWERS.items()):
        about = question.removesuffix("?").partition(" the " if " the " in question else " a ")[2]
        fact = f"The answer to it is {answer}. So it is written of the {about}. [yes]"
        yield Document(id=f"{number}-gold", title=about, text=fact)
        yield Document(id=f"{number}-again", title=about, text=fact)
        yield Document(id=f"{number}-AGAIN", title=about, text=fact.replace(" is written", "  IS written"))
        yield Document(id=f"{number}-blank", title=about, text=" \n")
        yield Document(id=f"{number}-free", text=f"Of the {about} much is known, and more is not. é 東京 \\1 {{0}}")


def behaviour(stub: Any) -> Callable[[dict[str, Any], int], Any]:
    """A server that writes what the prompts of tables 12 and 13 ask for, slowly, wrapped in words, at the third try, or never."""

    def answer(body: dict[str, Any], number: int) -> Any:
        prompt = body["messages"][-1]["content"]
        *_, given, asked = prompt.splitlines()
        said = given.partition(": ")[2].removesuffix(".")
        about = said.removeprefix("The answer to it is ").removeprefix("It was never ")
        if asked == "Sentence:":
            return stub.said(f"Sure, here is the sentence:\n\nThe answer to it is {said}.", seconds=0.15 if said == VELA else 0.0)
        if asked == "Conflict passage:":
            if number == 1:
                return stub.refused(429, "slow down", ("Retry-After", "0.02"))
            false = about.upper() if about in (OSTRA, VELA) else "quite another"
            return stub.said(f"**Conflict passage:** They found that it is {false}, as 大阪 says. [no]")
        if asked == "Negated sentence:":
            return stub.refused(500, "out of memory") if about == OSTRA else stub.said(f"It was never {about}.\nNote: I made this up.")
        if asked == "Adversarial sentence:":
            return stub.said("A theatre stands in Cusco.") if number == 3 else stub.refused(500, "busy")
        if asked == "Supporting passage:":
            text = "For years all of this was denied. [no]" if about == NEMO else f"It is said that it was never {about}. [no]"
            return stub.said(f"```text\n{text}\n```", finish="length" if about == CHOIR else "stop")
        assert asked == "Supporting Passage:"
        return stub.said(f"“A theatre in Cusco, number {body['seed']}, draws crowds.{' [no]' if body['seed'] % 2 else ''}”")

    return answer


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's back-off starts at half a second; its rule stays, the unit shrinks."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.005)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    corpus = write_corpus(pages(), tmp_path / "corpus", duplicates="keep")
    assert (corpus.card.left_out, corpus.card.duplicates_kept) == ({"blank": 5}, 5)
    lines = [json.dumps({"question": question, "answers": answer}, ensure_ascii=False) for question, answer in ANSWERS.items()]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def steps_over(server: Any, inputs: Path, replies: Path) -> BuildSettings:
    chat = {"base_url": server.url, "model": "m", "max_retries": RETRIES, "timeout": 5.0, "concurrency": 4}
    arguments = {
        "questions": Component(columns.from_jsonl, {"path": inputs / "questions.jsonl"}),
        "retriever": Component(Bm25Index, {"corpus": inputs / "corpus"}),
        "nli": Component(Nli, {}),
        "chat": Component(ChatServer, chat),
        "replies": replies,
        "price": Price(prompt=1e6, completion=2e6),
        "candidates": 4,
        "k": 3,
        "shard": 2,
    }
    return BuildSettings(dataset=Component(generate.load, arguments), splits=("test",))


def validated(folder: Path) -> dict[str, Case]:
    """The last step's cases by the main answer of their question."""
    cases = [case for path in sorted((folder / STEPS / VALIDATED).glob("*.jsonl")) for case in iter_records(path, Case)]
    return {case.question.answers[0]: case for case in cases}


def written(folder: Path) -> dict[str, bytes]:
    """All files but the card, which names the server's address, and the accounts of time and money."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in (DONE, "card.json", "README.md")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_build_gets_through_with_what_the_server_does_wrong_on_record(stub: Any, inputs: Path) -> None:
    with stub.serving(behaviour(stub)) as server:
        report = build(steps_over(server, inputs, inputs / "replies"), inputs / "out")
        asked = server.asked()
        assert server.most_at_once > 1
    assert_complete(report, inputs / "out")
    assert_rejected_with_reasons(report, validated(inputs / "out"))
    assert_accounted_for(inputs / "out", asked)


def assert_complete(report: BuildReport, out: Path) -> None:
    cases = validated(out)
    assert set(cases) == set(ANSWERS.values()), "every question reaches the last step"
    for answer, case in cases.items():
        assert case.failure is None and case.reference == f"The answer to it is {answer}."
        texts = [" ".join(candidate.document.text.casefold().split()) for candidate in case.candidates]
        assert len(set(texts)) == len(texts) and all(texts), "no passage twice, none blank"
        gold, *others = sorted(case.candidates, key=lambda candidate: candidate.document.label != "answerable")
        assert (gold.document.label, gold.document.answer) == ("answerable", answer)
        assert all(candidate.document.label != "answerable" for candidate in others)
    examples = read_examples(out / "test.jsonl")
    assert report.examples == {"test": dict(sorted(Counter(str(e.condition) for e in examples).items()))}
    assert report.examples["test"]["answerable"] == 5
    assert all(_distracts(example) for example in examples if example.state == "distracted")
    assert any("é 東京 \\1 {0}" in document.text for example in examples for document in example.documents), "text stays text"


def _distracts(example: Example) -> bool:
    labels = Counter(str(document.label) for document in example.documents)
    return labels[str(example.condition)] == 1 and labels["answerable"] == 1 and len(example.documents) == 3


def assert_rejected_with_reasons(report: BuildReport, cases: dict[str, Case]) -> None:
    why = {(answer, str(s.kind)): s.rejected for answer, case in cases.items() for s in case.simulations}
    assert len(why) == 15
    named = "the answer, or a form of it, is in it"
    assert {answer: why[answer, "conflict"] for answer in cases} == {VELA: named, OSTRA: named, NEMO: None, CHOIR: None, RIO: None}
    assert {answer: why[answer, "negated"] for answer in cases} == {
        VELA: None,
        OSTRA: "no sentence: the model gave no reply",
        NEMO: "the answer is not in it",
        CHOIR: "no passage: the model gave no reply, or did not end it",
        RIO: None,
    }
    odd = {answer: case.simulations[-1].seed % 2 for answer, case in cases.items()}
    contradicting = "it contradicts the reference"
    assert {answer: why[answer, "adversarial"] for answer in cases} == {a: contradicting if odd[a] else None for a in cases}
    texts = [s.text for case in cases.values() for s in case.simulations if s.rejected is None]
    assert not [text for text in texts if any(mark in text for mark in ("**", "```", "“", "Sure", "Note:"))], "commentary is taken off"
    counts = Counter((str(s.kind), s.rejected or "used") for case in cases.values() for s in case.simulations)
    assert {(kind, reason): count for kind, reasons in report.yields.items() for reason, count in reasons.items()} == counts


def assert_accounted_for(out: Path, asked: list[str]) -> None:
    """5 references; 5 conflicting passages, sentences and passages of the other two kinds, of which one sentence was never written."""
    reference, simulation = (totals(out / STEPS / name / DONE) for name in ("2_reference", "4_simulate"))
    assert (reference["requests"], reference["failed"], reference["retries"], reference["unfinished"]) == (5, 0, 0, 0)
    assert (simulation["requests"], simulation["failed"], simulation["unfinished"]) == (24, 1, 1)
    assert simulation["retries"] == 5 * 1 + 5 * 2, "those of what was answered in the end"
    assert len(asked) == 5 + 24 + 15 + RETRIES
    for done, answered in ((reference, 5), (simulation, 23)):
        assert (done["cached"], done["prompt_tokens"], done["completion_tokens"]) == (0, 7 * answered, 3 * answered)
        assert done["cost"] == pytest.approx(7 * answered + 2 * 3 * answered)


def test_the_same_build_in_a_new_folder_asks_again_for_what_failed_alone(stub: Any, inputs: Path) -> None:
    with stub.serving(behaviour(stub)) as server:
        build(steps_over(server, inputs, inputs / "replies"), inputs / "a")
        server.bodies.clear()
        build(steps_over(server, inputs, inputs / "replies"), inputs / "b")
        again = server.asked()
    assert len(again) == 1 + RETRIES and len(set(again)) == 1
    assert again[0].endswith(f"Source sentence: The answer to it is {OSTRA}.\nNegated sentence:")
    assert written(inputs / "a") == written(inputs / "b")
    done = totals(inputs / "b" / STEPS / "4_simulate" / DONE)
    assert (done["requests"], done["cached"], done["failed"], done["prompt_tokens"], done["cost"]) == (24, 23, 1, 0, 0)
    assert (done["cached_prompt_tokens"], done["cached_cost"]) == (7 * 23, 13 * 23)


def test_after_a_kill_nothing_is_paid_twice_and_the_files_are_the_same(stub: Any, inputs: Path) -> None:
    """The command itself, ended by a signal that no process can catch, in the middle of a shard."""
    paid: Counter[tuple[str, int]] = Counter()
    running: list[subprocess.Popen[str]] = []
    fine = behaviour(stub)

    def answer(body: dict[str, Any], number: int) -> Any:
        prompt = body["messages"][-1]["content"]
        if len(running) == 1 and prompt.endswith(f"Sentence: It was never {NEMO}.\nSupporting passage:"):
            os.kill(running[0].pid, signal.SIGKILL)
            return stub.refused(503, "gone")
        reply = fine(body, 3)
        if reply.status == 200:
            paid[prompt, body["seed"]] += 1
        return reply

    def command(url: str, out: str, replies: str) -> subprocess.Popen[str]:
        arguments = [
            "dataset=pipeline", "dataset.questions.path=questions.jsonl", "corpus=corpus", "nli@dataset.nli=lexical", "splits=[test]",
            f"dataset.chat.base_url={url}", "dataset.chat.model=m", "dataset.chat.concurrency=1", "dataset.chat.max_retries=0",
            "dataset.candidates=4", "dataset.k=3", "dataset.shard=2", f"dataset.replies={replies}", f"out={out}",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        running.append(
            subprocess.Popen(
                [sys.executable, "-m", "data_gen.build", *arguments], cwd=inputs, env=environment, stderr=subprocess.PIPE, text=True
            )
        )
        return running[-1]

    with stub.serving(answer) as server:
        killed = command(server.url, "a", "replies")
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL
        assert sum(paid.values()) > 10 and not (inputs / "a" / "test.jsonl").exists()
        for run in [command(server.url, "a", "replies"), command(server.url, "b", "others")]:
            _, said = run.communicate(timeout=120)
            assert run.returncode == 0, said
    assert len(paid) > 20
    assert set(paid.values()) == {2}, "each reply was paid for once by the build that was killed, and once by the other one"
    resumed, whole = (written(inputs / folder) for folder in ("a", "b"))
    assert resumed.pop("run.json") != whole.pop("run.json") and resumed.pop("config.yaml") != whole.pop("config.yaml")
    assert resumed == whole
