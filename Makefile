# Everything a newcomer runs, one line each. Needs python3.11 or later, make, git and the internet.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# A test on real servers that fails has a second go, five of a run at most, and is named with its trace at the end.
AGAIN := --max-suite-reruns=5 --rerun-show-tracebacks

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast check format generate soak bench lock image clean

help: ## list these commands
	@sed -n 's/^\([.a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

.venv: $(READY) ## make the environment that every other command uses

$(READY): requirements-dev.lock
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: '$(PYTHON)' is older than Python 3.11 or missing; install Python 3.11, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "==> making .venv with $(PYTHON) (a minute or two, once)"
	@"$(PYTHON)" -m venv .venv || { \
	  echo "make: no virtual environment; on Debian and Ubuntu install python3.11-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock || { \
	  echo "make: packages could not be installed; is a package index reachable from here?" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## place the example VMs, show who waits and why, then replay the log
	@$(BIN)/gpubinder demo

test: check ## everything: the checks, then every test, the real control plane included
	@$(BIN)/python -m tests.alerts.engine
	@test -n "$$GPUBINDER_TEST_HELM" || $(BIN)/python -m tests.chart.helm
	@$(BIN)/python -m pytest -m "not cluster and not soak" --numprocesses=2 $(AGAIN)
	@test -n "$$GPUBINDER_TEST_KUBECONFIG" || $(BIN)/python -m tests.cluster.build
	@$(BIN)/python -m pytest -m "cluster and not soak" $(AGAIN)

test-fast: $(READY) ## the tests that need no server: a minute or two
	@$(BIN)/python -m pytest -m "not cluster and not nats and not helm and not promql and not soak" --numprocesses=2

soak: $(READY) ## the long runs: many seeds, hours of logical time, new random cases of each property
	@$(BIN)/python -m pytest -m "soak or (hypothesis and not cluster)" --hypothesis-profile=search --timeout=0

bench: $(READY) ## measure on the real control plane; a table, and bench.json
	@$(BIN)/python -m tests.bench --output bench.json

check: $(READY) ## format, lint, types and import contracts; looks, never writes
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy .
	@$(BIN)/lint-imports --no-logo

format: $(READY) ## rewrite the sources as the formatter wants them
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

generate: $(READY) ## redraw what is drawn from the code: CRDs, the page of names, the README map
	@$(BIN)/python -m deploy.generate
	@REDRAW=1 $(BIN)/python -m pytest -q tests/house/test_map.py

lock: ## take the newest versions that pyproject.toml allows into requirements-dev.lock
	@rm -rf .venv/lock && "$(PYTHON)" -m venv .venv/lock
	@.venv/lock/bin/python -m pip install --quiet --disable-pip-version-check "pip>=25.1" "hatchling>=1.27" "editables>=0.5"
	@.venv/lock/bin/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	@head -2 requirements-dev.lock > .venv/lock/new
	@.venv/lock/bin/python -m pip freeze --exclude-editable >> .venv/lock/new
	@mv .venv/lock/new requirements-dev.lock && rm -rf .venv/lock
	@$(MAKE) --no-print-directory .venv && $(BIN)/python -m tests.house.runtime_lock

image: ## build the container image, with docker, podman or buildah: the first that answers
	@engine="$(ENGINE)"; for one in docker podman buildah; do \
	  [ -n "$$engine" ] || ! "$$one" info >/dev/null 2>&1 || engine=$$one; done; \
	  [ -n "$$engine" ] || { echo "make: no docker, podman or buildah answers here; name one: make image ENGINE=/path" >&2; exit 1; }; \
	  version=$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) && revision=$$(git rev-parse HEAD 2>/dev/null || echo unknown) && \
	  echo "==> building gpubinder:$$version with $$engine" && \
	  "$$engine" build $(ENGINE_FLAGS) --tag "gpubinder:$$version" --label "org.opencontainers.image.version=$$version" \
	    --label "org.opencontainers.image.revision=$$revision" .

clean: ## remove the environment and every cache
	@rm -rf .venv .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
