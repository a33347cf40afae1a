"""Whether two runs can be compared: the same examples, the same index, the same decoding; and what else differs between them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from rag.records import Document, Example, Record, Text
from rag.rounding import same

Ground = Literal["dataset", "index", "decoding"]
"""What must be the same, so that what is left is the system."""

INDEX_ROLES: Final = frozenset({"index", "retriever", "corpus"})
"""Roles of an example's lineage that say where its documents were found."""
_PRECISION: Final = ("attention", "batch_size", "device", "precision", "quantization")
_GENERATION: Final = ("do_sample", "max_answer_tokens", "max_new_tokens", "max_tokens", "temperature", "top_p")
DECODING: Final = frozenset((*_PRECISION, *_GENERATION))
"""Keys of a system that say how its models are run, not which system it is."""
PROCESSOR: Final = ("machine", "instructions", "threads")
"""What a run's versions say of what computed it."""
CONTENT: Final = ("question_id", "question", "documents", "answers", "state", "condition")
NAMED: Final = 5
"""Ids named in a message."""


class Print(NamedTuple):
    """What identifies one example, without holding it."""

    content: tuple[int, ...]
    """One hash for each of `CONTENT`, documents without the scores that a retriever computed; equal within one process only."""
    scores: tuple[float | None, ...]
    """Those scores."""
    found_in: tuple[tuple[str, str], ...]
    """Role and name of what retrieved the documents."""


class Difference(Record):
    """One key of two runs' configs or versions that differs; none where a run has no such key."""

    key: Text
    before: Text | None
    after: Text | None


def print_of(example: Example) -> Print:
    """Reduce an example to what two runs must have in common."""
    documents = tuple(map(_document, example.documents))
    content = (example.question_id, example.question, documents, example.answers, example.state, example.condition)
    found_in = tuple(sorted((k, v) for k, v in example.lineage.items() if k in INDEX_ROLES))
    return Print(tuple(map(hash, content)), _scores(example), found_in)


def _document(document: Document) -> tuple[object, ...]:
    shown = (document.id, document.text, document.title, document.rank, document.label, document.answer)
    return (*shown, *sorted(document.metadata.items()))


def _scores(example: Example) -> tuple[float | None, ...]:
    return tuple(document.score for document in example.documents)


def _same_scores(before: Sequence[float | None], after: Sequence[float | None]) -> bool:
    """But for rounding: an index keeps its vectors in half precision."""
    return len(before) == len(after) and all(same(one, other, "float16") for one, other in zip(before, after, strict=True))


def same_examples(before: Sequence[Example], after: Sequence[Example]) -> bool:
    """Whether two lists hold the same examples in one order; scores of their documents may differ by rounding, as those of another processor do."""

    def unscored(example: Example) -> Example:
        return example.model_copy(update={"documents": tuple(d.model_copy(update={"score": None}) for d in example.documents)})

    return len(before) == len(after) and all(
        one == other or (unscored(one) == unscored(other) and _same_scores(_scores(one), _scores(other)))
        for one, other in zip(before, after, strict=True)
    )


def dataset_differences(before: Mapping[str, Print], after: Mapping[str, Print]) -> list[str]:
    """How the examples differ, each cause with some of their ids."""
    found = [
        f"{len(only)} examples only in the {which} ({some(only)})"
        for which, only in (("first", sorted(before.keys() - after.keys())), ("second", sorted(after.keys() - before.keys())))
        if only
    ]
    changed: dict[str, list[str]] = {field: [] for field in (*CONTENT, "scores of the documents")}
    for name in sorted(before.keys() & after.keys()):
        for field, first, second in zip(CONTENT, before[name].content, after[name].content, strict=True):
            if first != second:
                changed[field].append(name)
        if not _same_scores(before[name].scores, after[name].scores):
            changed["scores of the documents"].append(name)
    return found + [f"{field} of {len(ids)} examples ({some(ids)})" for field, ids in changed.items() if ids]


