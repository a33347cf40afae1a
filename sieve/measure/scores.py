"""Score many sets with a Sieve, with progress shown and every score on disk, so that a rerun goes on where the last one stopped."""

import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import Field
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rag.errors import InputError
from rag.jsonl import Journal, iter_records, read_json
from rag.records import Document, Example, Id, Record, Text
from rag.render import evidence
from rag.rounding import same
from sieve.screening import Removal, Screening

logger = logging.getLogger(__name__)

INPUTS = "inputs.json"


class Screener(Protocol):
    """What is asked of a Sieve here; `sieve.predict.Sieve` is one."""

    @property
    def threshold(self) -> float:
        """The threshold that was chosen on validation data."""
        ...

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        """Score each set."""
        ...

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        """Score each set without each of its units."""
        ...


class Request(NamedTuple):
    """One set to be scored."""

    key: str
    """Names the score on disk; unique within a run."""
    question: str
    documents: tuple[Document, ...]
    blame: bool = False
    """Whether to find the document to blame too, flagged or not."""


class Scored(Record):
    """What the Sieve said of one request."""

    key: Id
    score: float = Field(ge=0, le=1)
    """P(distracted)."""
    blamed: tuple[Text, ...] = ()
    """Ids whose removal lowers the score most; none where that was not asked, or nothing would remain."""


class Readable(NamedTuple):
    """Examples that a Sieve can read."""

    examples: list[Example]
    """Documents in rank order, without blank ones, as serving gives them to the Sieve."""
    without_documents: int
    """Examples left out because no document of theirs holds text; serving does not ask the Sieve about them either."""


def readable(examples: Iterable[Example]) -> Readable:
    """The examples that hold text, with the documents that do. Raises InputError for an id that occurs in two files, and without examples."""
    kept: dict[str, Example] = {}
    blank = 0
    for example in examples:
        documents = tuple(evidence(example.documents))
        if example.id in kept:
            raise InputError(f"example id '{example.id}' occurs in two files; give each example its own")
        if documents:
            kept[example.id] = example.model_copy(update={"documents": documents})
        else:
            blank += 1
    if blank:
        logger.warning("%d examples have no document with text and are left out", blank)
    if not kept:
        raise InputError("expected examples with documents, found none; check data")
    return Readable(list(kept.values()), blank)


def request(key: str, question: str, documents: Sequence[Document], *, blame: bool = False) -> Request:
    """A request for these documents, best first, without what a Sieve must not see."""
    bare = [document.model_copy(update={"rank": rank, "label": None, "answer": None}) for rank, document in enumerate(documents, start=1)]
    return Request(key, question, tuple(bare), blame)


def score_all(sieve: Screener, requests: Sequence[Request], journal: Path, *, batch_size: int, title: str) -> dict[str, Scored]:
    """Scores by key; those already in `journal` are read, the others made and written batch by batch.

    Raises InputError when the Sieve gives a score that is no number.
    """
    log = Journal(journal)
    wanted = {request.key for request in requests}
    done = {scored.key: scored for scored in iter_records(journal, Scored) if scored.key in wanted} if journal.exists() else {}
    todo = [request for request in requests if request.key not in done]
    if done:
        logger.info("%s: %d of %d scores are in %s already", title, len(done), len(requests), journal)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not todo) as progress:
        task = progress.add_task(title, total=len(todo))
        for start in range(0, len(todo), batch_size):
            made = _score(sieve, todo[start : start + batch_size])
            log.append(made)
            done.update((scored.key, scored) for scored in made)
            progress.advance(task, len(made))
    return done


def _score(sieve: Screener, batch: Sequence[Request]) -> list[Scored]:
    scores = [screening.score for screening in sieve.screen([r.question for r in batch], [r.documents for r in batch])]
    if not all(map(math.isfinite, scores)):
        raise InputError(
            f"the Sieve's score of '{batch[[math.isfinite(s) for s in scores].index(False)].key}' is not a number; train it again"
        )
    asked = [request for request in batch if request.blame]
    # Right after the screening of the same sets, from which a Sieve may remember what it needs.
    removals = sieve.leave_one_out([r.question for r in asked], [r.documents for r in asked]) if asked else []
    blamed = {request.key: to_blame(found) for request, found in zip(asked, removals, strict=True)}
    return [Scored(key=r.key, score=score, blamed=blamed.get(r.key, ())) for r, score in zip(batch, scores, strict=True)]


def to_blame(removals: Sequence[Removal]) -> tuple[str, ...]:
    """The ids whose removal leaves the lowest score, but for rounding; ties go to the lower rank, then to the document id.

    Empty without removals.
    """
    if not removals:
        return ()
    lowest = min(removal.score for removal in removals)
    return min((r for r in removals if same(r.score, lowest)), key=lambda removal: (-removal.rank, removal.ids)).ids


def require_same_inputs(folder: Path, inputs: Mapping[str, str]) -> None:
    """Note in `folder` what its scores were made from, or refuse to mix them with others. Raises InputError that names what changed."""
    path = folder / INPUTS
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dict(inputs), indent=2) + "\n", encoding="utf-8")
        return
    before = read_json(path)
    if before != dict(inputs):
        known = before if isinstance(before, dict) else {}
        changed = sorted(name for name in {*known, *inputs} if known.get(name) != inputs.get(name))
        raise InputError(f"{path}: the scores in this folder were made from other content of {', '.join(changed)}; set out to a new folder")
