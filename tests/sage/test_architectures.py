"""Each base of conf/sage, as a tiny random model of its architecture with a chat template that behaves as its own does."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import jinja2
import pytest
from omegaconf import OmegaConf
from peft import get_peft_model
from transformers import Gemma2Config, LlamaConfig, MistralConfig, PreTrainedConfig, Qwen2Config

import conf
from rag.jsonl import write_records
from rag.models.lora import lora_config
from rag.records import Document, Example
from sage.data import make_row
from sage.inputs import InputSettings, build, template_ids
from sage.model import Backbone, ModelSettings, load_backbone
from sage.predict import Reply, load
from sage.settings import DataSettings, SageSettings, TrainJob, TrainSettings
from sage.train import train

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

LAYERS = 2
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
LLAMA3_TOKENS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN = "{% if messages[0].role != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}" + CHATML
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }}[/INST]"
    "{% elif m.role == 'assistant' %} {{ m.content | trim }}{{ eos_token }}{% else %}{{ raise_exception('unknown role') }}{% endif %}{% endfor %}"
)


class Family(NamedTuple):
    """How the real tokenizer and generation config of a base differ from the others."""

    config: Callable[..., PreTrainedConfig]
    template: str
    tokens: list[str]
    """Its control tokens, with those that its yaml names."""
    eos: str
    """What its tokenizer calls the end of a sequence; also its padding, unless `special` says otherwise."""
    ends: tuple[str, ...]
    """Further ends that its generation config names."""
    stops: tuple[str, ...]
    """Where generation must stop, the end of a turn first."""
    special: dict[str, str]


BOS = {"bos_token": "<|begin_of_text|>"}
FAMILIES = {
    "llama3_8b": Family(
        LlamaConfig,
        LLAMA3,
        [*LLAMA3_TOKENS, "<|reserved_special_token_250|>"],
        "<|eot_id|>",
        ("<|end_of_text|>",),
        ("<|eot_id|>", "<|end_of_text|>"),
        BOS,
    ),
    # The next two: a base whose generation config says nothing of the other end, and whose tokenizer's eos ends texts, not turns.
    "med42_8b": Family(
        LlamaConfig,
        LLAMA3,
        [*LLAMA3_TOKENS, "<|reserved_special_token_250|>"],
        "<|eot_id|>",
        (),
        ("<|eot_id|>", "<|end_of_text|>"),
        BOS,
    ),
    "astrosage_8b": Family(
        LlamaConfig,
        LLAMA3,
        [*LLAMA3_TOKENS, "<|finetune_right_pad_id|>"],
        "<|end_of_text|>",
        (),
        ("<|eot_id|>", "<|end_of_text|>"),
        BOS,
    ),
    "gemma2_9b_it": Family(
        lambda **shape: Gemma2Config(**shape, head_dim=16, sliding_window=64),
        GEMMA,
        ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"],
        "<eos>",
        (),
        ("<end_of_turn>", "<eos>"),
        {"bos_token": "<bos>", "pad_token": "<pad>"},
    ),
    "mistral_7b_instruct": Family(
        lambda **shape: MistralConfig(**shape, sliding_window=None),
        MISTRAL,
        ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[control_768]"],
        "</s>",
        (),
        ("</s>",),
        {"bos_token": "<s>"},
    ),
    "qwen25_7b_instruct": Family(
        Qwen2Config,
        QWEN,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_pad|>"],
        "<|im_end|>",
        ("<|endoftext|>",),
        ("<|im_end|>", "<|endoftext|>"),
        {"pad_token": "<|endoftext|>"},
    ),
    "qwen25_coder_05b": Family(
        Qwen2Config,
        QWEN,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_pad|>"],
        "<|im_end|>",
        ("<|endoftext|>",),
        ("<|im_end|>", "<|endoftext|>"),
        {"pad_token": "<|endoftext|>"},
    ),
    "smollm2_135m": Family(
        LlamaConfig,
        CHATML,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<file_sep>"],
        "<|im_end|>",
        (),
        ("<|im_end|>", "<|endoftext|>"),
        {"bos_token": "<|im_start|>"},
    ),
}
NOT_A_BASE = {"local", "paper", "sage_only"}


@functools.cache
def settings_of(name: str) -> SageSettings:
    """What conf/sage/NAME.yaml composes to."""
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed = hydra.compose("sage_train", [f"sage={name}", "data.train=x", "data.validation=x"])
    return TrainJob.model_validate(OmegaConf.to_container(composed, resolve=True)).sage


@pytest.fixture(scope="module")
def bases(base_of_family: Callable[..., Path]) -> dict[str, Path]:
    return {
        name: base_of_family(f.template, f.tokens, f.eos, config_class=f.config, ends=f.ends, **f.special) for name, f in FAMILIES.items()
    }


@pytest.fixture(scope="module", params=FAMILIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str, bases: dict[str, Path]) -> ModelSettings:
    """The yaml's own settings, on the tiny base of that architecture."""
    return settings_of(name).model.model_copy(update={"base": str(bases[name]), "precision": "fp32", "device": "cpu"})


@pytest.fixture(scope="module")
def backbone(model: ModelSettings) -> Backbone:
    return load_backbone(model)


def test_every_base_of_the_configs_is_here() -> None:
    assert set(FAMILIES) == {path.stem for path in (Path(conf.__file__).parent / "sage").glob("*.yaml")} - NOT_A_BASE


