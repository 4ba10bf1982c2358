# `make demo` and `make test` are all a fresh machine needs: Python 3.11 or newer, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Most of the tests' time is compilation, which uses one core: two files at a time.
SIDE_BY_SIDE := -n 2 --dist loadfile
# Code for fused loops that is made with less care: it runs as fast where little runs, and compiles in 0.6 of the time.
QUICKLY := --xla_cpu_use_fusion_emitters=false
# What has been compiled is kept: by the files of one run for each other, and for the next run.
COMPILED := JAX_COMPILATION_CACHE_DIR=$(CURDIR)/$(VENV)/compiled JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1 XLA_FLAGS=$(QUICKLY)
# Strictly, and with what was read and run the last time.
SITE := -W --keep-going -n -q -b html -d docs/_build/doctrees
# How long to attack.
MINUTES ?= 60
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed

.PHONY: demo test test-quick test-full test-seeds attack check docs bench bench-check format clean

demo: $(STAMP)  ## fit, diagnose and predict on embedded data; ends with a table, figures and reports to open
	$(BIN)/credo demo

test: check  ## the checks and the tests
	$(COMPILED) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not full"

test-quick: $(STAMP)  ## two minutes, while working: the contract, identities, one known posterior per family
	$(COMPILED) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "quick and not full"

test-seeds: $(STAMP)  ## the statistical tests with 20 other seeds and both compile modes; prints how often each fails
	$(COMPILED) $(BIN)/python -m tests.seeds $(SIDE_BY_SIDE)

test-full: check  ## the tests, the heavy ones included
	$(COMPILED) $(BIN)/python -m pytest $(SIDE_BY_SIDE)

attack: $(STAMP)  ## damage, kills, races, full disks and hostile tables, for an hour or MINUTES=…; ARGS='--only tables'
	XLA_FLAGS=$(QUICKLY) $(BIN)/python -m tests.attack --minutes $(MINUTES) $(ARGS)

check: $(STAMP)  ## linter, formatter, type checker and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)  ## the site, in docs/_build/html: no warning, no dead link, nothing from the network
	$(COMPILED) $(BIN)/sphinx-build $(SITE) docs docs/_build/html

bench: $(STAMP) $(PEERS_STAMP)  ## speed, side by side with peers; prints ratios
	$(BIN)/python -m benchmarks

bench-check: $(STAMP)  ## ratios of time beside those recorded: says which moved by more than a fifth
	$(BIN)/python -m benchmarks check

format: $(STAMP)  ## put the code in the house's form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(PEERS) docs/_build docs/tutorial docs/gallery

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(PEERS_STAMP): benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --requirement benchmarks/peers/requirements.txt
	touch $@
