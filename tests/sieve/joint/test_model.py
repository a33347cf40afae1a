"""Any encoder with one logit: what is loaded, what is trained, and what a Longformer made of a short encoder computes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from transformers import AutoModelForSequenceClassification, LongformerForSequenceClassification, PreTrainedModel

from rag.errors import InputError
from rag.models.lora import LoraSettings
from rag.rounding import TOLERANCE
from sieve.joint.model import (
    Backbone,
    LongContext,
    ModelSettings,
    head_layers,
    load_backbone,
    load_weights,
    require_positions,
    save_weights,
    to_longformer,
    trainable,
)

MINILM = "artifact:all-minilm-l6-v2"
BaseOf = Callable[[str], Path]
FAMILIES = ("bert", "roberta", "xlm-roberta", "longformer", "llama", "modernbert", "deberta-v2")
LORA = LoraSettings(r=2, alpha=4)


def hidden(model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """States of the last layer; a Longformer looks from its first token at all others, as the Sieve has it."""
    options: dict[str, torch.Tensor] = {}
    if model.config.model_type == "longformer":
        options["global_attention_mask"] = torch.zeros_like(ids).index_fill(1, torch.tensor(0), 1)
    with torch.inference_mode():
        states: torch.Tensor = model.base_model(input_ids=ids, attention_mask=mask, **options).last_hidden_state
    return states


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gets_one_logit_in_float32(backbone: Callable[[str], Backbone], family: str) -> None:
    loaded = backbone(family)
    assert loaded.model.config.num_labels == 1
    assert loaded.model.config.pad_token_id == loaded.tokenizer.pad_token_id == 1
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}
    with torch.inference_mode():
        assert loaded.model(input_ids=torch.tensor([[0, 5, 6, 2]])).logits.shape == (1, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_layers_can_be_kept_alone(base: BaseOf, family: str) -> None:
    """Longformer and ModernBERT list their layers in the config, too."""
    settings = ModelSettings(base=str(base(family)))
    whole, short = load_backbone(settings), load_backbone(settings.model_copy(update={"num_layers": 1}))
    assert short.model.config.num_hidden_layers == 1
    assert short.fingerprint != whole.fingerprint
    weights = whole.model.base_model.state_dict()
    kept = short.model.base_model.state_dict()
    assert 0 < len(kept) < len(weights)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in kept.items())


def test_more_layers_than_there_are_is_refused(base: BaseOf) -> None:
    with pytest.raises(InputError, match="sieve.model.num_layers=3: .* has 2 layers"):
        load_backbone(ModelSettings(base=str(base("bert")), num_layers=3))


@pytest.mark.parametrize(
    ("family", "positions"),
    [("bert", 128), ("roberta", 128), ("xlm-roberta", 128), ("longformer", 256), ("llama", 256), ("modernbert", 256), ("deberta-v2", 256)],
)
def test_a_length_beyond_the_position_table_is_refused(backbone: Callable[[str], Backbone], family: str, positions: int) -> None:
    """Pitfall A3. RoBERTa and its kin lose the rows up to the padding index; the longest sequence allowed does run."""
    model = backbone(family).model
    require_positions(model, positions)
    with torch.inference_mode():
        assert model(input_ids=torch.full((1, positions), 5)).logits.isfinite().all()
    with pytest.raises(InputError, match=rf"sieve.inputs.max_length={positions + 1}: the model reads at most {positions} tokens"):
        require_positions(model, positions + 1)


@pytest.mark.parametrize(
    ("family", "head"),
    [
        ("bert", ["classifier", "pooler"]),
        ("roberta", ["classifier"]),
        ("longformer", ["classifier"]),
        ("llama", ["score"]),
        ("modernbert", ["head", "classifier"]),
        ("deberta-v2", ["pooler", "classifier"]),
    ],
)
def test_an_adapter_brings_the_whole_head_with_it(base: BaseOf, tmp_path: Path, family: str, head: list[str]) -> None:
    """The head is drawn anew at each load; any layer of it that were not saved would make a served score differ from the trained one."""
    settings = ModelSettings(base=str(base(family)), lora=LORA)
    backbone = load_backbone(settings)
    assert head_layers(backbone.model) == head
    model = trainable(backbone, settings, None, "conflict")
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.2)
    save_weights(model, settings.base, tmp_path, torch.float32)
    served = load_weights(load_backbone(settings).model, settings, tmp_path, train=False)
    ids = torch.tensor([[0, 5, 6, 7, 2]])
    with torch.inference_mode():
        expected, logit = float(model.eval()(input_ids=ids).logits), float(served.eval()(input_ids=ids).logits)
        untrained = float(load_backbone(settings).model(input_ids=ids).logits)
    assert logit == pytest.approx(expected, abs=TOLERANCE["float32"])
    assert abs(logit - untrained) > 1e-2
    assert not any(parameter.requires_grad for parameter in served.parameters())


def test_a_wrong_base_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a folder on this disk nor in the local hub cache"):
        load_backbone(ModelSettings(base=str(tmp_path / "nothing")))
    with pytest.raises(InputError, match="artifact 'no-such-artifact': there is none of this name"):
        load_backbone(ModelSettings(base="artifact:no-such-artifact"))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_longformer_of_the_same_weights_computes_the_same_on_short_input(backbone: Callable[[str], Backbone], family: str) -> None:
    model = backbone(family).model
    longformer = to_longformer(model, 512, 64)
    ids = torch.randint(4, 100, (2, 32), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    ids[1, 20:], mask[1, 20:] = 1, 0
    before, after = hidden(model, ids, mask), hidden(longformer, ids, mask)
    assert torch.allclose(before[mask == 1], after[mask == 1], atol=TOLERANCE["float32"])


def test_minilm_as_a_longformer_computes_the_same_on_short_input() -> None:
    """With real weights; a window of 256 looks 128 tokens to either side."""
    plain = load_backbone(ModelSettings(base=MINILM))
    text = "Which year was the bridge opened? " + "The bridge over the river was opened to traffic in 1957. " * 8
    encoded = plain.tokenizer([text, text[:150]], padding=True, return_tensors="pt")
    ids, mask = encoded["input_ids"], encoded["attention_mask"]
    assert 100 < ids.shape[1] <= 128
    longformer = to_longformer(plain.model, 1024, 256)
    before, after = hidden(plain.model, ids, mask), hidden(longformer, ids, mask)
    assert torch.allclose(before[mask == 1], after[mask == 1], atol=1e-4)
    require_positions(longformer, 1024)


@pytest.mark.parametrize(("family", "first"), [("bert", 0), ("roberta", 2)])
def test_the_weights_of_a_longformer_made_from_an_encoder(backbone: Callable[[str], Backbone], family: str, first: int) -> None:
    """Projections of global attention are copies; the position table is the encoder's, repeated."""
    model = backbone(family).model
    source, target = model.base_model.state_dict(), to_longformer(model, 300, 32).longformer.state_dict()
    projections = [name for name in source if ".self." in name]
    assert len(projections) == 2 * 3 * 2
    for name in projections:
        copy = name.replace(".weight", "_global.weight").replace(".bias", "_global.bias")
        assert torch.equal(target[name], source[name])
        assert torch.equal(target[copy], source[name])
        assert target[copy].data_ptr() != target[name].data_ptr()
    table = source["embeddings.position_embeddings.weight"][first:]
    assert len(table) == 128
    positions = target["embeddings.position_embeddings.weight"][2:]  # the padding index is 1
    assert len(positions) == 300
    assert all(torch.equal(positions[i], table[i % 128]) for i in range(300))


