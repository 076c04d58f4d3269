# make demo   set up, then optimize the GDPA-style example for gfx950: ends with the patch on screen
# make test   set up, then the tests; `make test-long` runs those that take half a minute or more each
# Both work on a fresh Debian or Ubuntu machine with Python 3.11 or newer. The second run is fast.
#
# PYTHON=python3.12 picks the interpreter. SYSTEM_SITE=1 lets the virtual environment see the machine's own torch and
# triton (a ROCm build, say) instead of installing any. PIP_FLAGS is handed to pip.

PYTHON ?= python3
VENV ?= .venv
TARGET ?= gfx950
BIN := $(VENV)/bin
# Many tests wait: for a time limit, a browser, a service.
JOBS ?= $(shell expr 2 \* $$(nproc))

# A confined child may write nothing beside our files: what is not compiled before is compiled in every child anew.
PACKAGES := agent api prompts sandbox skills
BYTECODE := $(BIN)/python -m compileall -q -x /cases/ $(PACKAGES)

# A test process to each core already; numpy's threads would wait for each other.
test test-long: export OPENBLAS_NUM_THREADS = 1

.PHONY: demo test test-long setup hip lint types contracts wheel check clean

demo: $(VENV)/.ready
	$(BYTECODE)
	$(BIN)/wavesmith optimize examples/gdpa_attention/kernel.py --target $(TARGET) --out wavesmith-out/demo

test: $(VENV)/.ready $(VENV)/.hip
	$(BYTECODE)
	$(BIN)/pytest -n $(JOBS) --dist loadfile -m "not long" $(PYTEST_FLAGS)

test-long: $(VENV)/.ready $(VENV)/.hip
	$(BYTECODE)
	$(BIN)/pytest -n $(JOBS) --dist loadfile -m long $(PYTEST_FLAGS)

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt scripts/setup.sh
	PYTHON="$(PYTHON)" SYSTEM_SITE="$(SYSTEM_SITE)" PIP_FLAGS="$(PIP_FLAGS)" bash scripts/setup.sh "$(VENV)"
	touch $@

# What compiles HIP for gfx942 and gfx950 without a GPU; prepared once, then offline.
hip: $(VENV)/.hip
$(VENV)/.hip: $(VENV)/.ready
	$(BIN)/wavesmith doctor --fix
	touch $@

lint: $(VENV)/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.ready
	$(BIN)/mypy

contracts: $(VENV)/.ready
	$(BIN)/lint-imports

# The wheel in a clean environment, running one job.
wheel: $(VENV)/.ready
	bash scripts/try_wheel.sh "$(VENV)"

check: lint types contracts test wheel

clean:
	rm -rf $(VENV) build dist wavesmith-out .pytest_cache .mypy_cache .ruff_cache
