"""Both training jobs in two processes on a CPU: as one process would have trained, written once, by DDP and by FSDP.

FSDP runs here by the settings of launch/fsdp_gpu.yaml, over gloo instead of NCCL. Accelerate turns FSDP on for accelerators alone, so the
processes tell it that the CPU is one; what is sharded, gathered and saved is then as on GPUs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env
from omegaconf import OmegaConf
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import sage.train
import sieve.train
from conf.job import check
from rag.jsonl import write_records
from rag.records import Condition, Document, Example, RetrievalState
from sage.settings import TrainJob as SageTrainJob
from sieve.settings import TrainJob as SieveTrainJob

ROOT = Path(__file__).parents[1]
LAUNCH = ROOT / "launch"
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROGRAM = """
import json, os, runpy, sys
import accelerate.state, torch
from accelerate.utils import DistributedType

torch.distributed.init_process_group("gloo")
as_on_an_accelerator = accelerate.state.PartialState._prepare_backend

def prepare(state, *arguments, **options):
    backend, kind = as_on_an_accelerator(state, *arguments, **options)
    return backend, DistributedType.MULTI_GPU if os.environ.get("ACCELERATE_USE_FSDP") else kind

def set_device(state):
    state.device = torch.device("cpu")

accelerate.state.PartialState._prepare_backend = prepare
accelerate.state.PartialState.set_device = set_device
for run in json.loads(sys.argv[1]):
    os.environ.update(run["environment"])
    sys.argv = run["command"]
    runpy.run_module(sys.argv[0], run_name="__main__")
    if os.environ["RANK"] == "0":
        print("ran as", accelerate.state.PartialState().distributed_type.value, flush=True)
torch.distributed.destroy_process_group()
"""


def make_base(folder: Path) -> Path:
    """A tiny Llama with a byte-level tokenizer, for both stages."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={character: i for i, character in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in TOKENS])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<pad>", chat_template=CHATML)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(fast), initializer_range=0.2, **shape)).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def examples(start: int, count: int) -> list[Example]:
    """A clean, an unanswerable and a conflict set for each question."""
    states = {
        Condition.ANSWERABLE: RetrievalState.ANSWERABLE,
        Condition.UNANSWERABLE: RetrievalState.UNANSWERABLE,
        Condition.CONFLICT: RetrievalState.DISTRACTED,
    }
    texts = {Condition.ANSWERABLE: "it is blue", Condition.UNANSWERABLE: "it is old", Condition.CONFLICT: "it is red, it is blue"}
    return [
        Example(
            id=f"e{i}-{condition}",
            question_id=f"q{i}",
            question=f"What colour, {i}?",
            documents=(Document(id="d1", text=f"{texts[condition]} {i}"),),
            answers=() if condition is Condition.UNANSWERABLE else ("blue",),
            state=state,
            condition=condition,
        )
        for i in range(start, start + count)
        for condition, state in states.items()
    ]


def fsdp_environment() -> dict[str, str]:
    """What `accelerate launch --config_file launch/fsdp_gpu.yaml` tells its processes about FSDP."""
    return {name: value for name, value in environment_of("fsdp_gpu.yaml").items() if name.startswith(("FSDP_", "ACCELERATE_USE_FSDP"))}


def environment_of(name: str) -> dict[str, str]:
    arguments = launch_command_parser().parse_args(["--config_file", str(LAUNCH / name), "-m", "sage.train", "out=x"])
    checked, _, _ = _validate_launch_command(arguments)
    with pytest.MonkeyPatch.context() as patch:
        # It would try the port of a launch, and tests open no socket.
        patch.setattr("accelerate.utils.launch.is_port_in_use", lambda _: False)
        environment: dict[str, str] = prepare_multi_gpu_env(checked)
    return environment


