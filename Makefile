# All that a fresh machine with Python (3.11 or later) and make needs; each target sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/installed
# Two test processes share two cores: more threads each would only get in each other's way.
TEST := OMP_NUM_THREADS=1 POLARS_MAX_THREADS=2 $(BIN)/pytest -q -n 2
# What the tests of a file share is made once, in one process; the slow tests are few and share little.
BY_FILE := --dist loadfile

.PHONY: help install demo lint check test slow lowest coverage fuzz bench docs clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

install: $(READY)  ## make .venv with the package and its development tools

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs,export,ray,report,serve,xgboost]'
	touch $@

demo: $(READY)  ## run the main job on a generated data set
	$(BIN)/cuolr demo --out demo

lint: $(READY)  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint  ## lint and the fast tests
	$(TEST) $(BY_FILE) -m "not slow and not thorough"

test: $(READY)  ## the whole test suite, but for the slow tests
	$(TEST) $(BY_FILE) -m "not slow"

slow: $(READY)  ## learning, calibration and whole experiments
	$(TEST) -m slow --durations=0

lowest: $(VENV)-lowest/installed  ## the fast tests with the lowest versions of all dependencies
	OMP_NUM_THREADS=1 POLARS_MAX_THREADS=2 $(VENV)-lowest/bin/pytest -q -n 2 -m "not slow and not thorough"

$(VENV)-lowest/installed: pyproject.toml constraints-lowest.txt
	test -x $(VENV)-lowest/bin/python || $(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt --editable '.[dev,export,report,serve,xgboost]'
	touch $@

coverage: $(READY)  ## lines and branches of the package that the fast tests do not reach
	OMP_NUM_THREADS=1 POLARS_MAX_THREADS=2 $(BIN)/coverage run -m pytest -q -n 2 $(BY_FILE) -m "not slow and not thorough"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

fuzz: $(READY)  ## damaged and crafted files of every kind, for an hour
	OMP_NUM_THREADS=1 POLARS_MAX_THREADS=2 $(BIN)/python -m fuzz --minutes 60 --processes 2

bench: $(READY)  ## the benchmarks, as one table of ratios
	$(BIN)/python -m benchmarks

docs: $(READY)  ## build the site into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:  ## remove what make made
	rm -rf $(VENV) $(VENV)-lowest .coverage* demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
