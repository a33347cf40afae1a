"""What training leaves, whatever the form of Sieve: something that screens, and what its manifest says of it."""

from collections.abc import Mapping
from typing import NamedTuple

from rag.settings import Settings
from sieve.predict import AnySieve


class Fitted(NamedTuple):
    """A trained Sieve, its weights and tokenizer on disk, without a threshold yet."""

    sieve: AnySieve
    """What serving would load, with the default threshold and temperature."""
    steps: int
    """Optimiser steps of the training."""
    fingerprint: str
    """Of the base."""
    examples: int
    """Sets that were learnt from."""
    rows: Mapping[str, int]
    """Training rows by group: sets by how they were put together, or documents that are read alone by what they are to their question."""
    settings: Settings
    """The settings of conf/sieve, with what was fitted beside the weights."""
    least_documents: int = 1
    """Sets of fewer documents tell nothing of the threshold."""
