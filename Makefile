# Two commands do everything on a fresh machine with Python, pip and make: `make demo` and
# `make test`. Both make .venv themselves, with every version pinned by constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CODE := src tests benchmarks examples scripts
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Two workers, a thread each; a worker that is done takes tests from the other.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: demo test test-fast test-interop check format bench-data bench-check clean

demo: $(VENV)/.base
	@scripts/system-packages --check
	$(BIN)/sim2real demo

test: $(VENV)/.dev
	$(PYTEST)

test-fast: $(VENV)/.dev
	$(PYTEST) -m "not slow"

# Data sets exchanged with LeRobot itself and a lake on S3; both live in an environment of their own.
test-interop: $(VENV)/.dev
	scripts/interop-env
	$(BIN)/python -m pytest tests/interop

check: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

format: $(VENV)/.dev
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

# What there is, and what it costs: `python -m benchmarks`. A run goes on where the last one stopped.
bench-%: $(VENV)/.bench
	$(BIN)/python -m benchmarks $*

# These have no peers.
bench-shape bench-test-time: bench-%: $(VENV)/.base
	$(BIN)/python -m benchmarks $*

bench-data: $(VENV)/.bench
	scripts/interop-env
	$(BIN)/python -m benchmarks data

# Do the figures that are kept still hold for the code of today?
bench-check: $(VENV)/.bench
	$(BIN)/python -m benchmarks check

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "sim2real needs Python 3.11 or newer; set PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.base
	$(PIP) -e '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) .venv-interop runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
