# Two commands do everything on a fresh machine with Python, pip and make: `make demo` and
# `make test`. Both make .venv themselves, with every version pinned by constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Two workers, a thread each; a worker that is done takes tests from the other.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: demo test test-fast test-interop check format bench-sim bench-train bench-data bench-deploy bench-doctor bench-attribute bench-transfer clean

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
	$(BIN)/ruff format --check src tests
	$(BIN)/ruff check src tests
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py

format: $(VENV)/.dev
	$(BIN)/ruff format src tests
	$(BIN)/ruff check --fix src tests

bench-sim: $(VENV)/.bench
	$(BIN)/sim2real bench sim --out benchmarks/sim.json

bench-train: $(VENV)/.bench
	$(BIN)/sim2real bench train --out benchmarks/train.json

bench-data: $(VENV)/.base
	scripts/interop-env
	$(BIN)/sim2real bench data --out benchmarks/data.json

bench-deploy: $(VENV)/.base
	$(BIN)/sim2real bench deploy --parts kills --out benchmarks/deploy-kills.json
	$(BIN)/sim2real bench deploy --parts time --out benchmarks/deploy-time.json
	$(BIN)/sim2real bench deploy --parts faults --out benchmarks/deploy-faults.json

bench-doctor: $(VENV)/.base
	$(BIN)/sim2real bench doctor --out benchmarks/doctor.json

bench-attribute: $(VENV)/.base
	$(BIN)/sim2real bench attribute --losses 0 --out benchmarks/attribute.json
	$(BIN)/sim2real bench attribute --combinations 0 --out benchmarks/attribute-success.json

# A task at a time: together they take most of a day on two cores.
bench-transfer: $(VENV)/.base
	for task in pendulum-swingup arm-reach arm-push; do \
		$(BIN)/sim2real bench transfer --tasks $$task --kills 0 --scores benchmarks/transfer --out benchmarks/transfer-$$task.json || exit; \
	done
	$(BIN)/sim2real bench transfer --tasks --out benchmarks/transfer-kills.json

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
