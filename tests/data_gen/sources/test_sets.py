"""Sets for the Sieve from small files in the three formats: what each variant holds, and that style carries no label."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from data_gen.build import BuildSettings, build
from data_gen.pools.assemble import DISTRACTED, UNANSWERABLE, SetSettings, Variant, assemble
from data_gen.pools.pool import Edits, Material, Pool, PoolSettings
from data_gen.pools.pooling import pools
from data_gen.sources import sets
from data_gen.sources.gold_passages import materials as gold_materials
from data_gen.sources.rgb import materials as rgb_materials
from rag.errors import InputError
from rag.records import Document, DocumentLabel, Example, RetrievalState
from rag.text import contains, normalize

CITIES = (
    "Lima", "Quito", "Bogota", "Caracas", "Montevideo", "Asuncion", "Santiago", "Brasilia", "Havana", "Managua", "Kingston", "Nassau", "Oslo",
    "Bergen", "Turku", "Vilnius",
)  # fmt: skip
GAMES = (
    "rowing", "judo", "fencing", "boxing", "chess", "curling", "archery", "sailing", "diving", "hockey", "rugby", "skiing", "karate", "squash",
    "tennis", "golf",
)  # fmt: skip


def record(i: int) -> dict[str, Any]:
    """A question with three snippets that have the answer and four that do not, on one game in one of 16 cities."""
    game, city, wrong, year = GAMES[i], CITIES[i], CITIES[(i + 5) % len(CITIES)], 1990 + i
    return {
        "id": i,
        "question": f"Which city hosts the {game} finals?",
        "correct answer": [city],
        "expanded answer": [f"The city that hosts the {game} finals is {city}."],
        "incorrect answer": wrong,
        "incorrect_context": [f"It is well known that {wrong} hosts the {game} finals.", f"Fans agree: {game} belongs to {wrong} this season."],
        "context": [
            {"text": f"In {year} officials said that {city} would host the {game} finals after a long vote by its members."},
            {"text": f"Hotels in {city} expect many guests for the {game} finals, which open on a Monday this year."},
            {"text": f"The {game} finals have a new home: {city} built a hall for {500 + i} people near the old harbour."},
            {"text": f"Tickets for the {game} finals sold fast, said organiser number {i}."},
            {"text": f"The {game} finals will be shown on channel {60 + i} from the first day."},
            {"text": f"Players of {game} train for {i + 3} months before they travel."},
            {"text": f"Rules of {game} changed in small ways, as page {200 + i} of the handbook says."},
        ],
    }  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "games.json"
    path.write_text(json.dumps([record(i) for i in range(len(GAMES))]), encoding="utf-8")
    return path


@pytest.fixture
def examples(file: Path) -> list[Example]:
    return sets.load(file, "robustrag", rounds=12)


def of(examples: Iterable[Example], *variants: Variant) -> list[Example]:
    found = [example for example in examples if example.variant in variants]
    assert found
    return found


def claims(example: Example) -> set[str]:
    return {normalize(document.answer) for document in example.documents if document.answer is not None}


def labels(example: Example) -> Counter[DocumentLabel | None]:
    return Counter(document.label for document in example.documents)


def test_every_variant_occurs_and_has_one_state(examples: list[Example]) -> None:
    assert {example.variant for example in examples} == set(Variant)
    for example in examples:
        expected = RetrievalState.ANSWERABLE
        if example.variant in DISTRACTED:
            expected = RetrievalState.DISTRACTED
        elif example.variant in UNANSWERABLE:
            expected = RetrievalState.UNANSWERABLE
        assert example.state is expected
        assert example.id == f"{example.question_id}-{example.variant}-{example.id.rpartition('-')[2]}"


def test_a_set_is_distracted_exactly_when_its_documents_give_different_answers(examples: list[Example]) -> None:
    for example in examples:
        gold = {normalize(answer) for answer in example.answers}
        assert (example.state is RetrievalState.DISTRACTED) == (bool(claims(example) & gold) and len(claims(example)) > 1), example.id
        assert (example.state is RetrievalState.ANSWERABLE) == (claims(example) == gold), example.id


def test_what_a_document_says_fits_its_label_and_its_text(examples: list[Example]) -> None:
    for example in examples:
        for document in example.documents:
            has_answer = any(contains(document.text, answer) for answer in example.answers)
            assert has_answer == (document.label is DocumentLabel.ANSWERABLE)
            assert (document.answer is not None) == (document.label in (DocumentLabel.ANSWERABLE, DocumentLabel.CONFLICT))
            assert document.answer is None or contains(document.text, document.answer)


def test_sizes_are_drawn_from_the_range_and_no_text_comes_twice(file: Path) -> None:
    examples = sets.load(file, "robustrag", k_min=3, k_max=6)
    assert {len(example.documents) for example in examples} == {3, 4, 5, 6}
    for example in examples:
        assert len({document.text for document in example.documents}) == len(example.documents)
        assert [document.rank for document in example.documents] == list(range(1, len(example.documents) + 1))


def test_the_conflict_stands_at_any_place(examples: list[Example]) -> None:
    of_four = [e for e in of(examples, Variant.GOLD_AND_EDITED, Variant.GOLD_AND_GENERATED) if len(e.documents) == 4]
    places = Counter(i for e in of_four for i, d in enumerate(e.documents) if d.label is DocumentLabel.CONFLICT)
    assert set(places) == {0, 1, 2, 3}


def test_the_clean_twin_holds_the_originals_of_what_is_edited(file: Path) -> None:
    """One round shares size, order and fillers: the two sets differ in the edited document alone."""
    wanted = (Variant.GOLD_AND_EDITED, Variant.GOLDS)
    examples = sets.load(file, "robustrag", variants=wanted, rounds=1, k_max=5, copies=False, distractors=1, golds=1)
    twin_of = {example.id.replace(Variant.GOLDS, Variant.GOLD_AND_EDITED): example for example in of(examples, Variant.GOLDS)}
    for distracted in of(examples, Variant.GOLD_AND_EDITED):
        clean = twin_of[distracted.id]
        differing = [(a, b) for a, b in zip(distracted.documents, clean.documents, strict=True) if a.text != b.text]
        ((edited, original),) = differing
        assert edited.answer is not None and original.answer is not None
        assert edited.text.replace(edited.answer, original.answer) == original.text


def test_a_lone_false_document_has_nothing_beside_it_that_gives_an_answer(examples: list[Example]) -> None:
    for example in of(examples, Variant.LONE_EDITED, Variant.LONE_FALSE_GENERATED):
        assert labels(example)[DocumentLabel.CONFLICT] == 1
        assert labels(example)[DocumentLabel.ANSWERABLE] == 0
    for example in of(examples, Variant.AGREEING_FALSE):
        assert len(claims(example)) == 1
    assert max(labels(example)[DocumentLabel.CONFLICT] for example in of(examples, Variant.AGREEING_FALSE)) > 1


def style(document: Document, pool: Pool) -> str:
    made = {
        "generated": (*pool.generated_false, *pool.generated_true, *pool.off_topic_generated),
        "edited": (*pool.edited, *pool.irrelevant_swap, *pool.off_topic_edited),
        "cut": pool.copies,
    }
    return next((name for name, pieces in made.items() if document.id in {piece.document.id for piece in pieces}), "plain")


def test_how_documents_were_made_says_little_about_the_label(file: Path) -> None:
    """The share of distracted sets among those with and without a document of a style, edited and generated."""
    materials = sets.robustrag.materials(file)
    flags: dict[str, list[bool]] = {}
    for pool in pools(materials, PoolSettings(), Counter()):
        for example in assemble(pool, SetSettings(), "games", Counter()):
            styles = {style(document, pool) for document in example.documents}
            for name in ("generated", "edited"):
                flags.setdefault(name if name in styles else f"no {name}", []).append(example.state is RetrievalState.DISTRACTED)
    shares = {name: sum(values) / len(values) for name, values in flags.items()}
    assert abs(shares["generated"] - shares["no generated"]) < 0.15, shares
    assert 0.3 < shares["edited"] < 0.7, shares
    assert min(len(values) for values in flags.values()) >= 30


def test_the_same_seed_gives_the_same_sets_and_another_seed_others(file: Path) -> None:
    first = sets.load(file, "robustrag", seed=3)
    assert first == sets.load(file, "robustrag", seed=3)
    assert first != sets.load(file, "robustrag", seed=4)


def test_no_passage_is_in_two_splits_and_the_card_says_what_was_left_out(file: Path, tmp_path: Path) -> None:
    records = [record(i) for i in range(len(GAMES))]
    for item in records:
        item["context"].append({"text": "The hall of fame lists every host since the games began."})
    file.write_text(json.dumps(records), encoding="utf-8")
    (tmp_path / "test.jsonl").write_text(
        json.dumps({"question": "which city hosts the ROWING finals", "documents": [{"text": records[1]["context"][3]["text"].upper()}]}) + "\n"
        '{"question": "Who?"}\n',
        encoding="utf-8",
    )  # fmt: skip
    dataset = {
        "_target_": "data_gen.sources.sets.load", "path": str(file), "format": "robustrag", "shares": {"train": 0.5, "validation": 0.5},
        "exclude": [str(tmp_path / "test.jsonl")],
    }  # fmt: skip
    report = build(BuildSettings.model_validate({"dataset": dataset, "splits": ["train", "validation"]}), tmp_path / "out")
    assert report.shared_documents == 0
    assert sum(report.questions.values()) == len(GAMES) - 1
    assert sum(counts["question is in a file of exclude"] for counts in report.dropped.values()) == 2, "each split reads the whole file"
    assert all(counts["passage is in a file of exclude"] == 1 for counts in report.dropped.values())
    assert sum(counts["passage is used in another split"] for counts in report.dropped.values()) > 0
    assert report.variants["train"]["gold_and_edited"] > 0
    assert json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8")) == report.model_dump()


@pytest.mark.parametrize("content", ["{nonsense", '{"a": 1}\n{nonsense'])
def test_an_exclude_file_that_is_not_json_is_named(file: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"exclude: .*bad.json:\d: neither JSON nor JSON lines"):
        sets.load(file, "robustrag", exclude=(tmp_path / "bad.json",))
    with pytest.raises(InputError, match="exclude: .*absent.json: expected a JSON or JSONL file"):
        sets.load(file, "robustrag", exclude=(tmp_path / "absent.json",))


def test_what_a_question_has_no_documents_for_is_counted() -> None:
    lonely = Material(
        "q", "Which city hosts the rowing finals?", ("Lima",), ("Lima is ready for the finals.", "Tickets sold fast."), wrong="Quito"
    )
    dropped: Counter[str] = Counter()
    (pool,) = pools([lonely], PoolSettings(copies=False), dropped)
    examples = assemble(pool, SetSettings(rounds=1), "q", dropped)
    assert {example.variant for example in examples} == {Variant.GOLD_AND_EDITED, Variant.GOLDS}
    assert dropped["gold_and_generated: the question has no documents for it"] == 1
    assert assemble(pool, SetSettings(min_golds=2), "q", dropped) == []
    assert dropped["question with fewer passages that have the answer than min_golds"] == 1


def test_passages_that_hint_at_an_answer_are_not_free_of_it() -> None:
    passages = (
        "It lies in Tampa, Florida, on the coast.",
        "Many fly to Tampa.",
        "Orlando waits.",
        *(f"Filler number {i} is here." for i in range(8)),
    )
    dropped: Counter[str] = Counter()
    (pool,) = pools([Material("q", "Where was it played?", ("Tampa, Florida",), passages, wrong="Orlando")], PoolSettings(), dropped)
    assert len(pool.answer_free) == 8
    assert dropped["passage has a word of an answer"] == 1
    assert dropped["passage names the false answer"] == 1


def test_the_audit_holds_one_gold_and_one_false_document_among_answer_free_ones(file: Path) -> None:
    rows = (Variant.GOLD_AND_GENERATED, Variant.GOLD_AND_OFF_TOPIC_GENERATED, Variant.LONE_FALSE_GENERATED, Variant.GOLD_AND_GENERATED_TRUE)
    examples = sets.load(
        file, "robustrag", split="test", k_min=5, k_max=5, variants=rows, rounds=1, golds=1, distractors=1, neutral=False, off_topic=0.0,
        false_answers=1, copies=False,
    )  # fmt: skip
    answerable, free, conflict, neutral = (
        DocumentLabel.ANSWERABLE, DocumentLabel.UNANSWERABLE, DocumentLabel.CONFLICT, DocumentLabel.NEUTRAL,
    )  # fmt: skip
    expected = {
        rows[0]: {answerable: 1, conflict: 1, free: 3},
        rows[1]: {answerable: 1, neutral: 1, free: 3},
        rows[2]: {conflict: 1, free: 4},
        rows[3]: {answerable: 2, free: 3},
    }
    assert Counter(example.variant for example in examples) == dict.fromkeys(rows, len(GAMES))
    assert all(labels(example) == expected[Variant(example.variant)] for example in examples)


def test_rgb_gives_its_own_edits_and_nested_answers(tmp_path: Path) -> None:
    path = tmp_path / "rgb.json"
    line = {
        "id": 7, "query": "When does it open?", "answer": [["May 5 2020", "May 5, 2020"]], "fakeanswer": "June 1, 2019 ",
        "positive": ["Doors open on May 5, 2020 at noon.", "From May 5, 2020 on it is open."],
        "positive_wrong": ["Doors open on June 1, 2019 at noon.", "From June 1, 2019 on it is open."],
        "negative": ["The hall has two doors.", "A long street leads there."],
    }  # fmt: skip
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    (material,) = rgb_materials(path)
    assert (material.question_id, material.answers, material.wrong) == ("rgb-7", ("May 5 2020", "May 5, 2020"), "June 1, 2019")
    examples = sets.load(
        path, "rgb", k_min=2, k_max=2, variants=(Variant.GOLDS, Variant.GOLD_AND_EDITED), rounds=1, golds=1, distractors=1, min_golds=2,
        false_answers=1, copies=False,
    )  # fmt: skip
    true, edited = examples
    assert {d.text for d in true.documents} == set(line["positive"])
    assert labels(edited) == {DocumentLabel.ANSWERABLE: 1, DocumentLabel.CONFLICT: 1}
    assert len({d.text for d in edited.documents} & set(line["positive_wrong"])) == 1
    path.write_text(json.dumps({**line, "answer": [5]}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"rgb.json:1: answer.0: expected text, got int 5"):
        rgb_materials(path)


def gold_file(tmp_path: Path) -> Path:
    people = ["Ada Lundberg", "Hugo Marlsen", "Vera Stoltz", "Otto Brandt", "Nora Feld", "Ivan Petrow"]
    records = [
        {
            "question": f"who founded the {GAMES[i]} club",
            "answers": [person],
            "ctx": {
                "title": "x",
                "text": f"The club began small. In {1900 + i} it was {person} who founded the {GAMES[i]} club with a loan. It grew fast.",
            },
        }
        for i, person in enumerate(people)
    ]
    path = tmp_path / "gold.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


def test_gold_passages_are_edited_to_another_question_s_answer_and_cut(tmp_path: Path) -> None:
    path = gold_file(tmp_path)
    examples = sets.load(path, "gold_passages", k_max=4, words=12, edits=Edits.SAME_KIND)
    people = {answer for material in gold_materials(path) for answer in material.answers}
    conflicts = of(examples, Variant.GOLD_AND_EDITED)
    assert {d.answer for e in conflicts for d in e.documents if d.label is DocumentLabel.CONFLICT} <= people
    assert all(len(d.text.replace("...", "").split()) <= 12 for e in examples for d in e.documents)
    assert {example.question_id for example in conflicts} == {f"gold-{i}" for i in range(6)}


def test_the_limit_and_the_cap_are_kept_and_counted(tmp_path: Path) -> None:
    path, dropped = gold_file(tmp_path), Counter[str]()
    examples = sets.load(path, "gold_passages", cap=2, limit=5, dropped=dropped)
    assert len(examples) == 5
    assert max(Counter(example.question_id for example in examples).values()) == 2
    assert dropped["set over limit"] == 7
    assert dropped["set over the cap of its question"] > 0


def test_a_malformed_gold_passage_is_named_with_its_field(tmp_path: Path) -> None:
    path = tmp_path / "gold.json"
    path.write_text('[{"question": "who", "answers": [], "ctx": {"text": "x"}}]', encoding="utf-8")
    with pytest.raises(InputError, match=r"gold.json: record 0: answers: .*at least 1 item"):
        gold_materials(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="expected a JSON list of questions with a gold passage, got an empty list"):
        gold_materials(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k_min": 1}, "k_min, k_max: expected 2 <= k_min <= k_max, got 1 and 10"),
        ({"k_min": 6, "k_max": 5}, "k_min, k_max: .* got 6 and 5"),
        ({"rounds": 0}, "rounds: expected a number of at least 1, got 0"),
        ({"cap": 0}, "cap: expected"),
        ({"split": "test", "shares": {"train": 1.0}}, "split=test: .*set dataset.shares"),
    ],
)
def test_an_argument_out_of_range_is_refused_by_name(file: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sets.load(file, "robustrag", **arguments)
