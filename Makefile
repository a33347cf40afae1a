# Every target sets up what it needs on a fresh machine.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOCAL := checkpoints/local

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format data-local train-local clean
PROFILE ?= local
# Artifacts of rag/models/artifacts.toml that PROFILE=local needs.
WEIGHTS := all-minilm-l6-v2 smollm2-135m-instruct qwen2.5-coder-0.5b-instruct

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'
	@echo "  make table7       A table or figure of the paper, by conf/experiment (PROFILE=local, or paper)"

setup: $(VENV)/.weights  ## Make a virtual environment with pinned packages, and fetch the small models' weights

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): first Python packages (some minutes), then models' weights (680 MB)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[local,dev]"
	@touch $@

$(VENV)/.weights: $(VENV)/.installed rag/models/artifacts.toml
	@$(BIN)/sieve-and-sage-fetch $(WEIGHTS)
	@touch $@

demo: setup  ## Answer the demo's questions with the shipped checkpoints: what was distracted, who is to blame, what was answered
	$(BIN)/python -m eval.pipeline profile=local dataset=demo dataset.limit=100 system.on_flag=blame show=5 out=runs/demo

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
READ := reading simpleqa_sets rgb_sets gold_passages_all demo_sets
CHECKED := reading_sets simpleqa_sets rgb_sets demo_sets
comma := ,
empty :=
list = [$(subst $(empty) $(empty),$(comma),$(strip $(1)))]

data-local: setup  ## Build what the shipped checkpoints were trained on, from the files in DATA=downloads
	$(BUILD) dataset=reading dataset.path=$(DATA)/reading/train.jsonl.gz 'splits=[train]' out=data/reading
	$(BUILD) dataset=reading dataset.path=$(DATA)/reading/validation.jsonl.gz 'splits=[validation]' dataset.limit=1500 out=data/reading_sets
	$(BUILD) dataset=reading dataset.path=$(DATA)/reading/validation.jsonl.gz 'splits=[validation]' dataset.words=null dataset.near=null \
		dataset.edited=0 dataset.denied=0 out=data/reading_validation
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[train,validation]' out=data/simpleqa_sets
	$(BUILD) dataset=gold_passages_sets dataset.path=$(DATA)/gold_passages.json $(UNSEEN) 'splits=[train]' dataset.cap=1 dataset.rounds=1 \
		'dataset.variants=[gold_and_edited]' dataset.k_max=4 out=data/gold_passages_all
	$(BUILD) dataset=rgb_sets dataset.path=$(DATA)/rgb_en_fact.json $(UNSEEN) 'splits=[train,validation]' out=data/rgb_sets
	$(BUILD) dataset=demo dataset.k=3 dataset.k_max=10 'splits=[train,validation]' out=data/demo_sets
	$(BUILD) dataset=reading dataset.path=$(DATA)/reading/train.jsonl.gz 'splits=[train]' dataset.limit=2500 dataset.words=70 dataset.lost=0.3 dataset.fillers=3 \
		dataset.edited=0 dataset.denied=0 out=data/reading_sage
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[train,validation]' dataset.k_min=3 dataset.k_max=7 \
		dataset.rounds=3 'dataset.variants=[golds,gold_with_neutral,answer_free]' out=data/simpleqa_sage
	$(BUILD) dataset=simpleqa_sets dataset.path=$(DATA)/simpleqa.json $(UNSEEN) 'splits=[validation]' dataset.cap=3 out=data/simpleqa_validation
	$(BUILD) dataset=demo dataset.k=5 dataset.questions=300 dataset.limit=300 'splits=[train]' out=data/demo_sage
	$(BUILD) dataset=realtimeqa_audit dataset.path=$(DATA)/realtimeqa.json 'splits=[test]' out=data/realtimeqa_audit
	$(BUILD) dataset=rgb_audit dataset.path=$(DATA)/rgb_en_fact.json 'splits=[test]' out=data/rgb_audit

train-local: data-local  ## Train the shipped checkpoints again (about two hours on 2 cores), into runs/local; a run that stopped goes on
	$(BIN)/python -m sieve.train profile=local \
		'data.train=$(call list,$(READ:%=data/%/train.jsonl))' \
		'data.validation=$(call list,$(CHECKED:%=data/%/validation.jsonl))' \
		'data.clean=[answerable,unanswerable]' 'data.distracted=[conflict,negated,adversarial]' data.pairs=$(DATA)/pairs/nli.jsonl.gz \
		data.audit=data/rgb_audit/test.jsonl out=runs/local/sieve
	$(BIN)/python -m sage.train profile=local \
		'data.train=[data/reading_sage/train.jsonl,data/simpleqa_sage/train.jsonl,data/demo_sage/train.jsonl]' \
		data.validation=data/simpleqa_validation/validation.jsonl out=runs/local/sage

table%: setup
	PYTHON=$(BIN)/python scripts/experiment.sh $@ $(PROFILE)

figure%: setup
	PYTHON=$(BIN)/python scripts/experiment.sh $@ $(PROFILE)

clean:  ## Remove runs, generated data and caches; checkpoints and the virtual environment stay
	rm -rf runs data build *.egg-info .mypy_cache .ruff_cache .hypothesis
