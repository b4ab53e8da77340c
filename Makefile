# `make serve` and `make test` do all the set-up themselves: a virtual environment in .venv, everything in it.
# `make test PYTHON=python3.13` uses that Python, with a virtual environment of its own in .venv-3.13.
# `make test ARGS="tests/http -x"` passes arguments to pytest.

PYTHON ?= python3
ifeq ($(origin PYTHON),file)
VENV := .venv
else
INTERPRETER := $(shell tools/find-python $(PYTHON))
ifeq ($(INTERPRETER),)
$(error PYTHON=$(PYTHON) cannot be used)
endif
VENV := .venv-$(shell $(INTERPRETER) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
BIN := $(VENV)/bin

ECOSYSTEM := $(BIN)/python -m pytest -m ecosystem tests/ecosystem

.PHONY: serve test soak soak-short ecosystem ecosystem-docs check format bench docs docs-serve clean

$(VENV)/.installed: pyproject.toml
	$$(tools/find-python $(PYTHON)) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

serve: $(VENV)/.installed
	$(BIN)/kubist serve

# The whole suite also measures coverage, which costs 5 % more time. Processes that tests start do not count.
test: $(VENV)/.installed
ifeq ($(ARGS),)
	$(BIN)/python -m slipcover --source src/kubist --omit src/kubist/__main__.py --json --out .coverage.json \
		-m pytest -W ignore::pytest.PytestAssertRewriteWarning; \
	status=$$?; $(BIN)/python tools/coverage_summary.py .coverage.json; exit $$status
else
	$(BIN)/python -m pytest $(ARGS)
endif

soak: $(VENV)/.installed
	$(BIN)/python -m pytest -m soak tests/soak $(ARGS)

soak-short: $(VENV)/.installed
	KUBIST_SOAK=short $(BIN)/python -m pytest -m soak tests/soak $(ARGS)

# Software of other projects, installed from package registries; docs/ecosystem.md shows the table.
ecosystem: $(VENV)/.installed
	$(ECOSYSTEM) $(ARGS)

ecosystem-docs: $(VENV)/.installed
	KUBIST_ECOSYSTEM_DOCS=1 $(ECOSYSTEM) $(ARGS)

check: $(VENV)/.installed
	$(BIN)/ruff check src tests tools benchmarks
	$(BIN)/ruff format --check src tests tools benchmarks
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py
	$(BIN)/codespell *.md docs src tools benchmarks examples

# The documentation as a site, in site/. `make docs-serve` shows it at http://127.0.0.1:8000.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open site/index.html"

docs-serve: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

format: $(VENV)/.installed
	$(BIN)/ruff check --fix src tests tools benchmarks
	$(BIN)/ruff format src tests tools benchmarks

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench.py --bare uvicorn --only create,get,list,page
	$(BIN)/python benchmarks/access.py
	$(BIN)/python benchmarks/neighbours.py

clean:
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache* .hypothesis .coverage.json
