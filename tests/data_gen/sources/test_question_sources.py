"""Small invented records in the format of each source of questions."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_gen.questions import Question
from data_gen.sources import astroqa, bioasq, gold_passages, medqa, nq_wiki, rag_bench, robustrag, webq
from data_gen.sources.options import needs_options, refers_to_options
from rag.errors import InputError
from rag.records import DocumentLabel

Load = Callable[..., list[Question]]
PUBMED = "http://www.ncbi.nlm.nih.gov/pubmed/"


def write(path: Path, content: Any, lines: bool = False) -> Path:
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in content) if lines else json.dumps(content, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    return path


def texts(question: Question) -> list[str]:
    return [document.text for document in question.documents]


# Retrieved passages: DPR, FiD and Park et al.

RETRIEVED = [
    {
        "question": "who wrote c++ (the language)?",
        "answers": ["Bjarne Stroustrup", "B. Stroustrup", "Bjarne Stroustrup"],
        "ctxs": [
            {"id": 2912, "title": "C++", "text": "C++ is by Bjarne Stroustrup.", "score": "81.3", "has_answer": True},
            {"id": "7", "title": None, "text": "C++ is by Dennis R.", "hasanswer": False, "is_conflict": True},
            {"id": "8", "title": "Åland", "text": "Åland is an island.", "score": 1.5, "nli": "neutral", "is_conflict": False},
        ],
        "gpt_answer_sentence": "Bjarne Stroustrup wrote C++.",
        "gpt_conflict_passage": ["C++ is by Dennis R.", "Dennis R. (1941) wrote C++."],
        "is_valid_conflict_passage": True,
        "similar_entity": "Dennis R.",
        "gpt_adv_passage": ["Another language was written by someone."],
        "is_valid_adv_passage": True,
    },
    {
        "question": "where is åland",
        "answers": "in the sea",
        "ctxs": [],
        "gpt_answer_sentence": None,
        "gpt_conflict_passage": ["On a mountain."],
        "is_valid_conflict_passage": False,
        "gpt_adv_passage": None,
        "is_valid_adv_passage": None,
        "similar_entity": None,
    },
]


@pytest.mark.parametrize("source", [nq_wiki, webq])
@pytest.mark.parametrize("lines", [True, False])
def test_retrieved_passages_are_candidates_and_conflicts_are_simulated(source: Any, lines: bool, tmp_path: Path) -> None:
    dropped: Counter[str] = Counter()
    first, second = source.questions(write(tmp_path / "nq.json", RETRIEVED, lines), dropped=dropped)
    assert first.answers == ("Bjarne Stroustrup", "B. Stroustrup") and first.source == "nq.json" and first.id.startswith("nq-")
    assert [(d.title, d.text, d.rank, d.label, d.score) for d in first.documents] == [
        ("C++", "C++ is by Bjarne Stroustrup.", 1, None, None),
        ("Åland", "Åland is an island.", 2, None, None),
    ]
    assert [(d.text, d.label, d.answer) for d in first.simulated] == [
        ("C++ is by Dennis R.", DocumentLabel.CONFLICT, "Dennis R."),
        ("Dennis R. (1941) wrote C++.", DocumentLabel.CONFLICT, "Dennis R."),
        ("Another language was written by someone.", DocumentLabel.ADVERSARIAL, None),
    ]
    assert first.reference == "Bjarne Stroustrup wrote C++."
    assert (second.answers, second.documents, second.simulated, second.reference) == (("in the sea",), (), (), None)
    assert dropped == {"conflict passage that the data set marks as invalid": 1}


def test_positive_passages_are_gold_and_no_candidates(tmp_path: Path) -> None:
    rows = [
        {
            "question": "who keeps the light",
            "answers": ["007"],
            "positive_ctxs": [
                {"title": "t", "text": "007 does.", "passage_id": 12},
                {"text": "Yes, 007.", "psg_id": "13"},
                {"text": "No id: 007"},
            ],
            "hard_negative_ctxs": [{"title": "t", "text": "Nobody.", "passage_id": "14"}],
        }
    ]
    (found,) = nq_wiki.questions(write(tmp_path / "biencoder.json", rows))
    assert (found.documents, found.gold, found.answers) == ((), ("12", "13"), ("007",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ctxs": None}, "record 1: expected `ctxs` or `positive_ctxs`, found neither"),
        ({"answers": []}, "record 1: answers: .*at least 1"),
        ({"answers": [7]}, r"record 1: answers\.0: expected text, got int 7; write it in quotes"),
        ({"question": " "}, "record 1: question: expected text with at least one visible character"),
        ({"ctxs": [{"title": "x"}]}, r"record 1: ctxs\.0\.text: Field required"),
    ],
)
def test_a_record_that_does_not_fit_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nq\.json: " + message):
        nq_wiki.questions(write(tmp_path / "nq.json", [RETRIEVED[0], {**RETRIEVED[1], **change}]))


def test_lines_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "nq.json", [RETRIEVED[0], {"question": "who?"}], lines=True)
    with pytest.raises(InputError, match=r"nq\.json:2: answers: Field required"):
        nq_wiki.questions(path)
    with pytest.raises(InputError, match="found an empty file"):
        nq_wiki.questions(write(tmp_path / "none.json", [], lines=True))
    with pytest.raises(InputError, match="got an empty list"):
        nq_wiki.questions(write(tmp_path / "none.json", []))


# RAG-Bench


def test_counterfactual_copies_are_conflicts(tmp_path: Path) -> None:
    gold = {"id": 1, "title": "Rill", "text": "The rill rises in Ost.", "score": 9.5, "has_answer": "Ost"}
    noise = {"id": 2, "title": "Rill", "text": "The rill is short.", "score": 8.5, "has_answer": False}
    test = {
        "question": "where does the rill rise?",
        "answers": ["Ost"],
        "best_ctx": [gold, {**gold, "id": 3, "text": "It rises in Ost (1)."}],
        "ctxs": [noise, gold],
        "counter_fac": ["The rill rises in Wim.", ""],
    }
    train = {
        "question": "who dug it?",
        "answers": ["Bo"],
        "best_ctx": {**gold, "text": "Bo dug it."},
        "ad_ctx": ["It is deep.", "Al dug it.", "Cats purr."],
    }
    dropped: Counter[str] = Counter()
    first, second = rag_bench.questions(write(tmp_path / "rag.json", [test, train]), dropped=dropped)
    assert texts(first) == ["It rises in Ost (1).", "The rill is short.", "The rill rises in Ost."]
    assert [(d.text, d.label, d.answer) for d in first.simulated] == [("The rill rises in Wim.", DocumentLabel.CONFLICT, None)]
    assert texts(second) == ["Bo dug it.", "It is deep.", "Cats purr."] and [d.text for d in second.simulated] == ["Al dug it."]
    assert dropped == {"simulated document without text": 1}
    with pytest.raises(InputError, match=r"record 0: ad_ctx: expected three texts .* got 1"):
        rag_bench.questions(write(tmp_path / "rag.json", [{**train, "ad_ctx": ["one"]}]))
    with pytest.raises(InputError, match="record 0: best_ctx"):
        rag_bench.questions(write(tmp_path / "rag.json", [{**train, "best_ctx": []}]))


# MedMCQA


def med(number: int, question: str, cop: int | None, **options: str) -> dict[str, Any]:
    given = {"opa": "Iron", "opb": "Vitamin B12 (cobalamin)", "opc": "Zinc", "opd": "All of the above", **options}
    return {
        "id": f"m{number}",
        "question": question,
        **given,
        "cop": cop,
        "choice_type": "single",
        "exp": "Ans. is 'b'",
        "subject_name": "S",
    }


def test_the_answer_is_the_text_of_the_right_option(tmp_path: Path) -> None:
    rows = [
        med(1, "Which vitamin is lacking in pernicious anaemia?", 2),
        med(2, "Which of the following is a metal?", 1),
        med(3, "What does the plant need?", 4),
        med(4, "What is it?", -1),
        med(5, "What was it?", None),
        med(6, "What makes it red?", 3, opc=" "),
    ]
    dropped: Counter[str] = Counter()
    (found,) = medqa.questions(write(tmp_path / "train.json", rows, lines=True), dropped=dropped)
    assert (found.id, found.answers, found.documents, found.reference) == ("medqa-m1", ("Vitamin B12 (cobalamin)",), (), None)
    assert dropped == {
        "question needs its options": 1,
        "answer refers to the options": 1,
        "no right option given": 2,
        "right option is blank": 1,
    }


def test_how_options_are_counted_is_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "train.json", [med(1, "What lacks?", 0), med(2, "What else?", 1)], lines=True)
    assert [q.answers for q in medqa.questions(path, first_option=0)] == [("Iron",), ("Vitamin B12 (cobalamin)",)]
    with pytest.raises(
        InputError, match=r"record 'm1': cop: expected 1 to 4, got 0; .* count options from 0: set dataset\.questions\.first_option"
    ):
        medqa.questions(path)
    with pytest.raises(InputError, match=r"cop: expected 0 to 3, got 4; .* count options from 1"):
        medqa.questions(write(tmp_path / "train.json", [med(1, "What lacks?", 4)]), first_option=0)
    with pytest.raises(InputError, match="names two questions, 'What lacks.' and 'What else.'"):
        medqa.questions(write(tmp_path / "train.json", [med(1, "What lacks?", 1), med(1, "What else?", 1)]))
    with pytest.raises(InputError, match=r"train\.json:1: cop"):
        medqa.questions(write(tmp_path / "train.json", [{**med(1, "What lacks?", 1), "cop": "2"}], lines=True))


@pytest.mark.parametrize(
    "question",
    [
        "Which of the following is true?",
        "All of the   following are seen in gout except",
        "True about gout is:",
        "Which is not a feature of gout?",
        "What does not cause gout?",
        "Not true regarding gout",
        "The correct statement for gout",
        "Least common site of gout",
        "Mark the odd one",
        "Gout is caused by all EXCEPT:",
        "Which among these causes gout?",
        "What is shown in the given image?",
    ],
)
def test_questions_that_point_at_their_options(question: str) -> None:
    assert needs_options(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which vitamin is lacking in pernicious anaemia?",
        "Gout is caused by deposits of:",
        "A 40-year-old man has pain in his toe. What is the most likely diagnosis?",
        "Normotensive values of the falsetto voice",
        "Which nerve supplies the notochord?",
        "Drug of choice for gout",
        "A man is not responding to penicillin. What is given next?",
    ],
)
def test_questions_that_stand_alone(question: str) -> None:
    assert not needs_options(question)


def test_answers_that_speak_of_options() -> None:
    for answer in (
        "All of the above",
        "none of these.",
        "Both",
        "a and b",
        "1,2,3",
        "A & C are correct",
        "All are correct",
        "Both A and B",
        "True",
        "None",
    ):
        assert refers_to_options(answer), answer
    for answer in (
        "Both kidneys",
        "All-trans retinoic acid",
        "B12",
        "A",
        "1",
        "Vitamin A and D",
        "Nonene",
        "No. 3 suture",
        "120/80",
        "2/3",
        "Two",
        "a+ gene (x.*)",
    ):
        assert not refers_to_options(answer), answer


# BioASQ


def bio(**changes: Any) -> dict[str, Any]:
    return {
        "id": "b1",
        "type": "factoid",
        "body": "Which gene is mutated in β-thal (type 0)?",
        "exact_answer": [["HBB", "β-globin gene"]],
        "ideal_answer": ["", "The HBB gene is mutated."],
        "documents": [PUBMED + "11", PUBMED + "12/", PUBMED + "11"],
        "snippets": [
            {"text": "HBB is mutated.", "document": PUBMED + "11", "offsetInBeginSection": 0},
            {"text": "HBB is mutated."},
            {"text": "Nothing."},
        ],
        "concepts": ["x"],
        **changes,
    }


def test_exact_answers_come_nested_or_not(tmp_path: Path) -> None:
    records = [
        bio(),
        bio(id=2, body="Which drug?", exact_answer="imatinib", ideal_answer="It is imatinib.", snippets=[]),
        bio(id="b3", body="Which drug is it?", exact_answer=["a.b*", "a.b*"]),
        bio(id="b4", body="Is it?", type="yesno", exact_answer="yes"),
        bio(id="b5", body="Why?", type="summary", exact_answer=None),
        bio(id="b6", body="Which ones?", type="list", exact_answer=[["Srrm4"], ["Nova1", "Nova-1"]]),
        bio(id="b7", body="Which one?", exact_answer=[[" "]]),
    ]
    path = write(tmp_path / "training13b.json", {"questions": records})
    dropped: Counter[str] = Counter()
    first, second, third = bioasq.questions(path, dropped=dropped)
    assert (first.id, first.answers, first.reference) == ("bioasq-b1", ("HBB", "β-globin gene"), "The HBB gene is mutated.")
    assert texts(first) == ["HBB is mutated.", "Nothing."] and first.gold == ("11", "12")
    assert (second.id, second.answers, second.reference, second.documents) == ("bioasq-2", ("imatinib",), "It is imatinib.", ())
    assert third.answers == ("a.b*",)
    assert dropped == {
        "question of type yesno": 1,
        "question of type summary": 1,
        "question of type list": 1,
        "no exact answer given": 1,
        "document repeats a better ranked one": 2,
    }
    both = bioasq.questions(path, types=("factoid", "list"), snippets=False)
    assert both[-1].answers == ("Srrm4", "Nova1", "Nova-1") and not any(q.documents for q in both)


def test_bioasq_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"b\.json: questions: record 1: type: .*'factoid', 'list'"):
        bioasq.questions(write(tmp_path / "b.json", {"questions": [bio(), bio(type="essay")]}))
    with pytest.raises(InputError, match="expected a JSON object with `questions`.* got list"):
        bioasq.questions(write(tmp_path / "b.json", [bio()]))
    with pytest.raises(InputError, match="record 0: exact_answer.0: expected text, got int 3"):
        bioasq.questions(write(tmp_path / "b.json", {"questions": [bio(exact_answer=[[3]])]}))


# AstroQA


def test_letters_are_read_from_the_options(tmp_path: Path) -> None:
    options = {"A": "Shocks", "B": "A pulsar wind (2×)", "C": "Dust", "D": "Both"}
    rows = [
        {
            "question": "What powers the nebula?",
            **options,
            "answer": "(b)",
            "paper_id": "2401.00001",
            "title": "N",
            "abstract": "A pulsar wind.",
        },
        {"question": "What dims it?", **options, "answer": "Dust", "paper_id": "2401.00001", "title": "N", "abstract": "A pulsar wind."},
        {"question": "Which of the following is it?", **options, "answer": "A"},
        {"question": "What heats it?", **options, "answer": "D"},
        {"id": 9, "question": "Which star is brightest?", "answer": "B"},
    ]
    path = write(tmp_path / "astro.jsonl", rows, lines=True)
    dropped: Counter[str] = Counter()
    first, second, last = astroqa.questions(path, dropped=dropped)
    assert (first.answers, first.gold, second.answers) == (("A pulsar wind (2×)",), ("2401.00001",), ("Dust",))
    assert (last.id, last.answers, last.gold) == ("astroqa-9", ("B",), ())
    assert dropped == {"question needs its options": 1, "answer refers to the options": 1}
    left: Counter[str] = Counter()
    assert [(d.id, d.title, d.text) for d in astroqa.documents((path,), left)] == [("2401.00001", "N", "A pulsar wind.")]
    assert left == {"question without an abstract": 3, "abstract is there already": 1}


def test_options_that_do_not_fit_are_named(tmp_path: Path) -> None:
    row = {"question": "What?", "A": "x", "B": "y", "C": "z", "D": "w", "answer": "E"}
    for changed, message in (
        (row, "answer: expected a letter from A to D or the text of an option, got 'E'"),
        ({**row, "D": None}, "A, B, C, D: expected all four options or none, got 3"),
        ({"question": "What?", "answer": "x", "abstract": "x"}, "paper_id: an abstract needs the id of its paper"),
        ({"question": "What?"}, "answer: Field required"),
    ):
        with pytest.raises(InputError, match=r"astro\.jsonl:1: " + message):
            astroqa.questions(write(tmp_path / "astro.jsonl", [changed], lines=True))


# RobustRAG and gold passages


def test_snippets_are_candidates_and_texts_for_the_wrong_answer_conflicts(tmp_path: Path) -> None:
    record = {
        "id": 0,
        "question": "Which share sleeps apart?",
        "correct answer": ["15%"],
        "expanded answer": ["0.15", "It is 15% of couples."],
        "incorrect answer": " 32% ",
        "incorrect_context": ["A share of 32% sleeps apart.", "Nearly a third does."],
        "context": [{"title": "Sleep", "text": "It is 15%.", "link": "x"}, {"title": "No text"}, {"title": "Again", "text": "it is 15%."}],
    }
    path = write(tmp_path / "realtimeqa.json", [record])
    dropped: Counter[str] = Counter()
    (found,) = robustrag.questions(path, dropped=dropped)
    assert found.id == robustrag.materials(path)[0].question_id == "realtimeqa-0"
    assert found.answers == ("15%", "0.15", "It is 15% of couples.") and found.reference is None
    assert [(d.title, d.text) for d in found.documents] == [("", "It is 15%.")]
    assert [(d.label, d.answer) for d in found.simulated] == [(DocumentLabel.CONFLICT, "32%")] * 2
    assert dropped == {"document without text": 1, "document repeats a better ranked one": 1}
    (other,) = robustrag.questions(path, titles=True, aliases=False)
    assert (other.answers, other.reference, other.documents[0].title) == (("15%",), "It is 15% of couples.", "Sleep")
    with pytest.raises(InputError, match="record 1: id: '0' was already used by record 0"):
        robustrag.questions(write(tmp_path / "realtimeqa.json", [record, record]))


def test_gold_passages_are_the_corpus_and_their_ids_are_known(tmp_path: Path) -> None:
    def row(question: str, text: str, **ctx: Any) -> dict[str, Any]:
        return {"question": question, "answers": ["Ada (A.)"], "ctx": {"title": "T", "text": text, **ctx}}

    rows = [
        row("Who?", "Ada (A.) did.", id=1),
        row("who", "It was Ada (A.).", id="2"),
        row("When?", "Ada (A.) did.", psg_id=1),
        row("Why?", " ", id=None),
    ]
    path = write(tmp_path / "gold.json", rows)
    left: Counter[str] = Counter()
    corpus = {d.id: d.text for d in gold_passages.documents((path,), left)}
    assert list(corpus.values()) == ["Ada (A.) did.", "It was Ada (A.)."] and left == {
        "passage repeats another": 1,
        "passage without text": 1,
    }
    who, when, why = gold_passages.questions(path)
    assert [corpus[i] for i in who.gold] == ["Ada (A.) did.", "It was Ada (A.)."]
    assert [corpus[i] for i in when.gold] == ["Ada (A.) did."] and why.gold == () and who.documents == ()
    assert [m.question_id for m in gold_passages.materials(path)] == ["gold-0", "gold-1", "gold-2", "gold-3"]


# What to do about a file that is not there


@pytest.mark.parametrize(
    ("load", "address"),
    [
        (nq_wiki.questions, "https://huggingface.co/datasets/SKIML-ICL/incontext_nq"),
        (webq.questions, "https://huggingface.co/datasets/SKIML-ICL/incontext_webq"),
        (rag_bench.questions, "https://github.com/calubkk/RAAT"),
        (medqa.questions, "https://github.com/medmcqa/medmcqa"),
        (bioasq.questions, "http://participants-area.bioasq.org/datasets/"),
        (astroqa.questions, "https://huggingface.co/datasets/UniverseTBD/arxiv-qa-astro-ph"),
        (robustrag.questions, "https://github.com/inspire-group/RobustRAG"),
        (gold_passages.questions, "https://github.com/calubkk/RAAT"),
    ],
)
def test_a_file_that_is_not_there_is_said_where_to_get(load: Load, address: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=rf"absent\.json: expected a file of .*found nothing.*get it from {re.escape(address)} \(.*questions\.path"
    ):
        load(tmp_path / "absent.json")
    with pytest.raises(InputError, match="found a folder"):
        load(tmp_path)
