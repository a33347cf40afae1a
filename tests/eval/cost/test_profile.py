"""The job on folders of runs whose systems are the real composition of stand-in stages, with known times and operations."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from eval.cost.settings import ProfileJob
from eval.profile import profile
from eval.report import write_report
from eval.score import score
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Document, Example
from rag.render import render
from sage.predict import Kind, Parsed, Reply
from serve.systems.recovery import Recovery
from serve.systems.sage_only import SageOnly
from serve.systems.sieve_and_sage import SieveAndSage
from sieve.predict import Removal, Screening

SIEVE_SECONDS, SAGE_SECONDS, LEFT_OUT_SECONDS = 0.02, 0.1, 0.03


def multiply(times: int) -> None:
    """48 operations each."""
    for _ in range(times):
        _ = torch.ones(2, 3) @ torch.ones(3, 4)


class StubSieve:
    """Flags sets whose question number is odd, and one in ten of the others; removing any document helps."""

    threshold = 0.5

    def __init__(self, clock: Any) -> None:
        self.clock = clock

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        self.clock.work(SIEVE_SECONDS * len(questions))
        multiply(len(questions))
        return [Screening(0.9 if number_of(q) % 2 or number_of(q) % 10 == 0 else 0.1, (), 7) for q in questions]

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        self.clock.work(LEFT_OUT_SECONDS * len(questions))
        multiply(2 * len(questions))
        return [[Removal((d.id,), n, 0.1) for n, d in enumerate(docs, start=1)] for docs in documents]


class StubSage:
    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.model = torch.nn.Linear(4, 5)

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Reply | InputError]:
        self.clock.work(SAGE_SECONDS * len(questions))
        multiply(10 * len(questions))
        prompts = [
            render(q, docs, "Answer.", budget=1000, count=lambda text: len(text.split()))
            for q, docs in zip(questions, documents, strict=True)
        ]
        return [Reply("Number", Parsed(Kind.ANSWER, "Number"), prompt, 11, 3, 0.9, True) for prompt in prompts]


def number_of(question: str) -> int:
    return int(question.rstrip("?").rpartition(" ")[2])


@pytest.fixture
def folders(clock: Any, examples_of: Callable[..., list[Example]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Runs of a gate that abstains, one that filters, and the Sage alone, on 20 questions, every second of them distracted."""
    monkeypatch.setattr("serve.systems.stage.now", clock)
    module = ModuleType("stand_ins")
    module.abstains = lambda: SieveAndSage(StubSieve(clock), StubSage(clock))  # type: ignore[attr-defined]
    module.filters = lambda: SieveAndSage(StubSieve(clock), StubSage(clock), on_flag="filter")  # type: ignore[attr-defined]
    module.alone = lambda: SageOnly(StubSage(clock))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stand_ins", module)
    examples = examples_of(20)
    module.escalates = lambda: Recovery(  # type: ignore[attr-defined]
        SieveAndSage(StubSieve(clock), StubSage(clock)), on_distracted=["escalate"], stronger=SageOnly(StubSage(clock))
    )
    made = {}
    for name in ("abstains", "filters", "alone", "escalates"):
        made[name] = tmp_path / name
        made[name].mkdir()
        config = {
            "dataset": {"_target_": "data_gen.sources.jsonl.load", "path": "x.jsonl"},
            "system": {"_target_": f"stand_ins.{name}"},
            "batch_size": 8,
            "match": "exact",
            "resamples": 10,
            "show": 0,
        }
        (made[name] / "config.yaml").write_text(json.dumps(config))
        write_records(made[name] / "examples.jsonl", examples)
        predictions = getattr(module, name)().predict([example.query() for example in examples])
        write_records(made[name] / "predictions.jsonl", predictions)
        write_report(made[name], score(examples, predictions, resamples=20), {})
    return made


@pytest.fixture
def three(folders: dict[str, Path]) -> dict[str, Path]:
    """Those without a recovery."""
    return {name: folder for name, folder in folders.items() if name != "escalates"}


def job(runs: Sequence[Path] | None, **changes: Any) -> ProfileJob:
    values = {
        "runs": runs, "warmup": 1, "repeats": 2, "batch_size": 1, "batch_sizes": [1, 4], "flop_examples": 20, "tokens": 16, "new_tokens": 3,
        "sequences": 1, "resamples": 100,
    }  # fmt: skip
    return ProfileJob.model_validate({**values, **changes})


