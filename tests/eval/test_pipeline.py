"""The evaluation job in process: what it writes, how it goes on after a crash, what it refuses; and once with real, tiny models."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hydra
import pytest
import torch
from omegaconf import OmegaConf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import sage.settings
import sage.train
import sieve.data
import sieve.settings
import sieve.train
from conf.job import check
from eval.pipeline import Evaluation, evaluate
from eval.predict import EXAMPLES, PREDICTIONS
from eval.settings import EvalJob
from rag import jsonl
from rag.checkpoint import sha256
from rag.errors import InputError
from rag.jsonl import iter_records, read_examples, write_records
from rag.models.lora import LoraSettings
from rag.prompts import QA_PROMPTS, QaPrompt
from rag.records import Citation, Condition, Document, Example, Prediction, Query, Reason, RetrievalState
from rag.settings import Component
from sage.inputs import InputSettings as SageInputs
from sage.model import ModelSettings as SageModel
from serve.systems import prompted
from serve.systems.always_abstain import AlwaysAbstain
from serve.systems.sieve_and_sage import SieveAndSage, load
from sieve.joint.inputs import InputSettings as SieveInputs
from sieve.joint.model import ModelSettings as SieveModel

GOLD = "The capital of Peru is Lima."
OTHER = "The capital of Peru is Cusco."
NONE = "Nothing is known of any capital."


def example(number: int, condition: Condition = Condition.ANSWERABLE, prefix: str = "") -> Example:
    texts = {Condition.ANSWERABLE: (GOLD, NONE), Condition.CONFLICT: (GOLD, OTHER), Condition.UNANSWERABLE: (NONE, "It rains.")}
    states = {Condition.CONFLICT: RetrievalState.DISTRACTED}
    return Example(
        id=f"{prefix}e{number}",
        question_id=f"{prefix}q{number}",
        question=f"What is the capital of Peru, {prefix}{number}?",
        documents=tuple(Document(id=f"d{n}", text=text) for n, text in enumerate(texts[condition], start=1)),
        answers=() if condition is Condition.UNANSWERABLE else ("Lima",),
        state=states.get(condition) or RetrievalState(condition.value),
        condition=condition,
    )


EXAMPLES_7 = [example(n) for n in range(7)]


class Counting:
    """Answers every query, notes the ids it was asked, and falls over when it meets `poison`."""

    def __init__(self, poison: str | None = None) -> None:
        self.poison = poison
        self.asked: list[list[str]] = []

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        self.asked.append([query.id for query in queries])
        if self.poison in self.asked[-1]:
            raise RuntimeError("power cut")
        return [Prediction(id=q.id, question_id=q.question_id, state=RetrievalState.ANSWERABLE, answer="Lima") for q in queries]


def must_not_run() -> Any:
    raise AssertionError("this was not to be built")


def settings(
    examples: Sequence[Example] | Callable[[], Any] = EXAMPLES_7, system: Any = must_not_run, batch_size: int = 2, **changes: Any
) -> EvalJob:
    dataset = examples if callable(examples) else lambda: list(examples)
    make = system if callable(system) else lambda: system
    fields = {"seed": 0, "batch_size": batch_size, "match": "exact", "resamples": 20, "show": 0}
    return EvalJob(dataset=Component(dataset, {}), system=Component(make, {}), **{**fields, **changes})


def metric(evaluation: Evaluation, name: str) -> float | None:
    return {row.name: row.value for row in evaluation.report.metrics}[name]


def test_an_evaluation_leaves_examples_predictions_and_both_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = Counting()
    evaluation = evaluate(settings(system=system, show=2), tmp_path)
    assert system.asked == [["e0", "e1"], ["e2", "e3"], ["e4", "e5"], ["e6"]]
    assert read_examples(tmp_path / EXAMPLES) == EXAMPLES_7
    assert list(iter_records(tmp_path / PREDICTIONS, Prediction)) == evaluation.predictions
    assert [prediction.id for prediction in evaluation.predictions] == [e.id for e in EXAMPLES_7]
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["report"]["n"] == 7
    assert report["report"]["counts"]["correct_answers"] == 7
    assert set(report["provenance"]) >= {"command", "commit", "python"}
    assert "System Accuracy" in (tmp_path / "report.md").read_text(encoding="utf-8")
    told = capsys.readouterr().out
    assert "What is the capital of Peru, " in told and str(tmp_path) in told.replace("\n", "")


def test_predictions_are_on_disk_before_the_next_batch(tmp_path: Path) -> None:
    on_disk: list[int] = []

    class Watching(Counting):
        def predict(self, queries: Sequence[Query]) -> list[Prediction]:
            on_disk.append(len(list(iter_records(tmp_path / PREDICTIONS, Prediction))) if (tmp_path / PREDICTIONS).exists() else 0)
            return super().predict(queries)

    evaluate(settings(system=Watching()), tmp_path)
    assert on_disk == [0, 2, 4, 6]


def test_a_run_that_crashed_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="power cut"):
        evaluate(settings(system=Counting(poison="e5")), tmp_path)
    assert [p.id for p in iter_records(tmp_path / PREDICTIONS, Prediction)] == ["e0", "e1", "e2", "e3"]
    assert not (tmp_path / "report.json").exists()
    again = Counting()
    evaluation = evaluate(settings(system=again), tmp_path)
    assert again.asked == [["e4", "e5"], ["e6"]]
    assert [prediction.id for prediction in evaluation.predictions] == [e.id for e in EXAMPLES_7]
    assert evaluation.report.n == 7


def test_a_line_torn_by_a_crash_is_predicted_again(tmp_path: Path) -> None:
    evaluate(settings(system=Counting()), tmp_path)
    whole = (tmp_path / PREDICTIONS).read_bytes()
    (tmp_path / PREDICTIONS).write_bytes(whole[:-10])
    again = Counting()
    evaluate(settings(system=again), tmp_path)
    assert again.asked == [["e6"]]
    assert (tmp_path / PREDICTIONS).read_bytes() == whole


def test_a_finished_run_does_not_build_its_system_again(tmp_path: Path) -> None:
    first = evaluate(settings(system=Counting()), tmp_path)
    assert evaluate(settings(system=must_not_run), tmp_path).report == first.report


def test_a_full_disk_keeps_the_rows_done_and_a_rerun_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def sync(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 3:  # the examples, the first batch, then no more room
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(jsonl.os, "fsync", sync)
        with pytest.raises(InputError, match=r"predictions\.jsonl: could not write \(No space left on device\).*rerun to go on"):
            evaluate(settings(system=Counting()), tmp_path)
    kept = [prediction.id for prediction in iter_records(tmp_path / PREDICTIONS, Prediction)]
    assert kept[:2] == ["e0", "e1"]
    again = Counting()
    evaluation = evaluate(settings(system=again), tmp_path)
    assert [i for batch in again.asked for i in batch] == [e.id for e in EXAMPLES_7 if e.id not in kept]
    assert evaluation.report.n == 7


def test_scores_of_documents_that_another_processor_computed_are_no_other_examples(tmp_path: Path) -> None:
    def retrieved(score: float) -> list[Example]:
        return [e.model_copy(update={"documents": tuple(d.model_copy(update={"score": score}) for d in e.documents)}) for e in EXAMPLES_7]

    evaluate(settings(retrieved(0.7), system=Counting()), tmp_path)
    again = Counting()
    evaluate(settings(retrieved(0.7 + 1e-8), system=again), tmp_path)
    assert again.asked == []
    with pytest.raises(InputError, match=r"examples\.jsonl: the data set has changed"):
        evaluate(settings(retrieved(0.71), system=again), tmp_path)


def test_other_examples_under_the_same_folder_are_refused(tmp_path: Path) -> None:
    evaluate(settings(system=Counting()), tmp_path)
    changed = [*EXAMPLES_7[:-1], EXAMPLES_7[-1].model_copy(update={"question": "And of Chile?"})]
    for other in (changed, EXAMPLES_7[:-1]):
        with pytest.raises(InputError, match=r"examples\.jsonl: the data set has changed since this run began; set out to a new folder"):
            evaluate(settings(other), tmp_path)


def test_predictions_of_unknown_examples_are_refused(tmp_path: Path) -> None:
    write_records(tmp_path / PREDICTIONS, [Prediction(id="stranger", question_id="q", reason=Reason.POLICY)])
    with pytest.raises(InputError, match=r"predictions\.jsonl: holds predictions of other examples, such as 'stranger'"):
        evaluate(settings(), tmp_path)


@pytest.mark.parametrize(
    "answer",
    [
        lambda queries: [],
        lambda queries: [Prediction(id=q.id, question_id=q.question_id, answer="Lima") for q in reversed(queries)],
        lambda queries: [Prediction(id="other", question_id=q.question_id, answer="Lima") for q in queries],
    ],
    ids=["none", "in another order", "other ids"],
)
def test_a_system_that_does_not_keep_to_its_queries_writes_nothing(answer: Any, tmp_path: Path) -> None:
    system = Counting()
    system.predict = answer
    with pytest.raises(RuntimeError, match=r"one prediction for each query, in order: expected ids \['e0', 'e1'\]"):
        evaluate(settings(system=system), tmp_path)
    assert not (tmp_path / PREDICTIONS).exists()


class TestScoringAgain:
    @pytest.fixture
    def first(self, tmp_path: Path) -> Evaluation:
        return evaluate(settings(system=Counting()), tmp_path / "first")

    def test_needs_neither_system_nor_data_set(self, first: Evaluation, tmp_path: Path) -> None:
        again = settings(must_not_run, must_not_run, predictions=tmp_path / "first" / PREDICTIONS)
        assert evaluate(again, tmp_path / "second").report == first.report
        assert (tmp_path / "second" / "report.json").is_file()
        for name in (EXAMPLES, PREDICTIONS):
            assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()

    def test_takes_the_data_set_where_no_examples_lie_beside(self, first: Evaluation, tmp_path: Path) -> None:
        alone = tmp_path / "alone.jsonl"
        write_records(alone, reversed(first.predictions))
        assert evaluate(settings(predictions=alone), tmp_path / "second").report == first.report

    def test_refuses_predictions_that_do_not_match_the_examples(self, first: Evaluation, tmp_path: Path) -> None:
        write_records(tmp_path / "some.jsonl", first.predictions[:-1])
        with pytest.raises(InputError, match="no prediction for e6"):
            evaluate(settings(predictions=tmp_path / "some.jsonl"), tmp_path / "second")

    def test_refuses_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="nowhere.jsonl"):
            evaluate(settings(predictions=tmp_path / "nowhere.jsonl"), tmp_path / "second")


def test_a_policy_that_always_abstains_covers_nothing(tmp_path: Path) -> None:
    """Pitfall E5: both rates stand side by side, so that it cannot pass for careful."""
    examples = [example(1), example(2, Condition.CONFLICT), example(3, Condition.UNANSWERABLE)]
    evaluation = evaluate(settings(examples, AlwaysAbstain), tmp_path)
    assert metric(evaluation, "coverage") == 0
    assert metric(evaluation, "abstained_when_it_could_answer") == 1
    assert metric(evaluation, "answered_when_it_should_not") == 0
    assert metric(evaluation, "selective_accuracy") is None
    assert evaluation.report.reasons == {"policy": 3}


CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama that both stages start from; its tokenizer reads the words of the examples as one token each."""
    folder = tmp_path_factory.mktemp("base")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    text = [GOLD, OTHER, NONE, "What is the capital of Peru?", "unanswerable"]
    tokenizer.train_from_iterator(text, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False))
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ("<|im_start|>", "<|im_end|>", "<pad>")])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<pad>", chat_template=CHAT)
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    ends = {"eos_token_id": fast.eos_token_id, "pad_token_id": fast.pad_token_id, "bos_token_id": None}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(fast), max_position_embeddings=2048, initializer_range=0.1, **sizes, **ends))
    model.lm_head.weight.data.mul_(5)  # room to become sure of a token behind a frozen head
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


