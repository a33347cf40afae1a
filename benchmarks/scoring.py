"""How long scoring takes, and how much memory: `python benchmarks/scoring.py [predictions] [resamples]`, by default 100000 and 10000.

Examples of five documents and predictions with their prompts are written to a temporary folder (about 800 MB for 100,000) and scored as
`eval.pipeline predictions=FILE` does, each line of the table in a process of its own.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from eval.score import score
from rag.jsonl import Records, write_records
from rag.records import Condition, Document, Example, Prediction, Reason, RetrievalState

VARIANTS = (Condition.ANSWERABLE, Condition.UNANSWERABLE, Condition.CONFLICT)
STATES = {Condition.CONFLICT: RetrievalState.DISTRACTED}
WORDS = [f"word{n}" for n in range(5000)]


def examples(count: int) -> Iterator[Example]:
    """Three variants of each question, documents of 60 words."""
    for n in range(count):
        random = Random(f"example:{n}")
        condition = VARIANTS[n % 3]
        documents = tuple(Document(id=f"d{n}-{k}", text=" ".join(random.choices(WORDS, k=60)), rank=k + 1) for k in range(5))
        yield Example(
            id=f"e{n:07}",
            question_id=f"q{n // 3:07}",
            question=" ".join(random.choices(WORDS, k=12)),
            documents=documents,
            answers=(" ".join(random.choices(WORDS, k=2)), "an alias", "another alias"),
            state=STATES.get(condition) or RetrievalState(condition.value),
            condition=condition,
        )


def prediction(example: Example) -> Prediction:
    """A right answer, an answer with one right word, a wrong one, or an abstention, with a prompt as long as the documents."""
    random = Random(f"prediction:{example.id}")
    known = {"id": example.id, "question_id": example.question_id, "sieve_score": random.random(), "threshold": 0.6}
    known["timings"] = {"sieve": random.uniform(5, 10), "sage": random.uniform(50, 100), "total": random.uniform(60, 110)}
    if known["sieve_score"] >= 0.6:
        return Prediction(**known, state=RetrievalState.DISTRACTED, reason=Reason.DISTRACTED, blamed=(example.documents[0].id,))
    prompt = "\n".join(document.text for document in example.documents)
    if random.random() < 0.2:
        return Prediction(**known, state=RetrievalState.UNANSWERABLE, reason=Reason.UNANSWERABLE, prompt=prompt)
    gold = example.answers[0]
    answer = random.choice([gold, f"{gold.split()[0]} {random.choice(WORDS)}", random.choice(WORDS)])
    return Prediction(**known, state=RetrievalState.ANSWERABLE, answer=answer, prompt=prompt)


def measure(folder: Path, resamples: int) -> tuple[float, float, float]:
    """Seconds of the processor to read the files alone, and to read and score them; peak memory of this process in MiB."""
    files = Records(folder / "examples.jsonl", Example), Records(folder / "predictions.jsonl", Prediction)
    start = time.process_time()
    for _ in zip(*files, strict=True):
        pass
    read = time.process_time() - start
    start = time.process_time()
    score(*files, resamples=resamples)
    return read, time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print one line for each size: all of it, a tenth of the resamples, a quarter of the predictions."""
    count, resamples = (int(value) for value in (*sys.argv[1:], *("100000", "10000")[len(sys.argv) - 1 :]))
    print("predictions  resamples  reading (s)  reading and scoring (s)  peak memory (MiB)", flush=True)
    for size, resampled in ((count // 4, (resamples,)), (count, (resamples // 10, resamples))):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_records(folder / "examples.jsonl", examples(size))
            write_records(folder / "predictions.jsonl", map(prediction, Records(folder / "examples.jsonl", Example)))
            for draws in resampled:
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    read, scored, peak = pool.apply(measure, (folder, draws))
                print(f"{size:11,}  {draws:9,}  {read:11.1f}  {scored:23.1f}  {peak:17.0f}", flush=True)


if __name__ == "__main__":
    main()
