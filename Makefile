# The only list of commands. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo auc heart network experiments experiments-quick experiments-report experiments-verify test test-fast test-oldest test-ray mutants lint format types imports bench coverage fuzz soak support pictures build clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 21

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=... (this is %d.%d)" % v[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

setup: $(READY)  ## Make the virtual environment with the package and its tools

demo: $(READY)  ## Two models on embedded data: may one of them decide alone? A report to open
	@$(BIN)/fragility demo

auc: $(READY)  ## Two models with equal AUC and different fragility
	@$(BIN)/python examples/equal_auc.py

heart: $(READY)  ## Robust training on the heart-failure data, with clean and with noisy labels
	@$(BIN)/python examples/heart.py

network: $(READY)  ## A small PyTorch network with and without each method, at equal calibration
	@$(BIN)/python examples/train_network.py

experiments: $(READY)  ## Every experiment of the paper in full (hours; goes on where it was)
	$(BIN)/python -m experiments run all

experiments-quick: $(READY)  ## A small version of every experiment, with the page (minutes)
	$(BIN)/python -m experiments run all --quick

experiments-report: $(READY)  ## Tables, figures and page again from the results
	$(BIN)/python -m experiments report

experiments-verify: $(READY)  ## A few trials again: are the committed results those of this code?
	$(BIN)/python -m experiments verify

# One process for each core does more than one process with a thread for each.
test test-fast test-oldest test-ray mutants: export OMP_NUM_THREADS = 1
# Workers and commands that tests start need not compile what another has compiled.
test test-fast: export PYTHONDONTWRITEBYTECODE =
test: $(READY)  ## All tests and doctests; warnings are errors (ten minutes on two cores)
	$(BIN)/python -m pytest -n auto --dist worksteal

test-fast: $(READY)  ## The core: no browser, PyTorch, cvxpy or other process (a minute)
	$(BIN)/python -m pytest -p tests.fast -n auto --dist worksteal --durations=5

OLDEST := .venv-oldest
test-oldest:  ## Estimators on the oldest supported NumPy, SciPy and scikit-learn
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e . coverage hypothesis pandas pytest
	# Checks of old versions of scikit-learn are made in a way that pytest no longer likes.
	$(OLDEST)/bin/python -m pytest -q -p no:cacheprovider -W ignore::pytest.PytestRemovedIn10Warning --deselect tests/test_estimators.py::test_conic_is_a_cross_check tests/test_class_weight.py tests/test_cross_validation.py tests/test_deferral_classifier.py tests/test_estimators.py

test-ray: $(READY)  ## Sketches and reports on Ray, which it installs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest -W default tests/test_ray.py

MUTANTS_SEED ?= 0
MUTANTS_COUNT ?= 40
MUTANTS_PACKAGES ?= index solvers scores deferral
mutants: $(READY)  ## Faults put into the library one by one: which test notices (an hour or more)
	$(BIN)/python -m tests.mutants --seed $(MUTANTS_SEED) --count $(MUTANTS_COUNT) --packages $(MUTANTS_PACKAGES)

lint: $(READY) types imports  ## Style (Python and JavaScript), types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/oxlint src

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

format: $(READY)  ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## Speed, memory and calibration against scikit-learn and Platt (half an hour)
	$(BIN)/python benchmarks/index.py
	$(BIN)/python benchmarks/deciding.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/cross_validation.py
	$(BIN)/python benchmarks/report.py
	PYTHONPATH=. $(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/large_file.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/engines.py

coverage: $(READY)  ## Simulations of intervals, tests, slices, plans and guarantees of policies (two hours)
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/policy_guarantees.py
	$(BIN)/python benchmarks/slices.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/groups.py
	$(BIN)/python benchmarks/history.py
	$(BIN)/python benchmarks/drift.py
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/sample.py

FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 0
fuzz: export OMP_NUM_THREADS = 1
fuzz: $(READY)  ## Damaged and hostile files (ten minutes; FUZZ_SECONDS=..., FUZZ_SEED=...)
	$(BIN)/python -m tests.fuzzing --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

soak: export OMP_NUM_THREADS = 1
soak: $(READY)  ## 10,000 fits and calls in one process: memory stays flat (ten minutes)
	$(BIN)/python -m tests.soak

support: $(READY)  ## docs/support.md, by solving every cell
	$(BIN)/python -m tests.support_matrix

pictures: $(READY)  ## The pictures of the README
	$(BIN)/python examples/pictures.py

build: $(READY)  ## Wheel in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## Remove everything that can be made again
	rm -rf $(VENV) $(OLDEST) fragility-demo.html experiments/results-quick dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
