"""Which questions of a source belong to a split: by the source's own files where it has one for each split, else by shares."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol, TypeVar

from data_gen.questions import Question, merge
from data_gen.sources.left_out import report
from data_gen.split import assign
from rag.errors import InputError
from rag.settings import InputPath
from rag.splits import normalise_question

Paths = InputPath | dict[str, InputPath]
"""One file, whose questions are dealt out by `shares`; or a file for each split. Splits that name the same file share it by `shares`."""

_FIRST = ("test", "validation")
"""Of a question that two files have, the split named first here keeps it: evaluation data stay whole."""


class Asked(Protocol):
    """A record of any source."""

    @property
    def question(self) -> str:
        """The question, by which records are dealt out and compared."""
        ...


Place = TypeVar("Place", bound=Hashable)
"""Where questions are read from: a file, or a split of a data set on the hub."""
RecordT = TypeVar("RecordT", bound=Asked)


def deal(
    records: Callable[[Place], Iterable[RecordT]],
    make: Callable[[Place, RecordT, Counter[str]], Question | None],
    places: Place | dict[str, Place],
    split: str,
    shares: Mapping[str, float] | None,
    seed: int,
    limit: int | None,
    dropped: Counter[str] | None,
) -> list[Question]:
    """The questions of one split, each once, in the order of their place.

    A question that a place of another split has too is left to the test split, else to validation. `make` returns none for a record that it
    leaves out, and counts the reason. What was left out of this split is logged, and added to `dropped` by reason. Raises InputError for a
    split that has no questions by these settings, and for an id that two questions have.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit: expected a number of at least 1, got {limit}")
    place, weights = _shared(places, split, shares)
    reasons: Counter[str] = Counter()
    elsewhere = _elsewhere(records, places, split, shares, seed)
    found: dict[str, Question] = {}
    for record in records(place):
        if assign(record.question, weights, seed) != split:
            continue
        key = normalise_question(record.question)
        if key in elsewhere:
            reasons[f"question is in the {elsewhere[key]} split too"] += 1
            continue
        made = make(place, record, reasons)
        if made is not None:
            found[key] = merge(found[key], made, reasons) if key in found else made
    _require_own_ids(found.values(), place)
    questions = [question.model_copy(update={"split": split}) for question in found.values()]
    if limit is not None:
        reasons["question over limit"] += len(questions[limit:])
    report(f"{place}, {split}", +reasons, dropped)
    return questions[:limit]


def _shared(places: Place | dict[str, Place], split: str, shares: Mapping[str, float] | None) -> tuple[Place, Mapping[str, float]]:
    """The place of a split, and the shares of all splits that it holds."""
    if not isinstance(places, dict):
        given = {"test": 1.0} if shares is None else shares
        if given.get(split, 0) <= 0:
            raise InputError(
                f"split={split}: expected a split with a share of the questions, got shares {dict(given)}; set dataset.questions.shares"
            )
        return places, given
    if split not in places:
        raise InputError(f"split={split}: expected one of {', '.join(places)}; name a place for it, such as dataset.questions.path.{split}")
    place = places[split]
    sharers = [name for name, other in places.items() if other == place]
    if len(sharers) == 1:
        return place, {split: 1.0}
    given = {name: (shares or {}).get(name, 0) for name in sharers}
    if min(given.values()) <= 0:
        raise InputError(
            f"{place}: the splits {', '.join(sharers)} share its questions, got shares {given}; set dataset.questions.shares for each"
        )
    return place, given


def _elsewhere(
    records: Callable[[Place], Iterable[RecordT]],
    places: Place | dict[str, Place],
    split: str,
    shares: Mapping[str, float] | None,
    seed: int,
) -> dict[str, str]:
    """Normalised questions that another place holds for a split that goes before this one, with that split."""
    if not isinstance(places, dict):
        return {}
    order = sorted(places, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    own, _ = _shared(places, split, shares)
    taken: dict[str, str] = {}
    for name in order[: order.index(split)]:
        place, weights = _shared(places, name, shares)
        if place != own:
            for record in records(place):
                if assign(record.question, weights, seed) == name:
                    taken.setdefault(normalise_question(record.question), name)
    return taken


def _require_own_ids(questions: Iterable[Question], place: object) -> None:
    first: dict[str, str] = {}
    for question in questions:
        other = first.setdefault(question.id, question.question)
        if other != question.question:
            raise InputError(f"{place}: id: '{question.id}' names two questions, '{other}' and '{question.question}'")
