"""A loaded Sage answers as it was trained to, stops, and treats every item of a batch alike."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from rag.checkpoint import MANIFEST
from rag.errors import InputError
from rag.records import Document, Example
from sage.inputs import InputSettings
from sage.model import ModelSettings, load_backbone
from sage.parse import Kind, Parsed
from sage.predict import Reply, Sage, load, load_untrained
from sage.settings import SageSettings, TrainSettings
from sage.train import TrainingResult

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


@pytest.fixture(scope="module")
def sage(trained: TrainingResult) -> Sage:
    return load(trained.path, device="cpu", precision="fp32", max_new_tokens=12)


@pytest.fixture(scope="module")
def untrained(chatml_base: Path, settings_for: Callable[..., ModelSettings], inputs: InputSettings) -> Sage:
    return load_untrained(settings_for(chatml_base), inputs, batch_size=3, max_new_tokens=8)


def ask(sage: Sage, *examples: Example) -> list[Reply | InputError]:
    return sage.answer([e.question for e in examples], [e.documents for e in examples])


def test_it_says_what_it_learnt_and_stops(sage: Sage, make_example: Callable[..., Example]) -> None:
    """Pitfall B2: fewer than 10 new tokens, ended by the model itself."""
    answered, abstained = ask(sage, make_example(1), make_example(2, answer=None, text="Nothing is known of any capital."))
    assert isinstance(answered, Reply)
    assert (answered.output, answered.parsed) == ("Lima", Parsed(Kind.ANSWER, "Lima"))
    assert answered.finished
    assert answered.completion_tokens < 10
    assert 0.5 < answered.confidence <= 1
    assert answered.prompt_tokens == answered.prompt.tokens
    assert isinstance(abstained, Reply)
    assert abstained.parsed == Parsed(Kind.ABSTENTION)


def test_it_stops_though_its_tokenizer_names_another_end(
    train_on: Callable[..., TrainingResult], llama3_base: Path, make_example: Callable[..., Example]
) -> None:
    """Pitfall B2, with a tokenizer whose eos is `<|end_of_text|>` and turns that end with `<|eot_id|>`."""
    result = train_on(llama3_base, [make_example(1)], epochs=30, eval_steps=30)
    (reply,) = ask(load(result.path, device="cpu", precision="fp32", max_new_tokens=12), make_example(1))
    assert isinstance(reply, Reply)
    assert (reply.output, reply.finished) == ("Lima", True)
    assert reply.completion_tokens < 10


def test_the_confidence_is_the_geometric_mean_over_the_generated_tokens(sage: Sage, make_example: Callable[..., Example]) -> None:
    example = make_example(1)
    (reply,) = ask(sage, example)
    assert isinstance(reply, Reply)
    prompt = sage._build(example.question, example.documents)
    assert not isinstance(prompt, InputError)
    taught = [*sage.tokenizer("Lima", add_special_tokens=False)["input_ids"], sage.tokenizer.convert_tokens_to_ids("<|im_end|>")]
    with torch.inference_mode():
        logits = sage.model(torch.tensor([prompt.ids + taught])).logits[0, len(prompt.ids) - 1 : -1]
    expected = logits.log_softmax(-1).gather(1, torch.tensor([taught]).T).mean().exp().item()
    assert reply.confidence == pytest.approx(expected, rel=1e-4)
    assert reply.completion_tokens == len(taught)


def test_an_output_cut_at_the_token_limit_is_not_an_answer(sage: Sage, make_example: Callable[..., Example]) -> None:
    short = Sage(sage.model, sage.tokenizer, list(sage.ends), sage.inputs, batch_size=1, max_new_tokens=1)
    (reply,) = ask(short, make_example(1))
    assert isinstance(reply, Reply)
    assert reply.output
    assert (reply.finished, reply.parsed) == (False, Parsed(Kind.UNPARSED))


def test_a_reply_does_not_depend_on_its_batch_mates(untrained: Sage, make_example: Callable[..., Example]) -> None:
    """Promise 7, in float32: alone and beside shorter and longer prompts, in any order."""
    examples = [make_example(i, text="The capital of Peru is Lima. " * (1 + 3 * i)) for i in (3, 0, 2, 4, 1)]
    together = ask(untrained, *examples)
    alone = [ask(untrained, example)[0] for example in examples]
    for one, other in zip(together, alone, strict=True):
        assert isinstance(one, Reply)
        assert isinstance(other, Reply)
        assert one._replace(confidence=0) == other._replace(confidence=0)
        assert one.confidence == pytest.approx(other.confidence, rel=1e-4)
    assert len({reply.output for reply in together if isinstance(reply, Reply)}) > 1


def test_an_item_that_cannot_be_asked_leaves_the_others_alone(untrained: Sage, make_example: Callable[..., Example]) -> None:
    good = make_example(1)
    too_long = good.model_copy(update={"question": "Who? " * 500})
    empty = good.model_copy(update={"documents": (Document(id="d1", text=" "),)})
    replies = ask(untrained, good, too_long, empty, good)
    assert isinstance(replies[0], Reply)
    assert "max_prompt_tokens" in str(replies[1])
    assert "at least one document with text" in str(replies[2])
    one, other = replies[0], replies[3]
    assert isinstance(one, Reply) and isinstance(other, Reply)
    assert one._replace(confidence=0) == other._replace(confidence=0)
    assert one.confidence == pytest.approx(other.confidence, rel=1e-4)


def test_no_items_give_no_replies(untrained: Sage) -> None:
    assert untrained.answer([], []) == []


def test_a_loaded_checkpoint_computes_what_was_trained(
    trained: TrainingResult, sage: Sage, untrained: Sage, make_example: Callable[..., Example]
) -> None:
    """Saved and loaded, the adapter gives the validation loss that its manifest states; without it the base does not."""
    # The validation questions of the `trained` fixture.
    examples = [make_example(7), make_example(8, answer=None, text="Nothing is known of any capital.")]

    def loss(model: Sage) -> float:
        total, count = 0.0, 0
        for example, answer in zip(examples, ["Lima", "unanswerable"], strict=True):
            prompt = model._build(example.question, example.documents)
            assert not isinstance(prompt, InputError)
            taught = [*model.tokenizer(answer, add_special_tokens=False)["input_ids"], model.tokenizer.convert_tokens_to_ids("<|im_end|>")]
            with torch.inference_mode():
                logits = model.model(torch.tensor([prompt.ids + taught])).logits[0, len(prompt.ids) - 1 : -1]
            total -= logits.log_softmax(-1).gather(1, torch.tensor([taught]).T).sum().item()
            count += len(taught)
        return total / count

    assert loss(sage) == pytest.approx(trained.manifest.validation["loss"], rel=0.05)
    assert loss(untrained) > 1


def test_an_adapter_on_another_base_is_refused(trained: TrainingResult, new_base: Callable[..., Path]) -> None:
    """Promise 13."""
    other = new_base(seed=1)
    with pytest.raises(InputError, match="trained on .* with fingerprint"):
        load(trained.path, device="cpu", precision="fp32", base=str(other))
    assert load(trained.path, device="cpu", precision="fp32", base=str(new_base(seed=0))).inputs.max_prompt_tokens == 400


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="python -m sage.train"):
        load(tmp_path)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_base_and_adapter_are_served_in_one_precision(trained: TrainingResult, precision: str) -> None:
    """Pitfall B5: PEFT would keep the adapter in float32 beside a bfloat16 base."""
    model = load(trained.path, device="cpu", precision=precision).model  # type: ignore[arg-type]
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16 if precision == "bf16" else torch.float32}
    assert {parameter.dtype for name, parameter in model.named_parameters() if "lora_" in name} == {model.dtype}


def test_the_served_weights_are_those_of_the_base(
    trained: TrainingResult, sage: Sage, settings_for: Callable[..., ModelSettings], chatml_base: Path
) -> None:
    base = load_backbone(settings_for(chatml_base)).model.state_dict()
    served = {name.replace(".base_layer", ""): tensor for name, tensor in sage.model.state_dict().items() if "lora_" not in name}
    assert served.keys() == base.keys()
    assert all(torch.equal(served[name], base[name]) for name in base)


def test_a_checkpoint_from_before_the_conflict_string_is_a_two_way_sage(
    trained: TrainingResult,
    make_example: Callable[..., Example],
    chatml_base: Path,
    settings_for: Callable[..., ModelSettings],
    tmp_path: Path,
) -> None:
    old = tmp_path / "old"
    shutil.copytree(trained.path, old)
    manifest = json.loads((old / MANIFEST).read_text())
    del manifest["conflict"], manifest["settings"]["inputs"]["conflict"], manifest["settings"]["train"]["answerable_per_conflict"]
    (old / MANIFEST).write_text(json.dumps(manifest))
    train = TrainSettings.model_validate(trained.manifest.settings["train"])
    expected = SageSettings(model=settings_for(chatml_base), inputs=InputSettings(max_prompt_tokens=400), train=train)
    sage = load(old, device="cpu", precision="fp32", max_new_tokens=12, expected=expected)
    assert sage.inputs.conflict is None
    (reply,) = ask(sage, make_example(1))
    assert isinstance(reply, Reply)
    assert reply.output == "Lima"
