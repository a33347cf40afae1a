"""The pool of wordings: enough of them, all usable with any subject and value."""

import string
from collections import Counter

import pytest

from data_gen.world.kinds import KINDS
from data_gen.world.vocabulary import ASSERTIONS, DENIALS, FILLERS, TITLES, SubjectKind, ValueKind


def fields(template: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_wording_names_what_it_is_about(kind: SubjectKind) -> None:
    for attribute in kind.attributes:
        assert all(fields(question) == ["s"] for question in attribute.questions)
        assert all(sorted(fields(claim)) == ["s", "v"] for claim in attribute.claims)
        assert len(set(attribute.claims)) * len(set(ASSERTIONS)) >= 8
    assert all(fields(name) == ["stem"] for name in kind.names)
    assert len({attribute.name for attribute in kind.attributes}) == len(kind.attributes)


def test_each_kind_of_subject_has_two_attributes_of_one_kind_of_value() -> None:
    """So that a document can state another value of the kind that the question asks for."""
    paired = [kind.name for kind in KINDS if max(Counter(attribute.value for attribute in kind.attributes).values()) >= 2]
    assert paired == [kind.name for kind in KINDS]


def test_all_kinds_of_values_are_asked_for() -> None:
    assert {attribute.value for kind in KINDS for attribute in kind.attributes} == set(ValueKind)


def test_frames_hold_one_claim() -> None:
    assert all(fields(frame) == ["claim"] for frame in (*ASSERTIONS, *DENIALS))
    assert all(set(fields(text)) <= {"s"} for text in (*TITLES, *FILLERS, *(filler for kind in KINDS for filler in kind.fillers)))


def test_no_filler_states_a_number() -> None:
    assert not any(character.isdigit() for text in (*FILLERS, *(filler for kind in KINDS for filler in kind.fillers)) for character in text)
