"""Write a corpus that retrievers search, and the questions whose gold documents are in it.

python -m data_gen.corpus documents=psgs_w100 documents.path=psgs_w100.tsv.gz out=data/wikipedia
python -m data_gen.corpus documents=pubmed documents.path=baseline questions=bioasq questions.path=training13b.json out=data/pubmed
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from conf.job import job
from data_gen.questions import Question
from rag.errors import InputError
from rag.jsonl import write_records
from rag.records import Document
from rag.retrieval.corpus import Corpus, Duplicates, write_corpus
from rag.retrieval.gold import GoldQuestion
from rag.settings import Component, RunSettings, Target

logger = logging.getLogger(__name__)

QUESTIONS = "questions.jsonl"


class CorpusJob(RunSettings):
    """Settings of this job."""

    documents: Target
    """A function that yields Documents: one of `data_gen.corpora`, or the `documents` of a source."""
    questions: Target | None = None
    """A source's `questions` whose `gold` names documents of this corpus, for `eval.retrieval`."""
    duplicates: Duplicates
    """Whether a document with the title and text of an earlier one is left out (`drop`) or kept."""
    out: str | None = None
    """Folder of the run."""


def run(settings: CorpusJob, out: Path) -> Corpus:
    """Write the folder `corpus`, and `questions.jsonl` where a source of questions is given.

    Questions without gold documents are left out and counted. Raises InputError where none has any, and where none of them is in the corpus.
    """
    questions = [] if settings.questions is None else _with_gold(settings.questions)
    documents: Iterable[Document] = settings.documents.build()
    corpus = write_corpus(documents, out / "corpus", source=_source(settings.documents), duplicates=settings.duplicates)
    if questions:
        gold = {name for question in questions for name in question.gold}
        lacking = sorted(name for name in gold if corpus.find(name) is None)
        if len(lacking) == len(gold):
            raise InputError(
                f"questions: none of their gold documents, such as '{lacking[0]}', is in the corpus of {_source(settings.documents)}; "
                "choose documents and questions whose ids agree"
            )
        write_records(out / QUESTIONS, questions)
        logger.info(
            "%s: %d questions; %d of %d gold documents are not in the corpus", out / QUESTIONS, len(questions), len(lacking), len(gold)
        )
    return corpus


def _with_gold(source: Component) -> list[GoldQuestion]:
    found: list[Question] = source.build()
    questions = [GoldQuestion(id=one.id, question=one.question, gold=one.gold) for one in found if one.gold]
    if len(questions) < len(found):
        logger.info("left out %d of %d questions: no gold document is known", len(found) - len(questions), len(found))
    if not questions:
        raise InputError(f"questions: the source {source.target.__module__} names no gold documents; set questions=null, or another source")
    return questions


def _source(documents: Component) -> str:
    """The function that gives the documents, and the files that it reads."""
    return " ".join(
        [f"{documents.target.__module__}.{documents.target.__qualname__}", *(path.name for path in documents.arguments.get("path", ()))]
    )


main = job(run, CorpusJob, config_name="data_gen_corpus")

if __name__ == "__main__":
    main()
