"""BioASQ task B (Nentidis et al. 2025): questions by biomedical experts with exact answers, an ideal answer, and snippets of PubMed abstracts.

    {"questions": [{"id": "56bc751eac7ad10019000013", "type": "factoid", "body": "Name synonym of Acrokeratosis paraneoplastica.",
      "exact_answer": [["Bazex syndrome"]], "ideal_answer": ["Acrokeratosis paraneoplastic is also known as Bazex syndrome."],
      "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/18775590"],
      "snippets": [{"text": "Acrokeratosis paraneoplastica (Bazex syndrome) ...", "document": "http://www.ncbi.nlm.nih.gov/pubmed/18775590",
                    "beginSection": "abstract", "endSection": "abstract", "offsetInBeginSection": 0, "offsetInEndSection": 98}]}]}

From http://participants-area.bioasq.org/datasets/ after registration (NLM's terms): the training set `training13b.json`, and the golden test sets
`13B1_golden.json` and so on..

Used are questions of the types asked for; the others are left out and counted. A `factoid` nests the spellings of its answer. A `list` asks for
several things at once: here each of them counts as an answer, so that a document with one of them is answerable. `gold` holds the PubMed ids
of `documents`, which are the ids of `data_gen.corpora.pubmed`.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from data_gen.questions import Question, candidates
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import NumberedId, Texts
from data_gen.sources.origin import Origin, absent, require_list, validated
from rag.errors import InputError
from rag.jsonl import read_json
from rag.records import Id, Text

ORIGIN = Origin(
    what="BioASQ task B",
    where="http://participants-area.bioasq.org/datasets/",
    how="register there; the training set (such as training13b.json) or a golden test set (such as 13B1_golden.json) as it is",
)


def _flat(value: Any) -> Any:
    if isinstance(value, list):
        return [inner for item in value for inner in _flat(item)]
    return [] if value is None else [value]


class _Snippet(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    text: Text


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NumberedId
    type: Literal["factoid", "list", "yesno", "summary"]
    question: Annotated[Id, Field(validation_alias=AliasChoices("body", "question"))]
    exact_answer: Annotated[tuple[Text, ...], BeforeValidator(_flat)] = ()
    ideal_answer: Texts = ()
    documents: Texts = ()
    snippets: tuple[_Snippet, ...] = ()


def questions(
    path: Paths,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    types: tuple[Literal["factoid", "list"], ...] = ("factoid",),
    snippets: bool = True,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split of the given `types`, with their ideal answer as reference.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. `snippets` makes the snippets, all of
    which experts found relevant, the candidates; where it is off, documents are to be retrieved. Raises InputError that names file, record and field.
    """

    def make(file: Path, record: _Record, reasons: Counter[str]) -> Question | None:
        answers = tuple(dict.fromkeys(answer.strip() for answer in record.exact_answer if answer.strip()))
        if record.type not in types:
            reasons[f"question of type {record.type}"] += 1
            return None
        if not answers:
            reasons["no exact answer given"] += 1
            return None
        question_id = f"bioasq-{record.id}"
        return Question(
            id=question_id,
            question=record.question,
            answers=answers,
            documents=candidates(question_id, (("", one.text) for one in record.snippets if snippets), reasons),
            gold=tuple(dict.fromkeys(url.rstrip("/").rpartition("/")[2] for url in record.documents if url.strip("/ "))),
            reference=next((text for text in record.ideal_answer if text.strip()), None),
            source=file.name,
        )

    return deal(_records, make, path, split, shares, seed, limit, dropped)


def _records(path: Path) -> Iterator[_Record]:
    if not path.is_file():
        raise absent(path, ORIGIN)
    content = read_json(path)
    if not isinstance(content, dict) or "questions" not in content:
        raise InputError(f"{path}: expected a JSON object with `questions`, as BioASQ's task B has it, got {type(content).__name__}")
    return validated(require_list(content["questions"], path, "questions of BioASQ"), _Record, f"{path}: questions")