def test_generation_stops_at_every_end_and_padding_is_none_of_them(name: str, model: ModelSettings, backbone: Backbone) -> None:
    """Pitfall B2. `load_backbone` refuses a padding token that ends something."""
    tokenizer = backbone.tokenizer
    assert tuple(tokenizer.convert_ids_to_tokens(list(backbone.ends))) == FAMILIES[name].stops
    assert tokenizer.pad_token_id not in backbone.ends
    assert model.pad_token is None or tokenizer.pad_token == model.pad_token


def test_the_prompt_has_one_bos_and_opens_the_training_row(
    name: str, backbone: Backbone, inputs: InputSettings, make_example: Callable[..., Example]
) -> None:
    """Promise 6 and pitfall B2."""
    tokenizer, example = backbone.tokenizer, make_example(1)
    served = build(example.question, example.documents, tokenizer, inputs)
    row = make_row(example, tokenizer, inputs, backbone.ends[0])
    prompt = row["input_ids"][: row["completion_mask"].index(1)]
    assert served.ids == prompt
    if FAMILIES[name].special.get("bos_token") in (None, "<|im_start|>"):
        assert tokenizer.bos_token is None or name == "smollm2_135m"  # SmolLM2 calls the start of a turn its BOS
    else:
        assert row["input_ids"].count(tokenizer.bos_token_id) == 1
        assert served.ids[0] == tokenizer.bos_token_id
    answer = tokenizer.decode(row["input_ids"][len(prompt) : -1])
    assert answer.strip() == "Lima"
    assert row["input_ids"][-1] == backbone.ends[0]


def test_a_system_message_of_the_template_counts_in_the_budget(
    bases: dict[str, Path], make_example: Callable[..., Example], inputs: InputSettings
) -> None:
    """Qwen2.5 adds one where the chat has none."""
    example, settings = make_example(1), settings_of("qwen25_7b_instruct").model
    tokenizer = load_backbone(
        settings.model_copy(update={"base": str(bases["qwen25_7b_instruct"]), "precision": "fp32", "device": "cpu"})
    ).tokenizer
    served = build(example.question, example.documents, tokenizer, inputs)
    assert tokenizer.decode(served.ids).startswith("<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n")
    assert served.prompt.tokens == len(served.ids)
    with_own = template_ids([{"role": "system", "content": "Mine."}, *served.messages], tokenizer)
    assert "You help." not in tokenizer.decode(with_own)


@pytest.mark.parametrize("family", ["gemma2_9b_it", "mistral_7b_instruct"])
def test_a_template_that_refuses_a_system_message_never_gets_one(bases: dict[str, Path], family: str, inputs: InputSettings) -> None:
    settings = settings_of(family).model
    tokenizer = load_backbone(settings.model_copy(update={"base": str(bases[family]), "precision": "fp32", "device": "cpu"})).tokenizer
    built = build("Who?", [Document(id="d1", text="Ada.")], tokenizer, inputs)
    assert len(built.ids) > 0
    with pytest.raises(jinja2.exceptions.TemplateError, match="System role not supported|unknown role"):
        template_ids([{"role": "system", "content": "Mine."}, *built.messages], tokenizer)


def test_the_adapter_s_target_modules_are_layers_of_this_architecture(name: str, model: ModelSettings) -> None:
    assert model.lora is not None
    adapted = get_peft_model(load_backbone(model).model, lora_config(model.lora, "generation"))
    adapted_layers = [layer.removesuffix(".lora_A.default.weight") for layer, _ in adapted.named_parameters() if "lora_A" in layer]
    targets: Any = model.lora.target_modules
    kinds = {layer.rpartition(".")[2] for layer in adapted_layers}
    expected = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"} if targets == "all-linear" else set(targets)
    assert kinds == expected, name
    assert len(adapted_layers) == LAYERS * len(expected)


@pytest.mark.parametrize("name", ["llama3_8b", "gemma2_9b_it", "mistral_7b_instruct", "qwen25_7b_instruct"], indirect=True)
def test_each_architecture_trains_saves_loads_and_answers(
    model: ModelSettings,
    inputs: InputSettings,
    train_settings: TrainSettings,
    make_example: Callable[..., Example],
    tmp_path: Path,
) -> None:
    """With gradient checkpointing, as the 8B configs have it; serving gives the same reply alone and beside a longer mate."""
    (tmp_path / "out").mkdir()
    write_records(tmp_path / "train.jsonl", [make_example(1), make_example(2, answer=None, text="Nothing is known.")])
    write_records(tmp_path / "validation.jsonl", [make_example(8)])
    sage = SageSettings(model=model, inputs=inputs, train=train_settings.model_copy(update={"gradient_checkpointing": True}))
    data = DataSettings.model_validate({"train": tmp_path / "train.jsonl", "validation": tmp_path / "validation.jsonl"})
    result = train(TrainJob(sage=sage, data=data), tmp_path / "out")
    assert result.manifest.validation["step"] == 1

    served = load(tmp_path / "out", device="cpu", precision="fp32", max_new_tokens=8)
    short, long = make_example(1), make_example(2, text="A much longer document. " * 8)
    [alone] = served.answer([short.question], [short.documents])
    together = served.answer([short.question, long.question], [short.documents, long.documents])
    assert isinstance(alone, Reply)
    assert all(isinstance(reply, Reply) and 1 <= reply.completion_tokens <= 8 for reply in together)
    assert isinstance(together[0], Reply)
    assert together[0].output == alone.output
    assert together[0].confidence == pytest.approx(alone.confidence, abs=1e-5)
