"""Turn Examples into the rows that the Sage trains on, and account for everything that is left out."""

import random
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.records import Condition, DocumentLabel, Example, RetrievalState
from rag.render import evidence
from sage.inputs import InputSettings, build, completion, template_ids
from sage.model import Backbone
from sage.settings import SageSettings


class Selection(NamedTuple):
    """The examples to train on, and a count of every example that came, by what became of it."""

    examples: list[Example]
    counts: dict[str, int]
    """Kept: `answerable`, `unanswerable`, `conflict`. Left out: `distracted` (sets that the Sage is not taught), `no_documents`,
    `labels_disagree` (see `teaches_truth`), `over_limit` (answerable), `over_ratio` (unanswerable), `over_conflict_ratio`."""


class Row(TypedDict):
    """One row in TRL's prompt-completion format, tokenized: TRL would teach the template's text after the end of turn as well."""

    input_ids: list[int]
    completion_mask: list[int]


class Prepared(NamedTuple):
    """Rows of one split, and a count of every example by what became of it."""

    rows: list[Row]
    counts: dict[str, int]
    """The counts of the selection, of which `cut` and `lost` rows were then left out."""


class Fit(NamedTuple):
    """The rows that fit the length limit, and how many do not."""

    rows: list[Row]
    cut: int
    """Rows that would lose a part of the answer, and with it the token that ends the turn."""
    lost: int
    """Rows that would lose the whole answer."""


def teaches_truth(example: Example) -> bool:
    """Whether what the Sage would learn from this example is what its documents say, as far as their labels tell.

    - answerable: a document holds the answer. Where the only evidence is false, the gold answer is in none of them.
    - unanswerable: no document gives an answer, true or false. A lone false passage does, and nothing in the set shows that it is false.
    - conflict: two documents give answers and at least one of them is false. One that denies or misleads is no other answer.

    Blank documents do not count; documents without a label say nothing, and an example without any label is taken at its word.
    """
    labels = [document.label for document in evidence(example.documents) if document.label is not None]
    if not labels:
        return True
    if example.state is RetrievalState.ANSWERABLE:
        return DocumentLabel.ANSWERABLE in labels
    if example.state is RetrievalState.UNANSWERABLE:
        return set(labels) <= {DocumentLabel.UNANSWERABLE, DocumentLabel.NEUTRAL}
    false = labels.count(DocumentLabel.CONFLICT)
    return false > 0 and false + labels.count(DocumentLabel.ANSWERABLE) > 1


def select(
    examples: Sequence[Example],
    max_answerable: int | None,
    answerable_per_unanswerable: float | None,
    seed: int,
    *,
    with_conflict: bool = False,
    answerable_per_conflict: float | None = None,
) -> Selection:
    """Draw examples of each kind in a random order that depends on their ids and the seed alone.

    The paper trains on 8,000 answerable and 800 unanswerable examples (paper 002, appendix C). Where there are too few of the others for the
    proportion, all of them are kept; with no proportion as well. Distracted sets are the Sieve's business and never train the Sage, but
    for conflict ones where it has a string for them (`with_conflict`): negated and adversarial sets stay unseen there too.
    """
    shuffled = sorted(examples, key=lambda example: example.id)
    random.Random(seed).shuffle(shuffled)
    readable = [example for example in shuffled if evidence(example.documents)]
    taught = [example for example in readable if _is_taught(example, with_conflict)]
    true = [example for example in taught if teaches_truth(example)]
    answerable = [example for example in true if example.state is RetrievalState.ANSWERABLE]
    unanswerable = [example for example in true if example.state is RetrievalState.UNANSWERABLE]
    conflict = [example for example in true if example.state is RetrievalState.DISTRACTED]
    kept_answerable = answerable[:max_answerable]
    kept_unanswerable = unanswerable[: _share(len(kept_answerable), answerable_per_unanswerable)]
    kept_conflict = conflict[: _share(len(kept_answerable), answerable_per_conflict)]
    kept = kept_answerable + kept_unanswerable + kept_conflict
    random.Random(seed).shuffle(kept)
    counts = {
        "answerable": len(kept_answerable),
        "unanswerable": len(kept_unanswerable),
        "conflict": len(kept_conflict),
        "distracted": len(readable) - len(taught),
        "no_documents": len(shuffled) - len(readable),
        "labels_disagree": len(taught) - len(true),
        "over_limit": len(answerable) - len(kept_answerable),
        "over_ratio": len(unanswerable) - len(kept_unanswerable),
        "over_conflict_ratio": len(conflict) - len(kept_conflict),
    }
    return Selection(kept, counts)


