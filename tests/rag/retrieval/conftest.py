"""Tiny random encoders, and corpora with everything that is awkward in real ones; nothing is downloaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from rag.records import Document
from rag.retrieval.corpus import Corpus, write_corpus

CONTROL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
WORDS = [f"w{i}" for i in range(100)] + list("?!.,:")


def save_bert(folder: Path, seed: int = 0, positions: int = 96, max_length: int = 96, **extra: Any) -> BertModel:
    """A random BERT with one token for each word between spaces."""
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate([*CONTROL, *WORDS])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROL[:5]])
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **names).save_pretrained(folder)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(CONTROL) + len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=positions,
        # Larger than usual, so that different texts get clearly different vectors.
        initializer_range=0.2,
        **extra,
    )
    model = BertModel(config)
    model.save_pretrained(folder)
    return model


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Save a tiny model of sentence-transformers, BERT with mean or first-token pooling, and return its folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    def make(seed: int = 0, pooling: str = "mean", prompts: dict[str, str] | None = None, **options: Any) -> str:
        base, folder = tmp_path_factory.mktemp("bert"), tmp_path_factory.mktemp("encoder")
        save_bert(base, seed, **options)
        SentenceTransformer(modules=[Transformer(str(base)), Pooling(32, pooling)], prompts=prompts, device="cpu").save_pretrained(
            str(folder)
        )
        return str(folder)

    return make


@pytest.fixture(scope="session")
def minilm(encoder: Callable[..., str]) -> str:
    """The standard tiny encoder."""
    return encoder()


@pytest.fixture(scope="session")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Save a tiny model in the format of Stanford's ColBERTv2, whose questions are padded and cut to 32 tokens."""

    def make(query_maxlen: int = 32, doc_maxlen: int = 60) -> str:
        folder = tmp_path_factory.mktemp("colbert")
        model = save_bert(folder)
        weights = {f"bert.{name}": value.contiguous() for name, value in model.state_dict().items()}
        torch.manual_seed(7)
        weights["linear.weight"] = torch.randn(16, 32)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
        metadata = {"query_maxlen": query_maxlen, "doc_maxlen": doc_maxlen, "mask_punctuation": True, "attend_to_mask_tokens": False}
        (folder / "artifact.metadata").write_text(json.dumps(metadata))
        return str(folder)

    return make


def words(count: int, start: int = 0, step: int = 1) -> str:
    """A text of `count` tokens."""
    return " ".join(f"w{(start + i * step) % 100}" for i in range(count))


@pytest.fixture(scope="session")
def make_words() -> Callable[..., str]:
    return words


def awkward() -> list[Document]:
    """Unicode, regex characters, markup, one text under two titles, and ids whose order is not that of their rows."""
    texts = [
        "a river",
        "A RIVER.",
        "C++ (a|b)* [x] $5^2 \\d+",
        "東京都 は 首都",
        "école №5",
        "line\nbreak\ttab",
        "<doc id='1'>&amp;</doc>",
        "?!",
    ]
    documents = [Document(id=f"d{9 - i}", text=text, title="T" if i % 2 else "") for i, text in enumerate(texts)]
    return [
        *documents,
        Document(id="d10", text="a river", title="Other"),
        Document(id="É", text="w1 w2 w3"),
        Document(id="a b", text=words(40)),
    ]


@pytest.fixture
def awkward_documents() -> list[Document]:
    return awkward()


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Sixty documents of different lengths."""
    documents = [Document(id=f"d{i}", title=f"w{i}" if i % 3 else "", text=words(3 + i % 30, i * 7, 1 + i % 5)) for i in range(60)]
    return write_corpus(documents, tmp_path / "corpus")
