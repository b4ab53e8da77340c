# All targets do their set-up themselves, in the virtual environment .venv.
# `make serve` installs only the packages that a server needs; `make serve ARGS="--workloads"` passes flags.
# `make dev` also installs the developer tools. `make test`, `make check` and the others begin with it.
# `make test` runs the tests of the server, `make test-all` also those of documentation, examples, packaging and growth.
# `make test ARGS="tests/http -x"` passes arguments to pytest.
# `make test PYTHON=python3.13` uses that Python, with a virtual environment of its own in .venv-3.13.

# Tests start hundreds of Python processes. Without bytecode files each of them would compile what it imports.
export PYTHONDONTWRITEBYTECODE :=

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
SERVING := $(VENV)/.serving
DEV := $(VENV)/.installed

ECOSYSTEM := $(BIN)/python -m pytest -m ecosystem tests/ecosystem

.PHONY: serve dev test test-all soak soak-short ecosystem ecosystem-docs check format bench docs docs-serve clean

serve: $(if $(wildcard $(DEV)),$(DEV),$(SERVING))
	@$(BIN)/kubist serve $(ARGS)

dev: $(DEV)

# tools/setup creates the stamps.
$(SERVING): pyproject.toml
	@tools/setup $(PYTHON) $(VENV)

$(DEV): pyproject.toml
	@tools/setup $(PYTHON) $(VENV) dev

# Several processes run the tests, each those of a file at a time: one process more than there are cores, because tests
# often wait.
PARALLEL := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --maxprocesses 8 --dist loadfile

# What a contributor runs. It leaves out the tests with the marker `slow`, unless ARGS names them.
test: $(DEV)
	$(BIN)/python -m pytest $(or $(ARGS),$(PARALLEL) -m 'not soak and not ecosystem and not slow')

# All tests, with coverage, which costs 5 % more time. Processes that tests start do not count.
test-all: $(DEV)
	$(BIN)/python -m slipcover --source src/kubist --omit src/kubist/__main__.py --json --out .coverage.json \
		-m pytest $(PARALLEL) -W ignore::pytest.PytestAssertRewriteWarning $(ARGS); \
	status=$$?; $(BIN)/python tools/coverage_summary.py .coverage.json; exit $$status

soak: $(DEV)
	$(BIN)/python -m pytest -m soak tests/soak $(ARGS)

soak-short: $(DEV)
	KUBIST_SOAK=short $(BIN)/python -m pytest -m soak tests/soak $(ARGS)

# Software of other projects, installed from package registries; docs/ecosystem.md shows the table.
ecosystem: $(DEV)
	$(ECOSYSTEM) $(ARGS)

ecosystem-docs: $(DEV)
	KUBIST_ECOSYSTEM_DOCS=1 $(ECOSYSTEM) $(ARGS)

check: $(DEV)
	$(BIN)/ruff check src tests tools benchmarks
	$(BIN)/ruff format --check src tests tools benchmarks
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/check_modules.py
	$(BIN)/codespell *.md docs src tools benchmarks examples/README.md examples/*/README.md

# The documentation as a site, in site/. `make docs-serve` shows it at http://127.0.0.1:8000.
docs: $(VENV)/.docs
	$(BIN)/zensical build --strict --config-file mkdocs.yml
	@echo "Open site/index.html in a browser. \`make docs-serve\` adds the search."

docs-serve: $(VENV)/.docs
	$(BIN)/zensical serve --config-file mkdocs.yml

$(VENV)/.docs: $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

format: $(DEV)
	$(BIN)/ruff check --fix src tests tools benchmarks
	$(BIN)/ruff format src tests tools benchmarks

bench: $(DEV)
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench.py --bare uvicorn --only create,get,list,page
	$(BIN)/python benchmarks/access.py
	$(BIN)/python benchmarks/neighbours.py

clean:
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache* .hypothesis .coverage.json