def index_differences(before: Mapping[str, Print], after: Mapping[str, Print]) -> list[str]:
    """How the indexes differ that the examples in both runs name."""
    found: Counter[tuple[str, str | None, str | None]] = Counter()
    for name in before.keys() & after.keys():
        first, second = dict(before[name].found_in), dict(after[name].found_in)
        found.update((role, first.get(role), second.get(role)) for role in {*first, *second} if first.get(role) != second.get(role))
    return [f"{role} is {_told(a)} and {_told(b)} ({count} examples)" for (role, a, b), count in sorted(found.items(), key=str)]


def decoding_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Keys of decoding that both configs have, with different values; a key of one system alone belongs to what is compared."""
    first, second = _decoding(before), _decoding(after)
    return [
        f"{key} is {_values(first[key])} and {_values(second[key])}"
        for key in sorted(first.keys() & second.keys())
        if first[key] != second[key]
    ]


def processor_note(before: tuple[str, Mapping[str, str]], after: tuple[str, Mapping[str, str]], is_auto: bool) -> str | None:
    """What it means that the versions of two runs name other processors or threads; none where they do not.

    `is_auto` says whether the precision was left to the processor. A run of an earlier version of the code names fewer keys.
    """
    (first, made), (second, made_after) = before, after
    keys = [key for key in PROCESSOR if key in made and key in made_after and made[key] != made_after[key]]
    if not keys:
        return None
    found = "; ".join(f"{key} '{made[key]}' and '{made_after[key]}'" for key in keys)
    said = (
        f"{second} was not computed as {first} was: {found}. The same models give the same content scores there whose last bits differ, so that a "
        "set on the edge of a threshold, or an answer between two words as likely as each other, may move for no other reason."
    )
    native = [name for name, versions in (before, after) if "bf16" in versions.get("instructions", "")]
    if is_auto and "instructions" in keys and len(native) == 1:
        said += f" On the CPU, precision=auto is bfloat16 in {native[0]} and float32 in {second if native == [first] else first}: more than last bits."
    return said


def is_left_to_the_processor(config: Mapping[str, Any]) -> bool:
    """Whether a stage of a config has `precision: auto`."""
    return any(path.endswith("precision") and value == "auto" for path, value in _leaves(config))


def config_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Keys of two flat or nested mappings whose values differ."""
    first, second = dict(_leaves(before)), dict(_leaves(after))
    # How a stage was trained says nothing of how it is run: its checkpoint's hash is among the inputs.
    keys = [key for key in dict.fromkeys((*first, *second)) if first.get(key) != second.get(key) and ".train." not in key]
    return tuple(Difference(key=key, before=_text(first, key), after=_text(second, key)) for key in keys)


def _text(leaves: Mapping[str, Any], key: str) -> str | None:
    return ("null" if leaves[key] is None else str(leaves[key])) if key in leaves else None


def _decoding(config: Mapping[str, Any]) -> dict[str, set[str]]:
    """By key, the values it has: a system inside another one (`system.first.sage_settings...`) keeps the names it has alone."""
    found = {key: {str(config[key])} for key in ("batch_size", "match") if key in config}
    for path, value in _leaves({"system": config.get("system") or {}}):
        parts = path.split(".")
        if parts[-1] in DECODING and "train" not in parts:
            start = next((place for place, part in enumerate(parts) if part.endswith("_settings")), len(parts) - 1)
            found.setdefault(".".join(parts[start:]) if start < len(parts) - 1 else f"system.{parts[-1]}", set()).add(str(value))
    return found


def _leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping) and node:
        for name, value in node.items():
            yield from _leaves(value, f"{prefix}.{name}" if prefix else str(name))
    elif prefix:
        yield prefix, node


def some(ids: Sequence[str]) -> str:
    """The first of some ids, and how many more there are."""
    return ", ".join(ids[:NAMED]) + (f" and {len(ids) - NAMED} more" if len(ids) > NAMED else "")


def _told(value: str | None) -> str:
    return "not named" if value is None else f"'{value}'"


def _values(values: set[str]) -> str:
    return " or ".join(sorted(values))
