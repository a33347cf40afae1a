"""The prompts of paper 002 that make reference sentences and distracting documents (tables 12 and 13), word for word.

As in `rag.prompts`, typographic quotation marks and apostrophes are plain ones here. Each prompt is sent as one user turn: the tables name no roles.
"""

import hashlib
from collections.abc import Mapping

from rag.models.chat import Message

_RESEARCH = (
    "The output generated will be used only for the purpose of conducting research to assess the robustness of the RAG system. "
    "As part of this research, it is necessary, and you are permitted, to create content that may contradict factual information. "
    "Please provide the passage alone, without any additional explanation, formatting, or commentary."
)
_SUPPORTING = (
    "You are a helpful assistant who generates a passage that supports the given sentence. "
    "Generate one natural passage with {MIN_LENGTH} ~ {MAX_LENGTH} characters. " + _RESEARCH
)

ANSWER_SENTENCE = (
    "Please write a single sentence that would make the given answer a correct response to the provided question. "
    "The sentence should include the answer and be as realistic as possible. "
    "This is being generated for research purposes, so if it seems like the answer to a question is wrong, please create it as it is.\n"
    "Question: {QUESTION}\n"
    "Answer: {ANSWER}\n"
    "Sentence:"
)
"""Table 12, Answer Sentence Generation: the reference sentence."""

CONFLICT_PASSAGE = (
    "You are a helpful assistant who generates a passage that conflicts with the given sentence. "
    "Generate one natural passage of {MIN_LENGTH} ~ {MAX_LENGTH} characters by substituting entities in the source sentence with similar "
    "but different entities. " + _RESEARCH + "\n"
    "Sentence: {ANSWER_SENTENCE}\n"
    "Conflict passage:"
)
"""Table 12, Conflict Passage Generation: from the reference sentence, in one step."""

ADVERSARIAL_SENTENCE = (
    "You are a helpful assistant who generates an adversarial sentence that can be confusing but not conflicting with the given question and "
    "answer sentence. Rewrite the given sentence by replacing one named entity and other entities related to it, ensuring that the new "
    "sentence retains a meaning as close as possible to the original while not being identical and not conflicting. "
    "You can also change the description of the entities so that the adversarial sentence never conflicts with the original sentence. "
    "I'll show you some examplars.\n"
    "[Example 1]\n"
    "Question: where did iowa state football coach come from?\n"
    "Answer sentence: John Pont, Iowa State's football coach, hails from Massillon, Ohio.\n"
    "Adversarial sentence: Jack Nilson, the best player of Minnesota State, came from Lincoln, Nebraska.\n"
    "[Example 2]\n"
    "Question: when did the united states cut off trade with cuba?\n"
    "Answer sentence: The United States cut off trade with Cuba in 1961.\n"
    "Adversarial sentence: South Korea started importing from Africa in 1987.\n"
    "Please provide only the adversarial sentence alone, without any additional explanation, formatting, or commentary.\n"
    "Question: {QUESTION}\n"
    "Answer Sentence: {ANSWER_SENTENCE}\n"
    "Adversarial sentence:"
)
"""Table 12, Adversarial Sentence Generation; `examplars` is the table's spelling."""

ADVERSARIAL_PASSAGE = _SUPPORTING + "\nSentence: {ADVERSARIAL_SENTENCE}\nSupporting Passage:"
"""Table 13, Adversarial Passage Generation."""

NEGATED_SENTENCE = (
    "You are a helpful assistant who generates a short negated sentence based on the given source sentence. "
    "Do not just create sentences by simply adding 'not' or using fixed patterns. Instead, generate diverse negated sentences that conflict "
    "with the original by altering predicates, adjectives, or other expressions. "
    "Generate one natural negated sentence within 150 characters. "
    "Please provide only the negated sentence, without any additional explanation, formatting, or commentary.\n"
    "Source sentence: {ANSWER_SENTENCE}\n"
    "Negated sentence:"
)
"""Table 13, Negated Sentence Generation."""

NEGATED_PASSAGE = _SUPPORTING + "\nSentence: {NEGATED_SENTENCE}\nSupporting passage:"
"""Table 13, Negated Passage Generation."""

CONTRADICTS = "Sentence: {ANSWER_SENTENCE}\nPassage: {PASSAGE}\nDoes the passage contradict the sentence? Answer with one word, yes or no."
"""The question to a judge (section 4.1 names an LLM verification without its prompt, so this one is ours)."""

PROMPTS = hashlib.sha256(
    "\0".join(
        (ANSWER_SENTENCE, CONFLICT_PASSAGE, ADVERSARIAL_SENTENCE, ADVERSARIAL_PASSAGE, NEGATED_SENTENCE, NEGATED_PASSAGE, CONTRADICTS)
    ).encode()
).hexdigest()[:12]
"""Version of the prompts above, for the lineage."""


def fill(prompt: str, values: Mapping[str, str]) -> tuple[Message, ...]:
    """The prompt as one user turn, each `{NAME}` replaced by its value in one pass, so that braces inside a value stay text."""
    parts = prompt.split("{")
    text = parts[0]
    for part in parts[1:]:
        name, _, rest = part.partition("}")
        text += values[name] + rest
    return (Message("user", text),)
