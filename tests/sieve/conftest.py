"""Tiny random encoders with word-level tokenizers, built from a config: nothing is downloaded."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModel,
    BertConfig,
    DebertaV2Config,
    LlamaConfig,
    LongformerConfig,
    ModernBertConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLMRobertaConfig,
)

from rag.jsonl import write_records
from rag.models.lora import LoraSettings
from rag.records import Condition, Document, Example, RetrievalState
from rag.render import ranked
from sieve.data import DataSettings
from sieve.joint.inputs import InputSettings
from sieve.joint.model import Backbone, ModelSettings, load_backbone
from sieve.joint.settings import SieveSettings, TrainSettings
from sieve.predict import Removal, Screening
from sieve.settings import TrainJob

CONTROL = ["<cls>", "<pad>", "<sep>", "<unk>", "<eos>"]
WORDS = [*(f"w{i}" for i in range(100)), "the", "answer", "is", "red", "blue"]
SHAPE = {
    "vocab_size": len(CONTROL) + len(WORDS) + 10,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 1,
    # Larger than usual, so that random models of this size give different inputs clearly different scores.
    "initializer_range": 0.2,
}
FAMILIES: dict[str, Callable[..., PreTrainedConfig]] = {
    "bert": BertConfig,
    "roberta": RobertaConfig,
    "xlm-roberta": XLMRobertaConfig,
    "longformer": LongformerConfig,
    "llama": LlamaConfig,
    "modernbert": ModernBertConfig,
    "deberta-v2": DebertaV2Config,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "bert": {"max_position_embeddings": 128},
    "roberta": {"max_position_embeddings": 130},
    "xlm-roberta": {"max_position_embeddings": 130},
    "longformer": {"max_position_embeddings": 258, "attention_window": [32, 32]},
    "llama": {"max_position_embeddings": 256, "num_key_value_heads": 2},
    "modernbert": {"max_position_embeddings": 256, "local_attention": 16, "bos_token_id": 0, "eos_token_id": 2},
    "deberta-v2": {"max_position_embeddings": 256, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
}


def save_tokenizer(folder: Path, *, separator: bool) -> None:
    """One token for each word between spaces; a decoder-only tokenizer has an end of sequence in place of first token and separator."""
    tokens = [*CONTROL, *WORDS]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROL])
    ends = {"cls_token": "<cls>", "sep_token": "<sep>"} if separator else {"eos_token": "<eos>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", **ends).save_pretrained(folder)


@pytest.fixture(scope="session")
def new_base(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Save a tiny base of a family, with changes to its config."""

    def build(family: str, auto_class: Any = AutoModel, seed: int = 0, **changes: object) -> Path:
        folder = tmp_path_factory.mktemp(family)
        torch.manual_seed(seed)
        auto_class.from_config(FAMILIES[family](**{**SHAPE, **OPTIONS[family], **changes})).save_pretrained(folder)
        save_tokenizer(folder, separator=family != "llama")
        return folder

    return build


@pytest.fixture(scope="session")
def base(new_base: Callable[..., Path]) -> Callable[[str], Path]:
    """The standard tiny base of a family, made once."""
    made: dict[str, Path] = {}

    def get(family: str) -> Path:
        if family not in made:
            made[family] = new_base(family)
        return made[family]

    return get


@pytest.fixture(scope="session")
def backbone(base: Callable[[str], Path]) -> Callable[[str], Backbone]:
    """The standard tiny base of a family, loaded once; tests must not change its weights."""
    loaded: dict[str, Backbone] = {}

    def get(family: str) -> Backbone:
        if family not in loaded:
            torch.manual_seed(1)
            loaded[family] = load_backbone(ModelSettings(base=str(base(family))))
        return loaded[family]

    return get


def words(count: int, start: int = 0) -> str:
    """A text of `count` tokens."""
    return " ".join(f"w{(start + i) % 100}" for i in range(count))


def document(name: str, text: str, **fields: Any) -> Document:
    return Document(id=name, text=text, **fields)


