# Everything a developer does, in one word each. `make` alone lists the words.
PYTHON ?= python3
VENV ?= .venv
PACKAGE ?= -e .
DEV_PACKAGE ?= -e .[dev]
ARGS ?=

BIN = $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint format typecheck docs bench build clean

help: ## Say what each word does
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run-ready ## Set up what is missing, then compact a real-looking session
	@$(BIN)/agentscope-compaction demo $(ARGS)

test: $(VENV)/.dev-ready ## Set up what is missing, then run all tests (ARGS="-k name" for some)
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev-ready ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev-ready ## Rewrite the code in the one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(VENV)/.dev-ready ## Check types, strictly
	$(BIN)/mypy

docs: $(VENV)/.dev-ready ## Write docs/options.md from the code
	@$(BIN)/python docs/reference.py

bench: $(VENV)/.dev-ready ## Run every benchmark
	@for script in benchmarks/[a-z]*.py; do name=$$(basename $$script .py); echo "== $$name"; \
		$(BIN)/python -m benchmarks.$$name || exit 1; done

build: $(VENV)/.dev-ready ## Build sdist and wheel into dist/
	$(BIN)/python -m build --outdir dist .

clean: ## Remove what these words have made
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ...' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo 'Making a virtual environment failed (Debian: apt-get install python3-venv)' >&2; exit 1; }

$(VENV)/.run-ready: pyproject.toml | $(BIN)/python
	@echo 'Setting up $(VENV) (once; about a minute) ...'
	@$(INSTALL) $(PACKAGE)
	@touch $@

$(VENV)/.dev-ready: pyproject.toml | $(BIN)/python
	@echo 'Setting up $(VENV) for development (once; about a minute) ...'
	@$(INSTALL) $(DEV_PACKAGE)
	@touch $@
