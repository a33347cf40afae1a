"""A stand-in for an NLI model that needs no weights: it compares words, names, numbers and negations, sentence by sentence, in English."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from rag.errors import InputError
from rag.models.nli import NEUTRAL, Entailment, pool

ENTAILED = Entailment(0.9, 0.1, 0.0)
DENIED = Entailment(0.0, 0.1, 0.9)
DIFFERENT = Entailment(0.0, 0.3, 0.7)
"""Weaker than a denial: another name in its place may also belong to another fact."""

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?]+[\"'”’)\]]*(?=\s|$)|(?=\n)|$)")
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*|[^\W\d_]\w*(?:'[^\W\d_]+)?")
_NEGATIONS = "not no never none nobody nothing neither nor without cannot false untrue incorrect falsely incorrectly"
_STOP_WORDS = (
    "a an the and or but of in on at to for from by with as into is are was were be been being am do does did has have had will would can could "
    "may might shall should must this that these those it its he him his she her they them their we us our you your i me my who whom whose which "
    "what when where why how there here than then so if also such more most very just only own same both each some any other another s t"
)
NEGATIONS = frozenset(_NEGATIONS.split())
STOP_WORDS = frozenset(_STOP_WORDS.split())


class _Sentence(NamedTuple):
    words: frozenset[str]
    """Content words, folded; names and numbers too."""
    names: tuple[frozenset[str], ...]
    """Runs of capitalised words."""
    numbers: frozenset[str]
    negations: int


class LexicalNli:
    """The rule, for each sentence of the document; sentences are pooled by `rag.models.nli.pool`.

    - Content words are words that are neither stop words nor negations; names are runs of capitalised words, numbers are words with a digit.
    - A name or number of the hypothesis *differs* when it is not in the sentence and the sentence has one of the same kind that the hypothesis
      lacks. The overlap is the share of the hypothesis' content words, those of a differing name or number left out, that are in the sentence.
    - Overlap under `overlap`, or a name or number missing with none in its place: neutral.
    - All names and numbers there: entailment (0.9) when both have an even number of negations or both an odd one, else contradiction (0.9).
    - Exactly one name or number differs and the negations agree: contradiction (0.7). Everything else: neutral.

    It knows no synonyms, no antonyms and no grammar: who did what to whom is not looked at. It stands in for a model where none can be loaded,
    so that the steps around it can be run; its judgements are no evidence about data.
    """

    def __init__(self, overlap: Annotated[float, Field(gt=0, le=1)] = 0.5) -> None:
        """`overlap` is the share of the hypothesis' content words that make a sentence one about the same matter."""
        self.overlap = overlap

    @property
    def name(self) -> str:
        """Of this rule and its setting."""
        return f"lexical overlap={self.overlap}"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """One judgement for each pair of a document and a sentence, in order. Raises InputError for a blank hypothesis."""
        return [self._judge(premise, hypothesis) for premise, hypothesis in pairs]

    def _judge(self, premise: str, hypothesis: str) -> Entailment:
        if not hypothesis.strip():
            raise InputError("hypothesis: expected a sentence to judge the document by, got blank text")
        asked = _read(hypothesis)
        return pool([self._compare(_read(match[0]), asked) for match in _SENTENCE.finditer(premise) if match[0].strip()])

    def _compare(self, sentence: _Sentence, asked: _Sentence) -> Entailment:
        missing_names = [name for name in asked.names if not name <= sentence.words]
        missing_numbers = asked.numbers - sentence.words
        missing = len(missing_names) + len(missing_numbers)
        left_out = frozenset().union(*missing_names, missing_numbers)
        compared = asked.words - left_out if missing else asked.words
        if missing > 1 or not compared or len(compared & sentence.words) < self.overlap * len(compared):
            return NEUTRAL
        same_negation = sentence.negations % 2 == asked.negations % 2
        if not missing:
            return ENTAILED if same_negation else DENIED
        other_names = any(not name & asked.words for name in sentence.names)
        in_its_place = bool(sentence.numbers - asked.numbers) if missing_numbers else other_names
        return DIFFERENT if in_its_place and same_negation else NEUTRAL


def _read(text: str) -> _Sentence:
    text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("n't", " not")
    words: set[str] = set()
    numbers: set[str] = set()
    names: list[frozenset[str]] = []
    run: set[str] = set()
    negations, end = 0, 0
    for match in _WORD.finditer(text):
        word = match[0].removesuffix("'s").casefold()
        negations += word in NEGATIONS
        if match[0][0].isdigit():
            word = word.replace(",", "")
            numbers.add(word)
        is_content = word not in STOP_WORDS and word not in NEGATIONS
        if is_content:
            words.add(word)
        # A name goes on over a space or a hyphen; punctuation ends it.
        starts_anew = text[end : match.start()] not in (" ", "-")
        if run and (starts_anew or not (is_content and match[0][0].isupper())):
            names.append(frozenset(run))
            run = set()
        if is_content and match[0][0].isupper():
            run.add(word)
        end = match.end()
    if run:
        names.append(frozenset(run))
    return _Sentence(frozenset(words), tuple(names), frozenset(numbers), negations)