LORA = LoraSettings(r=8, alpha=16)
SCHEDULE = {"learning_rate": 0.01, "warmup_ratio": 0.05, "scheduler": "linear", "batch_size": 2, "gradient_accumulation": 1, "patience": 50}


def train_sieve(base: Path, train: Path, validation: Path, out: Path) -> None:
    stage = sieve.joint.settings.SieveSettings(
        model=SieveModel(base=str(base), lora=LORA, precision="fp32"),
        inputs=SieveInputs(max_length=256),
        train=sieve.joint.settings.TrainSettings(**SCHEDULE, epochs=15, weight_decay=0.0, evals_per_epoch=1, best_metric="loss"),
    )
    data = sieve.data.DataSettings(train=train, validation=validation)
    sieve.train.train(sieve.settings.TrainJob(sieve=stage, data=data), out)


def train_sage(base: Path, train: Path, validation: Path, out: Path) -> None:
    stage = sage.settings.SageSettings(
        model=SageModel(base=str(base), lora=LORA, precision="fp32", device="cpu"),
        inputs=SageInputs(max_prompt_tokens=800),
        train=sage.settings.TrainSettings(**SCHEDULE, epochs=40, eval_steps=20, optimizer="adamw_torch", max_length=840),
    )
    data = sage.settings.DataSettings(train=train, validation=validation)
    sage.train.train(sage.settings.TrainJob(seed=0, sage=stage, data=data), out)


