"""What an extractive Sieve makes of readings and verdicts, with a reader and a judge that say what a test tells them to."""

import math
from collections.abc import Sequence

import pytest

from rag.records import Document
from sieve.extractive.decision import DecisionSettings
from sieve.extractive.inputs import Encoding, Window
from sieve.extractive.judge import Claim, Verdict
from sieve.extractive.predict import ExtractiveSieve
from sieve.extractive.spans import Reading, Span

STATES, DENIES, NEITHER = Verdict(0.98, 0.01, 0.01), Verdict(0.01, 0.98, 0.01), Verdict(0.01, 0.01, 0.98)


class Reads:
    """Takes what stands between `<` and `>` for the answer; a document without them is silent."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, pairs: Sequence[tuple[str, Document]]) -> list[Encoding]:
        self.texts += [document.text for _, document in pairs]
        return [Encoding(document.text, [Window([0] * 7, [0] * 7, 1, [])], False) for _, document in pairs]

    def read(self, encodings: Sequence[Encoding]) -> list[Reading]:
        found = []
        for encoding in encodings:
            start, end = encoding.text.find("<") + 1, encoding.text.find(">")
            found.append(Reading(0.01, (Span(start, end, 0.9),)) if end > 0 else Reading(0.99, ()))
        return found


class Judges:
    """A text states the answer that it holds, unless it denies it or speaks of another subject; it contradicts any other answer."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []

    def judge(self, claims: Sequence[Claim]) -> list[Verdict]:
        self.claims += claims
        return [self._verdict(claim) for claim in claims]

    def _verdict(self, claim: Claim) -> Verdict:
        if "elsewhere" in claim.text:
            return NEITHER
        return STATES if claim.answer in claim.text and "never" not in claim.text else DENIES


@pytest.fixture
def sieve() -> ExtractiveSieve:
    return ExtractiveSieve(Reads(), Judges(), DecisionSettings(floor=0.02), threshold=0.5)  # type: ignore[arg-type]


def score(sieve: ExtractiveSieve, *texts: str, question: str = "When was the bridge built?") -> float:
    return sieve.screen([question], [texts])[0].score


def test_two_answers_that_cannot_both_be_right_flag_a_set(sieve: ExtractiveSieve) -> None:
    assert score(sieve, "Built in <1967>.", "Built in <1968>.") > 0.5
    assert score(sieve, "Built in <1967>.", "It was built in <1967>, all say.", "Nothing here.") == 0.02


def test_a_document_on_another_fact_flags_none(sieve: ExtractiveSieve) -> None:
    sieve.decision = DecisionSettings(floor=0.02, states=2.0)
    assert score(sieve, "Built in <1967>.", "Another one elsewhere in <1968>.") < 0.5 < score(sieve, "Built in <1967>.", "Built in <1968>.")


def test_a_denial_contradicts_what_it_denies_and_nothing_else(sieve: ExtractiveSieve) -> None:
    weights = DecisionSettings(floor=0.02, same=0.0, denied=1.0, support=0.0, speaks=0.0, states=0.0, contradicts=0.0)
    sieve.decision = weights
    assert score(sieve, "Built in <1967>.", "It was never built in <1967>.") > 0.5
    assert score(sieve, "Built in <1967>.", "It was built in <1967> indeed.") < 0.5


def test_names_that_rules_cannot_tell_apart_are_put_to_the_judge(sieve: ExtractiveSieve) -> None:
    assert score(sieve, "By <Ada Lind>.", "By <Hugo Marl>.") > 0.5
    crossed = {(claim.answer, claim.text) for claim in sieve.judge.claims}  # type: ignore[attr-defined]
    assert {("Ada Lind", "By <Hugo Marl>."), ("Hugo Marl", "By <Ada Lind>.")} <= crossed
    sieve.judge.claims.clear()  # type: ignore[attr-defined]
    score(sieve, "<Ada Lind> did.", "By <A. Lind>.")
    assert len(sieve.judge.claims) == 2  # type: ignore[attr-defined]  # each alone: rules know that the answers are one


def test_the_document_to_blame_is_found_without_reading_again(sieve: ExtractiveSieve) -> None:
    documents = ["Built in <1967>.", "Built in <1967> by hand.", "Built in <1968>."]
    assert sieve.screen(["When?"], [documents])[0].score > 0.5
    read = len(sieve.reader.texts)  # type: ignore[attr-defined]
    (removals,) = sieve.leave_one_out(["When?"], [documents])
    assert len(sieve.reader.texts) == read  # type: ignore[attr-defined]
    assert [(removal.ids, removal.rank, removal.score < 0.5) for removal in removals] == [
        (("d1",), 1, False),
        (("d2",), 2, False),
        (("d3",), 3, True),
    ]


def test_near_identical_documents_are_one_and_their_readings_are_told(sieve: ExtractiveSieve) -> None:
    screening = sieve.screen(["When?"], [["Built in <1967>.", "built in <1967>", "Nothing."]])[0]
    assert dict(screening.readings) == {"d1": "1967", "d2": "1967", "d3": ""}
    (removals,) = sieve.leave_one_out(["When?"], [["Built in <1967>.", "built in <1967>", "Nothing."]])
    assert [removal.ids for removal in removals] == [("d1", "d2"), ("d3",)]


def test_what_is_remembered_is_bounded_and_can_be_forgotten(sieve: ExtractiveSieve) -> None:
    sieve.remembered = 1
    for _ in range(3):
        score(sieve, "Built in <1967>.", "Built in <1968>.")
    assert len(sieve.reader.texts) == 6  # type: ignore[attr-defined]
    sieve.remembered = 10
    sieve.forget()
    for _ in range(3):
        score(sieve, "Built in <1967>.", "Built in <1968>.")
    assert len(sieve.reader.texts) == 8  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", Verdict._fields)
def test_a_verdict_that_is_no_number_decides_nothing(sieve: ExtractiveSieve, field: str, value: float) -> None:
    sieve.judge = Fixed(STATES._replace(**{field: value}))  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match="verdicts are not numbers"):
        score(sieve, "By <Ada Lind>.", "By <Hugo Marl>.")


class Fixed:
    """Says the same of every claim."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def judge(self, claims: Sequence[Claim]) -> list[Verdict]:
        return [self.verdict] * len(claims)


def test_a_set_of_one_or_of_nothing_has_nothing_to_disagree_with(sieve: ExtractiveSieve) -> None:
    assert score(sieve) == score(sieve, "Built in <1967>.") == 0.02
