"""Passages of the demo world: what a subject is, and the text that states or denies things about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from data_gen.world.invent import Value, draw
from data_gen.world.vocabulary import ASSERTIONS, DENIALS, FILLERS, TITLES, Attribute, SubjectKind

MIN_WORDS = 42
_DENIAL_RATE = 0.85
_ALIAS_RATE = 0.25
_NOUN_RATE = 0.5


@dataclass(frozen=True)
class Subject:
    """One invented thing with the value of each of its attributes, the same in every document of a question."""

    kind: SubjectKind
    name: str
    values: dict[str, Value]


@dataclass(frozen=True)
class Passage:
    """Title and text of one document."""

    title: str
    text: str


def invent_subject(rng: Random, kind: SubjectKind, name: str, unlike: Iterable[Value]) -> Subject:
    """Draw all attributes of a subject; none of its values overlaps `unlike`, so that no key value turns up by accident."""
    taken = tuple(unlike)
    return Subject(kind, name, {attribute.name: draw(rng, attribute.value, taken) for attribute in kind.attributes})


def about(
    rng: Random,
    subject: Subject,
    apart_from: Attribute,
    unlike: Iterable[Value],
    key: tuple[Attribute, Value] | None = None,
    deny_key: bool = False,
    words: int = MIN_WORDS,
    wordings: int | None = None,
) -> Passage:
    """A passage on `subject` of sentences in random order, at least `words` long and at most about 40 more.

    Each attribute is worded in one of its first `wordings` clauses, of all where it is none. The passage states `key`, or denies it
    with `deny_key`, and says other true things; `apart_from` is left to `key`. Most passages deny
    something untrue of another attribute; one that denies its key denies nothing else, so that every passage has the same share of denials.
    """
    others = [attribute for attribute in subject.kind.attributes if attribute is not apart_from]
    rng.shuffle(others)
    sentences = []
    if key is not None:
        attribute, value = key
        sentences.append(_sentence(rng, DENIALS if deny_key else ASSERTIONS, attribute, subject.name, value, wordings))
    else:
        attribute = others.pop()
        sentences.append(_sentence(rng, ASSERTIONS, attribute, subject.name, subject.values[attribute.name], wordings))
    if not deny_key and rng.random() < _DENIAL_RATE:
        attribute = others.pop()
        untrue = draw(rng, attribute.value, (*unlike, subject.values[attribute.name]))
        sentences.append(_sentence(rng, DENIALS, attribute, _mention(rng, subject), untrue, wordings))
    fillers = rng.sample((*FILLERS, *subject.kind.fillers), 4)
    target = rng.randrange(words, words + 18)
    while _words(sentences) < target:
        if others and rng.random() < 0.6:
            attribute = others.pop()
            sentences.append(_sentence(rng, ASSERTIONS, attribute, _mention(rng, subject), subject.values[attribute.name], wordings))
        elif fillers:
            sentences.append(_capital(fillers.pop().format(s=_mention(rng, subject))))
    rng.shuffle(sentences)
    return Passage(title=rng.choice(TITLES).format(s=subject.name), text=" ".join(sentences))


def _words(sentences: list[str]) -> int:
    return sum(len(sentence.split()) for sentence in sentences)


def _mention(rng: Random, subject: Subject) -> str:
    return subject.kind.noun if rng.random() < _NOUN_RATE else subject.name


def _sentence(rng: Random, frames: tuple[str, ...], attribute: Attribute, mention: str, value: Value, wordings: int | None) -> str:
    form = rng.choice(value.forms) if rng.random() < _ALIAS_RATE else value.forms[0]
    claim = rng.choice(attribute.claims[:wordings]).format(s=mention, v=form)
    return _capital(rng.choice(frames).format(claim=claim))


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
