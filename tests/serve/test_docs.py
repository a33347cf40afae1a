"""What docs/systems.md shows is run as it stands there: a system of one file and one yaml, and predictions made elsewhere."""

import json
import logging
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import eval.pipeline
import serve.systems
from data_gen.sources import demo
from rag.jsonl import iter_records, write_records
from rag.records import Prediction, Reason, RetrievalState

PAGE = (Path(__file__).parents[2] / "docs/systems.md").read_text(encoding="utf-8")
CONF = Path(__file__).parents[2] / "conf/system"


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


def commands() -> list[list[str]]:
    return [shlex.split(line, comments=True)[3:] for line in re.findall(r"^    (python -m eval\.pipeline .*)$", PAGE, re.MULTILINE)]


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Run the job's own command line from an empty folder; Hydra's logging is taken back afterwards."""
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["eval.pipeline", *arguments])
        eval.pipeline.main()

    yield run
    root.level, root.handlers[:] = before


@pytest.fixture
def overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The two files, in the places of serve/systems and conf/system; gives the folder that holds `system/`."""
    for name, text in (("code/overlap.py", block("python")), ("conf/system/overlap.yaml", block("yaml"))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(serve.systems, "__path__", [*serve.systems.__path__, str(tmp_path / "code")])
    monkeypatch.delitem(sys.modules, "serve.systems.overlap", raising=False)
    return tmp_path / "conf"


def test_a_system_of_one_file_and_one_yaml_is_evaluated(overlap: Path, evaluate: Callable[..., None], tmp_path: Path) -> None:
    [command] = [command for command in commands() if "system=overlap" in command]
    evaluate("--config-dir", str(overlap), *command, "out=run")
    made = list(iter_records(tmp_path / "run/predictions.jsonl", Prediction))
    assert len(made) == 20
    assert {prediction.reason for prediction in made} <= {None, Reason.UNANSWERABLE}
    assert any(prediction.answer for prediction in made)
    assert json.loads((tmp_path / "run/report.json").read_text(encoding="utf-8"))["report"]["n"] == 20


def test_it_keeps_the_promises_and_its_keys_are_checked(
    overlap: Path, evaluate: Callable[..., None], query, capsys: pytest.CaptureFixture[str]
) -> None:
    from serve.systems import overlap as module  # type: ignore[attr-defined]

    gold, empty, blank = module.load(2).predict(
        [query("It rains. The capital of Peru is Lima."), query("  ", id="e2"), query("Lima.", id="e3", question=" ")]
    )
    assert (gold.answer, gold.state) == ("The capital of Peru is Lima.", RetrievalState.ANSWERABLE)
    assert (empty.reason, empty.answer) == (Reason.NO_DOCUMENTS, None)
    assert blank.error is not None
    with pytest.raises(SystemExit):
        evaluate("--config-dir", str(overlap), "system=overlap", "dataset=demo", "+system.leest=2", "out=run")
    assert "unknown key 'leest'; did you mean 'least'?" in capsys.readouterr().err


def test_predictions_made_elsewhere_are_scored_without_a_system(evaluate: Callable[..., None], tmp_path: Path) -> None:
    examples = demo.load("test", limit=12)
    write_records(tmp_path / "elsewhere/examples.jsonl", examples)
    exec(compile(block("python", 1), "docs/systems.md", "exec"), {})
    [command] = [command for command in commands() if command[0].startswith("predictions=")]
    evaluate(*command, "out=run")
    counts = json.loads((tmp_path / "run/report.json").read_text(encoding="utf-8"))["report"]["counts"]
    assert sum(counts.values()) == len(examples)
    assert (tmp_path / "run/predictions.jsonl").read_bytes() == (tmp_path / "elsewhere/predictions.jsonl").read_bytes()


def test_the_table_names_every_system_there_is_and_reasons_that_exist() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.split("## ")[0].splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[0])} == {path.stem for path in CONF.glob("*.yaml")}
    said = {word for row in rows for word in re.findall(r"`(\w+)`", row[2])}
    assert said <= {reason.value for reason in Reason} | {"conflict"}
