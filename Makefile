# `make serve` and `make test` do all the set-up themselves: a virtual environment in .venv, everything in it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: serve test soak check format bench clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

serve: $(VENV)/.installed
	$(BIN)/kubist serve

test: $(VENV)/.installed
	$(BIN)/python -m pytest

soak: $(VENV)/.installed
	$(BIN)/python -m pytest -m soak tests/soak

check: $(VENV)/.installed
	$(BIN)/ruff check src tests tools benchmarks
	$(BIN)/ruff format --check src tests tools benchmarks
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix src tests tools benchmarks
	$(BIN)/ruff format src tests tools benchmarks

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench.py --bare uvicorn --only create,get,list,page
	$(BIN)/python benchmarks/access.py
	$(BIN)/python benchmarks/neighbours.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
