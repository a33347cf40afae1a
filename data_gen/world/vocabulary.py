"""The fictional world behind the demo data: what a kind of subject is, and the one pool of wordings for all documents."""

from dataclasses import dataclass
from enum import StrEnum


class ValueKind(StrEnum):
    """What sort of thing answers a question; two values of one kind can stand for each other in any sentence."""

    PERSON = "person"
    YEAR = "year"
    NUMBER = "number"
    PLACE = "place"
    MATERIAL = "material"
    DOSAGE = "dosage"
    PRICE = "price"
    COLOUR = "colour"
    COMPANY = "company"


@dataclass(frozen=True)
class Attribute:
    """One thing that can be asked about a subject."""

    name: str
    value: ValueKind
    questions: tuple[str, ...]
    """Templates with `{s}` for the subject."""
    claims: tuple[str, ...]
    """Declarative clauses with `{s}` and `{v}`, without a capital or a full stop of their own; a frame makes a sentence of one."""


@dataclass(frozen=True)
class SubjectKind:
    """One sort of subject with everything that documents may say about it."""

    name: str
    names: tuple[str, ...]
    """Patterns with `{stem}`; two patterns on one stem give two confusable subjects."""
    noun: str
    """How a sentence refers to the subject without its name."""
    attributes: tuple[Attribute, ...]
    fillers: tuple[str, ...]
    """Sentences that state no attribute and name no value."""


ASSERTIONS = (
    "{claim}.",
    "{claim}.",
    "According to the archive, {claim}.",
    "The curator confirmed that {claim}.",
    "Those who checked the papers believe that {claim}.",
    "The leaflet says that {claim}.",
    "An earlier note that {claim} has been confirmed as right.",
    "It is true that {claim}.",
    "As rumours had it, {claim}.",
    "It is now accepted that {claim}.",
    "It was always the case that {claim}.",
    "{claim}, as the register shows.",
)
"""Frames that state a claim. They share their words with the denials, so that no single word tells one from the other."""

DENIALS = (
    "It is not true that {claim}.",
    "It was never the case that {claim}.",
    "Contrary to rumours, it is false that {claim}.",
    "The archive no longer accepts that {claim}.",
    "The curator denied that {claim}.",
    "Nobody who checked the papers believes that {claim}.",
    "An earlier note that {claim} has been withdrawn as wrong.",
    "The leaflet is mistaken when it says that {claim}.",
    "The register does not show that {claim}, and the idea was rejected.",
    "{claim}, some say, but this was never so.",
)
"""Frames that deny a claim; clean documents deny other things about the same subject with the same frames."""

TITLES = ("{s}", "{s}", "{s}", "Notes on {s}", "{s}: an overview", "{s} in brief", "About {s}", "")
"""Titles for any document; an empty one is common on the web."""

FILLERS = (
    "The entry was last revised by a volunteer editor after a long gap.",
    "Few outsiders had heard of {s} until a short broadcast made it better known.",
    "A longer account can be had on request from the reading room.",
    "Opinions differ on how much of this matters today.",
    "Several letters on the subject survive, most of them short and friendly.",
    "Readers often write in with questions about {s}.",
    "The photographs that go with this text were taken on a rainy morning.",
    "A small society meets now and then to talk about {s}.",
    "Much of the older paperwork was damaged by damp and had to be copied.",
    "Local newspapers return to {s} every few months.",
    "The text below was shortened for the printed edition.",
    "Students sometimes choose {s} for their final essay.",
    "A new index is being prepared and should be ready soon.",
    "People who know {s} well describe it with some affection.",
)
"""Sentences for any subject that state no attribute and name no value."""
