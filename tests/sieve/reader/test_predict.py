import math
from itertools import permutations

import pytest
import torch

from rag.errors import InputError
from rag.records import Document
from sieve.reader.inputs import answer_ids, encode
from sieve.reader.predict import ReaderSieve

QUESTION = "the answer is"
DOCUMENTS = [
    Document(id="a", text="w1 w2 w3 red", rank=1),
    Document(id="b", text="w4 w5 blue w6 w7", rank=2),
    Document(id="c", text="w8 w9 w10", rank=3),
    Document(id="d", text="w11 w12 w13 w14 w15 w16", rank=4),
]


def test_a_score_does_not_depend_on_the_order_of_documents(reader: ReaderSieve) -> None:
    orders = [[document.model_copy(update={"rank": None}) for document in order] for order in permutations(DOCUMENTS[:3])]
    scores = [screening.score for screening in reader.screen([QUESTION] * len(orders), orders)]
    assert 0 < max(scores) <= 1
    assert scores == pytest.approx([scores[0]] * len(scores), abs=1e-6)


def test_plain_texts_are_documents_in_the_order_given(reader: ReaderSieve) -> None:
    texts = [document.text for document in DOCUMENTS]
    (plain,) = reader.screen([QUESTION], [texts])
    (made,) = reader.screen([QUESTION], [DOCUMENTS])
    assert plain.score == made.score
    assert list(plain.readings) == ["d1", "d2", "d3", "d4"]
    assert [removal.ids for removal in reader.leave_one_out([QUESTION], [texts])[0]] == [("d1",), ("d2",), ("d3",), ("d4",)]
    with pytest.raises(InputError, match=r"got one text; write \[text\]"):
        reader.screen([QUESTION], texts)


def test_a_row_does_not_depend_on_its_batch_mates(reader: ReaderSieve) -> None:
    together = reader.screen([QUESTION] * 3, [DOCUMENTS, DOCUMENTS[:2], DOCUMENTS[2:]])
    reader.batch_tokens = 1
    alone = [reader.screen([QUESTION], [docs])[0] for docs in (DOCUMENTS, DOCUMENTS[:2], DOCUMENTS[2:])]
    assert [s.score for s in together] == pytest.approx([s.score for s in alone], abs=1e-5)
    assert [dict(s.readings) for s in together] == [dict(s.readings) for s in alone]


def test_a_set_scores_what_its_worst_pair_scores(reader: ReaderSieve) -> None:
    pairs = [[first, second] for i, first in enumerate(DOCUMENTS) for second in DOCUMENTS[i + 1 :]]
    whole, *of_pairs = reader.screen([QUESTION] * (1 + len(pairs)), [DOCUMENTS, *pairs])
    assert whole.score == pytest.approx(max(screening.score for screening in of_pairs), abs=1e-5)
    assert len({round(screening.score, 6) for screening in of_pairs}) > 1


