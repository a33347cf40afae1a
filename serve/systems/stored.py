"""What a stage says, kept on disk: a sweep that changes only the threshold, or what follows a flag, calls no model for what is there.

`StoredSieve` and `StoredSage` stand in front of a stage that is loaded at the first set they do not know. Begin a sweep at threshold 1: then
every set reaches both stages once, and every lower threshold is a replay.
"""

import hashlib
import json
import logging
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from rag.checkpoint import read_manifest, sha256
from rag.errors import InputError
from rag.models.base import pick_device, pick_dtype
from rag.records import Document
from rag.render import ranked
from sage.predict import Reply
from serve.clock import now
from serve.systems.result_store import ResultStore
from serve.systems.stage import SageStage, SieveStage, StageCall, StageUnusable, Timed, is_probability
from sieve.predict import Removal, Screening

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")
Call = Literal["screen", "leave_one_out", "answer"]
DONE: Final[dict[Call, str]] = {"screen": "screened", "leave_one_out": "examined", "answer": "asked"}

FORMAT: Final = 1
"""Raise it when a stage comes to read or render the same documents in another way, so that nothing kept before that is used."""
NOT_READ: Final = ("audit.json", "history.json")
"""Files of a checkpoint's folder, beside its texts for people, that have no part in what it says."""

_SCREENING: Final = TypeAdapter(Screening)
_REMOVALS: Final = TypeAdapter(list[Removal])
_REPLY: Final = TypeAdapter(Reply)


class StoredSieve:
    """A Sieve behind a store; obeys `SieveStage`."""

    def __init__(self, load: Callable[[], SieveStage], threshold: float, path: Path, identity: str) -> None:
        """Keep in the file `path` what the Sieve of this `identity` and `threshold` says; `load` is called when it is first needed."""
        stage = _Lazy(load)
        keeper = _Keeper(ResultStore(path), identity)
        self.threshold = threshold
        self._screened = _Kept("screen", keeper, _SCREENING, lambda: stage.get().screen, lambda s: is_probability(s.score), _plain)
        self._examined = _Kept(
            "leave_one_out",
            keeper,
            _REMOVALS,
            lambda: stage.get().leave_one_out,
            lambda removals: all(is_probability(removal.score) for removal in removals),
        )
        weakref.finalize(self, _log, path, keeper.counts)

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Timed[Screening]]:
        """What is kept of each set, and what the Sieve says of the rest. Raises what it raises; nothing is kept of a call that failed."""
        return self._screened(questions, documents)

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Timed[list[Removal]]]:
        """As `screen`."""
        return self._examined(questions, documents)

    def forget(self) -> None:
        """Raises InputError: what is kept takes no time, so there is none to measure."""
        raise InputError("store: a stage whose results are kept has no speed of its own; set system.store=null where time is measured")


class StoredSage:
    """A Sage behind a store; obeys `SageStage`."""

    def __init__(self, load: Callable[[], SageStage], path: Path, identity: str) -> None:
        """Keep in the file `path` what the Sage of this `identity` says; `load` is called when it is first needed."""
        stage = _Lazy(load)
        keeper = _Keeper(ResultStore(path), identity)
        self._asked = _Kept(
            "answer", keeper, _REPLY, lambda: stage.get().answer, lambda reply: reply.confidence is None or is_probability(reply.confidence)
        )
        weakref.finalize(self, _log, path, keeper.counts)

    def answer(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Timed[Reply]]:
        """The reply to each question: kept, or given now. A question that cannot be asked is refused again, without the model, when it is kept."""
        return self._asked(questions, documents)

    def forget(self) -> None:
        """Raises InputError: what is kept takes no time, so there is none to measure."""
        raise InputError("store: a stage whose results are kept has no speed of its own; set system.store=null where time is measured")


def stored_sieve(
    load: Callable[[], SieveStage], store: Path, folder: Path, settings: BaseModel | None, device: str, *, lazy: bool = True
) -> StoredSieve:
    """Put a store in front of the Sieve of a checkpoint's folder; `load` loads it.

    With `lazy` false it is loaded at once: a deadline is for the work of a stage, not for its loading. Raises InputError for a folder that
    is no Sieve's checkpoint.
    """
    manifest = read_manifest(Path(folder), "sieve")
    loaded = load() if manifest.threshold is None or not lazy else None
    threshold = manifest.threshold if loaded is None else loaded.threshold
    of_this = identity(Path(folder), settings, device)
    return StoredSieve(lambda: loaded or load(), cast(float, threshold), Path(store) / f"sieve-{of_this[:16]}.jsonl", of_this)


def stored_sage(
    load: Callable[[], SageStage], store: Path, folder: Path | None, settings: BaseModel | None, device: str, *, lazy: bool = True
) -> StoredSage:
    """Put a store in front of a Sage, as `stored_sieve` does.

    Without a folder it is the untrained base that `settings` name. Its name and revision stand for it: where other weights come under the same
    name, use another store. Raises InputError for a folder that is no Sage's checkpoint.
    """
    if folder is not None:
        read_manifest(Path(folder), "sage")
    loaded = None if lazy else load()
    of_this = identity(None if folder is None else Path(folder), settings, device)
    return StoredSage(lambda: loaded or load(), Path(store) / f"sage-{of_this[:16]}.jsonl", of_this)