def test_berts_pooler_starts_the_head_of_its_longformer(backbone: Callable[[str], Backbone]) -> None:
    model = backbone("bert").model
    longformer = to_longformer(model, 128, 32)
    for name in ("weight", "bias"):
        assert torch.equal(longformer.get_parameter(f"classifier.dense.{name}"), model.get_parameter(f"bert.pooler.dense.{name}"))


def test_a_converted_encoder_reads_thousands_of_tokens(base: BaseOf) -> None:
    """The last token, 2,200 tokens away, changes the score; one more than the table holds is refused."""
    settings = ModelSettings(base=str(base("roberta")), long_context=LongContext(max_positions=2304, attention_window=32))
    model = load_backbone(settings).model
    assert isinstance(model, LongformerForSequenceClassification)
    require_positions(model, 2304)
    with pytest.raises(InputError, match="reads at most 2304 tokens"):
        require_positions(model, 2305)
    ids = torch.randint(4, 100, (2, 2200), generator=torch.Generator().manual_seed(0))
    ids[1] = ids[0]
    ids[1, -1] = 4 if ids[0, -1] != 4 else 5
    reach = torch.zeros_like(ids).index_fill(1, torch.tensor(0), 1)
    with torch.inference_mode():
        one, other = model(input_ids=ids, attention_mask=torch.ones_like(ids), global_attention_mask=reach).logits
    assert one.isfinite()
    assert not torch.isclose(one, other, rtol=0, atol=TOLERANCE["float32"])


def test_a_longformer_of_4096_tokens_runs_at_its_limit(new_base: Callable[..., Path]) -> None:
    """Pitfall A3 (i), through the model: 4,096 tokens with 4,098 rows in the position table, also where it pads to its window."""
    base = new_base("longformer", max_position_embeddings=4098, num_hidden_layers=1, attention_window=[128])
    model = load_backbone(ModelSettings(base=str(base))).model
    require_positions(model, 4096)
    with pytest.raises(InputError, match="sieve.inputs.max_length=4097"):
        require_positions(model, 4097)
    for length in (4095, 4096):
        ids = torch.full((1, length), 7)
        reach = torch.zeros_like(ids).index_fill(1, torch.tensor(0), 1)
        with torch.inference_mode():
            assert model(input_ids=ids, attention_mask=torch.ones_like(ids), global_attention_mask=reach).logits.isfinite().all()


@pytest.mark.parametrize("family", ["modernbert", "llama", "deberta-v2", "longformer"])
def test_other_families_are_not_converted(base: BaseOf, family: str) -> None:
    settings = ModelSettings(base=str(base(family)), long_context=LongContext(max_positions=512))
    with pytest.raises(InputError, match=f"sieve.model.long_context: expected a bert or roberta encoder, got {family}"):
        load_backbone(settings)


def test_a_window_that_cannot_be_halved_is_refused() -> None:
    with pytest.raises(ValidationError, match="attention_window"):
        LongContext(max_positions=512, attention_window=31)


def test_a_converted_encoder_is_saved_as_the_longformer_it_became(base: BaseOf, tmp_path: Path) -> None:
    settings = ModelSettings(base=str(base("bert")), long_context=LongContext(max_positions=256, attention_window=32))
    model = load_backbone(settings).model
    save_weights(model, settings.base, tmp_path, torch.float32)
    again: Any = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert isinstance(again, LongformerForSequenceClassification)
    ids = torch.tensor([[0, 5, 6, 2]])
    with torch.inference_mode():
        logit, expected = float(again.eval()(input_ids=ids).logits), float(model(input_ids=ids).logits)
    assert logit == pytest.approx(expected, abs=TOLERANCE["float32"])
