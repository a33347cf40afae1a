"""Find, load and fingerprint base models: hub ids, folders, and artifacts."""

import hashlib
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from rag.errors import InputError
from rag.models import artifacts
from rag.processes import local_rank, world_size

logger = logging.getLogger(__name__)

Precision = Literal["auto", "bf16", "fp32"]

ARTIFACT_PREFIX = "artifact:"


def pick_device(device: str) -> torch.device:
    """Resolve `auto` to the accelerator of this machine, or to the CPU where there is none; each process of a run has its own."""
    if device != "auto":
        return torch.device(device)
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        return torch.device("cpu")
    return torch.device(accelerator.type, local_rank()) if world_size() > 1 else accelerator


def pick_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """Resolve `auto` to bfloat16 where the device computes in it, else to float32 with a log line (emulated bfloat16 is slower)."""
    if precision != "auto":
        return torch.bfloat16 if precision == "bf16" else torch.float32
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        native = bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))
    else:
        native = device.type == "mps"
    if not native:
        logger.info("precision=auto: %s has no native bfloat16, using float32", device)
    return torch.bfloat16 if native else torch.float32


def locate(base: str) -> str:
    """Turn a base id into what transformers loads: a hub id or a folder with safetensors.

    `artifact:NAME` is one of `rag/models/artifacts.toml`, fetched where it is not there. One that is a GGUF file is
    converted to safetensors once, and kept in the cache folder too. Raises InputError for an unknown name, and where no
    source gives it.
    """
    if not base.startswith(ARTIFACT_PREFIX):
        return base
    artifact = artifacts.find(base.removeprefix(ARTIFACT_PREFIX))
    for file, digest in artifact.files.items():
        if file.endswith(".gguf"):
            converted = artifacts.cache_folder() / f"{file.removesuffix('.gguf')}-{digest[:16]}"
            if not converted.is_dir():
                _convert(artifacts.fetch(artifact) / file, converted)
            return str(converted)
    return str(artifacts.fetch(artifact))


def _convert(gguf: Path, target: Path) -> None:
    logger.info("converting %s to safetensors once, into %s", gguf.name, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}.partial-"))
    try:
        with quiet():
            quantized = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
            tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
            # The dequantized model still carries a quantization config, which transformers refuses to save.
            config = AutoConfig.for_model(**{k: v for k, v in quantized.config.to_dict().items() if k != "quantization_config"})
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
            model.load_state_dict(quantized.state_dict())
            model.save_pretrained(partial)
            tokenizer.save_pretrained(partial)
        try:
            partial.rename(target)
        except OSError:
            # Another process finished the same conversion first.
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and advice, and PEFT's use of its old names, inside the block; restore all afterwards."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
            yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def load_tokenizer(base: str, revision: str | None = None, pad_token: str | None = None) -> PreTrainedTokenizerBase:
    """Load a tokenizer. `pad_token` replaces its padding token and must already be in the vocabulary.

    Raises InputError when the base cannot be found, or when no padding token is left.
    """
    tokenizer: PreTrainedTokenizerBase = _load(AutoTokenizer, base, revision)
    if pad_token is not None:
        if pad_token not in tokenizer.get_vocab():
            raise InputError(f"pad_token '{pad_token}' is not in the vocabulary of {base}; choose one of its unused special tokens")
        tokenizer.pad_token = pad_token
    if tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {base} has no padding token; set pad_token to one of its unused special tokens")
    tokenizer.padding_side = "right"
    # transformers would otherwise warn about, or cut at, a length that our own input settings decide.
    tokenizer.model_max_length = 1_000_000_000
    return tokenizer


def load_model(auto_class: Any, base: str, revision: str | None = None, **options: Any) -> PreTrainedModel:
    """Load a model of `auto_class`, such as `AutoModelForCausalLM`, in evaluation mode. Raises InputError when it cannot be found."""
    model: PreTrainedModel = _load(auto_class, base, revision, **options)
    model.eval()
    return model


def _load(auto_class: Any, base: str, revision: str | None, **options: Any) -> Any:
    path = locate(base)
    try:
        with quiet():
            return auto_class.from_pretrained(path, revision=revision, **options)
    except (OSError, ValueError) as error:
        if Path(path).is_dir():
            raise InputError(f"base '{base}': the folder {path} cannot be loaded: {str(error).splitlines()[0]}") from error
        raise InputError(
            f"base '{base}' is neither a folder on this disk nor in the local hub cache, and it could not be downloaded; "
            "check the id, the network and your access to gated models, or set the base to a folder"
        ) from error


def fingerprint(model: PreTrainedModel) -> str:
    """Identify a backbone by the names, shapes and first values of its parameters, whatever dtype it was loaded in.

    The task head is left out, so a classifier and a causal model of the same weights agree, and so is BERT's pooler, which many files
    lack and which is then drawn at random. Packed 4-bit weights count by name and shape alone, since devices may pack them differently; so
    a base has another fingerprint in 4 bits than whole. Take it before adapters are added.
    """
    digest = hashlib.sha256()
    for name, parameter in sorted(model.base_model.named_parameters()):
        if name.startswith("pooler."):
            continue
        first = parameter.detach().flatten()[:16] if parameter.is_floating_point() else torch.empty(0)
        sample = first.to("cpu", torch.bfloat16).view(torch.int16).tolist()
        digest.update(f"{name} {tuple(parameter.shape)} {sample}\n".encode())
    return digest.hexdigest()[:16]


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Strings that the tokenizer turns into control ids when they appear in text; documents must not contain them.

    Some tokenizers add runs of white space as tokens of their own; those are text.
    """
    added = {str(token.content) for token in tokenizer.added_tokens_decoder.values()} | set(tokenizer.all_special_tokens)
    return sorted(token for token in added if len(token) > 1 and not any(character.isspace() for character in token))


def max_positions(model: PreTrainedModel) -> int | None:
    """The longest sequence that an encoder reads, special tokens included.

    None for a DeBERTa that has no position table: it groups relative distances, all far ones in one group, and so reads any length.
    """
    if model.config.model_type == "deberta-v2" and not model.config.position_biased_input and model.config.position_buckets > 0:
        return None
    for name, table in model.named_modules():
        # RoBERTa and its kin number positions from the row after the padding index.
        if name.endswith("position_embeddings") and isinstance(table, torch.nn.Embedding) and table.padding_idx is not None:
            return int(table.num_embeddings) - int(table.padding_idx) - 1
    return int(model.config.max_position_embeddings)