def example(number: int, condition: Condition, text: str = "the answer is blue", **fields: Any) -> Example:
    """A set of three documents; in a conflict set one of them says `red`, so that one word tells the classes apart."""
    first = "the answer is red" if condition is Condition.CONFLICT else text
    state = RetrievalState.DISTRACTED if condition is Condition.CONFLICT else RetrievalState.ANSWERABLE
    values = {
        "id": f"e{number}-{condition}",
        "question_id": f"q{number}",
        "question": f"w{number % 100} w{number // 100}",
        "documents": (document("d1", f"{first} {words(3, number)}"), document("d2", f"the answer is blue {words(2, number + 7)}")),
        "answers": ("blue",),
        "state": state,
        "condition": condition,
    }
    return Example.model_validate(values | fields)


def examples(count: int, start: int = 0) -> list[Example]:
    """As many answerable as conflict sets."""
    return [example(i, condition) for i in range(start, start + count) for condition in (Condition.ANSWERABLE, Condition.CONFLICT)]


@pytest.fixture(scope="session")
def make_examples() -> Callable[..., list[Example]]:
    return examples


@pytest.fixture(scope="session")
def make_example() -> Callable[..., Example]:
    return example


TRAIN = TrainSettings(
    epochs=3,
    learning_rate=0.01,
    warmup_ratio=0.0,
    batch_size=8,
    gradient_accumulation=1,
    scheduler="constant_with_warmup",
    weight_decay=0.0,
    patience=10,
    evals_per_epoch=1,
    best_metric="loss",
)


@pytest.fixture(scope="session")
def job_in() -> Callable[..., TrainJob]:
    """Write training and validation sets into a folder and make the settings of a job on them."""

    def make(
        folder: Path,
        base: Path,
        *,
        train: list[Example] | None = None,
        validation: list[Example] | None = None,
        lora: LoraSettings | None = None,
        model: dict[str, object] | None = None,
        max_length: int = 64,
        init: Path | None = None,
        **changes: object,
    ) -> TrainJob:
        write_records(folder / "train.jsonl", examples(16) if train is None else train)
        write_records(folder / "validation.jsonl", examples(8, start=50) if validation is None else validation)
        sieve = SieveSettings(
            model=ModelSettings.model_validate({"base": str(base), "lora": lora, "precision": "fp32", **(model or {})}),
            inputs=InputSettings(max_length=max_length),
            train=TRAIN.model_copy(update=changes),
        )
        data = DataSettings(train=folder / "train.jsonl", validation=folder / "validation.jsonl")
        return TrainJob(seed=0, sieve=sieve, data=data, init=init)

    return make


COLOURS = {"red", "blue"}


class Reads:
    """0.9 where the documents name two colours, else 0.1: it reads what they say, whatever the question."""

    threshold = 0.5

    def __init__(self) -> None:
        self.screened = 0

    def score(self, question: str, documents: Sequence[Document]) -> float:
        return 0.9 if {word for document in documents for word in document.text.split()} >= COLOURS else 0.1

    def screen(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[Screening]:
        self.screened += len(questions)
        return [Screening(self.score(q, ranked(docs)), (), len(docs)) for q, docs in zip(questions, documents, strict=True)]

    def leave_one_out(self, questions: Sequence[str], documents: Sequence[Sequence[Document]]) -> list[list[Removal]]:
        return [
            [
                Removal((left_out.id,), rank, self.score(q, [d for d in ranked(docs) if d is not left_out]))
                for rank, left_out in enumerate(ranked(docs), start=1)
                if len(docs) > 1
            ]
            for q, docs in zip(questions, documents, strict=True)
        ]


class Stylist(Reads):
    """0.9 where any document is written in the generator's style."""

    def score(self, question: str, documents: Sequence[Document]) -> float:
        return 0.9 if any("moreover" in document.text for document in documents) else 0.1


class Orderly(Reads):
    """0.9 where the first document says `red`."""

    def score(self, question: str, documents: Sequence[Document]) -> float:
        return 0.9 if "red" in documents[0].text else 0.1


@pytest.fixture(scope="session")
def stand_ins() -> SimpleNamespace:
    """Sieves without a model that obey the protocol: `reads` what is said, goes by `style`, goes by `order`."""
    return SimpleNamespace(reads=Reads, style=Stylist, order=Orderly)
