"""Calibration error, Brier score and the area under the risk-coverage curve, with seeded intervals resampled by question."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array

from eval.bootstrap import percentiles
from eval.certainty.confidence import Readable, Row, brier, readable
from eval.certainty.risk import aurc, risk_coverage
from eval.tally import FloatArray
from rag.calibration import expected_calibration_error

BINS: Final = 10
"""Bins of equal width (paper 000, appendix A)."""
_GROUPS = 256
"""Groups of neighbouring confidences that a resample is counted in; with fewer distinct confidences nothing is grouped."""
_PATTERNS = 4096
"""Kinds of questions up to which how often each is drawn costs less than drawing questions one by one."""
_BLOCK = 2**21
"""Drawn counts held in memory at once (16 MiB)."""


class Certain(NamedTuple):
    """One figure with its interval, in the fields of a row of the report."""

    name: str
    value: float
    low: float | None
    high: float | None
    n: int
    """Rows with a readable confidence."""
    questions: int
    undefined: int
    """Resamples in which no drawn question had such a row."""
    note: str


class _Counts(NamedTuple):
    """Resampled counts, [resamples, groups], groups from the highest confidence to the lowest."""

    right: FloatArray
    wrong: FloatArray


class _Groups(NamedTuple):
    """What is known of each group of neighbouring confidences."""

    mean: FloatArray
    tenth: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    """For each question, [questions, most rows of one]: twice the group of each row, plus 1 where it was wrong; twice the number of groups
    where there is no further row."""


Statistic = Callable[[_Counts, _Groups], FloatArray]


def certainty(rows: Sequence[Row], questions: Sequence[str], *, suffix: str = "", resamples: int, seed: int, level: float) -> list[Certain]:
    """`ece_midpoint`, `ece_mean`, `brier` and `aurc` of these rows; nothing where none has a readable confidence.

    `questions` are those of all examples: each resample draws as many of them with replacement, so that those without a row count as in
    any other metric. Values are exact. In the resamples, where there are more than 256 distinct confidences, neighbouring ones share
    their mean and enter the curve together. `suffix` ends the names, for rows of another kind.
    """
    kept = readable(rows)
    if not kept.rows:
        return []
    groups = _groups(kept, sorted(set(questions)))
    drawn = list(_drawn(groups, resamples, seed))
    note = f"{kept.unreadable} without a readable confidence are left out" if kept.unreadable else ""
    figures: tuple[tuple[str, float, Statistic], ...] = (
        ("ece_midpoint", expected_calibration_error(kept.confidence, kept.correct, BINS, "midpoint"), _ece_midpoint),
        ("ece_mean", expected_calibration_error(kept.confidence, kept.correct, BINS, "mean"), _ece_mean),
        ("brier", brier(kept.confidence, kept.correct), _brier),
        ("aurc", aurc(risk_coverage(kept.confidence, kept.correct)), _aurc),
    )
    named = len({row.question_id for row in kept.rows})
    made = []
    for name, value, statistic in figures:
        low, high, undefined = percentiles(np.concatenate([statistic(counts, groups) for counts in drawn]), level)
        made.append(Certain(f"{name}{suffix}", value, low, high, len(kept.rows), named, undefined, note))
    return made


def _groups(kept: Readable, questions: Sequence[str]) -> _Groups:
    values = np.array(kept.confidence)
    levels, place, sizes = np.unique(-values, return_inverse=True, return_counts=True)
    tenth_of_level = np.minimum((-levels * BINS).astype(np.int64), BINS - 1)
    rank = np.arange(len(levels)) if len(levels) <= _GROUPS else (np.cumsum(sizes) - sizes) * _GROUPS // len(values)
    # Levels descend and ranks ascend, so that equal pairs are neighbours; no group lies in two bins.
    starts = np.concatenate([[0], (np.diff(rank) != 0) | (np.diff(tenth_of_level) != 0)])
    group = np.cumsum(starts)[place]
    number = int(group.max()) + 1
    mean = np.bincount(group, weights=values) / np.bincount(group)
    tenth = np.zeros(number, dtype=np.int64)
    tenth[group] = tenth_of_level[place]
    code = 2 * group + ~np.array(kept.correct)
    index = np.searchsorted(np.array(questions), np.array([row.question_id for row in kept.rows]))
    order = np.lexsort((code, index))
    owner, code = index[order], code[order]
    nth = np.arange(len(owner)) - np.searchsorted(owner, owner)
    codes = np.full((len(questions), int(nth.max()) + 1), 2 * number, dtype=np.int64)
    codes[owner, nth] = code
    return _Groups(mean, tenth, codes)


def _drawn(groups: _Groups, resamples: int, seed: int) -> Iterator[_Counts]:
    """Counts of all resamples, block by block: from how often each kind of question is drawn where there are few kinds."""
    rng = np.random.default_rng(seed)
    questions, columns = len(groups.codes), 2 * len(groups.mean) + 1
    kinds, sizes = np.unique(groups.codes, axis=0, return_counts=True)
    if len(kinds) <= _PATTERNS:
        patterns = _counted(kinds, columns).toarray()
        block = max(1, _BLOCK // max(columns, len(kinds)))
    else:
        rows = _counted(groups.codes, columns).T.tocsr()
        block = max(1, _BLOCK // questions)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        if len(kinds) <= _PATTERNS:
            counts = rng.multinomial(questions, sizes / questions, size=size).astype(np.float64) @ patterns
        else:
            drawn = [np.bincount(rng.integers(questions, size=questions), minlength=questions) for _ in range(size)]
            counts = (rows @ np.ascontiguousarray(np.array(drawn, dtype=np.float64).T)).T
        yield _Counts(counts[:, :-1:2], counts[:, 1::2])


def _counted(codes: npt.NDArray[np.int64], columns: int) -> Any:
    """How often each code occurs in each row of `codes`, [rows, columns], sparse."""
    owner = np.repeat(np.arange(len(codes)), codes.shape[1])
    return coo_array((np.ones(codes.size), (owner, codes.ravel())), shape=(len(codes), columns)).tocsr()


def _ratio(numerator: Any, counts: _Counts) -> FloatArray:
    total = (counts.right + counts.wrong).sum(axis=1)
    ratios: FloatArray = np.divide(numerator, total, out=np.full(len(total), np.nan), where=total > 0)
    return ratios


def _ece_midpoint(counts: _Counts, groups: _Groups) -> FloatArray:
    middle = (groups.tenth + 0.5) / BINS
    return _gap(counts, groups, middle)


def _ece_mean(counts: _Counts, groups: _Groups) -> FloatArray:
    return _gap(counts, groups, groups.mean)


def _gap(counts: _Counts, groups: _Groups, said: FloatArray) -> FloatArray:
    bins = (groups.tenth[:, None] == np.arange(BINS)).astype(np.float64)
    return _ratio(np.abs((counts.right - (counts.right + counts.wrong) * said) @ bins).sum(axis=1), counts)


def _brier(counts: _Counts, groups: _Groups) -> FloatArray:
    return _ratio(counts.right @ (1 - groups.mean) ** 2 + counts.wrong @ groups.mean**2, counts)


def _aurc(counts: _Counts, groups: _Groups) -> FloatArray:
    sizes = counts.right + counts.wrong
    kept = np.cumsum(sizes, axis=1)
    risk = np.divide(np.cumsum(counts.wrong, axis=1), kept, out=np.zeros_like(kept), where=kept > 0)
    return _ratio((risk * sizes).sum(axis=1), counts)
