"""The stand-in for an NLI model: its rule, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.models.nli import NEUTRAL, Nli
from rag.models.nli_lexical import DENIED, DIFFERENT, ENTAILED, LexicalNli

NLI = LexicalNli()
CAPITAL = "The capital of Peru is Lima."


@pytest.mark.parametrize(
    ("premise", "hypothesis", "expected"),
    [
        ("Lima has been the capital of Peru since 1535.", CAPITAL, ENTAILED),
        ("It rains. Peru's capital is LIMA! It is old.", CAPITAL, ENTAILED),
        ("The capital of Peru is not Lima.", CAPITAL, DENIED),
        ("Lima isn't the capital of Peru.", CAPITAL, DENIED),
        ("Lima isn’t the capital of Peru.", CAPITAL, DENIED),
        ("It is false that Lima is the capital of Peru.", CAPITAL, DENIED),
        ("It is not false that Lima is the capital of Peru.", CAPITAL, ENTAILED),
        ("The capital of Peru is Cusco.", CAPITAL, DIFFERENT),
        ("The capital of Peru is not Cusco.", CAPITAL, NEUTRAL),
        ("The capital of Peru lies by the sea.", CAPITAL, NEUTRAL),
        ("The capital of Chile is Santiago.", CAPITAL, NEUTRAL),
        ("Lima is a bean.", CAPITAL, NEUTRAL),
        ("", CAPITAL, NEUTRAL),
        ("   \n", CAPITAL, NEUTRAL),
        ("The bridge was opened in 1901.", "The bridge was opened in 1,901.", ENTAILED),
        ("The bridge was opened in 1902.", "The bridge was opened in 1901.", DIFFERENT),
        ("The bridge was opened in spring.", "The bridge was opened in 1901.", NEUTRAL),
        ("The bridge was never opened.", "The bridge was opened.", DENIED),
        ("Ada Lovelace wrote the first program in London.", "Ada Lovelace wrote the first program.", ENTAILED),
        ("Grace Hopper wrote the first program.", "Ada Lovelace wrote the first program.", DIFFERENT),
        ("C.* (x)+ was released in 1972.", "C.* (x)+ was released in 1972.", ENTAILED),
        ("東京 is the capital of Japan.", "The capital of Japan is 東京.", ENTAILED),
    ],
)
def test_the_rule(premise: str, hypothesis: str, expected: object) -> None:
    [judged] = NLI.judge([(premise, hypothesis)])
    assert judged == pytest.approx(expected)


def test_a_document_that_says_and_denies() -> None:
    """A plain denial weighs as much as the statement, another name in its place less."""
    [denied, different] = NLI.judge(
        [(f"{CAPITAL} Lima is not the capital of Peru.", CAPITAL), (f"{CAPITAL} The capital of Peru is Cusco.", CAPITAL)]
    )
    assert denied == pytest.approx((0.5, 0.0, 0.5))
    assert different == pytest.approx((0.5625, 0.0, 0.4375))


def test_the_overlap_is_of_words_other_than_the_differing_name() -> None:
    """Five content words, of which the differing name is left out: 3 of 4 others are there."""
    pair = ("The old stone bridge was built by Ames.", "The narrow stone bridge was built by Brand.")
    assert LexicalNli(overlap=0.75).judge([pair]) == [DIFFERENT]
    assert LexicalNli(overlap=0.76).judge([pair]) == [NEUTRAL]


def test_a_blank_hypothesis_is_refused() -> None:
    with pytest.raises(InputError, match="hypothesis: expected a sentence"):
        NLI.judge([("text", " ")])


@given(st.text(max_size=80), st.text(min_size=1, max_size=40).filter(str.strip))
def test_any_text_gets_a_distribution_and_always_the_same(premise: str, hypothesis: str) -> None:
    nli: Nli = NLI
    [judged] = nli.judge([(premise, hypothesis)])
    assert sum(judged) == pytest.approx(1.0)
    assert nli.judge([("other", "sentence"), (premise, hypothesis)])[1] == judged


def test_the_name_tells_the_setting() -> None:
    assert LexicalNli(overlap=0.7).name == "lexical overlap=0.7"
