"""Instructions of the papers, word for word."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

QaPrompt = Literal["normal", "unanswerable", "conflict", "unanswerable_conflict"]

QA_PROMPTS: Mapping[QaPrompt, str] = MappingProxyType(
    {
        "normal": (
            "Answer the following question based on the provided documents. "
            "Please provide the answer as a single word or term, without forming a complete sentence."
        ),
        "unanswerable": (
            "Answer the following question based on the provided documents. "
            "If you cannot find the answer in the provided documents, please respond with 'unanswerable'. "
            "Please provide the answer as a single word or term, without forming a complete sentence."
        ),
        "conflict": (
            "Answer the following question based on the provided documents. "
            "If multiple documents present different answers, please respond with 'conflict'. "
            "Please provide the answer as a single word or term, without forming a complete sentence."
        ),
        "unanswerable_conflict": (
            "Answer the following question based on the provided documents. "
            "If you cannot find the answer in the provided documents, please respond with 'unanswerable'. "
            "If multiple documents present different answers, please respond with 'conflict'. "
            "Please provide the answer as a single word or term, without forming a complete sentence."
        ),
    }
)
"""Paper 002, table 14: Normal, Unanswerable, Conflict and Unanswerable + Conflict QA.

The words are the table's. It prints both quotation marks as a typographic apostrophe, an accident of its typesetting; here they are plain `'`.
"""
