"""What counts as an answer, an abstention, or neither (pitfall E5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.parse import Kind, Parsed, parse, same


@pytest.mark.parametrize(
    "output",
    [
        "Unanswerable.",
        "  UNANSWERABLE ",
        "“unanswerable”",
        "'unanswerable'",
        '"Unanswerable."',
        "«unanswerable».",
        "unanswerable。",
        "‘unanswerable’",
    ],
)
def test_the_configured_string_abstains_whatever_its_case_quotes_and_full_stop(output: str) -> None:
    """Pitfall E5."""
    assert parse(output, "unanswerable") == Parsed(Kind.ABSTENTION)


@pytest.mark.parametrize(
    "output",
    [
        "the unanswerable question",
        "unanswerable by radio",
        "unanswerable..",
        "unanswerable!",
        "un answerable",
        "not unanswerable",
        "unanswerable\nLima",
    ],
)
def test_an_output_that_only_contains_the_string_is_an_answer(output: str) -> None:
    """Pitfall E5."""
    assert parse(output, "unanswerable") == Parsed(Kind.ANSWER, output)


@pytest.mark.parametrize("output", ["", "  \n", '""', "“ ”", "."])
def test_an_output_without_words_is_unparsed(output: str) -> None:
    assert parse(output, "unanswerable") == Parsed(Kind.UNPARSED)


@pytest.mark.parametrize("output", ["no", "007", "C++", "-5", "東京", '"Lima"', "Answer: Lima", "12:30"])
def test_an_answer_is_kept_as_written(output: str) -> None:
    assert parse(f" {output}\n", "unanswerable") == Parsed(Kind.ANSWER, output)


def test_another_abstention_string_replaces_the_default() -> None:
    """Pitfalls D1 and E5: a comma, a full stop, and either apostrophe."""
    assert parse("Sorry, I don’t know", "sorry, I don't know.") == Parsed(Kind.ABSTENTION)
    assert parse("unanswerable", "sorry, I don't know.") == Parsed(Kind.ANSWER, "unanswerable")


@given(st.text())
def test_every_output_is_exactly_one_kind(output: str) -> None:
    parsed = parse(output, "unanswerable")
    assert (parsed.answer is not None) == (parsed.kind is Kind.ANSWER)
    assert parsed.answer is None or (parsed.answer == output.strip() and parsed.answer)


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1), st.sampled_from(["{}", " {} ", "“{}”", "{}.\n", "'{}.'"]))
def test_any_abstention_string_is_recognised_in_quotes_and_space(abstention: str, frame: str) -> None:
    assert parse(frame.format(abstention), abstention) == Parsed(Kind.ABSTENTION)


@pytest.mark.parametrize("output", ["conflict", " Conflict. ", "“CONFLICT”", "'conflict'."])
def test_the_conflict_string_is_read_by_the_rules_of_abstention(output: str) -> None:
    """Pitfall E5."""
    assert parse(output, "unanswerable", "conflict") == Parsed(Kind.CONFLICT)
    assert parse(output, "unanswerable") == Parsed(Kind.ANSWER, output.strip()), "a two-way Sage answers"


@pytest.mark.parametrize("output", ["the Suez conflict", "conflicting", "conflict of interest", "unanswerable conflict", "conflict!"])
def test_an_output_that_only_contains_a_string_is_an_answer_for_both(output: str) -> None:
    """Pitfall E5."""
    assert parse(output, "unanswerable", "conflict") == Parsed(Kind.ANSWER, output)


@given(st.text(), st.text(min_size=1), st.text(min_size=1))
def test_every_output_is_exactly_one_kind_of_four(output: str, abstention: str, conflict: str) -> None:
    parsed = parse(output, abstention, conflict)
    assert (parsed.answer is not None) == (parsed.kind is Kind.ANSWER)
    assert (parsed.kind in (Kind.ABSTENTION, Kind.CONFLICT)) <= (same(output, abstention) or same(output, conflict))
