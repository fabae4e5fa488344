# On a fresh machine with Python 3.11+: `make demo`, `make check` (a minute), `make test` and `make nightly` (everything).
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash
RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

# An environment whose Python is too old, or no longer there, is made anew.
ifneq ($(wildcard .venv),)
ifneq ($(shell $(BIN)/python $(RECENT) 2> /dev/null && echo usable),usable)
$(info .venv has no Python of 3.11 or newer: making it anew)
_ := $(shell rm -rf .venv)
endif
endif

.PHONY: demo check quick test nightly lint models docs packages hooks clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

# Linters, types, import rules, and the tests of interpreter and delegate that are quick and need no TensorFlow.
check: lint quick

quick: .venv/checked
	$(BIN)/python -m pytest --quick --numprocesses auto --maxprocesses 4 --dist worksteal

test: .venv/installed lint
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# Everything: fuzzers, all cases by OpenCL, emulated GPUs, many processes, and how much of what reads files is covered.
nightly: .venv/installed lint
	$(BIN)/python -m pytest --nightly --numprocesses 2 --dist worksteal tests tools
	tools/coverage.sh $(BIN)/python

# The table of real models: what ran where, and how far outputs are from LiteRT's.
models: .venv/installed
	$(BIN)/python -m pytest --capture no tests/whole/test_real_models.py

lint: .venv/checked
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site, in build/site; warnings and dead links are errors.
docs: .venv/documented
	$(BIN)/python -m mkdocs build --strict

# Wheel and sdist in dist/, each installed into a fresh environment and used there; CONVERT=--convert: with TensorFlow.
# OBJECTS=--objects: and the wheel of objects compiled ahead; OBJECTS=--objects=host: for this machine alone.
packages: .venv/released
	tools/packages.sh $(BIN)/python $(CONVERT) $(OBJECTS)

# The linters before every commit.
hooks: .venv/checked
	$(BIN)/pre-commit install

.venv/python:
	@$(PYTHON) $(RECENT) || \
	    { echo "$(PYTHON) is no Python of 3.11 or newer: make demo PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# One environment, with what a target needs added to it.
.venv/checked: EXTRA := check
.venv/installed: EXTRA := test
.venv/documented: EXTRA := docs
.venv/released: EXTRA := release
.venv/checked .venv/installed .venv/documented .venv/released: pyproject.toml | .venv/python
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRA)]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