def test_two_trained_stages_answer_abstain_and_name_the_document_to_blame(base: Path, tmp_path: Path) -> None:
    """The whole way, by the project's own jobs: train both stages, compose them from their folders, evaluate."""
    conditions = (Condition.ANSWERABLE, Condition.CONFLICT, Condition.UNANSWERABLE)
    examples = [example(n, condition) for n, condition in enumerate(conditions)]
    train, validation = tmp_path / "train.jsonl", tmp_path / "validation.jsonl"
    write_records(train, examples)
    write_records(validation, [example(n, condition, prefix="v") for n, condition in enumerate(conditions)])
    for name, run in (("sieve", train_sieve), ("sage", train_sage)):
        (tmp_path / name).mkdir()
        run(base, train, validation, tmp_path / name)

    def system() -> SieveAndSage:
        return load(tmp_path / "sieve", tmp_path / "sage", on_flag="blame", device="cpu")

    evaluation = evaluate(settings(examples, system), tmp_path / "run")
    answered, flagged, unanswerable = evaluation.predictions
    assert (answered.answer, answered.citations, answered.state) == (
        "Lima",
        (Citation(document_id="d1", supported=True),),
        RetrievalState.ANSWERABLE,
    )
    assert (flagged.reason, flagged.state) == (Reason.DISTRACTED, RetrievalState.DISTRACTED)
    assert len(flagged.blamed) == 1 and set(flagged.leave_one_out) == {"d1", "d2"}
    assert (unanswerable.reason, unanswerable.state) == (Reason.UNANSWERABLE, RetrievalState.UNANSWERABLE)
    assert set(answered.tokens) == {"sieve", "prompt", "completion"}
    assert (metric(evaluation, "system_accuracy"), metric(evaluation, "macro_f1")) == (1, 1)
    assert (metric(evaluation, "coverage"), metric(evaluation, "answered_when_it_should_not")) == (1, 0)
    again = evaluate(settings(examples, system), tmp_path / "again")
    untimed = [[p.model_copy(update={"timings": {}}) for p in run.predictions] for run in (evaluation, again)]
    assert untimed[0] == untimed[1]


