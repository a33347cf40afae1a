"""Put one entity in the place of another in a text, so that nothing but the fact changes and no form of the old one remains.

`data_gen.swaps.entities` proposes the new entity:

    for new in replacements(answers, entity_kind(question, answers[0]), pool, rng):
        result = swap(passage, answers, new, question)
        if isinstance(result, Swapped):
            break
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from random import Random
from typing import NamedTuple

from data_gen.swaps.dates import dates, parse_date
from data_gen.swaps.entities import Pool, entity_format, entity_kind, near, overlaps, replacements
from data_gen.swaps.mentions import Mention, mentions, names_any


class Swapped(NamedTuple):
    """A text in which one entity stands for another."""

    text: str
    old: tuple[str, ...]
    """What was replaced, as the text wrote it, from left to right; parts of a person's name that stood alone are among them."""
    new: str


class Rejected(StrEnum):
    """Why a swap was not made."""

    ABSENT = "the text does not name the old entity"
    OVERLAP = "the new entity overlaps the old one"
    OTHER_FORMAT = "the new entity is written in another format"
    PRESENT = "the text names the new entity already"
    IN_QUESTION = "the question names the old entity"
    REMAINS = "a form of the old entity would remain"
    NOTHING_ELSE = "the text has no other entity that can be swapped"


def swap(text: str, old_forms: Sequence[str], new: str, question: str = "") -> Swapped | Rejected:
    """The text with every mention of the old entity replaced, or why there is none.

    `old_forms` are the entity's main form and its aliases, literal text in any order. A mention is whole words in any case, with or without the
    dots of initials (`U.S.`), with hyphens or spaces, possessive or not; the longest form wins, in one pass. A date is found in any order of
    day, month and year, and each mention keeps its own. Where the question asks for a person, parts of the name that stand alone follow.
    The text around a mention is kept or fits the new entity: capitals, `a`, `an` and `the`, possessives, full stops, digit grouping.
    """
    forms = tuple(dict.fromkeys(form.strip() for form in old_forms if form.strip()))
    new = new.strip()
    if not new or overlaps(new, forms):
        return Rejected.OVERLAP
    written = entity_format(new)
    fitting = tuple(form for form in forms if entity_format(form) == written)
    named = tuple(dict.fromkeys(mention.form for mention in _safe_mentions(text, fitting, frozenset())))
    if not named:
        unfit = tuple(form for form in forms if form not in fitting)
        return Rejected.OTHER_FORMAT if names_any(text, unfit) else Rejected.REMAINS if names_any(text, fitting) else Rejected.ABSENT
    if names_any(text, (new,)):
        return Rejected.PRESENT
    if names_any(question, named):
        return Rejected.IN_QUESTION
    new_of = dict.fromkeys(fitting, new)
    for form in named:
        new_of |= _parts_of_a_name(form, new, question)
    found = _safe_mentions(text, tuple(new_of), frozenset(new_of) - frozenset(fitting))
    swapped = _rewrite(text, found, new_of)
    return Rejected.REMAINS if names_any(swapped, forms) else Swapped(swapped, tuple(mention.text for mention in found), new)


def replace(text: str, new_of: Mapping[str, str]) -> str:
    """The text with each entity replaced by its own new one, all in one pass, so that two entities can change places."""
    return _rewrite(text, _safe_mentions(text, tuple(new_of), frozenset()), new_of)


def swap_irrelevant(text: str, keep_forms: Sequence[str], question: str, rng: Random, pool: Pool) -> Swapped | Rejected:
    """The text with an entity swapped that does not matter for the question: a date, year or number, or a name that the pool knows.

    The entity shares no word with the question and overlaps none of `keep_forms` (every right and wrong answer); what the text named of
    `keep_forms` it names afterwards too, and nothing more.
    """
    kept = tuple(form for form in keep_forms if form.strip())
    named = {form for form in kept if names_any(text, (form,))}
    asked = _content_words(question)
    found = _entities(text, pool)
    for old in rng.sample(found, len(found)):
        if asked & _content_words(old) or overlaps(old, kept):
            continue
        for new in islice(_proposals(old, pool, rng), _TRIES):
            if asked & _content_words(new) or overlaps(new, kept):
                continue
            result = swap(text, (old,), new)
            if isinstance(result, Swapped) and {form for form in kept if names_any(result.text, (form,))} == named:
                return result
    return Rejected.NOTHING_ELSE


_TRIES = 5
"""Proposals for each entity before another one is tried."""
_SURE_NUMBER = re.compile(r"(?<![\w.,:/$€£-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/-]|[.,]\d)")
_WORD = re.compile(r"\w[\w.’'-]*")
_NAMES = ("person 2", "person 3", "country", "state", "team")
"""Kinds of names whose replacement is of the same kind almost always; one word for a person is often an office or a party."""
_LONGEST_NAME = 5
"""Words of a name that is looked up in the pool."""


