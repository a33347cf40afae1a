"""Kinds of entities, years and numbers by format, and what may stand for what."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.swaps.entities import entity_format, entity_kind, make_pool, near, overlaps, replacements


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ("1999", "year"),
        ("12 March 1999", "date day-month-year"),
        ("March 1999", "date month-year"),
        ("July 4", "date day-month"),
        ("27 and 28 November 1994", "number # and # month #"),
        ("5,679", "number #"),
        ("42", "number #"),
        ("$10.4 billion", "number $# billion"),
        ("53.5 x 67.2 cm", "number # x # cm"),
        ("80-acre", "number #-acre"),
        ("5:30 PM", "number #:# pm"),
        ("21st century", "number # century"),
        ("Five", "number word"),
        ("Apollo 11", ""),
        ("3 Mile Island", ""),
        ("Lima", ""),
    ],
)
def test_the_format_of_years_dates_and_numbers(answer: str, written: str) -> None:
    assert entity_format(answer) == written


@pytest.mark.parametrize(
    ("question", "answer", "kind"),
    [
        ("When did it open?", "1999", "year"),
        ("How many people came?", "1999", "number #"),
        ("Who is the governor of Tennessee?", "Bill Haslam", "person 2"),
        ("What is the name of the actor in Alias?", "Melissa George", "person 2"),
        ("Who won the World Cup in 2018?", "France", "country"),
        ("Who won?", "the U.S.", "country"),
        ("Which country won?", "Great Britain", "place 2"),
        ("where was he born", "Ohio", "state"),
        ("where was he born", "Limburg an der Lahn", "place 4"),
        ("In what city was the meeting held?", "Riga", "city"),
        ("What language is spoken in Belgium?", "Dutch Language", "language"),
        ("Who does Peyton Manning play football for?", "Denver Broncos", "team"),
        ("What is the title of the second album?", "Visions", "work 1"),
        ("Why?", "Because", "name 1"),
        ("Who did it?", "the navy", "term 2"),
        ("When is it?", "Tuesday", "weekday"),
    ],
)
def test_the_kind_comes_from_the_format_a_list_or_the_question(question: str, answer: str, kind: str) -> None:
    assert entity_kind(question, answer) == kind


@pytest.mark.parametrize(
    ("entity", "form"),
    [
        ("Peru", "PERU"),
        ("Peru", "southern Peru"),
        ("southern Peru", "Peru"),
        ("U.S.", "us"),
        ("New-York", "new york"),
        ("Peru’s", "Peru"),
        ("Beyonce\u0301", "Beyonc\u00e9"),
        ("July 1, 2007", "1 July 2007"),
        ("1,000", "1000"),
        ("2007", "July 1, 2007"),
    ],
)
def test_entities_that_overlap(entity: str, form: str) -> None:
    assert overlaps(entity, ["Chile", form])
    assert overlaps(form, [entity])


@pytest.mark.parametrize(("entity", "form"), [("Peru", "Peruvian"), ("5", "15"), ("3.5", "35"), ("Ann", "Anna"), ("Peru", " ")])
def test_entities_that_do_not_overlap(entity: str, form: str) -> None:
    assert not overlaps(entity, [form])


def test_a_pool_draws_each_other_answer_of_the_kind_once() -> None:
    pairs = [("Which city?", city) for city in ("Lima", "Quito", "Old Quito", "LA PAZ", "Lima", "Riga (city)", "in Riga", " ")]
    pool = make_pool(pairs)
    assert pool == make_pool(reversed(pairs))
    assert pool.by_kind == {"city": ("La Paz", "Lima", "Old Quito", "Quito")}
    assert pool.kind_of["La Paz"] == "city"
    drawn = list(replacements(["Quito"], "city", pool, Random(0)))
    assert sorted(drawn) == ["La Paz", "Lima"]
    assert drawn == list(replacements(["Quito"], "city", pool, Random(0)))
    assert list(replacements(["Quito"], "river", pool, Random(0))) == []
    assert {next(replacements(["Quito"], "city", pool, Random(seed))) for seed in range(20)} == {"La Paz", "Lima"}


def test_an_answer_of_two_kinds_is_known_by_the_certain_one() -> None:
    assert make_pool([("Why?", "Lima"), ("Which city?", "Lima")]).kind_of == {"Lima": "city"}


VALUES = """1999|2024|1003|12 March 1999|31 December 2023|Feb. 29, 2020|May 2020|July 4th|5,679|$10.4 billion|3|0.5|21st|53.5 x 67.2 cm|80-acre
Five|two|1,000,000|100%|007|1999-12-31"""


def shape(number: str) -> str:
    return re.sub(r"[0-9]", "0", re.sub(r"(?<=[0-9])(st|nd|rd|th)\b", "th", number))


@given(
    st.sampled_from(VALUES.replace("\n", "|").split("|")),
    st.integers(0, 10_000),
)
def test_a_near_value_differs_and_keeps_format_and_size(answer: str, seed: int) -> None:
    other = near(answer, Random(seed))
    assert other is not None
    assert other.casefold() != answer.casefold()
    written = entity_format(answer)
    assert entity_format(other) == written
    assert near(answer, Random(seed)) == other
    if written not in ("number word", "date day-month-year", "date month-year", "date day-month"):
        assert shape(other) == shape(answer)
    years = re.findall(r"(?<!\d)[12]\d{3}(?!\d)", other)
    assert all(int(year) <= 2024 for year in years)


def test_names_and_ranges_of_days_have_no_near_value() -> None:
    assert [near(answer, Random(0)) for answer in ("Lima", "Apollo 11", "27 and 28 November 1994")] == [None, None, None]