def untrained_sage(base: Path) -> sage.settings.SageSettings:
    return sage.settings.SageSettings(
        model=SageModel(base=str(base), lora=LORA, precision="fp32"),
        inputs=SageInputs(max_prompt_tokens=800),
        train=sage.settings.TrainSettings(**SCHEDULE, epochs=1, optimizer="adamw_torch", max_length=840),
    )


@pytest.mark.parametrize("prompt", list(QA_PROMPTS))
def test_an_untrained_base_is_evaluated_under_each_prompt_of_table_14(prompt: QaPrompt, base: Path, tmp_path: Path) -> None:
    examples = [example(1), example(2, Condition.CONFLICT), example(3, Condition.UNANSWERABLE)]
    evaluation = evaluate(settings(examples, lambda: prompted.load(untrained_sage(base), prompt, device="cpu")), tmp_path)
    assert all(prediction.prompt and prediction.prompt.startswith(QA_PROMPTS[prompt]) for prediction in evaluation.predictions)
    assert metric(evaluation, "sage_calls_saved") == 0
    assert metric(evaluation, "sieve_macro_f1") is None


def test_an_untrained_sage_behind_a_sieve_reads_what_a_trained_one_does(base: Path, tmp_path: Path) -> None:
    """Paper 002, table 9, "+ Sieve ft.": no checkpoint of a Sage is needed."""
    examples = [example(n, condition) for n, condition in enumerate((Condition.ANSWERABLE, Condition.CONFLICT))]
    for name, prefix in (("train", ""), ("validation", "v")):
        write_records(tmp_path / f"{name}.jsonl", [e.model_copy(update=_renamed(e, prefix)) for e in examples])
    (tmp_path / "sieve").mkdir()
    train_sieve(base, tmp_path / "train.jsonl", tmp_path / "validation.jsonl", tmp_path / "sieve")
    system = load(tmp_path / "sieve", None, threshold=1.0, device="cpu", sage_settings=untrained_sage(base))
    alone = prompted.load(untrained_sage(base), "unanswerable", device="cpu")
    queries = [e.query() for e in examples]
    both, vanilla = system.predict(queries), alone.predict(queries)
    assert [(p.output, p.prompt, p.answer) for p in both] == [(p.output, p.prompt, p.answer) for p in vanilla]
    assert all(p.sieve_score is not None for p in both)


