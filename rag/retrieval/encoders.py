"""Encoders of sentence-transformers: loaded, fingerprinted, and asked how much of a text they would read."""

import hashlib
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedTokenizerBase

from rag.errors import InputError
from rag.models.base import locate, pick_device, quiet
from rag.records import Document

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer


def load_encoder(model: str, revision: str | None, device: str) -> "SentenceTransformer":
    """Load an encoder of one vector for each text: a hub id, a folder, or `artifact:NAME`.

    Raises InputError without the extra `retrieval`, and where the model cannot be found.
    """
    encoder: SentenceTransformer = _load("SentenceTransformer", model, revision, device)
    return encoder


def load_multi_vector_encoder(model: str, revision: str | None, device: str) -> "MultiVectorEncoder":
    """Load an encoder of one vector for each token, such as ColBERTv2. Raises InputError as `load_encoder` does."""
    encoder: MultiVectorEncoder = _load("MultiVectorEncoder", model, revision, device)
    return encoder


def _load(class_name: str, model: str, revision: str | None, device: str) -> Any:
    try:
        # Inside, since importing it changes the process' warnings.
        import sentence_transformers
    except ImportError as error:
        raise InputError("this retriever needs sentence-transformers; pip install 'sieve-and-sage[retrieval]'") from error
    path = locate(model)
    try:
        with quiet(), warnings.catch_warnings():
            encoder = getattr(sentence_transformers, class_name)(path, revision=revision, device=str(pick_device(device)))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"model '{model}': cannot be loaded ({reason}); expected a hub id that can be downloaded or is in the local cache, or a folder"
        ) from error
    if encoder.tokenizer is None:
        raise InputError(f"model '{model}': has no tokenizer, so it cannot read text")
    return encoder.eval()


def weights_fingerprint(encoder: Any) -> str:
    """Identify an encoder by its modules' settings and by names, shapes and first values of its parameters.

    BERT's pooler is left out: many files lack it, and it is then drawn at random.
    """
    digest = hashlib.sha256()
    for number, module in enumerate(encoder.children()):
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        digest.update(f"{number} {type(module).__name__} {sorted((k, str(v)) for k, v in settings.items())}\n".encode())
    for name, parameter in sorted(encoder.named_parameters()):
        if ".pooler." in name:
            continue
        sample = parameter.detach().flatten()[:16].to("cpu", torch.bfloat16).view(torch.int16).tolist()
        digest.update(f"{name} {tuple(parameter.shape)} {sample}\n".encode())
    return digest.hexdigest()[:16]


def position_limit(encoder: Any) -> int:
    """How many tokens the encoder can read at all, special ones included."""
    positions = getattr(encoder.config, "max_position_embeddings", None) if encoder.config is not None else None
    limits = [limit for limit in (encoder.max_seq_length, positions) if limit]
    return int(min(limits)) if limits else 1_000_000_000


def token_counts(encoder: Any, texts: Sequence[str], prompt: str) -> list[int]:
    """Tokens of each text with its prompt and the special tokens, before any cut."""
    tokenizer: PreTrainedTokenizerBase = encoder.tokenizer
    if not texts:
        return []
    with quiet():
        return [len(ids) for ids in tokenizer([prompt + text for text in texts], truncation=False, verbose=False)["input_ids"]]


def document_text(document: Document, separator: str) -> str:
    """What an encoder reads of a document: title and text, or the text alone where there is no title."""
    return f"{document.title}{separator}{document.text}" if document.title.strip() else document.text


def stored_prompt(encoder: Any, given: str | None, names: Sequence[str]) -> str:
    """The prompt that was given, or else the first of `names` that the checkpoint itself stores, or none."""
    if given is not None:
        return given
    return next((prompt for name in names if (prompt := encoder.prompts.get(name))), "")
