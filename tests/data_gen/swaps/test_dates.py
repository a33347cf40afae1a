"""Dates that are read and written in the format of a text."""

import pytest

from data_gen.swaps.dates import Date, dates, parse_date


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("12 March 1999", Date(1999, 3, 12)),
        ("12th of March, 1999", Date(1999, 3, 12)),
        ("March 12, 1999", Date(1999, 3, 12)),
        ("Mar. 12th 1999", Date(1999, 3, 12)),
        ("january 2 , 1971", Date(1971, 1, 2)),
        ("1999-03-12", Date(1999, 3, 12)),
        ("Sept 1999", Date(1999, 9, None)),
        ("May 2020", Date(2020, 5, None)),
        ("4 July", Date(None, 7, 4)),
        ("July 4th", Date(None, 7, 4)),
        ("1999", None),
        ("March", None),
        ("27 and 28 November 1994", None),
        ("on 12 March 1999", None),
        ("Marchand 12, 1999", None),
        ("32 March", None),
    ],
)
def test_a_date_is_read_in_each_of_its_formats(written: str, date: Date | None) -> None:
    assert parse_date(written) == date


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("12 March 1999", "1 July 2007"),
        ("12TH MARCH 1999", "1ST JULY 2007"),
        ("March 12, 1999", "July 1, 2007"),
        ("Dec. 12, 1999", "Jul. 1, 2007"),
        ("sep 02 1999", "jul 01 2007"),
        ("1999-12-12", "2007-07-01"),
    ],
)
def test_another_date_is_written_in_the_format_of_the_first(written: str, expected: str) -> None:
    text = f"On {written}, it rained."
    mention = dates(text)[0]
    rendered = mention.render(text, Date(2007, 7, 1))
    assert text[mention.start : mention.end] == written
    assert rendered.casefold() == expected.casefold()
    assert rendered == expected or not expected.isupper()


def test_dates_are_found_from_left_to_right_in_a_text() -> None:
    text = "Born 7 May 1980, it says; in June 2001 and on August 9 he spoke. You may 5 times."
    assert [text[mention.start : mention.end] for mention in dates(text)] == ["7 May 1980", "June 2001", "August 9", "may 5"]