class Launched(NamedTuple):
    """Where the four runs of one launch wrote, and what the launch printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    folder = tmp_path_factory.mktemp("launch")
    base = make_base(folder / "base")
    write_records(folder / "train.jsonl", examples(0, 4))
    write_records(folder / "validation.jsonl", examples(10, 2))
    data = ["profile=local", "data.train=train.jsonl", "data.validation=validation.jsonl"]
    sieve = [
        *(
            "sieve.train",
            *data,
            "sieve=smollm2_12_layers",
            f"sieve.model.base={base}",
            "sieve.model.num_layers=null",
            "sieve.model.pad_token=null",
        ),
        *("sieve.model.precision=fp32", "sieve.inputs.max_length=128", "sieve.train.batch_size=2", "sieve.train.epochs=2"),
        *("sieve.train.warmup_ratio=0", "sieve.train.gradient_checkpointing=true"),
    ]
    sage = [
        *("sage.train", *data, f"sage.model.base={base}", 'sage.model.pad_token="<pad>"', "sage.model.precision=fp32"),
        *("sage.inputs.max_prompt_tokens=900", "sage.train.max_length=960", "sage.train.batch_size=1"),
        *("sage.train.gradient_accumulation=2", "sage.train.answerable_per_unanswerable=1", "sage.train.logging_steps=1"),
        "sage.train.gradient_checkpointing=true",
    ]
    fsdp = fsdp_environment()
    runs = [
        {"environment": {}, "command": [*sieve, "out=sieve-ddp"]},
        {"environment": {}, "command": [*sage, "out=sage-ddp"]},
        {"environment": fsdp, "command": [*sieve, "sieve.model.lora=null", "out=sieve-fsdp"]},
        {"environment": fsdp, "command": [*sage, "out=sage-fsdp"]},
    ]
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HYDRA_FULL_ERROR": "1"}
    done = subprocess.run(
        [*torchrun, "program.py", json.dumps(runs)], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return Launched(folder, done.stdout)


def alone(launched: Launched, out: str, settings: Any, train: Callable[..., Any], key: str) -> Path:
    """Train in this process by the config that a run of two left, with their rows in one step; the folder that it wrote."""
    config: Any = OmegaConf.to_container(OmegaConf.load(launched.folder / out / "config.yaml"))
    config[key]["train"]["batch_size"] *= 2
    folder = launched.folder / f"{out}-alone"
    folder.mkdir()
    train(check(config, settings, launched.folder), folder)
    return folder


def manifest(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return read


def test_each_run_was_of_its_kind(launched: Launched) -> None:
    assert [line for line in launched.printed.splitlines() if line.startswith("ran as")] == [
        "ran as MULTI_CPU",
        "ran as MULTI_CPU",
        "ran as FSDP",
        "ran as FSDP",
    ]


@pytest.mark.parametrize(
    ("out", "settings", "train", "key", "weights"),
    [
        ("sieve-ddp", SieveTrainJob, sieve.train.train, "sieve", "adapter_model.safetensors"),
        ("sage-ddp", SageTrainJob, sage.train.train, "sage", "adapter_model.safetensors"),
        ("sieve-fsdp", SieveTrainJob, sieve.train.train, "sieve", "model.safetensors"),
        ("sage-fsdp", SageTrainJob, sage.train.train, "sage", "adapter_model.safetensors"),
    ],
)
def test_two_processes_train_as_one_does_and_leave_one_checkpoint(
    launched: Launched, out: str, settings: Any, train: Callable[..., Any], key: str, weights: str
) -> None:
    folder = launched.folder / out
    single = alone(launched, out, settings, train, key)
    together, one = load_file(folder / weights), load_file(single / weights)
    assert set(together) == set(one)
    for name, tensor in one.items():
        assert torch.allclose(together[name], tensor, atol=1e-4), name
    assert (manifest(folder)["settings"]["processes"], manifest(single)["settings"]["processes"]) == (2, 1)
    assert manifest(folder)["threshold"] == (None if key == "sage" else pytest.approx(manifest(single)["threshold"], abs=1e-4))
    assert {path.name for path in folder.iterdir()} - {"config.yaml", "run.json", "metrics.jsonl", "tensorboard"} == {
        path.name for path in single.iterdir()
    }


def test_something_was_learnt(launched: Launched) -> None:
    """Else the comparison would pass for runs that train nothing."""
    weights = load_file(launched.folder / "sage-fsdp" / "adapter_model.safetensors")
    assert all(tensor.abs().max() > 0 for name, tensor in weights.items() if "lora_B" in name)
    base = load_file(launched.folder / "base" / "model.safetensors")
    trained = load_file(launched.folder / "sieve-fsdp" / "model.safetensors")
    assert all((trained[name] - base[name]).abs().max() > 1e-4 for name in base if "lm_head" not in name)


@pytest.mark.parametrize("name", [path.name for path in sorted(LAUNCH.glob("*.yaml"))])
def test_accelerate_reads_each_launch_config(name: str) -> None:
    """It refuses keys that it does not know."""
    environment = environment_of(name)
    assert (environment.get("ACCELERATE_USE_FSDP") == "true") == name.startswith("fsdp")
    assert environment["ACCELERATE_MIXED_PRECISION"] == "no"


def test_fsdp_is_the_version_and_the_loading_that_the_jobs_are_written_for() -> None:
    environment = fsdp_environment()
    assert (environment["FSDP_VERSION"], environment["FSDP_CPU_RAM_EFFICIENT_LOADING"]) == ("2", "false")
