# Two commands on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash

.PHONY: demo test lint models clean

demo: .venv/installed
	$(BIN)/python -m litecl.perf.demo

test: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# The table of real models: what ran where, and how far outputs are from LiteRT's.
models: .venv/installed
	$(BIN)/python -m pytest --capture no tests/test_real_models.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache
