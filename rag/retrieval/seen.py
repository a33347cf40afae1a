"""Which of many millions of strings came before, at 8 to 16 bytes of memory for each."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


class Seen:
    """A set of 64-bit hashes in sorted arrays, each at least twice as long as the next.

    Two of n different strings share a hash with a probability of about n * n / 2**65: 1 in 80,000 for 21 million.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._runs: list[Hashes] = []

    def add(self, strings: Sequence[str]) -> list[bool]:
        """Add strings, and say of each whether it came before, in this call or an earlier one."""
        hashes = np.array([int.from_bytes(hashlib.blake2b(s.encode(), digest_size=8).digest(), "big") for s in strings], dtype=np.uint64)
        first = np.unique(hashes, return_index=True)[1]
        known = np.ones(len(hashes), dtype=bool)
        known[first] = False
        for run in self._runs:
            known |= run[np.minimum(np.searchsorted(run, hashes), len(run) - 1)] == hashes
        new = hashes[first][~known[first]]
        while len(new) and self._runs and len(self._runs[-1]) < 2 * len(new):
            new = np.sort(np.concatenate([self._runs.pop(), new]), kind="stable")
        if len(new):
            self._runs.append(new)
        return [bool(k) for k in known]