def _is_taught(example: Example, with_conflict: bool) -> bool:
    return example.state is not RetrievalState.DISTRACTED or (with_conflict and example.condition is Condition.CONFLICT)


def _share(answerable: int, answerable_per_other: float | None) -> int | None:
    return None if answerable_per_other is None else round(answerable / answerable_per_other)


def make_row(example: Example, tokenizer: PreTrainedTokenizerBase, settings: InputSettings, end_of_turn: int) -> Row:
    """Make the training row of one example: the ids that serving sends, then the answer, then the token that ends the turn.

    Many chat templates put a line break after the end of a turn. It is left off, so that the last token that is learnt is the one that
    generation stops at. Raises InputError, with the example's id, for a prompt over budget and for a chat template whose training rows
    cannot start with the ids it serves.
    """
    answer = _taught_words(example, settings)
    try:
        served = build(example.question, example.documents, tokenizer, settings)
    except InputError as error:
        raise InputError(f"example '{example.id}': {error}") from error
    whole = template_ids([*served.messages, *completion(answer)], tokenizer, add_generation_prompt=False)
    learnt = whole[len(served.ids) :]
    if whole[: len(served.ids)] != served.ids:
        raise InputError(
            f"example '{example.id}': the chat template renders the prompt differently once an answer follows; choose another base"
        )
    if learnt.count(end_of_turn) != 1:
        raise InputError(f"example '{example.id}': expected one end of turn after the answer {answer!r}, found {learnt.count(end_of_turn)}")
    learnt = learnt[: learnt.index(end_of_turn) + 1]
    return Row(input_ids=served.ids + learnt, completion_mask=[0] * len(served.ids) + [1] * len(learnt))


def _taught_words(example: Example, settings: InputSettings) -> str:
    """The first gold answer, or the string that stands for the state of the set."""
    if example.state is RetrievalState.UNANSWERABLE:
        return settings.abstention
    if example.state is RetrievalState.DISTRACTED:
        if settings.conflict is None:
            raise ValueError(f"example '{example.id}': a two-way Sage has no words for a distracted set")
        return settings.conflict
    return next(answer for answer in example.answers if answer.strip())


def fit(rows: Sequence[Row], max_length: int, allow_cut_answers: bool) -> Fit:
    """Keep the rows that are at most `max_length` tokens long.

    A row that keeps half an answer is as bad as one that keeps none: both lose the token that ends the turn. Raises InputError with the
    counts when there is such a row, unless `allow_cut_answers`, which leaves these rows out.
    """
    kept = [row for row in rows if len(row["input_ids"]) <= max_length]
    lost = sum(row["completion_mask"].index(1) >= max_length for row in rows)
    cut = len(rows) - len(kept) - lost
    if (cut or lost) and not allow_cut_answers:
        raise InputError(
            f"max_length={max_length} does not hold every answer: {cut} cut, {lost} lost of {len(rows)} rows; lower "
            "sage.inputs.max_prompt_tokens, raise sage.train.max_length, or set sage.train.allow_cut_answers=true to leave these rows out"
        )
    return Fit(kept, cut, lost)


def prepare(examples: Sequence[Example], backbone: Backbone, settings: SageSettings, seed: int) -> Prepared:
    """Select examples, make their rows and fit them.

    Raises InputError as these do, when no row is left, and when a Sage that has a string for a conflict would never see one.
    """
    train, with_conflict = settings.train, settings.inputs.conflict is not None
    selection = select(
        examples,
        train.max_answerable,
        train.answerable_per_unanswerable,
        seed,
        with_conflict=with_conflict,
        answerable_per_conflict=train.answerable_per_conflict,
    )
    if with_conflict and not selection.counts["conflict"]:
        raise InputError(
            f"data: expected conflict examples, since sage.inputs.conflict is set, kept none of {len(examples)}: {selection.counts}; "
            "give files that hold some, or choose a two-way sage=..."
        )
    rows = [make_row(example, backbone.tokenizer, settings.inputs, backbone.ends[0]) for example in selection.examples]
    fitted = fit(rows, train.max_length, train.allow_cut_answers)
    counts = {**selection.counts, "cut": fitted.cut, "lost": fitted.lost}
    if not fitted.rows:
        raise InputError(f"data: expected answerable or unanswerable examples to train on, kept none of {len(examples)}: {counts}")
    return Prepared(fitted.rows, counts)
