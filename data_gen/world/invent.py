"""Invented names and values: distinct subject names from syllables, and answers of each kind with their aliases."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from random import Random

from data_gen.world.vocabulary import ValueKind


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONSETS = _words("""
    Bal Bel Bor Bren Cal Cor Dal Dor Dren Fal Fen Gal Gor Grim Hal Hel Hor Jar Kel Kor Lam Lor Mal Mor Nar Nel Or Pel Quar Ral Ros Sal
    Sel Tal Tor Ul Val Vel
""")
_MIDDLES = _words("a e i o u and ar ast ed en er est id il ing ok ol on or ost ub un ur yl")
_ENDS = _words("""
    bury by dale don fell field ford gate ham haven holm hurst low mere mont mouth ness nock ridge rock stead stoke thorpe ton vale
    wick wold worth
""")
_GIVEN = _words("""
    Ada Anselm Beatrix Bruno Clara Cyril Dora Edmund Elsa Felix Greta Hugo Ida Ivo Josef Karin Leon Lydia Magnus Mina Nadia Oscar
    Paula Quentin Rosa Silas Tilda Ulric Vera Wanda Xenia Yorick
""")
_SURNAME_STARTS = _words("Ab Brand Cald Dray Eck Farr Gill Harg Ives Jess Kirk Lund Marl Nor Oak Pell Rand Stan")
_SURNAME_ENDS = _words("berg cott den ell ford gard ham ings ley man ow rick sen well")
_PLACE_STARTS = _words("Al Bri Cas Dar El Fio Gra Is Jo Ka Li Mon Ni Os Pra Ri Sa Ti Va Zo")
_PLACE_ENDS = _words("bessa corra dora gano lenta marra nova quilla rento sova tania vetta")
_MATERIALS = _words("""
    oak ash beech walnut cedar pine granite slate marble limestone sandstone basalt brick concrete steel copper bronze brass iron
    aluminium bamboo flint zinc larch
""")
_COLOURS = _words("""
    red green blue yellow white black grey brown orange purple pink crimson turquoise ivory beige scarlet indigo violet maroon ochre
    olive teal amber lilac
""")
_UNDER_TWENTY = (
    "",
    *_words("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"),
)
_TENS = ("", "", *_words("twenty thirty forty fifty sixty seventy eighty ninety"))


@dataclass(frozen=True)
class Value:
    """One answer: its main form first, then other ways to write the same thing."""

    forms: tuple[str, ...]

    def overlaps(self, other: "Value") -> bool:
        """Whether a text with one of the two would seem to contain the other, as `18 crowns` contains `18`."""
        return any(f" {a} " in f" {b} " or f" {b} " in f" {a} " for a in self.forms for b in other.forms)


def number_word(number: int) -> str:
    """`42` as `forty-two`, for 1 to 99."""
    if number < len(_UNDER_TWENTY):
        return _UNDER_TWENTY[number]
    tens, ones = divmod(number, 10)
    return f"{_TENS[tens]}-{_UNDER_TWENTY[ones]}" if ones else _TENS[tens]


@cache
def stems(seed: int) -> tuple[str, ...]:
    """All name stems of the world in the order in which questions take them; no two are equal."""
    distinct = sorted({onset + middle + end for onset in _ONSETS for middle in _MIDDLES for end in _ENDS})
    Random(f"{seed}:stems").shuffle(distinct)
    return tuple(distinct)


def _person(rng: Random) -> Value:
    name = f"{rng.choice(_GIVEN)} {rng.choice(_SURNAME_STARTS)}{rng.choice(_SURNAME_ENDS)}"
    return Value((f"Dr. {name}", name)) if rng.random() < 0.3 else Value((name,))


def _count(rng: Random) -> int:
    """From 11 to 99 without round tens: `forty` would seem to be contained in `forty-two`."""
    return rng.choice([n for n in range(11, 100) if n % 10])


def _number(rng: Random) -> Value:
    number = _count(rng)
    return Value((str(number), number_word(number)))


def _price(rng: Random) -> Value:
    number = _count(rng)
    return Value((f"{number} crowns", f"{number_word(number)} crowns"))


def _dosage(rng: Random) -> Value:
    amount = rng.randrange(15, 480, 5)
    return Value((f"{amount} mg", f"{amount} milligrams"))


def _company(rng: Random) -> Value:
    first, second = rng.sample(_SURNAME_STARTS, 2)
    first, second = first + rng.choice(_SURNAME_ENDS), second + rng.choice(_SURNAME_ENDS)
    return Value((f"{first} & {second}", f"{first} and {second}"))


_DRAWS: dict[ValueKind, Callable[[Random], Value]] = {
    ValueKind.PERSON: _person,
    ValueKind.YEAR: lambda rng: Value((str(rng.randrange(1701, 1999)),)),
    ValueKind.NUMBER: _number,
    ValueKind.PLACE: lambda rng: Value((rng.choice(_PLACE_STARTS) + rng.choice(_PLACE_ENDS),)),
    ValueKind.MATERIAL: lambda rng: Value((rng.choice(_MATERIALS),)),
    ValueKind.DOSAGE: _dosage,
    ValueKind.PRICE: _price,
    ValueKind.COLOUR: lambda rng: Value((rng.choice(_COLOURS),)),
    ValueKind.COMPANY: _company,
}


def draw(rng: Random, kind: ValueKind, unlike: Iterable[Value] = ()) -> Value:
    """A value of `kind` that overlaps none of `unlike`."""
    taken = tuple(unlike)
    while True:
        value = _DRAWS[kind](rng)
        if not any(value.overlaps(other) for other in taken):
            return value