def test_leaving_one_out_gives_the_score_of_the_rest_and_reads_nothing_again(reader: ReaderSieve, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [reader.screen([QUESTION], [[d for d in DOCUMENTS if d is not left_out]])[0].score for left_out in DOCUMENTS]
    reader.screen([QUESTION], [DOCUMENTS])
    monkeypatch.setattr(reader.model, "forward", lambda *_, **__: pytest.fail("the model was called again"))
    (removals,) = reader.leave_one_out([QUESTION], [DOCUMENTS])
    assert [(removal.ids, removal.rank) for removal in removals] == [(("a",), 1), (("b",), 2), (("c",), 3), (("d",), 4)]
    assert [removal.score for removal in removals] == pytest.approx(expected, abs=1e-5)


def test_leave_one_out_works_without_a_screening_before(reader: ReaderSieve) -> None:
    (fresh,) = reader.leave_one_out([QUESTION], [DOCUMENTS])
    reader.screen([QUESTION], [DOCUMENTS])
    (after,) = reader.leave_one_out([QUESTION], [DOCUMENTS])
    assert fresh == after


def test_one_document_has_nothing_to_disagree_with(reader: ReaderSieve) -> None:
    twin = DOCUMENTS[0].model_copy(update={"id": "twin", "text": "W1 w2, w3 red."})
    alone, twins = reader.screen([QUESTION] * 2, [DOCUMENTS[:1], [DOCUMENTS[0], twin]])
    assert alone.score == twins.score == pytest.approx(reader.agreement.floor)
    assert twins.readings["a"] == twins.readings["twin"]
    assert reader.leave_one_out([QUESTION] * 2, [DOCUMENTS[:1], [DOCUMENTS[0], twin]]) == [[], []]


def test_readings_are_greedy_and_their_probabilities_add_up(reader: ReaderSieve) -> None:
    (screening,) = reader.screen([QUESTION], [DOCUMENTS])
    prompt = encode(QUESTION, DOCUMENTS[0], reader.tokenizer, reader.inputs).ids
    end = reader.tokenizer.eos_token_id
    ids, total, silent = list(prompt), 0.0, math.nan
    for step in range(reader.inputs.max_answer_tokens):
        with torch.inference_mode():
            logits = reader.model(torch.tensor([ids])).logits[0, -1].log_softmax(-1).tolist()
        allowed = [token for token in range(len(logits)) if step > 0 or token != end]
        chosen = max(allowed, key=logits.__getitem__)
        silent = math.exp(logits[end]) if step == 0 else silent
        total += logits[chosen]
        ids.append(chosen)
        if chosen == end:
            break
    reading = next(reading for passage, reading in reader._readings.items() if passage.text == DOCUMENTS[0].text)
    assert reading.silent == pytest.approx(silent, abs=1e-5)
    assert reading.log_probability == pytest.approx(total, abs=1e-4)
    assert reading.answer == reader.tokenizer.decode(ids[len(prompt) :], skip_special_tokens=True)
    assert screening.readings["a"] == (reading.answer if silent < 0.5 else "")


def test_rival_answers_are_as_likely_as_a_reading_of_prompt_and_answer_says(reader: ReaderSieve) -> None:
    reader.screen([QUESTION], [DOCUMENTS])
    assert len({passage for passage, _ in reader._log_likelihoods}) > 1
    assert len(reader._log_likelihoods) > len({passage for passage, _ in reader._log_likelihoods})  # one passage, several rivals
    for (passage, answer), value in reader._log_likelihoods.items():
        prompt = encode(QUESTION, Document(id="x", text=passage.text), reader.tokenizer, reader.inputs).ids
        after = answer_ids(answer, reader.tokenizer)
        with torch.inference_mode():
            logits = reader.model(torch.tensor([[*prompt, *after]])).logits[0].log_softmax(-1)
        expected = sum(float(logits[len(prompt) - 1 + n, token]) for n, token in enumerate(after))
        assert value == pytest.approx(expected, abs=1e-4)


def test_long_documents_are_cut_and_named_and_questions_are_not(reader: ReaderSieve) -> None:
    long = Document(id="long", text="w1 " * 300)
    (screening,) = reader.screen([QUESTION], [[DOCUMENTS[0], long]])
    assert screening.truncated == ("long",)
    encoding = encode(QUESTION, long, reader.tokenizer, reader.inputs)
    assert len(encoding.ids) == reader.inputs.max_length
    with pytest.raises(InputError, match="leaves no room for a document in 64 tokens"):
        reader.screen(["w1 " * 40], [DOCUMENTS])


def test_weights_that_are_not_numbers_are_an_error(reader: ReaderSieve) -> None:
    torch.nn.init.constant_(reader.model.lm_head.weight, math.nan)
    with pytest.raises(RuntimeError, match="not numbers"):
        reader.screen([QUESTION], [DOCUMENTS])


def test_control_tokens_in_a_document_are_text(reader: ReaderSieve) -> None:
    attack = encode(QUESTION, Document(id="a", text="w1 <eos> w2"), reader.tokenizer, reader.inputs)
    assert reader.tokenizer.eos_token_id not in attack.ids


def test_what_is_remembered_is_bounded(reader: ReaderSieve) -> None:
    reader.remembered = 2
    first = reader.screen([QUESTION], [DOCUMENTS])
    assert len(reader._readings) == 4
    reader.screen([QUESTION], [DOCUMENTS[:1]])
    assert len(reader._readings) == 1
    assert reader.screen([QUESTION], [DOCUMENTS]) == first


def test_a_reader_that_forgets_reads_again_and_says_the_same(reader: ReaderSieve) -> None:
    calls: list[int] = []
    hook = reader.model.register_forward_hook(lambda *_: calls.append(1))
    first = reader.screen([QUESTION], [DOCUMENTS])
    cold = len(calls)
    assert reader.screen([QUESTION], [DOCUMENTS]) == first
    assert len(calls) == cold
    reader.forget()
    assert reader.screen([QUESTION], [DOCUMENTS]) == first
    assert len(calls) == 2 * cold
    hook.remove()
