"""WebQuestions over Wikipedia passages of 100 words, with conflicts: the data of Park et al. 2024, arXiv 2408.04414.

    {"question": "what is the name of justin bieber brother?", "answers": ["Jazmyn Bieber", "Jaxon Bieber"], "gpt_answer_sentence": null,
     "ctxs": [{"title": "Justin Bieber", "text": "...", "score": 79.9, "hasanswer": true, "nli": "entailment", "is_conflict": false}],
     "gpt_conflict_passage": null, "is_valid_conflict_passage": null, "similar_entity": null}

From SKIML-ICL/incontext_webq on the Hugging Face hub (configs `default`, `qa`, `unanswerable`, `conflict`; no licence stated), saved as JSON lines:

    datasets.load_dataset("SKIML-ICL/incontext_webq", "conflict", split="test").to_json("downloads/webq/test.jsonl")

The keys are those of the data set card of SKIML-ICL/incontext_nq, the values only show their form. The card names no paper; the group is that of
Park et al., and the columns are what their method makes. DPR's and FiD's own files do as well: `data_gen.sources.retrieved` says what becomes of
which key.
"""

from collections import Counter

from data_gen.questions import Question
from data_gen.sources import retrieved
from data_gen.sources.dealing import Paths
from data_gen.sources.origin import Origin

ORIGIN = Origin(
    what="WebQuestions with retrieved passages",
    where="https://huggingface.co/datasets/SKIML-ICL/incontext_webq",
    how="save a split as JSON lines by `datasets.load_dataset(...).to_json(...)`; or take the JSON of FiD or DPR",
)


def questions(
    path: Paths,
    split: str = "test",
    shares: dict[str, float] | None = None,
    seed: int = 0,
    limit: int | None = None,
    dropped: Counter[str] | None = None,
) -> list[Question]:
    """The questions of one split with their passages as candidates, and conflicts where the file has them.

    `path` is one file, dealt out by `shares` (all to `test` where there are none), or a file for each split. Raises InputError that names file,
    record and field.
    """
    return retrieved.read(path, split, shares, seed, limit, dropped, ORIGIN)
