"""Tiny random Llamas with their own tokenizers, built from a config: nothing is downloaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, PreTrainedConfig, PreTrainedTokenizerFast

from rag.jsonl import write_records
from rag.models.lora import LoraSettings
from rag.records import Condition, Document, Example, RetrievalState
from sage.inputs import InputSettings
from sage.model import Backbone, ModelSettings, load_backbone
from sage.settings import DataSettings, SageSettings, TrainJob, TrainSettings
from sage.train import TrainingResult, train

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
CHATML_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]
LLAMA3_TOKENS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<pad>"]
TEXT = [
    "Answer the following question based on the provided documents. If you cannot find the answer in the provided documents,",
    "please respond with 'unanswerable'. Please provide the answer as a single word or term, without forming a complete sentence.",
    '<doc id="d1" title="Peru">\nThe capital of Peru is Lima.\n</doc>\n\nQuestion: What is the capital of Peru?',
]


def make_base(
    folder: Path,
    template: str,
    tokens: list[str],
    eos: str,
    seed: int = 0,
    config_class: Callable[..., PreTrainedConfig] = LlamaConfig,
    ends: tuple[str, ...] = (),
    **special: str,
) -> Path:
    """Save a tiny model, by default a Llama, and a byte-level tokenizer that adds a BOS of its own wherever it has one, as Llama-3's does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=700, initial_alphabet=sorted(alphabet), show_progress=False))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens])
    if bos := special.get("bos_token"):
        tokenizer.post_processor = TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])
    special = {"pad_token": eos, **special}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=eos, chat_template=template, **special)
    torch.manual_seed(seed)
    config = config_class(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.1,
        eos_token_id=fast.eos_token_id,
        bos_token_id=fast.bos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    model: Any = AutoModelForCausalLM.from_config(config)
    # The final norm bounds the logits; a larger frozen head leaves room to become sure of a token.
    model.lm_head.weight.data.mul_(5)
    # Llama-3's own generation config samples, and names an end that its tokenizer does not.
    named = [fast.eos_token_id, *(fast.convert_tokens_to_ids(token) for token in ends)]
    model.generation_config = GenerationConfig(do_sample=True, temperature=0.6, top_p=0.9, eos_token_id=named)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def chatml_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("chatml"), CHATML, CHATML_TOKENS, eos="<|im_end|>")


@pytest.fixture(scope="session")
def llama3_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its tokenizer's eos is the end of a text, its turns end with another token, and the tokenizer adds BOS like the template does."""
    return make_base(tmp_path_factory.mktemp("llama3"), LLAMA3, LLAMA3_TOKENS, eos="<|end_of_text|>", bos_token="<|begin_of_text|>")


def model_settings(base: Path, **changes: object) -> ModelSettings:
    settings = ModelSettings(base=str(base), pad_token="<pad>", lora=LoraSettings(r=8, alpha=16), precision="fp32", device="cpu")
    return settings.model_copy(update=changes)


@pytest.fixture(scope="session")
def chatml(chatml_base: Path) -> Backbone:
    return load_backbone(model_settings(chatml_base))


@pytest.fixture(scope="session")
def llama3(llama3_base: Path) -> Backbone:
    return load_backbone(model_settings(llama3_base))


@pytest.fixture(scope="session", params=["chatml", "llama3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


INPUTS = InputSettings(max_prompt_tokens=400)
TRAIN = TrainSettings(
    epochs=1,
    learning_rate=0.01,
    warmup_ratio=0.05,
    scheduler="linear",
    optimizer="adamw_torch",
    batch_size=2,
    gradient_accumulation=1,
    max_length=440,
    eval_steps=1,
    logging_steps=1,
)


def example(number: int, answer: str | None = "Lima", text: str = "The capital of Peru is Lima.") -> Example:
    """An answerable example, or an unanswerable one where `answer` is none."""
    state = RetrievalState.UNANSWERABLE if answer is None else RetrievalState.ANSWERABLE
    return Example(
        id=f"e{number}",
        question_id=f"q{number}",
        question=f"What is the capital of Peru, {number}?",
        documents=(Document(id="d1", text=text, title="Peru"), Document(id="d2", text="Cusco is old.")),
        answers=() if answer is None else (answer,),
        state=state,
        condition=Condition(state.value),
    )


@pytest.fixture(scope="session")
def inputs() -> InputSettings:
    return INPUTS


@pytest.fixture(scope="session")
def train_settings() -> TrainSettings:
    return TRAIN


@pytest.fixture(scope="session")
def make_example() -> Callable[..., Example]:
    return example


@pytest.fixture(scope="session")
def settings_for() -> Callable[..., ModelSettings]:
    return model_settings


@pytest.fixture(scope="session")
def new_base(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build another ChatML base: of other weights, or with changes to its tokenizer."""

    def build(template: str = CHATML, eos: str = "<|im_end|>", seed: int = 0) -> Path:
        return make_base(tmp_path_factory.mktemp("base"), template, CHATML_TOKENS, eos, seed)

    return build


@pytest.fixture(scope="session")
def base_of_family(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build a base of another architecture, with a chat template and special tokens of its own."""

    def build(template: str, tokens: list[str], eos: str, **options: Any) -> Path:
        return make_base(tmp_path_factory.mktemp("family"), template, tokens, eos, **options)

    return build


@pytest.fixture(scope="session")
def job_in() -> Callable[..., TrainJob]:
    """Write examples for both splits into a folder and make the settings of a job on them."""

    def make(folder: Path, base: Path, examples: list[Example], *, precision: str = "fp32", **changes: object) -> TrainJob:
        write_records(folder / "train.jsonl", examples)
        # Near enough to what is learnt by heart that its loss falls too, and yet another question.
        others = [
            e.model_copy(update={"question_id": f"v-{e.question_id}", "question": e.question.translate(str.maketrans("12", "78"))})
            for e in examples
        ]
        write_records(folder / "validation.jsonl", others)
        sage = SageSettings(model=model_settings(base, precision=precision), inputs=INPUTS, train=TRAIN.model_copy(update=changes))
        return TrainJob(seed=0, sage=sage, data=DataSettings(train=folder / "train.jsonl", validation=folder / "validation.jsonl"))

    return make


@pytest.fixture(scope="session")
def train_on(tmp_path_factory: pytest.TempPathFactory, job_in: Callable[..., TrainJob]) -> Callable[..., TrainingResult]:
    """Run the training job on examples and return its result."""

    def run(base: Path, examples: list[Example], **changes: object) -> TrainingResult:
        folder = tmp_path_factory.mktemp("run")
        (folder / "out").mkdir()
        return train(job_in(folder, base, examples, **changes), folder / "out")

    return run


@pytest.fixture(scope="session")
def memorised() -> list[Example]:
    """One answer and one abstention, for the tiny Sage to learn by heart."""
    return [example(1), example(2, answer=None, text="Nothing is known of any capital.")]


@pytest.fixture(scope="session")
def trained(train_on: Callable[..., TrainingResult], chatml_base: Path, memorised: list[Example]) -> TrainingResult:
    """A tiny Sage that has learnt them."""
    return train_on(chatml_base, memorised, epochs=40, eval_steps=20)
