"""Questions of MedMCQA (Pal et al. 2022, arXiv 2203.14371) without their options, to be answered from abstracts of PubMed.

    {"id": "4e1715fe-0bc3-494e-b6eb-2d4617245aef", "question": "... Which of the following terms best describes these hematologic findings?",
     "opa": "Leukemoid reaction", "opb": "Leukopenia", "opc": "Myeloid metaplasia", "opd": "Neutrophilia", "cop": 1, "choice_type": "single",
     "exp": "Circulating levels of leukocytes ...", "subject_name": "Pathology", "topic_name": "Basic Concepts and Vascular changes"}

From the repository medmcqa/medmcqa, whose README links an archive with `train.json`, `dev.json` and `test.json` (JSON lines, Apache-2.0), or from
openlifescienceai/medmcqa on the Hugging Face hub. The two count `cop`, the right option, differently: the archive from 1, the hub from 0 (with -1 in
the test file, whose answers are kept back). `first_option` says which it is, and a file that does not fit it is refused.

The answer is the text of the right option. The explanation `exp` is not read: it often opens with the letter of the option. Left out, and counted:
records without a right option, questions that need their options, and answers that only refer to options (`data_gen.sources.options`).
Documents come from a PubMed corpus (`data_gen.corpora.pubmed`).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, StrictInt

from data_gen.questions import Question
from data_gen.sources.dealing import Paths, deal
from data_gen.sources.fields import NumberedId
from data_gen.sources.options import needs_options, refers_to_options
from data_gen.sources.origin import Origin, read_records
from rag.errors import InputError
from rag.records import Id, Text

ORIGIN = Origin(
    what="MedMCQA",
    where="https://github.com/medmcqa/medmcqa",
    how="train.json and dev.json of the archive that its README links to; the answers of test.json are not public. From the hub, "
    "openlifescienceai/medmcqa by `datasets.load_dataset(...).to_json(...)`, with questions.first_option=0",
)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NumberedId
    question: Id
    opa: Text
    opb: Text
    opc: Text
    opd: Text
    cop: StrictInt | None = None


def questions(
    path: Paths,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    first_option: Literal[0, 1] = 1,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split that can be asked without options; no candidates.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. `first_option` is the value of `cop`
    where `opa` is right. Raises InputError that names file, record and field.
    """

    def make(file: Path, record: _Record, reasons: Counter[str]) -> Question | None:
        options = (record.opa, record.opb, record.opc, record.opd)
        if record.cop is None or record.cop == -1:
            reasons["no right option given"] += 1
            return None
        if not 0 <= record.cop - first_option < len(options):
            raise InputError(
                f"{file}: record '{record.id}': cop: expected {first_option} to {first_option + 3}, got {record.cop}; "
                f"the file seems to count options from {1 - first_option}: set dataset.questions.first_option"
            )
        answer = options[record.cop - first_option].strip()
        if not answer:
            reasons["right option is blank"] += 1
        elif needs_options(record.question):
            reasons["question needs its options"] += 1
        elif refers_to_options(answer):
            reasons["answer refers to the options"] += 1
        else:
            return Question(id=f"medqa-{record.id}", question=record.question, answers=(answer,), source=file.name)
        return None

    return deal(_records, make, path, split, shares, seed, limit, dropped)


def _records(path: Path) -> Iterator[_Record]:
    return read_records(path, _Record, ORIGIN)
