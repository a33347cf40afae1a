"""Retrieval-augmented question answering that knows when not to answer, and says why: what a user of the library needs.

>>> from sieve_and_sage import load
>>> system = load(sieve="checkpoints/local/sieve", sage="checkpoints/local/sage", on_flag="filter")
>>> prediction = system.ask("Who is the mayor of Port Velmere?", ["first text", "second text"])
"""

from rag.errors import InputError
from rag.records import (
    Citation,
    Condition,
    Document,
    DocumentLabel,
    Example,
    Outcome,
    Prediction,
    Query,
    Reason,
    RetrievalState,
)
from serve.systems.sieve_and_sage import SieveAndSage, load
from sieve.predict import Sieve
from sieve.predict import load as load_sieve

__all__ = [
    "Citation",
    "Condition",
    "Document",
    "DocumentLabel",
    "Example",
    "InputError",
    "Outcome",
    "Prediction",
    "Query",
    "Reason",
    "RetrievalState",
    "Sieve",
    "SieveAndSage",
    "load",
    "load_sieve",
]
