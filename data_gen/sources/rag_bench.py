"""RAG-Bench (Fang et al. 2024, arXiv 2405.20978): questions with golden passages, retrieved ones, and counterfactual copies of golden ones.

    {"question": "what currency does the czech republic use now?", "answers": ["Czech koruna"],
     "best_ctx": [{"id": 63684, "title": "Czech Republic", "text": "... the Czech koruna ...", "score": 95.8, "has_answer": "Czech koruna"}],
     "ctxs": [{"id": 63685, "title": "Czech Republic", "text": "...", "score": 84.1, "has_answer": false}],
     "counter_fac": ["... the Polish zloty ..."]}

From the repository calubkk/RAAT, whose README links an archive with `train.json`, `dev.json` and `test.json` (no licence stated); the keys are those
that its README and `tuner/utils/select_retrieve.py` name. In `train.json`, `best_ctx` is a single passage and `ad_ctx` holds three texts in place of
`ctxs` and `counter_fac`: retrieved noise, a counterfactual copy, and a passage of another question.

Candidates are `ctxs` with the golden passages before them where they are not among them, then the first and the last of `ad_ctx`. Counterfactual
copies become simulated conflicts; the file does not say which false answer they give.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from data_gen.documents import fingerprint
from data_gen.questions import Question, Simulated, candidates, distracting, named
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import Answers, Texts
from data_gen.sources.origin import Origin, read_records
from rag.records import DocumentLabel, Id, Text

ORIGIN = Origin(
    what="RAG-Bench",
    where="https://github.com/calubkk/RAAT",
    how="the archive that its README links to; train.json, dev.json and test.json as they are",
)

_KINDS_OF_NOISE = 3


class _Passage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Text | None = None
    text: Text


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    question: Id
    answers: Answers
    best_ctx: Annotated[tuple[_Passage, ...], BeforeValidator(_one_or_more), Field(min_length=1)]
    ctxs: tuple[_Passage, ...] = ()
    counter_fac: Texts = ()
    ad_ctx: Texts = ()

    @model_validator(mode="after")
    def _three_kinds_of_noise(self) -> Self:
        if len(self.ad_ctx) not in (0, _KINDS_OF_NOISE):
            raise ValueError(f"ad_ctx: expected three texts (relevant, counterfactual, irrelevant), got {len(self.ad_ctx)}")
        return self


def questions(
    path: Paths,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split with their passages as candidates and the counterfactual copies as conflicts.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. Raises InputError that names file,
    record and field.
    """
    return deal(_records, _question, path, split, shares, seed, limit, dropped)


def _records(path: Path) -> Iterator[_Record]:
    return read_records(path, _Record, ORIGIN)


def _question(path: Path, record: _Record, reasons: Counter[str]) -> Question:
    question_id = named(path.stem, record.question)
    retrieved = {fingerprint(one.text) for one in record.ctxs}
    passages = [*(one for one in record.best_ctx if fingerprint(one.text) not in retrieved), *record.ctxs]
    noise = record.ad_ctx[::2]
    documents = candidates(question_id, [*((one.title or "", one.text) for one in passages), *(("", text) for text in noise)], reasons)
    conflicts = [Simulated(text, DocumentLabel.CONFLICT) for text in (*record.counter_fac, *record.ad_ctx[1:2])]
    return Question(
        id=question_id,
        question=record.question,
        answers=tuple(dict.fromkeys(record.answers)),
        documents=documents,
        simulated=distracting(question_id, conflicts, documents, reasons),
        source=path.name,
    )
