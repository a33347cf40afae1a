"""Questions with the passages that were retrieved for them: the JSON of DPR and FiD, and of those who added conflicts to it.

    {"question": "who wrote c++", "answers": ["Bjarne Stroustrup"],
     "ctxs": [{"id": "2912", "title": "C++", "text": "C++ was made by Bjarne Stroustrup.", "score": "81.3", "has_answer": true}]}

Verified forms, each a JSON list or JSON lines:

- `ctxs`: results of DPR's retriever and FiD's data sets (README of facebookresearch/DPR, "Retriever validation", and of facebookresearch/FiD,
  "Data format"). They become the candidates, in the file's order.
- The same with `gpt_answer_sentence`, `gpt_conflict_passage`, `gpt_adv_passage`, `similar_entity`, `is_valid_...` and `ctxs[].is_conflict`: Park et al.
  2024, arXiv 2408.04414 (data set card of SKIML-ICL/incontext_nq on the Hugging Face hub). The answer sentence becomes the reference, the passages
  become simulated documents; those that the data set marks as invalid are left out and counted.
- `positive_ctxs`, `hard_negative_ctxs`, `negative_ctxs`: DPR's retriever training data (same README, "Retriever input data format"). Their order
  gives the answer away, so the passages are no candidates; the ids of the positive ones become `gold`, for retrieval from `psgs_w100.tsv`.

Nothing else of a record is read: whether a passage has the answer is for the project's own labels to say.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from data_gen.label import stated
from data_gen.questions import Question, Simulated, candidates, distracting, named
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import Answers, NumberedId, Texts
from data_gen.sources.origin import Origin, read_records
from rag.records import DocumentLabel, Id, Text


class _Passage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Text | None = None
    text: Text
    is_conflict: bool | None = None


class _Positive(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NumberedId | None = Field(default=None, validation_alias=AliasChoices("passage_id", "psg_id"))
    text: Text


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    question: Id
    answers: Answers
    ctxs: tuple[_Passage, ...] | None = None
    positive_ctxs: tuple[_Positive, ...] | None = None
    gpt_answer_sentence: Text | None = None
    gpt_conflict_passage: Texts = ()
    is_valid_conflict_passage: bool | None = None
    gpt_adv_passage: Texts = ()
    is_valid_adv_passage: bool | None = None
    similar_entity: Text | None = None

    @model_validator(mode="after")
    def _has_passages(self) -> Self:
        if self.ctxs is None and self.positive_ctxs is None:
            raise ValueError(
                "expected `ctxs` or `positive_ctxs`, found neither; for questions without passages set questions@dataset.questions=jsonl"
            )
        return self


def read(
    path: Paths,
    split: str,
    shares: dict[str, float] | None,
    seed: int,
    limit: int | None,
    dropped: Counter[str] | None,
    origin: Origin,
) -> list[Question]:
    """The questions of one split, as `data_gen.sources.dealing.deal` deals them out. Raises InputError that names file, record and field."""
    return deal(partial(_records, origin), _question, path, split, shares, seed, limit, dropped)


def _records(origin: Origin, path: Path) -> Iterator[_Record]:
    return read_records(path, _Record, origin)


def _question(path: Path, record: _Record, reasons: Counter[str]) -> Question:
    question_id = named(path.stem, record.question)
    documents = candidates(question_id, ((one.title or "", one.text) for one in record.ctxs or () if not one.is_conflict), reasons)
    return Question(
        id=question_id,
        question=record.question,
        answers=tuple(dict.fromkeys(record.answers)),
        documents=documents,
        simulated=distracting(question_id, _simulated(record, reasons), documents, reasons),
        gold=tuple(dict.fromkeys(one.id for one in record.positive_ctxs or () if one.id is not None)),
        reference=record.gpt_answer_sentence if record.gpt_answer_sentence and record.gpt_answer_sentence.strip() else None,
        source=path.name,
    )


def _simulated(record: _Record, reasons: Counter[str]) -> Iterable[Simulated]:
    conflicts = [one.text for one in record.ctxs or () if one.is_conflict]
    if record.is_valid_conflict_passage is False:
        reasons["conflict passage that the data set marks as invalid"] += len(record.gpt_conflict_passage)
    else:
        conflicts += [text for text in record.gpt_conflict_passage if text not in conflicts]
    for text in conflicts:
        yield Simulated(text, DocumentLabel.CONFLICT, None if record.similar_entity is None else stated(text, (record.similar_entity,)))
    if record.is_valid_adv_passage is False:
        reasons["adversarial passage that the data set marks as invalid"] += len(record.gpt_adv_passage)
    else:
        yield from (Simulated(text, DocumentLabel.ADVERSARIAL) for text in record.gpt_adv_passage)
