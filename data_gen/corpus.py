"""Write a corpus that retrievers search, and the questions that it comes with.

python -m data_gen.corpus documents=psgs_w100 documents.path=psgs_w100.tsv.gz out=data/wikipedia
"""

import logging
from pathlib import Path

from conf.job import job
from rag.jsonl import write_records
from rag.retrieval.corpus import Corpus, Duplicates, write_corpus
from rag.settings import Settings, Target

logger = logging.getLogger(__name__)


class CorpusJob(Settings):
    """Settings of this job."""

    documents: Target
    """A function of `data_gen.retrieval_sets`."""
    duplicates: Duplicates
    """Whether a document with the title and text of an earlier one is left out (`drop`) or kept."""
    out: str | None = None
    """Folder of the run."""


def run(settings: CorpusJob, out: Path) -> Corpus:
    """Write the folder `corpus`, and `questions.jsonl` where the source has questions."""
    found = settings.documents.build()
    corpus = write_corpus(found.documents, out / "corpus", source=found.source, duplicates=settings.duplicates)
    if questions := list(found.questions):
        write_records(out / "questions.jsonl", questions)
        logger.info("%s: %d questions", out / "questions.jsonl", len(questions))
    return corpus


main = job(run, CorpusJob, config_name="data_gen_corpus")

if __name__ == "__main__":
    main()