def identity(folder: Path | None, settings: BaseModel | None, device: str) -> str:
    """Hash of all that a stage's results depend on beside what it is asked.

    That is each file of the checkpoint (its manifest names the base's fingerprint), the settings it is checked against, the kind of device and
    the precision that `auto` means on it. The version of the libraries is not in it: begin a new store after an upgrade.
    """
    files = [] if folder is None else sorted(path for path in folder.iterdir() if path.is_file() and _is_read(path))
    place = pick_device(device)
    parts = {
        "format": FORMAT,
        "files": {path.name: sha256(path) for path in files},
        "settings": None if settings is None else settings.model_dump(mode="json"),
        "device": place.type,
        "auto": str(pick_dtype("auto", place)),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _is_read(path: Path) -> bool:
    return path.suffix != ".md" and path.name not in NOT_READ


class _Lazy(Generic[ResultT]):
    """A stage that is loaded when it is first needed."""

    def __init__(self, load: Callable[[], ResultT]) -> None:
        self._load = load
        self._loaded: ResultT | None = None

    def get(self) -> ResultT:
        if self._loaded is None:
            try:
                self._loaded = self._load()
            except Exception as error:  # Whatever it was, no query is at fault: see StageUnusable.
                raise StageUnusable(error) from error
        return self._loaded


class _Keeper:
    """What the calls of one stage share: the file, whose results are in it, and how many came from where."""

    def __init__(self, store: ResultStore, identity: str) -> None:
        self.store = store
        self.identity = identity
        self.counts: Counter[tuple[Call, bool]] = Counter()
        """By call, and whether the result was there."""


class _Kept(Generic[ResultT]):
    """One call of a stage, asked of the model only for sets that are not in the store."""

    def __init__(
        self,
        name: Call,
        keeper: _Keeper,
        adapter: TypeAdapter[ResultT],
        model: Callable[[], StageCall[ResultT]],
        is_sound: Callable[[ResultT], bool],
        writable: Callable[[ResultT], ResultT] = lambda result: result,
    ) -> None:
        """`model` gives the call itself; a result that is not sound is passed on and not kept, so that a guard's failure is no memory.

        `writable` gives a result that can be written as JSON.
        """
        self._name: Call = name
        self._keeper = keeper
        self._adapter = adapter
        self._model = model
        self._is_sound = is_sound
        self._writable = writable

    def __call__(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Timed[ResultT]]:
        keys = [self._key(question, found) for question, found in zip(questions, documents, strict=True)]
        known = {key: found for key in dict.fromkeys(keys) if (found := self._read(key)) is not None}
        missing = {key: place for place, key in reversed(list(enumerate(keys))) if key not in known}
        made = self._ask(missing, questions, documents) if missing else {}
        self._keeper.counts[self._name, False] += len(missing)
        self._keeper.counts[self._name, True] += len(keys) - len(missing)
        return [known.get(key) or made[key] for key in keys]

    def _ask(self, missing: dict[str, int], questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> dict[str, Timed[ResultT]]:
        order = sorted(missing, key=lambda key: missing[key])
        places = [missing[key] for key in order]
        call = self._model()
        # Loading is no part of the time that a result takes.
        started = now()
        results = call([questions[place] for place in places], [documents[place] for place in places])
        milliseconds = 1000 * (now() - started) / len(places)
        if len(results) != len(places):
            raise RuntimeError(f"expected {len(places)} results from the stage, got {len(results)}")
        made = {key: _timed(result, milliseconds) for key, result in zip(order, results, strict=True)}
        try:
            self._keeper.store.put({key: line for key, timed in made.items() if (line := self._line(timed)) is not None})
        except InputError as error:  # A full disk is no fault of the sets that were asked about.
            raise StageUnusable(error) from error
        return made

    def _line(self, timed: Timed[ResultT]) -> dict[str, object] | None:
        if isinstance(timed.result, InputError):
            return {"milliseconds": timed.milliseconds, "refused": str(timed.result)}
        if isinstance(timed.result, Exception) or not self._is_sound(timed.result):
            return None
        return {"milliseconds": timed.milliseconds, "result": self._adapter.dump_python(self._writable(timed.result), mode="json")}

    def _read(self, key: str) -> Timed[ResultT] | None:
        line = self._keeper.store.get(key)
        if line is None:
            return None
        result: ResultT | Exception
        if "refused" in line:
            result = InputError(str(line["refused"]))
        else:
            try:
                result = self._adapter.validate_python(line["result"])
            except (ValidationError, TypeError):  # Kept by a version of the code that said it in another way.
                return None
        return Timed(result, float(line["milliseconds"]), stored=True)

    def _key(self, question: str, documents: Sequence[Document]) -> str:
        """The set as the stage reads it. Ranks count by the order they give, scores and labels not at all."""
        shown = [[d.id, d.title, d.text, sorted(d.metadata.items())] for d in documents]
        order = [d.id for d in ranked(documents)]
        asked = json.dumps([self._keeper.identity, self._name, question, shown, order])
        return hashlib.sha256(asked.encode()).hexdigest()


def _plain(screening: Screening) -> Screening:
    return screening._replace(readings=dict(screening.readings))


def _timed(result: ResultT | Timed[ResultT] | Exception, milliseconds: float) -> Timed[ResultT]:
    return result if isinstance(result, Timed) else Timed(result, milliseconds, stored=False)


def _log(path: Path, counts: Counter[tuple[Call, bool]]) -> None:
    calls = dict.fromkeys(name for name, _ in counts)
    told = "; ".join(f"{DONE[name]} {counts[name, False]}, stored {counts[name, True]}" for name in calls)
    logger.info("%s: %s", path, told or "nothing was asked")