def _renamed(given: Example, prefix: str) -> dict[str, str]:
    return {"id": prefix + given.id, "question_id": prefix + given.question_id, "question": f"{prefix} {given.question}"}


def composed_system(*overrides: str) -> Component:
    with hydra.initialize_config_module("conf", version_base="1.3"):
        composed = OmegaConf.to_container(hydra.compose("eval_pipeline", list(overrides)), resolve=True)
    return check(composed, EvalJob, Path("/root")).system


@pytest.mark.parametrize("profile", ["paper", "local"])
def test_each_row_of_the_component_ablation_is_one_command(profile: str) -> None:
    """Paper 002, table 9. Sage-only brings its own settings; a two-way Sage alone is the same system on another checkpoint."""
    vanilla = composed_system(f"profile={profile}", "system=vanilla", "system.prompt=normal")
    assert (vanilla.arguments["prompt"], vanilla.arguments["sage_settings"].inputs.conflict) == ("normal", None)
    sage_only = composed_system(f"profile={profile}", "system=sage_only").arguments
    assert sage_only["sage"] == Path(f"/root/checkpoints/{profile}/sage_only")
    assert sage_only["sage_settings"].inputs.conflict == "conflict"
    alone = composed_system(
        f"profile={profile}", "system=sage_only", f"sage={profile}", f"system.sage=checkpoints/{profile}/sage"
    ).arguments
    assert (alone["sage"], alone["sage_settings"].inputs.conflict) == (Path(f"/root/checkpoints/{profile}/sage"), None)
    assert alone["sage_settings"].model == sage_only["sage_settings"].model == vanilla.arguments["sage_settings"].model
    sieve_tuned = composed_system(f"profile={profile}", "system.sage=null").arguments
    assert (sieve_tuned["sage"], sieve_tuned["sieve"]) == (None, Path(f"/root/checkpoints/{profile}/sieve"))


def test_predictions_of_elsewhere_are_a_run_of_their_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They and their examples are copied, so that the folder can be compared and certified as any other."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    write_records(theirs / EXAMPLES, EXAMPLES_7)
    made = [Prediction(id=e.id, question_id=e.question_id, state=RetrievalState.ANSWERABLE, answer="Ada") for e in EXAMPLES_7]
    write_records(theirs / "my_rag.jsonl", made)
    for name, title in ((None, "predictions of my_rag on theirs"), ("My RAG", "My RAG on theirs")):
        out = tmp_path / str(name)
        out.mkdir()
        evaluate(settings(predictions=theirs / "my_rag.jsonl", name=name), out)
        assert (out / "report.md").read_text(encoding="utf-8").startswith(f"# Evaluation report: {title}")
        assert (out / PREDICTIONS).read_bytes() == (theirs / "my_rag.jsonl").read_bytes()
        assert (out / EXAMPLES).read_bytes() == (theirs / EXAMPLES).read_bytes()
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        assert report["system"]["settings"] == {}
        assert report["provenance"]["examples"] == f"sha256 {sha256(theirs / EXAMPLES)}"
        saved = {row["name"]: row["value"] for row in report["report"]["metrics"]}["sage_calls_saved"]
        assert saved is None, "it answers and does not tell how"
