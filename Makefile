.DEFAULT_GOAL := help
.PHONY: help setup browser demo live quick test stress lint oldest newest wheel bench reproduce figures site clean mutants fuzz

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
TEST := $(BIN)/python -m pytest --quiet --numprocesses 2 --dist worksteal --cov --durations 60
PIP := bin/python -m pip --quiet --disable-pip-version-check
# compiled code is cached by file, not by what it calls in others: another folder when any kernel changes
export NUMBA_CACHE_DIR := $(or $(NUMBA_CACHE_DIR),$(shell $(PYTHON) tests/helpers/kernel_cache.py))

define smoke  # every command, and the tests of the package as users install it, in the environment $(1)
	$(1)/bin/python tests/smoke.py
	$(1)/bin/python -m pytest --quiet -p no:cacheprovider -W default \
		tests/project/test_package.py tests/project/test_documentation.py tests/estimation/test_estimation.py tests/cli/test_model_commands.py \
		tests/cli/test_decide_command.py -k "not test_documentation or README or reference"
endef

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'rankstream needs Python 3.11 or newer')"
	@echo "Creating .venv and installing rankstream with all its packages. The first time takes a few minutes."
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

setup: $(READY) ## make .venv with everything in it

browser: ## install Debian's Chromium, with which the pages of the service are tested
	apt-get install --yes --no-install-recommends chromium

demo: setup ## fit a model to a simulated stream of choices, write a report, and open its page until Ctrl-C
	@echo "Fitting a simulated market. The first run compiles the numerical code, which takes up to a minute."
	$(BIN)/python examples/demo.py --out rankstream-demo
	$(BIN)/rankstream report rankstream-demo/model.json --data rankstream-demo/choices.csv \
		--margins rankstream-demo/items.csv --out rankstream-demo/report.html
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ]; then $(BIN)/rankstream open rankstream-demo/choices.csv; \
		else echo "There is no display: 'rankstream open rankstream-demo/choices.csv' serves the page."; fi

live: setup ## serve a simulated market whose tastes change after a minute, until Ctrl-C
	$(BIN)/python examples/live.py

quick: setup ## run the tests that take no time, of every package: after every edit
	$(BIN)/python -m pytest --quiet --numprocesses 2 --dist worksteal -m "quick and not slow" tests

test: setup ## run the tests, two at a time, then those of the kernels once more uncompiled, with coverage
	$(TEST) --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 $(TEST) --cov-append --cov-report=term \
		tests/oracles/test_kernels.py tests/oracles/test_oracles.py tests/oracles/test_exact_oracles.py tests/oracles/test_oracle_choice.py tests/solver/test_solver.py \
		tests/distances/test_distances.py tests/solver/test_chunks.py tests/models/test_baselines.py tests/models/test_em_kernels.py \
		tests/oracles/test_lattice_kernels.py tests/oracles/test_search_kernels.py tests/oracles/test_bound_kernels.py \
		tests/oracles/test_corral_kernels.py tests/distances/test_distance_kernels.py tests/decide/test_decide_kernels.py tests/streams/test_growth_kernels.py \
		tests/oracles/test_prices_oracles.py tests/decide/test_prices_decide.py tests/models/test_prices_entropy.py tests/oracles/test_cuts.py \
		tests/oracles/test_parts.py tests/models/test_entropy.py::test_the_soft_program_equals_enumeration \
		tests/models/test_draws.py::test_tilted_rankings_are_drawn_by_their_law \
		tests/models/test_first_visits.py::test_rounding_at_the_end_of_a_draw_takes_no_item_twice \
		tests/oracles/test_search.py::test_search_brackets_the_minimum tests/oracles/test_search.py::test_bounds_hold_at_seven_items \
		tests/oracles/test_search.py::test_a_hurried_search_brackets_the_minimum_too

stress: setup ## run a third of the tests of servers and browsers beside 20 busy processes (ten minutes; PART=2 and 3 are the others)
	$(BIN)/python tests/stress.py --part $(or $(PART),1)

lint: setup site ## check style, types and the direction of imports, and build the site
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --quiet tests/service/test_page_scripts.py  # types of scripts; says why not if Node is missing

oldest: ## try the package with the oldest allowed version of every dependency
	$(PYTHON) -m venv --clear build/oldest
	$(PYTHON) tests/smoke.py --lowest > build/oldest/constraints.txt
	build/oldest/$(PIP) install --constraint build/oldest/constraints.txt ".[excel]" pytest hypothesis
	$(call smoke,build/oldest)

newest: ## try the package with the newest version of every dependency
	$(PYTHON) -m venv --clear build/newest
	build/newest/$(PIP) install ".[excel]" pytest hypothesis
	$(call smoke,build/newest)

wheel: ## build the package twice, compare, and try what was built
	$(PYTHON) -m venv --clear build/wheel
	build/wheel/$(PIP) wheel --no-deps --wheel-dir build/wheel/built .
	build/wheel/$(PIP) wheel --no-deps --wheel-dir build/wheel/again .
	cmp build/wheel/built/*.whl build/wheel/again/*.whl  # two builds are the same to the last byte
	build/wheel/$(PIP) install --constraint constraints.txt build/wheel/built/*.whl pytest hypothesis
	$(call smoke,build/wheel)

bench: setup ## measure speed, as ratios in one run
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/distances.py
	$(BIN)/python benchmarks/oracle.py --quick
	$(BIN)/python benchmarks/prices.py --quick
	$(BIN)/python benchmarks/quality.py --quick
	$(BIN)/python benchmarks/accuracy.py --quick
	$(BIN)/python benchmarks/corrective.py
	$(BIN)/python benchmarks/baselines.py --quick
	$(BIN)/python benchmarks/reading.py 1000000
	$(BIN)/python benchmarks/drift.py 20000
	$(BIN)/python benchmarks/streams.py
	$(BIN)/python benchmarks/service.py --seconds 30
	$(BIN)/python benchmarks/decide.py 5
	$(BIN)/python benchmarks/intervals.py --quick
	$(BIN)/python benchmarks/budget.py --quick
	$(BIN)/python benchmarks/proofs.py --sizes 31x200 --seeds 501 --seconds 45

mutants: setup ## make small mistakes in a copy of the source, and see whether the tests notice (up to an hour; SEED=7 draws others)
	nice $(BIN)/python benchmarks/mutants.py --seed $(or $(SEED),0)

fuzz: setup ## run every command on hostile files, ask the service odd things, and hold certificates against brute force (some minutes)
	nice $(BIN)/python benchmarks/fuzz.py --cases 2000
	PYTHONPATH=tests/helpers nice $(BIN)/python benchmarks/fuzz_service.py --runs 40
	nice $(BIN)/python benchmarks/certificates.py --cases 600
	nice $(BIN)/python benchmarks/simulate_faults.py --seeds 1000

reproduce: setup ## rerun the paper's computational study into experiments/results
	$(BIN)/rankstream reproduce --out experiments/results

figures: setup ## draw the figures of the documentation
	$(BIN)/python docs/figures.py
	PYTHONPATH=benchmarks $(BIN)/python docs/screenshots.py

site: setup ## build the documentation in site/, where a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

clean: ## remove everything that was made
	rm -rf .venv .numba rankstream-demo rankstream-live rankstream-study .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage build dist site
