"""Entity swaps: whole mentions in one pass, text that still fits, and nothing left of the old entity."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_gen.swaps.entities import make_pool
from data_gen.swaps.mentions import names_any
from data_gen.swaps.swap import Rejected, Swapped, replace, swap, swap_irrelevant
from rag.text import contains


def swapped(text: str, old: str | list[str], new: str, question: str = "") -> str:
    result = swap(text, [old] if isinstance(old, str) else old, new, question)
    assert isinstance(result, Swapped), result
    return result.text


def test_pitfall_g1_no_part_of_a_word_is_replaced() -> None:
    text = "Eric visited America with Eric's aunt, Erica Stone."
    assert swap(text, ["Eric"], "Ann") == Swapped("Ann visited America with Ann's aunt, Erica Stone.", ("Eric", "Eric"), "Ann")


def test_pitfall_g1_two_entities_change_places_in_one_pass() -> None:
    assert (
        replace("Peru met Chile; Chile's team left Peru.", {"Peru": "Chile", "Chile": "Peru"}) == "Chile met Peru; Peru's team left Chile."
    )


def test_pitfall_g1_a_and_an_are_adjusted() -> None:
    assert swapped("an Austrian chemist", "Austrian", "German") == "a German chemist"
    assert swapped("A German chemist met a German.", "German", "Austrian") == "An Austrian chemist met an Austrian."


def test_pitfall_g1_a_date_stays_day_month_year() -> None:
    text = "On 12 March 1999 (March 12th, 1999, or 1999-03-12) it rained; 12 March 1998 was dry."
    expected = "On 1 July 2007 (July 1st, 2007, or 2007-07-01) it rained; 12 March 1998 was dry."
    assert swapped(text, "12 March 1999", "1 July 2007") == expected
    assert swapped(text, "March 12, 1999", "July 1, 2007") == expected
    assert swap(text, ["12 March 1999"], "July 2007") is Rejected.OTHER_FORMAT
    assert swap(text, ["12 March 1999"], "2007") is Rejected.OTHER_FORMAT


@pytest.mark.parametrize("mention", ["Peru", "PERU", "peru", "Peru's", "Peru’s", "Peru-based", "pro-Peru", "(Peru)", "“Peru”", "Peru/Lima"])
def test_promise_8_every_written_form_of_a_name_is_replaced(mention: str) -> None:
    result = swapped(f"They saw {mention} there.", "Peru", "Chile")
    assert (
        result.casefold()
        == f"They saw {mention} there.".replace("Peru", "Chile").replace("PERU", "CHILE").replace("peru", "chile").casefold()
    )
    assert not contains(result, "Peru")


@pytest.mark.parametrize("form", ["U.S.", "US", "U.S"])
@pytest.mark.parametrize("mention", ["U.S.", "US", "U.S", "U. S.", "u.s.", "U.S.-based", "U.S.'s", "US-led"])
def test_promise_8_initials_are_found_with_and_without_dots(form: str, mention: str) -> None:
    result = swapped(f"They saw {mention} men.", form, "Peru")
    assert "peru" in result.casefold()
    assert "U" not in result and "u.s" not in result


def test_promise_8_hyphens_spaces_and_line_ends_join_a_name() -> None:
    text = "New York, NEW-YORK, new\nyork’s and New‑York."
    assert swapped(text, "New York", "Lima") == "Lima, LIMA, lima’s and Lima."
    assert swapped("Bergen Belsen and BergenBelsen", "Bergen-Belsen", "Lima") == "Lima and Lima"


def test_the_longest_alias_is_replaced_first() -> None:
    text = "Napoleon Bonaparte fell. Bonaparte, or Napoleon, left."
    assert (
        swapped(text, ["Napoleon", "Bonaparte", "Napoleon Bonaparte"], "Wellington") == "Wellington fell. Wellington, or Wellington, left."
    )


def test_old_and_new_are_literal_text() -> None:
    assert swapped("Ask C++ (v1.0)? $5!", "C++ (v1.0)?", r"\1 \g<0> $& {x}") == r"Ask \1 \g<0> $& {x} $5!"
    assert swap("A1B is here.", ["A.B"], "Lima") is Rejected.ABSENT
    assert swap("Peru", ["P.*"], "Lima") is Rejected.ABSENT


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("Oak doors. Of oak.", "oak", "beech", "Beech doors. Of beech."),
        ("“Oak” it was: an oak.", "oak", "beech", "“Beech” it was: a beech."),
        ("A bicycle.", "bicycle", "Motorcycle", "A motorcycle."),
        ("Buy fire insurance.", "Fire Insurance", "Home Insurance", "Buy home insurance."),
        ("Buy an iPod.", "iPod", "Walkman", "Buy a Walkman."),
        ("A Walkman sells.", "Walkman", "iPod", "An iPod sells."),
        ("THE PERU MATCH", "Peru", "Chile", "THE CHILE MATCH"),
        ("Take vitamin A Peru.", "Peru", "Ecuador", "Take vitamin A Ecuador."),
        ("a Peru-born man, an hour", "Peru", "US", "a US-born man, an hour"),
        ("a Peru team", "Peru", "NBA", "an NBA team"),
        ("a five", "five", "eight", "an eight"),
        ("an 8 km walk", "8", "7", "a 7 km walk"),
        ("a 7 km walk", "7", "11", "an 11 km walk"),
    ],
)
def test_capitals_and_articles_fit(text: str, old: str, new: str, expected: str) -> None:
    assert swapped(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("the Beatles' album", "Beatles", "Queen", "the Queen's album"),
        ("The 'Beatles' album", "Beatles", "Queen", "The 'Queen' album"),
        ("Queen's album", "Queen", "Genesis", "Genesis's album"),
        ("the Beatles sang", "The Beatles", "Queen", "Queen sang"),
        ("the famous Beatles sang", "The Beatles", "Queen", "the famous Queen sang"),
        ("the Stones sang", "Stones", "The Beatles", "the Beatles sang"),
        ("He left the U.S. The rest stayed.", "U.S.", "Peru", "He left Peru. The rest stayed."),
        ("He left the U.S.", "U.S.", "Peru", "He left Peru."),
        ("the U.S. Navy", "U.S.", "Peru", "the Peru Navy"),
        ("He went to Peru. She stayed in Peru...", "Peru", "U.S.", "He went to the U.S. She stayed in the U.S...."),
        ("Peru's coach left for Peru, too.", "Peru", "Netherlands", "The Netherlands's coach left for the Netherlands, too."),
    ],
)
def test_possessives_articles_and_full_stops_fit(text: str, old: str, new: str, expected: str) -> None:
    assert swapped(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("Of 5,679 people 5679 came.", "5,679", "6,879", "Of 6,879 people 6879 came."),
        ("It costs $5, not 5.3, -5, 15, 5th or 5,000.", "5", "7", "It costs $7, not 5.3, -5, 15, 5th or 5,000."),
        ("In 1998-99, 1998's team", "1998", "2004", "In 2004-99, 2004's team"),
        ("On May 5, 1998 it rained.", "1998", "2004", "On May 5, 2004 it rained."),
        ("It made $10.4 billion.", "$10.4 billion", "$1.39 billion", "It made $1.39 billion."),
    ],
)
def test_numbers_are_whole_and_keep_their_grouping(text: str, old: str, new: str, expected: str) -> None:
    assert swapped(text, old, new) == expected


def test_unicode_forms_and_typographic_marks_are_one() -> None:
    assert swapped("Beyonce\u0301 sang.", "Beyonc\u00e9", "Adele") == "Adele sang."
    assert swapped("O’Neill sang.", "O'Neill", "Adele") == "Adele sang."
    assert swapped("St. Moritz, St Moritz", "St Moritz", "Lima") == "Lima, Lima"
    assert swapped("Arthur C Clarke", "Arthur C. Clarke", "Ann Lee") == "Ann Lee"


def test_parts_of_a_persons_name_follow_the_full_name() -> None:
    text = "Bill Haslam won. Haslam, Mr. Haslam and Bill left; Jimmy Haslam, Haslam Hall and haslam stayed."
    expected = "Ann Ford won. Ford, Mr. Ford and Ann left; Jimmy Haslam, Haslam Hall and haslam stayed."
    question = "Who is the governor of Tennessee?"
    assert swapped(text, "Bill Haslam", "Ann Ford", question) == expected
    assert swapped(text, "Bill Haslam", "Ann Ford", "Who is the brother of Jimmy Haslam?") == expected.replace(
        " Ford,", " Haslam,", 1
    ).replace("Mr. Ford", "Mr. Haslam")
    assert swapped(text, "Bill Haslam", "Lima", question).startswith("Lima won. Haslam, Mr.")
    assert (
        swapped("Picasso painted. Pablo Picasso died.", ["Pablo Picasso", "Picasso"], "Ann Ford", "Who?") == "Ford painted. Ann Ford died."
    )


@pytest.mark.parametrize(
    ("text", "old", "new", "question", "reason"),
    [
        ("Nothing here.", ["Peru"], "Chile", "", Rejected.ABSENT),
        ("Peruvian men", ["Peru"], "Chile", "", Rejected.ABSENT),
        ("", ["Peru"], "Chile", "", Rejected.ABSENT),
        ("In Peru.", [], "Chile", "", Rejected.ABSENT),
        ("In Peru.", ["Peru"], "PERU", "", Rejected.OVERLAP),
        ("In Peru.", ["Peru", "Republic of Peru"], "republic of peru", "", Rejected.OVERLAP),
        ("In Peru.", ["Peru"], "Southern Peru", "", Rejected.OVERLAP),
        ("In Southern Peru.", ["Southern Peru"], "Peru", "", Rejected.OVERLAP),
        ("In Peru.", ["Peru"], " ", "", Rejected.OVERLAP),
        ("In Peru.", ["Peru"], "1999", "", Rejected.OTHER_FORMAT),
        ("In 1999.", ["1999"], "Peru", "", Rejected.OTHER_FORMAT),
        ("Peru beat Chile.", ["Peru"], "Chile", "", Rejected.PRESENT),
        ("In Peru.", ["Peru"], "Chile", "Is Peru's capital in Peru?", Rejected.IN_QUESTION),
        ("Give us the US.", ["US"], "Peru", "", Rejected.REMAINS),
        ("Was it us?", ["US"], "Peru", "", Rejected.REMAINS),
        ("In 1976, on 16 June.", ["1976", "June 16"], "1980", "", Rejected.REMAINS),
        ("North North York", ["North York"], "York Minster", "", Rejected.REMAINS),
        ("The so\u00adda of Peru, Pe\u00adru", ["Peru"], "Chile", "", Rejected.REMAINS),
    ],
)
def test_a_swap_that_cannot_be_made_says_why(text: str, old: list[str], new: str, question: str, reason: Rejected) -> None:
    assert swap(text, old, new, question) is reason


NAME = st.text(alphabet="abcPQ.-' é5", min_size=1, max_size=8)


@given(
    st.lists(NAME | st.sampled_from([" in ", "The ", ", ", ". ", "an "]), max_size=12).map("".join),
    st.lists(NAME, min_size=1, max_size=3),
    NAME,
)
def test_promise_8_after_a_swap_no_form_is_left_and_something_changed(text: str, old: list[str], new: str) -> None:
    result = swap(text, old, new)
    if isinstance(result, Swapped):
        assert result.old
        assert result.text != text
        assert not any(contains(result.text, form) for form in old)
        assert not names_any(result.text, old)
    assert swap(text, old, new) == result


@given(
    st.lists(st.sampled_from(["Peru", "Peru's", "Peruvian", "in", "the", "a", "Peru-based", "Lima.", "PERU,"]), max_size=20).map(" ".join)
)
def test_a_swap_and_the_swap_back_give_the_text_again(text: str) -> None:
    there = swap(text, ["Peru"], "Chile")
    if isinstance(there, Swapped):
        assert swap(there.text, ["Chile"], "Peru") == Swapped(
            text, tuple(m.replace("Peru", "Chile").replace("PERU", "CHILE") for m in there.old), "Peru"
        )
    else:
        assert there is Rejected.ABSENT and not contains(text, "Peru")


POOL = make_pool(
    [
        *(("Who sang?", name) for name in ("Ann Ford", "Cyril Dale", "Edmund Hall")),
        *(("Where?", name) for name in ("Peru", "Chile", "Ohio", "Utah")),
    ]
)
QUESTION = "When did Ann Ford open the bridge in Ohio?"


def test_an_entity_that_does_not_matter_is_swapped() -> None:
    text = "Ann Ford opened it on 12 March 1999 in Ohio. Cyril Dale of Peru paid 4,500 crowns in 1872, said Mr. Cyril Dale."
    seen = set()
    for seed in range(40):
        result = swap_irrelevant(text, ["12 March 1999", "1 July 2007"], QUESTION, Random(seed), POOL)
        assert isinstance(result, Swapped)
        assert "Ann Ford opened it on 12 March 1999 in Ohio." in result.text
        assert result.text != text and not names_any(result.text, result.old)
        assert result == swap_irrelevant(text, ["12 March 1999", "1 July 2007"], QUESTION, Random(seed), POOL)
        seen.add(result.old[0])
    assert seen == {"Cyril Dale", "Peru", "4,500", "1872"}


def test_what_matters_or_is_part_of_a_longer_name_is_left_alone() -> None:
    kept = ["12 March 1999", "Cyril Dale", "1999", "March 1999"]
    for text in ("Ann Ford, 12 March 1999, Ohio.", "Cyril Dale in March 1999", "Cyril Dale Bridge", "Upper Peru, Apollo 11, $5, 21st, x-4"):
        assert swap_irrelevant(text, kept, QUESTION, Random(0), POOL) is Rejected.NOTHING_ELSE


def test_an_irrelevant_swap_never_writes_a_right_or_wrong_answer() -> None:
    for seed in range(20):
        result = swap_irrelevant("He lives in Peru.", ["Chile"], "When?", Random(seed), POOL)
        assert result is Rejected.NOTHING_ELSE
