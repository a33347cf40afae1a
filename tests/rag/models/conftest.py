"""Tiny random models with tokenizers of their own, built from a config: nothing is downloaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
VOCABULARY = (
    "[PAD] [UNK] [CLS] [SEP] the annex museum opens at nine and closes every day is open was closed for good in 2011 . visitors see it all"
)
WORDS = VOCABULARY.split()


@pytest.fixture(scope="session")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Save a tiny Llama with a byte-level tokenizer that adds a BOS of its own, as Llama-3's does; the template places one too."""

    def make(template: str = "{{ bos_token }}" + CHATML, positions: int = 512) -> Path:
        folder = tmp_path_factory.mktemp("causal")
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        tokenizer.train_from_iterator(
            ["the capital of Peru"], trainers.BpeTrainer(vocab_size=280, initial_alphabet=alphabet, show_progress=False)
        )
        tokens = ["<s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<pad>"]
        tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens])
        tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
        fast = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token="<s>", eos_token="<|endoftext|>", pad_token="<pad>", chat_template=template
        )
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=len(fast),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=positions,
            initializer_range=0.3,
            bos_token_id=fast.bos_token_id,
            eos_token_id=fast.eos_token_id,
            pad_token_id=fast.pad_token_id,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
        fast.save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Save a tiny BERT of 64 positions that classifies pairs, with one token for each of some words."""

    def make(labels: list[str], positions: int = 64, seed: int = 0) -> Path:
        folder = tmp_path_factory.mktemp("classifier")
        tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        special: Any = [(token, WORDS.index(token)) for token in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special)
        fast = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            pad_token="[PAD]",
            unk_token="[UNK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        )
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(WORDS),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=positions,
            initializer_range=0.5,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: number for number, label in enumerate(labels)},
        )
        BertForSequenceClassification(config).save_pretrained(folder)
        fast.save_pretrained(folder)
        return folder

    return make
