# Every target sets up what it needs on a fresh machine.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOCAL := checkpoints/local

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format data-local train-local clean
PROFILE ?= local
# Artifacts of rag/models/artifacts.toml that PROFILE=local needs.
WEIGHTS := all-minilm-l6-v2 smollm2-135m-instruct

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'
	@echo "  make table7       A table or figure of the paper, by conf/experiment (PROFILE=local, or paper)"

setup: $(VENV)/.weights  ## Make a virtual environment with pinned packages, and fetch the small models' weights

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): first Python packages (some minutes), then models' weights (190 MB)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[local,dev]"
	@touch $@

$(VENV)/.weights: $(VENV)/.installed rag/models/artifacts.toml
	@$(BIN)/sieve-and-sage-fetch $(WEIGHTS)
	@touch $@

demo: setup  ## Answer the demo's questions with the shipped checkpoints: what was distracted, who is to blame, what was answered
	$(BIN)/python -m eval.pipeline profile=local dataset=demo dataset.limit=150 system.on_flag=blame show=5 out=runs/demo

test: check  ## Lint, type-check and run all tests
	$(BIN)/python -m pytest -q

check: setup  ## Lint and type-check
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: setup  ## Format the code
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

# Public files that training reads; docs/data.md says where they come from.
DATA ?= downloads
BUILD := $(BIN)/python -m data_gen.build
UNSEEN := 'dataset.exclude=[$(DATA)/realtimeqa.json]'
FIRST := data/simpleqa_sets/train.jsonl,data/gold_passages_sets/train.jsonl,data/rgb_sets/train.jsonl,data/demo_short/train.jsonl
SECOND := data/simpleqa_more/train.jsonl,data/gold_passages_more/train.jsonl,data/rgb_sets/train.jsonl,data/demo_short/train.jsonl
THIRD := data/simpleqa_sets/train.jsonl,data/gold_passages_all/train.jsonl,data/rgb_sets/train.jsonl,data/demo_short/train.jsonl
ALL := $(FIRST),data/simpleqa_more/train.jsonl,data/gold_passages_more/train.jsonl,data/gold_passages_all/train.jsonl
SIEVE := $(BIN)/python -m sieve.train profile=local 'data.clean=[answerable,unanswerable]' \
	'data.validation=[data/simpleqa_threshold/validation.jsonl,data/rgb_sets/validation.jsonl]'

data-local: setup  ## Build what the shipped checkpoints were trained on, from the files in DATA=downloads
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[train,validation]' out=data/simpleqa_sets
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[validation]' dataset.cap=3 out=data/simpleqa_validation
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[validation]' dataset.cap=1 dataset.limit=70 \
		dataset.k_max=5 out=data/simpleqa_threshold
	$(BUILD) dataset=gold_passages_sets dataset.path=$(DATA)/gold_passages.json $(UNSEEN) 'splits=[train]' dataset.cap=1 dataset.rounds=1 \
		'dataset.variants=[gold_and_edited]' dataset.k_max=4 dataset.limit=1100 out=data/gold_passages_sets
	$(BUILD) dataset=gold_passages_sets dataset.path=$(DATA)/gold_passages.json $(UNSEEN) 'splits=[train]' dataset.cap=1 dataset.rounds=3 \
		'dataset.variants=[gold_and_edited]' dataset.k_max=5 dataset.limit=1800 out=data/gold_passages_more
	$(BUILD) dataset=gold_passages_sets dataset.path=$(DATA)/gold_passages.json $(UNSEEN) 'splits=[train]' dataset.cap=1 dataset.rounds=1 \
		'dataset.variants=[gold_and_edited]' dataset.k_max=4 out=data/gold_passages_all
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[train]' dataset.cap=6 out=data/simpleqa_more
	$(BUILD) dataset=rgb_sets dataset.path=$(DATA)/rgb_en_fact.json $(UNSEEN) 'splits=[train,validation]' out=data/rgb_sets
	$(BUILD) dataset=demo dataset.questions=600 dataset.k=5 dataset.words=8 dataset.limit=700 'splits=[train]' out=data/demo_short
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[train,validation]' dataset.k_min=3 dataset.k_max=7 \
		dataset.rounds=3 'dataset.variants=[golds,gold_with_neutral,answer_free]' out=data/simpleqa_sage
	$(BUILD) dataset=demo dataset.k=5 dataset.questions=300 dataset.limit=300 'splits=[train]' out=data/demo_sage
	$(BUILD) dataset=realtimeqa_audit dataset.path=$(DATA)/realtimeqa.json 'splits=[test]' out=data/realtimeqa_audit
	$(BUILD) dataset=rgb_audit dataset.path=$(DATA)/rgb_en_fact.json 'splits=[test]' out=data/rgb_audit

train-local: data-local  ## Train the shipped checkpoints again (about three hours on 2 cores), into runs/local
	$(SIEVE) 'data.train=[$(FIRST)]' out=runs/local/sieve_first
	$(SIEVE) init=runs/local/sieve_first 'data.train=[$(SECOND)]' sieve.train.learning_rate=6e-4 sieve.train.silent_per_answer=0.6 \
		sieve.train.evals_per_epoch=7 sieve.train.epochs=0.4275 out=runs/local/sieve_second
	$(SIEVE) 'init=[runs/local/sieve_first,runs/local/sieve_second]' 'data.train=[$(THIRD)]' seed=1 sieve.train.learning_rate=4e-4 \
		sieve.train.silent_per_answer=0.6 sieve.train.evals_per_epoch=7 sieve.train.epochs=0.28 out=runs/local/sieve_third
	$(SIEVE) 'init=[runs/local/sieve_first,runs/local/sieve_second,runs/local/sieve_third]' 'data.train=[$(ALL)]' sieve.train.epochs=0 \
		data.audit=data/rgb_audit/test.jsonl out=runs/local/sieve
	$(BIN)/python -m sage.train profile=local 'data.train=[data/simpleqa_sage/train.jsonl,data/demo_sage/train.jsonl]' \
		data.validation=data/simpleqa_validation/validation.jsonl sage.train.eval_steps=25 out=runs/local/sage

table%: setup
	PYTHON=$(BIN)/python scripts/experiment.sh $@ $(PROFILE)

figure%: setup
	PYTHON=$(BIN)/python scripts/experiment.sh $@ $(PROFILE)

clean:  ## Remove runs, generated data and caches; checkpoints and the virtual environment stay
	rm -rf runs data build *.egg-info .mypy_cache .ruff_cache .hypothesis
