r"""Questions with one gold passage each, in the format of RAAT's cache of golden contexts: `question`, `answers` and `ctx`.

    {"question": "who played lauren reed on alias?", "answers": ["Melissa George"],
     "ctx": {"id": 2780728, "title": "\"Lauren Reed\"", "text": "body. For reasons not yet explained, ...", "score": 83.1,
             "has_answer": "Melissa George"}}

From the repository calubkk/RAAT, `benchmark_cache/o.json` (no licence stated). Its passages together are a small corpus: `documents` gives them, and
the ids in `Question.gold` are theirs. They come from the passages' text, since the file gives an id to some of them only.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from data_gen.documents import fingerprint
from data_gen.pools.pool import Material
from data_gen.questions import Question, named
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import Answers
from data_gen.sources.left_out import report
from data_gen.sources.origin import Origin, absent, require_list, validated
from rag.jsonl import read_json
from rag.records import Document, Id, Text
from rag.settings import Files

ORIGIN = Origin(what="questions with a gold passage", where="https://github.com/calubkk/RAAT", how="benchmark_cache/o.json as it is")


class _Passage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Text = ""
    text: Text


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    question: Id
    answers: Answers
    ctx: _Passage


def materials(path: Path) -> list[Material]:
    """What the file holds on each question, in its order. Raises InputError that names record and field."""
    return [
        Material(f"{path.stem}-{index}", record.question, tuple(dict.fromkeys(record.answers)), (record.ctx.text,))
        for index, record in enumerate(_read(path))
    ]


def questions(
    path: Paths,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split without candidates: they are to be retrieved from `documents`, where `gold` names the passage with the answer.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. Raises InputError that names file,
    record and field.
    """
    return deal(_records, _question, path, split, shares, seed, limit, dropped)


def documents(path: Files, dropped: Counter[str] | None = None) -> Iterator[Document]:
    """Every passage of the files once, in their order. Blank and repeated ones are left out, counted and logged."""
    reasons: Counter[str] = Counter()
    seen: set[str] = set()
    for file in path:
        for record in _records(file, "documents.path"):
            passage_id = _passage_id(record.ctx)
            if not record.ctx.text.strip():
                reasons["passage without text"] += 1
            elif passage_id in seen:
                reasons["passage repeats another"] += 1
            else:
                seen.add(passage_id)
                yield Document(id=passage_id, title=record.ctx.title, text=record.ctx.text)
    report(", ".join(map(str, path)), reasons, dropped)


def _passage_id(passage: _Passage) -> str:
    return f"passage-{fingerprint(passage.text, 16)}"


def _question(path: Path, record: _Record, _: Counter[str]) -> Question:
    return Question(
        id=named(path.stem, record.question),
        question=record.question,
        answers=tuple(dict.fromkeys(record.answers)),
        gold=(_passage_id(record.ctx),) if record.ctx.text.strip() else (),
        source=path.name,
    )


def _records(path: Path, key: str = "dataset.questions.path") -> Iterator[_Record]:
    if not path.is_file():
        raise absent(path, ORIGIN, key)
    return _read(path)


def _read(path: Path) -> Iterator[_Record]:
    return validated(require_list(read_json(path), path, "questions with a gold passage"), _Record, str(path))
