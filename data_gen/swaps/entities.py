"""Answers as entities: their kind, years and numbers by format, and other entities of the same kind."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from data_gen.swaps.dates import MONTH, MONTHS, dates, near_date, near_year, ordinal, parse_date
from rag.text import contains


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DIGITS = re.compile(r"\d")
_SMALL = _words("one two three four five six seven eight nine ten eleven twelve")
_NUMBER_WORDS = frozenset((*_SMALL, *_words("thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty")))
_NUMBER = re.compile(r"(?<!\w)\d+(?:,\d{3})*(?:\.\d+)?(?:(?:st|nd|rd|th)(?!\w))?|\d+(?:,\d{3})*(?:\.\d+)?")
_PROPER = re.compile(
    r"[^\W\d_]\d|(?<!\w)(?!(?:AM|PM|BC|BCE|CE|AD|[KMGT]Hz|[KMGT]?[WBV]|Celsius|Fahrenheit|USD|EUR|GBP|Million|Billion)(?!\w))[A-Z]\w"
)
_MONTH_WORD = re.compile(rf"(?<!\w)(?:{MONTH})(?!\w)", re.IGNORECASE)


def entity_format(answer: str) -> str:
    """How a year, date or number is written, such as `year`, `date month-year`, `number $# billion`; empty for words and names.

    A number inside a name (`Apollo 11`, `3 Mile Island`) makes no number of it.
    """
    text = " ".join(answer.split()).rstrip(".")
    if text.casefold() in _NUMBER_WORDS:
        return "number word"
    if not _DIGITS.search(text):
        return ""
    date = parse_date(text)
    if date is not None:
        return f"date {date.precision}"
    if re.fullmatch(r"1\d{3}|20\d{2}", text):
        return "year"
    text = _MONTH_WORD.sub("month", text)
    return "" if _PROPER.search(text) or not re.match(r"[\w$€£¥+.−-]", text) else f"number {_NUMBER.sub('#', text).casefold()}"


_ROLES: Mapping[str, str] = {
    noun: role
    for role, nouns in {
        "county": "county",
        "city": "city town capital village municipality",
        "place": (
            "place country nation state province river island mountain lake continent region location area district venue stadium airport "
            "street planet sea ocean"
        ),
        "language": "language",
        "currency": "currency",
        "religion": "religion",
        "colour": "color colour",
        "team": "team club franchise",
        "party": "party",
        "school": "university college school institution institute",
        "company": "company firm manufacturer brand corporation organization organisation channel network newspaper magazine",
        "band": "band group",
        "work": "film movie book novel song album single show series play opera musical poem painting game episode",
        "person": (
            "actor actress singer president king queen author writer composer director player footballer person man woman artist "
            "minister emperor scientist politician driver painter poet philosopher surname character mother father wife husband son "
            "daughter brother sister founder inventor chemist physicist boxer golfer comedian monarch pope"
        ),
        "animal": "animal bird dog breed fish",
    }.items()
    for noun in nouns.split()
}
_COUNTRIES = """
    Afghanistan|Albania|Algeria|Andorra|Angola|Argentina|Armenia|Australia|Austria|Azerbaijan|Bahamas|Bahrain|Bangladesh|Barbados|Belarus
    Belgium|Belize|Benin|Bhutan|Bolivia|Bosnia and Herzegovina|Botswana|Brazil|Brunei|Bulgaria|Burkina Faso|Burundi|Cambodia|Cameroon|Canada
    Chile|China|Colombia|Congo|Costa Rica|Croatia|Cuba|Cyprus|Czech Republic|Denmark|Djibouti|Dominican Republic|Ecuador|Egypt|El Salvador
    England|Eritrea|Estonia|Eswatini|Ethiopia|Fiji|Finland|France|Gabon|Gambia|Germany|Ghana|Greece|Grenada|Guatemala|Guinea|Guyana|Haiti
    Honduras|Hungary|Iceland|India|Indonesia|Iran|Iraq|Ireland|Israel|Italy|Ivory Coast|Jamaica|Japan|Kazakhstan|Kenya|Kosovo|Kuwait
    Kyrgyzstan|Laos|Latvia|Lebanon|Lesotho|Liberia|Libya|Liechtenstein|Lithuania|Luxembourg|Madagascar|Malawi|Malaysia|Maldives|Mali|Malta
    Mauritania|Mauritius|Mexico|Moldova|Monaco|Mongolia|Montenegro|Morocco|Mozambique|Myanmar|Namibia|Nepal|Netherlands|New Zealand|Nicaragua
    Niger|Nigeria|North Korea|North Macedonia|Norway|Oman|Pakistan|Panama|Papua New Guinea|Paraguay|Peru|Philippines|Poland|Portugal|Qatar
    Romania|Russia|Rwanda|Saudi Arabia|Scotland|Senegal|Serbia|Sierra Leone|Singapore|Slovakia|Slovenia|Somalia|South Africa|South Korea
    Soviet Union|Spain|Sri Lanka|Sudan|Suriname|Sweden|Switzerland|Syria|Taiwan|Tajikistan|Tanzania|Thailand|Togo|Tonga|Trinidad and Tobago
    Tunisia|Turkey|Turkmenistan|Uganda|Ukraine|United Arab Emirates|United Kingdom|UK|United States|United States of America|US|USA|Uruguay
    Uzbekistan|Vanuatu|Venezuela|Vietnam|Wales|Yemen|Zambia|Zimbabwe"""
_STATES = """
    Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Hawaii|Idaho|Illinois|Indiana|Iowa|Kansas|Kentucky
    Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri|Montana|Nebraska|Nevada|New Hampshire|New Jersey
    New Mexico|North Carolina|North Dakota|Ohio|Oklahoma|Oregon|Pennsylvania|Rhode Island|South Carolina|South Dakota|Tennessee|Texas|Utah
    Vermont|Virginia|West Virginia|Wisconsin|Wyoming"""
_KNOWN: Mapping[str, str] = {
    " ".join(name.split()).casefold(): kind
    for kind, names in {
        "country": _COUNTRIES.replace("\n", "|"),
        "state": _STATES.replace("\n", "|"),
        "month": "|".join(MONTHS),
        "weekday": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    }.items()
    for name in names.split("|")
    if name.strip()
}
_ONE_OF_FEW = frozenset(
    ("country", "state", "county", "city", "language", "currency", "religion", "colour", "team", "party", "school", "animal")
)
_ASKS_FOR = re.compile(r"(?<!\w)(?:what|which|what's|whose)\s+((?:[\w'-]+\s*){1,9})")
_ASKS_A_TEAM = re.compile(r"(?<!\w)(?:who|whom) .*(?<!\w)(?:play|plays|playing|played|coach|coaches)(?!\w).*(?<!\w)for(?!\w)")
_MANY = re.compile(r"(?<!\w)how (?:many|much|old|long|tall|far|high)(?!\w)")
_IS = frozenset(_words("is are was were did does do has had will be the name title of"))


def entity_kind(question: str, answer: str) -> str:
    """A coarse type by which a replacement is chosen: the format of a year, date or number, else what the question asks for.

    Countries, states of the US, months and days of the week are known by name, whatever the question; others that it asks for are places.

    Names of people, works and the like carry their number of words (`person 2`, at most 4); `name` stands for capitalised answers that the
    question says nothing about, `term` for answers in lower case. It is a guess from surface words: `Who acquired ...?` asks for a person.
    """
    written = entity_format(answer)
    asked = " ".join(question.casefold().split())
    if written:
        return "number #" if written == "year" and _MANY.search(asked) else written
    known = _KNOWN.get(answer.strip().casefold().removeprefix("the ").replace(".", ""))
    if known:
        return known
    size = min(len(answer.split()), 4)
    if answer == answer.casefold():
        return f"term {size}"
    role = _role(asked)
    return role if role in _ONE_OF_FEW else f"{role} {size}"


def _role(asked: str) -> str:
    match = _ASKS_FOR.search(asked)
    if match:
        words = re.findall(r"[\w']+", match[1])
        start = next((place for place, word in enumerate(words) if word not in _IS), len(words))
        for word in words[start : start + 4]:
            if word in _IS:
                break
            role = _ROLES.get(word.removesuffix("'s")) or _ROLES.get(word.removesuffix("s"))
            if role:
                return role
    if _ASKS_A_TEAM.search(asked):
        return "team"
    if re.search(r"(?<!\w)(?:who|whom|who's)(?!\w)", asked):
        return "person"
    return "place" if re.search(r"(?<!\w)where(?!\w)", asked) else "name"


@dataclass(frozen=True)
class Pool:
    """Answers of many questions by kind, to draw replacements from."""

    by_kind: Mapping[str, tuple[str, ...]]
    """Distinct answers of each kind, sorted."""
    kind_of: Mapping[str, str]
    """The kind of each answer; where questions disagree, a certain one, and of these the last in alphabetical order."""


def make_pool(pairs: Iterable[tuple[str, str]]) -> Pool:
    """A pool from pairs of a question and one answer; the order of the pairs does not matter.

    Answers in capitals (`TINA TURNER`) are written as a text would; answers that are more than a name (with brackets, slashes, a preposition first, or
    more than six words) are left out. Take the pairs of one split only.
    """
    usable = {(question, _as_in_a_text(answer)) for question, answer in pairs if _ENTITY.fullmatch(answer.strip())}
    by_kind: dict[str, set[str]] = {}
    for question, answer in usable:
        by_kind.setdefault(entity_kind(question, answer), set()).add(answer)
    kinds = sorted(by_kind, key=lambda kind: (_is_certain(kind), kind))
    return Pool({kind: tuple(sorted(by_kind[kind])) for kind in kinds}, {answer: kind for kind in kinds for answer in by_kind[kind]})


_ENTITY = re.compile(r"(?!(?:in|at|on|from|to|by|of|as|for|with|between)\s)[^\s()\[\]{}/|;]+(?:\s+[^\s()\[\]{}/|;]+){0,5}")


def _as_in_a_text(answer: str) -> str:
    words = answer.split()
    in_capitals = answer.isupper() and (len(words) > 1 or len(answer) > 5) and not _DIGITS.search(answer)
    return " ".join(word.capitalize() if in_capitals else word for word in words)


def _is_certain(kind: str) -> bool:
    """Whether the kind says what sort of thing an entity is; `name` and `term` hold whatever no rule knows."""
    return kind.partition(" ")[0] not in ("name", "term")


def replacements(old_forms: Sequence[str], kind: str, pool: Pool, rng: Random) -> Iterator[str]:
    """Other answers of the kind, each once, in random order; none overlaps a form of the old one. Lazy: take the first that fits."""
    answers = pool.by_kind.get(kind, ())
    for place in rng.sample(range(len(answers)), len(answers)):
        if not overlaps(answers[place], old_forms):
            yield answers[place]


def overlaps(entity: str, forms: Iterable[str]) -> bool:
    """Whether the entity is one of the forms, contains one or is contained in one: in any case, by whole words, dots and hyphens aside."""
    plain, letters, date = _plain(entity), form_letters(entity), parse_date(entity)
    for form in forms:
        if not form.strip():
            continue
        other, others = _plain(form), form_letters(form)
        # Digits alone may be two numbers: `3.5` and `35`.
        if plain in other or other in plain or (letters == others and not letters.isdigit()) or (date and parse_date(form) == date):
            return True
        # The costly rule only where its answer can be yes.
        if (letters in squash(form) and contains(form, entity)) or (others in squash(entity) and contains(entity, form)):
            return True
    return False


def _plain(text: str) -> str:
    words = " ".join(re.findall(r"[^\W_]+", text.casefold()))
    return f" {words} "


def squash(text: str) -> str:
    """The letters and digits of a text, case-folded and without accents."""
    return "".join(filter(str.isalnum, (text if text.isascii() else unicodedata.normalize("NFKD", text)).casefold()))


def form_letters(form: str) -> str:
    """What `squash` of a text holds wherever the text names the form; this settles most searches at no cost."""
    return squash(_ARTICLES.sub("", form))


_ARTICLES = re.compile(r"\A\W*(?:(?:a|an|the)\s+)+(?=.*\w)", re.IGNORECASE | re.DOTALL)


def near(answer: str, rng: Random) -> str | None:
    """Another year, date or number in the same format and of the same size; none for words and names, and where nothing else fits."""
    written = entity_format(answer)
    if written == "year":
        return str(near_year(int(answer.strip(" .")), rng))
    if written == "number word":
        word = rng.choice([word for word in _SMALL[1:] if word != answer.strip(" .").casefold()])
        return word.capitalize() if answer[:1].isupper() else word
    if written.startswith("date"):
        mention = dates(answer)[0]
        return mention.render(answer, near_date(mention.date, rng))
    if not written or "month" in written:
        return None
    return _NUMBER.sub(lambda match: _near_number(match[0], rng), answer)


def _near_number(written: str, rng: Random) -> str:
    digits = "".join(filter(str.isdigit, written))
    other = digits
    while other == digits:
        other = "".join(
            rng.choice("123456789" if place == 0 and (digit != "0" or len(digits) == 1) else "0123456789")
            if digit != "0" or place or len(digits) == 1
            else "0"
            for place, digit in enumerate(digits)
        )
    replaced = iter(other)
    number = re.sub(r"\d", lambda _: next(replaced), written)
    return re.sub(r"[a-z]+\Z", lambda _: ordinal(int(other)), number)
