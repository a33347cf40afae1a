"""A GGUF file as a chat model, through llama-cpp-python (the extra `gguf`)."""

import threading
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from rag.checkpoint import sha256
from rag.errors import InputError
from rag.models.chat import ChatFailure, ChatRequest, Completion, Reply, in_order, sampling_seed, without_system_role
from rag.records import Text
from rag.settings import InputPath


class LlamaCppChat:
    """Answers chats one after another; a lock keeps two threads out of one model, which would crash the process."""

    def __init__(self, llama: Any, name: str, *, max_tokens: int, temperature: float, top_p: float, system_role: bool) -> None:
        """Keep a `llama_cpp.Llama`; `name` covers all that decides a reply."""
        self.name = name
        self._llama = llama
        self._lock = threading.Lock()
        self._system_role = system_role
        # The library's own defaults would narrow the sampling further.
        self._decoding = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p, "top_k": 0, "min_p": 0.0}

    def complete(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """One reply for each request, in order; a chat longer than the model's context is a ChatFailure."""
        return in_order(self.stream(requests))

    def stream(self, requests: Sequence[ChatRequest]) -> Iterator[tuple[int, Reply]]:
        """Replies one by one."""
        for place, request in enumerate(requests):
            yield place, self._ask(request)

    def _ask(self, request: ChatRequest) -> Reply:
        messages = request.messages if self._system_role else without_system_role(request.messages)
        chat = [message._asdict() for message in messages]
        with self._lock:
            # What an earlier chat left in the cache would be evaluated in other steps, and round otherwise.
            self._llama.reset()
            try:
                answer = self._llama.create_chat_completion(messages=chat, seed=sampling_seed(request, 31), **self._decoding)
            except ValueError as error:
                if "context window" not in str(error):
                    raise
                return ChatFailure(str(error))
        choice, usage = answer["choices"][0], answer["usage"]
        finished = choice["finish_reason"] == "stop"
        return Completion(choice["message"]["content"] or "", usage["prompt_tokens"], usage["completion_tokens"], finished)


def load(
    path: InputPath,
    context: Annotated[int, Field(ge=64)] = 4096,
    max_tokens: Annotated[int, Field(ge=1)] = 512,
    temperature: Annotated[float, Field(ge=0)] = 0.0,
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0,
    gpu_layers: Annotated[int, Field(ge=-1)] = 0,
    threads: Annotated[int, Field(ge=1)] | None = None,
    chat_format: Text | None = None,
    system_role: bool = True,
) -> LlamaCppChat:
    """Load a GGUF file.

    `context` is in tokens, chat and reply together. `gpu_layers` of -1 are all. `chat_format` is llama-cpp-python's name of a template, none for
    the one in the file. With `system_role=false` the system's text opens the user's turn, for a template that does not know that role.
    A request's seed and chat seed its sampling; at a temperature of 0 the reply is greedy.

    Raises InputError without the library or the file.
    """
    try:
        from llama_cpp import Llama
    except ModuleNotFoundError as error:
        raise InputError("chat=llama_cpp needs llama-cpp-python; pip install 'sieve-and-sage[gguf]'") from error
    if not path.is_file():
        raise InputError(f"chat.path: expected a GGUF file, found none at {path}")
    llama = Llama(model_path=str(path), n_ctx=context, n_gpu_layers=gpu_layers, n_threads=threads, chat_format=chat_format, verbose=False)
    decoding = f"max_tokens={max_tokens} temperature={temperature} top_p={top_p}"
    name = f"{path.name}@{sha256(path)[:16]} {chat_format or 'own template'} system_role={system_role} {decoding}"
    return LlamaCppChat(llama, name, max_tokens=max_tokens, temperature=temperature, top_p=top_p, system_role=system_role)
