"""Where a chat model's turn ends, read from its chat template and its own lists of end tokens."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rag.errors import InputError

SENTINEL = "sentinel"


def end_ids(
    tokenizer: PreTrainedTokenizerBase,
    model: PreTrainedModel,
    further: tuple[str, ...] = (),
    settings: str = "model",
    turns: bool = True,
) -> tuple[int, ...]:
    """Ids at which generation stops: the chat template's end of turn first, then every end of sequence that the base names.

    A base may name another token than its template ends a turn with, so one alone is not enough. `settings` is where `base` and `end_tokens`
    are set, for errors. With `turns` false the template need not end a turn: the base goes on with a text until its own end of sequence.
    Raises InputError for tokens that are not in the vocabulary, as `end_of_turn` does, and where nothing is named.
    """
    unknown = [token for token in further if token not in tokenizer.get_vocab()]
    if unknown:
        raise InputError(f"{settings}.end_tokens: not in the vocabulary: {', '.join(unknown)}")
    named = model.generation_config.eos_token_id
    candidates = [
        end_of_turn(tokenizer, settings) if turns else None,
        tokenizer.eos_token_id,
        *(named if isinstance(named, list) else [named]),
        *(tokenizer.convert_tokens_to_ids(token) for token in further),
    ]
    ends = tuple(dict.fromkeys(int(i) for i in candidates if i is not None))
    if not ends:
        raise InputError(f"{settings}.base: it names no token that ends a text; set {settings}.end_tokens")
    return ends


def end_of_turn(tokenizer: PreTrainedTokenizerBase, settings: str = "model") -> int:
    """The control token that the chat template puts after the assistant's words, found by rendering a turn.

    Raises InputError when there is no chat template, or when it ends the turn without a control token.
    """
    if tokenizer.chat_template is None:
        raise InputError(f"{settings}.base: the tokenizer has no chat template; choose an instruction-tuned model")
    chat = [{"role": "user", "content": "question"}, {"role": "assistant", "content": SENTINEL}]
    rendered = str(tokenizer.apply_chat_template(chat, tokenize=False))
    tail = tokenizer(rendered.rpartition(SENTINEL)[2], add_special_tokens=False)["input_ids"]
    if not tail or tail[0] not in tokenizer.added_tokens_decoder:
        raise InputError(f"{settings}.base: the chat template does not end an assistant's turn with a control token")
    return int(tail[0])