def made_in(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def test_of_a_recovery_the_gated_system_inside_is_counted_and_no_break_even_is_told(
    folders: dict[str, Path], clock: Any, tmp_path: Path
) -> None:
    made = profile(job([folders["escalates"], folders["alone"]], limit=4), made_in(tmp_path / "out"), clock=clock)
    assert {f.name for f in made.footprints} == {"escalates: system.sage", "escalates: stronger.sage", "alone: sage"}
    flops = {(row.system, row.stage): row.mean for row in made.flops}
    assert (flops["escalates", "sieve"], flops["escalates", "sage"]) == (48, 480)
    assert not made.break_even
    [note] = [note for note in made.notes if "pays for itself" in note]
    assert note.startswith("escalates: ") and "(escalated)" in note
    assert "escalates: the operations of escalate are not counted." in made.notes


def test_a_profile_worked_by_hand(three: dict[str, Path], clock: Any, tmp_path: Path) -> None:
    out = made_in(tmp_path / "out")
    made = profile(job(list(three.values()), baseline=[three["alone"]]), out, clock=clock)
    rows = {(row.system, row.stage): row for row in made.latency}
    assert rows["abstains", "sieve"].median == pytest.approx(20) and rows["abstains", "sieve"].n == 20
    assert rows["abstains", "sage"].n == 8  # 10 distracted sets are flagged, and of the others numbers 0 and 10
    assert rows["filters", "leave_one_out"].median == pytest.approx(30)
    assert rows["alone", "total"].median == pytest.approx(100)
    # 20 x 100 against 20 x 20 + 8 x 100, and against 20 x 20 + 12 x 30 + 20 x 100.
    assert [(r.system, r.baseline, round(r.value, 6)) for r in made.speedups] == [
        ("abstains", "alone", round(2000 / 1200, 6)),
        ("filters", "alone", round(2000 / 2760, 6)),
    ]
    assert [(r.system, r.batch_size, round(r.examples_per_second, 6)) for r in made.throughput if r.system == "alone"] == [
        ("alone", 1, 10.0),
        ("alone", 4, 10.0),
    ]
    gates = {(row.system, row.unit): row for row in made.break_even}
    # 20 spent; 100 saved by each of p + 0.2 (1 - p): never dearer, also where no set is distracted. 48 operations against 480 likewise.
    assert (gates["abstains", "milliseconds"].verdict, gates["abstains", "milliseconds"].true_positive_rate) == ("always", 1.0)
    assert gates["abstains", "milliseconds"].false_positive_rate == pytest.approx(0.2)
    assert (gates["abstains", "flops"].sieve, gates["abstains", "flops"].sage, gates["filters", "flops"].leave_one_out) == (48, 480, 96)
    # Filtering sends every flagged set to the Sage after all, so it can only cost.
    assert (gates["filters", "milliseconds"].verdict, gates["filters", "milliseconds"].never) == ("never", 1.0)
    flops = {(row.system, row.stage): row.mean for row in made.flops}
    assert flops["abstains", "spent"] == pytest.approx(48 + 480 * 8 / 20)
    assert flops["filters", "spent"] == pytest.approx(48 + 96 * 12 / 20 + 480)
    used = {row.system: row for row in made.usage}
    assert (used["abstains"].sage_calls, used["abstains"].sage_calls_saved, used["abstains"].answered) == (8, 12, 8)
    assert [(t.kind, t.total, t.per_example, t.per_answer) for t in used["abstains"].tokens] == [
        ("sieve", 140, 7.0, 17.5),
        ("prompt", 88, 4.4, 11.0),
        ("completion", 24, 1.2, 3.0),
    ]
    assert [f.name for f in made.footprints] == ["abstains: sage", "filters: sage", "alone: sage"]
    assert {f.parameters for f in made.footprints} == {25}
    assert {(p.system, p.front) for p in made.pareto if p.metric == "system_accuracy"} >= {("abstains", True)}
    stored = json.loads((out / "profile.json").read_text())["profile"]
    assert stored == json.loads(made.model_dump_json())
    text = (out / "profile.md").read_text()
    assert "| abstains | alone | 1.67 |" in text and "never" in text
    assert all((out / name).read_bytes().startswith(b"\x89PNG") for name in ("break_even.png", "pareto.png"))


def test_a_profile_that_is_repeated_times_and_counts_nothing_again(folders: dict[str, Path], clock: Any, tmp_path: Path) -> None:
    out = made_in(tmp_path / "out")
    settings = job([folders["abstains"], folders["alone"]], limit=5)
    first = profile(settings, out, clock=clock)
    seconds = clock.seconds
    assert profile(settings, out, clock=clock) == first
    assert clock.seconds == seconds
    assert first.timed is not None and (first.timed.examples, first.timed.of) == (5, 20)
    assert {(row.system, row.baseline) for row in first.speedups} == {("abstains", "alone"), ("alone", "abstains")}


def test_runs_that_cannot_be_profiled_together_are_refused(folders: dict[str, Path], clock: Any, tmp_path: Path) -> None:
    out = made_in(tmp_path / "out")
    with pytest.raises(InputError, match="baseline: .*elsewhere is none of the runs"):
        profile(job([folders["alone"]], baseline=[tmp_path / "elsewhere"]), out, clock=clock)
    with pytest.raises(InputError, match="runs: expected folders of eval.pipeline for the names and the baseline, got none"):
        profile(job(None, names=["a"]), out, clock=clock)
    with pytest.raises(InputError, match="names: expected one name for each of 2 runs, all different"):
        profile(job([folders["alone"], folders["alone"]]), out, clock=clock)
    with pytest.raises(InputError, match="found no examples.jsonl in it"):
        profile(job([tmp_path / "elsewhere"]), out, clock=clock)
    lines = (folders["alone"] / "examples.jsonl").read_text().splitlines(keepends=True)
    (folders["alone"] / "examples.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match="runs: expected runs on the same examples, got .*abstains: 20 examples.*alone: 19 examples"):
        profile(job([folders["abstains"], folders["alone"]]), out, clock=clock)
    config = json.loads((folders["filters"] / "config.yaml").read_text())
    (folders["filters"] / "config.yaml").write_text(json.dumps({**config, "predictions": "p.jsonl"}))
    with pytest.raises(InputError, match="filters scored predictions again and ran no system"):
        profile(job([folders["filters"]]), out, clock=clock)


def test_the_footprint_needs_no_runs(tmp_path: Path) -> None:
    """Without a checkpoint, random weights of the shape of the settings' base, with its adapter, and marked so."""
    lora = {"r": 8, "alpha": 16, "dropout": 0.0, "target_modules": ["q_proj", "v_proj"]}
    sage = {"model": {"base": "meta-llama/Meta-Llama-3-8B-Instruct", "lora": lora}}
    sieve = {"model": {"base": "FacebookAI/roberta-large", "lora": None}}
    made = profile(job(None, sieve=sieve, sage=sage, checkpoint_folder=str(tmp_path / "none"), tokens=600), made_in(tmp_path / "out"))
    small, large = made.footprints
    assert (small.random, small.tokens, small.new_tokens, small.working_bytes) == (True, 512, 0, None)  # RoBERTa reads no more
    # 32 layers: 8 x (4096 + 4096) for queries, 8 x (4096 + 1024) for values.
    assert (large.adapter_parameters, large.parameters) == (3_407_872, 8_030_261_248 + 3_407_872)
    assert 0 <= large.weight_bytes - 2 * large.parameters <= 1024  # the frequencies of rotary positions are no parameters
    assert (large.read_flops, large.write_flops) == (large.read_closed, large.write_closed)
    text = (tmp_path / "out" / "profile.md").read_text()
    assert text.count("RANDOM: random weights of the same shape as") == 2
    with pytest.raises(InputError, match="no shape is called 'elsewhere'"):
        profile(job(None, models=["elsewhere"]), tmp_path / "out")
    with pytest.raises(InputError, match="sage: no checkpoint in .*none/sage and no sage=... to take a shape from"):
        profile(job(None, sieve=sieve, checkpoint_folder=str(tmp_path / "none")), tmp_path / "out")
