"""Questions on astronomy with the abstract that they come from, to be answered from a corpus of abstracts.

    {"id": "q-17", "question": "What powers the emission of the nebula?", "A": "Shocks", "B": "A pulsar wind", "C": "Dust", "D": "Accretion",
     "answer": "B", "paper_id": "2401.00001", "title": "On a nebula", "abstract": "We show that a pulsar wind powers ..."}

Paper 002 cites AstroMLab 3 (de Haan et al. 2025) for its AstroQA and does not say which file that is. What is public, by the data set cards:
AstroMLab/Astrobench_MCQ_v1_Public (3,846 questions with `question`, `A` to `D`) keeps the answers back, so it cannot be used as it is;
UniverseTBD/arxiv-qa-astro-ph (about 10,000 rows with `question` and `answer`) names no paper. This reader takes JSON lines or a JSON list with
`question` and `answer`, and where they are known `A` to `D`, `id`, `paper_id`, `title` and `abstract`.

With options, `answer` is a letter or the text of an option; the answer is that text, and what cannot be asked without options is left out and counted
(`data_gen.sources.options`). `documents` gives the file's own abstracts; arXiv's are in `data_gen.corpora.arxiv`. `gold` is `paper_id`.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from data_gen.questions import Question, named
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import NumberedId
from data_gen.sources.left_out import report
from data_gen.sources.options import needs_options, refers_to_options
from data_gen.sources.origin import Origin, read_records
from rag.records import Document, Id, Text
from rag.settings import Files

ORIGIN = Origin(
    what="astronomy questions with answers",
    where="https://huggingface.co/datasets/UniverseTBD/arxiv-qa-astro-ph",
    how="save its `train` split as JSON lines by `datasets.load_dataset(...).to_json(...)`; the answers to AstroMLab's multiple-choice questions "
    "are not public, ask their authors (https://astromlab.org)",
)

_LETTERS = "ABCD"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NumberedId | None = None
    question: Id
    answer: Id
    a: Text | None = Field(default=None, alias="A")
    b: Text | None = Field(default=None, alias="B")
    c: Text | None = Field(default=None, alias="C")
    d: Text | None = Field(default=None, alias="D")
    paper_id: NumberedId | None = None
    title: Text | None = None
    abstract: Text | None = None

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(option for option in (self.a, self.b, self.c, self.d) if option is not None)

    @property
    def answer_text(self) -> str:
        """The answer, read from the options where it is a letter."""
        place = _LETTERS.find(self.answer.strip(" .()").upper()) if self.options and len(self.answer.strip(" .()")) == 1 else -1
        return (self.answer if place < 0 else self.options[place]).strip()

    @model_validator(mode="after")
    def _answer_is_an_option(self) -> Self:
        if self.options and len(self.options) != len(_LETTERS):
            raise ValueError(f"A, B, C, D: expected all four options or none, got {len(self.options)}")
        if self.options and self.answer_text not in {option.strip() for option in self.options}:
            raise ValueError(f"answer: expected a letter from A to D or the text of an option, got '{self.answer}'")
        if self.abstract is not None and self.paper_id is None:
            raise ValueError("paper_id: an abstract needs the id of its paper")
        return self


def questions(
    path: Paths,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split, without candidates; `gold` names the paper where the file does.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. Raises InputError that names file,
    record and field.
    """
    return deal(_records, _question, path, split, shares, seed, limit, dropped)


def documents(path: Files, dropped: Counter[str] | None = None) -> Iterator[Document]:
    """The abstracts of the files by `paper_id`, each once, in their order. Blank and repeated ones are left out, counted and logged."""
    reasons: Counter[str] = Counter()
    seen: set[str] = set()
    for file in path:
        for record in read_records(file, _Record, ORIGIN, "documents.path"):
            if record.paper_id is None or not (record.abstract or "").strip():
                reasons["question without an abstract"] += 1
            elif record.paper_id in seen:
                reasons["abstract is there already"] += 1
            else:
                seen.add(record.paper_id)
                yield Document(id=record.paper_id, title=record.title or "", text=record.abstract or "")
    report(", ".join(map(str, path)), reasons, dropped)


def _records(path: Path) -> Iterator[_Record]:
    return read_records(path, _Record, ORIGIN)


def _question(path: Path, record: _Record, reasons: Counter[str]) -> Question | None:
    answer = record.answer_text
    if not answer:
        reasons["right option is blank"] += 1
    elif record.options and needs_options(record.question):
        reasons["question needs its options"] += 1
    elif record.options and refers_to_options(answer):
        reasons["answer refers to the options"] += 1
    else:
        return Question(
            id=named("astroqa", record.question) if record.id is None else f"astroqa-{record.id}",
            question=record.question,
            answers=(answer,),
            gold=() if record.paper_id is None else (record.paper_id,),
            source=path.name,
        )
    return None