def _entities(text: str, pool: Pool) -> list[str]:
    """Dates, numbers outside names (`Apollo 11`), and names that are an answer of the pool and no part of a longer name."""
    spelled = dates(text)
    numbers = [
        match
        for match in _SURE_NUMBER.finditer(text)
        if not any(d.start <= match.start() < d.end for d in spelled) and _stands_alone(text[: match.start()], "")
    ]
    return list(dict.fromkeys((*(text[d.start : d.end] for d in spelled), *(match[0] for match in numbers), *_known_names(text, pool))))


def _known_names(text: str, pool: Pool) -> Iterator[str]:
    words = list(_WORD.finditer(text))
    for first, word in enumerate(words):
        if not word[0][0].isupper():
            continue
        for last in words[first : first + _LONGEST_NAME]:
            name = re.sub(r"['’]s\Z|[.'’]+\Z", "", text[word.start() : last.end()])
            if (
                name in pool.kind_of
                and pool.kind_of[name] in _NAMES
                and _stands_alone(text[: word.start()], text[word.start() + len(name) :])
            ):
                yield name


def _proposals(old: str, pool: Pool, rng: Random) -> Iterator[str]:
    if entity_format(old):
        for _ in range(_TRIES):
            other = near(old, rng)
            if other is not None:
                yield other
    else:
        yield from replacements((old,), pool.kind_of[old], pool, rng)


def _content_words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold())) - _FUNCTION_WORDS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION_WORDS = _words("""
    a after all although am an and are as at because been both but by can could did do does during each for from had has have he her his
    how i if in into is it its may me might more most no not now of on one or other our she should since so some such than that the their them then
    there these they this those to two under until up us was we were what when where which while who will with would yes you
""")


def _safe_mentions(text: str, forms: tuple[str, ...], own_case: frozenset[str]) -> list[Mention]:
    """Mentions that can be replaced.

    `us` is no mention of `US`, nor `who` of `The Who`: a text with such a word is left to the check of what remains. A part of a name
    (`own_case`) inside a longer name is someone else's.
    """
    found = mentions(text, forms, own_case)
    return [m for m in found if not _is_function_word(m) and (m.form not in own_case or _stands_alone(text[: m.start], text[m.end :]))]


def _is_function_word(mention: Mention) -> bool:
    return mention.text in _FUNCTION_WORDS and not mention.form.islower()


_TITLES = _words("Mr Mrs Ms Miss Dr Sir Lady Lord President Senator Governor Minister Judge Justice Captain Coach King Queen Prince")


def _stands_alone(before: str, after: str) -> bool:
    previous = re.search(r"([\w’'-]+)(\.?)\s+\Z", before[-40:])
    if re.match(r"(?:\s+|-)[A-Z]", after):
        return False
    if previous is None or not previous[1][0].isupper() or previous[1] in _TITLES:
        return True
    return previous[1].casefold() in _FUNCTION_WORDS or bool(previous[2] and len(previous[1]) > 3)


def _parts_of_a_name(form: str, new: str, question: str) -> dict[str, str]:
    """The given name and the surname of a person with those of the new one; none that the question has, which may name someone else."""
    old_words, new_words = form.split(), new.split()
    if min(len(old_words), len(new_words)) < 2 or not entity_kind(question, form).startswith("person"):
        return {}
    taken = _content_words(question) | _FUNCTION_WORDS
    pairs = ((old_words[0], new_words[0]), (old_words[-1], new_words[-1]))
    return {old: part for old, part in pairs if _is_name(old) and _is_name(part) and old.casefold() not in taken and old != part}


def _is_name(word: str) -> bool:
    return len(word) > 2 and word.isalpha() and word[0].isupper() and not word[1:].isupper()


def _rewrite(text: str, found: Sequence[Mention], new_of: Mapping[str, str]) -> str:
    written, place = "", 0
    for mention in found:
        before, after = written + text[place : mention.start], text[mention.end :]
        new = _in_the_style_of(mention, new_of[mention.form], starts=_starts_a_sentence(before))
        before, new = _with_article(before, mention, new, after)
        end, taken = _ending(mention, new, before, after)
        written, place = before + new + end, mention.end + taken
    return written + text[place:]


def _starts_a_sentence(before: str) -> bool:
    return re.search(r"(?:\A|[.!?:;\n])[\s\"'“‘(\[]*\Z", before) is not None


def _in_the_style_of(mention: Mention, new: str, starts: bool) -> str:
    """The new entity with the date order, digit grouping and capitals of the mention."""
    old, date = mention.text, parse_date(new)
    if mention.date is not None and date is not None and date.precision == mention.date.precision:
        return dates(old)[0].render(old, date)
    if re.fullmatch(r"[\d,]+", old) and re.fullmatch(r"[\d,]+", new):
        return f"{int(new.replace(',', '')):,}" if "," in old else new.replace(",", "") if len(old) > 3 else new
    letters = "".join(filter(str.isalpha, old))
    if letters.isupper() and len(letters) > 3 and not mention.form.isupper():
        return new.upper()
    if letters.islower() and (not mention.form.islower() or " " not in new):
        return " ".join(word if word.isupper() else word.lower() for word in new.split(" "))
    # `iPhone` and `de Gaulle` keep their own beginning inside a sentence.
    if letters[:1].isupper() and (starts or mention.form[0].islower()) and not re.match(r"[a-z][A-Z]", new):
        return new[0].upper() + new[1:]
    return new


_AN = re.compile(
    r"(?!eu|ew|one(?!\w)|once|ouija|u(?:ni(?!n|m)|se|su|ti|ra|k|tah|r[aeio]|nan))[aeiouáéíóúäöüå]|hour|hono|heir|honest|8|1[18](?!\d)|1[18],\d{3}(?![\d,])",
    re.IGNORECASE,
)
_SPELLED = re.compile(r"[A-Z](?:\.|[A-Z0-9]|(?![\w'’]))")
"""Starts an abbreviation that is read letter by letter, most often."""


def _takes_an(word: str) -> bool:
    word = word.lstrip("\"'“‘(")
    return word[:1] in "AEFHILMNORSX" if _SPELLED.match(word) and not re.match(r"[A-Z]{4}", word) else _AN.match(word) is not None


_THE = frozenset(
    (
        *("us", "usa", "uk", "ussr", "united states", "united states of america", "united kingdom", "united arab emirates", "netherlands"),
        *("philippines", "bahamas", "soviet union", "czech republic", "dominican republic", "gambia", "maldives", "vatican"),
    )
)
"""Places that a sentence names with `the`, without dots."""
_PHRASE_ENDS = re.compile(rf"\Z|['’]s(?!\w)|['’]?[.,;:!?)\]\"”]|\s+(?:{'|'.join(sorted(_FUNCTION_WORDS))})(?!\w)")
_PREPOSITION = re.compile(r"(?<!\w)(?:in|of|to|from|for|by|with|against|and|at|into|across|over|than|between)\s+\Z")


def _with_article(before: str, mention: Mention, new: str, after: str) -> tuple[str, str]:
    """What stands before the mention, and the new entity, with the article that the new one needs."""
    article = re.search(r"(?<![\w'’-])(a|an|the)(\s+)\Z", before, re.IGNORECASE)
    if article is None:
        needs_the = _takes_the(new) and not _takes_the(mention.text) and _PHRASE_ENDS.match(after)
        starts = _starts_a_sentence(before)
        return before, f"{'The' if starts else 'the'} {new}" if needs_the and (starts or _PREPOSITION.search(before)) else new
    rest = before[: article.start()]
    if article[1].casefold() == "the":
        if _takes_the(mention.text) and not _takes_the(new) and (_PHRASE_ENDS.match(after) or _ends_a_sentence(mention, after)):
            return rest, new
        return before, re.sub(r"\A(?:the|an?)\s+(?=\S)", "", new, flags=re.IGNORECASE)
    if article[1][0] == "A" and not _starts_a_sentence(rest):
        return before, new  # a letter, as in `Vitamin A`
    return f"{rest}{article[1][0]}{'n' if _takes_an(new) else ''}{article[2]}", new


def _takes_the(name: str) -> bool:
    return name.casefold().replace(".", "") in _THE


def _ending(mention: Mention, new: str, before: str, after: str) -> tuple[str, int]:
    """What to write after the new entity, and how many characters that stood there it takes the place of."""
    if mention.text.endswith("."):
        return ("." if _ends_a_sentence(mention, after) and not new.endswith(".") else ""), 0
    if new.endswith("."):
        return "", int(re.match(r"\.(?!\.)", after) is not None)
    quoted = re.search(r"(?:\A|[\s(])['‘][^'’]*\Z", before[-80:])
    if re.match(r"['’](?!\w)", after) and mention.text.endswith("s") and not new.endswith("s") and not quoted:
        return after[0] + "s", 1
    return "", 0


def _ends_a_sentence(mention: Mention, after: str) -> bool:
    """Whether the full stop that a mention such as `U.S.` ends in is the sentence's too."""
    following = re.match(r"[\"'”’)\]]*\s*(?:\Z|\n|([A-Z]\w*))", after) if mention.text.endswith(".") else None
    return following is not None and (following[1] is None or following[1].casefold() in _FUNCTION_WORDS)
