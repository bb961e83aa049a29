# The targets of the project. Each first makes the environment in .venv, if it is missing or older than the lock.
#   PYTHON=python3.12   the Python that .venv is made with (3.11 or newer)
#   WORKERS=4           how many processes run the tests, on one set of servers; more than cores, because
#                       many tests wait for servers; WORKERS=0: this process
#   ARGS='...'          more arguments for the command of a target

PYTHON ?= python3
ARGS ?=
WORKERS ?= 4
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.matches-lock
UV := $(BIN)/uv
comma := ,
space := $(subst ,, )

# uv does not read pip's settings; it gets those of the caller, unless uv has its own.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
ifdef PIP_EXTRA_INDEX_URL
export UV_INDEX ?= $(PIP_EXTRA_INDEX_URL)
endif
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS ?= $(subst $(space),$(comma),$(strip $(PIP_FIND_LINKS)))
endif
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif
# pip trusts the certificates of the system, so uv has to.
export UV_SYSTEM_CERTS ?= 1
# Tests, demo and benchmarks start many processes: without bytecode each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env demo test soak bench unit lowest docs helper dist lint format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(STAMP) ## make .venv as requirements.lock says

demo: $(STAMP) ## copy a topic to S3 through Airflow, on a Kafka broker and an S3 server started for it
	@$(BIN)/airflow-connect demo $(ARGS)

# The pages are tested in Chromium. A build server (CI=true) gets it here, as a person does by the line in the README.
ifeq ($(CI),true)
test: chromium
endif
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null \
	|| { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends chromium >/dev/null; }

# The longest tests start first, so that all processes end together: tests/support/session/scheduling.py. Lint needs one core for half a minute.
test: $(STAMP) ## lint, and at the same time all tests on real servers, with two random kill rounds of most kinds, but without the long ones
	@$(BIN)/python -c 'import platform as p; print("Python", p.python_version(), "on", p.system(), p.machine())'
	@$(MAKE) --no-print-directory lint & lint=$$!; \
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS); status=$$?; \
	wait $$lint || { echo "make lint has failed: its findings are above." >&2; exit 1; }; exit $$status

unit: $(STAMP) ## the tests without servers, and those of the documentation: minutes
	@$(BIN)/python -m pytest -n $(WORKERS) tests/unit tests/architecture tests/docs $(ARGS)

# Direct dependencies are as old as pyproject.toml allows; what they need themselves is theirs to bound. The lock overrides the version of Spark.
lowest: $(STAMP) ## the tests without servers and those of Spark, with the oldest versions that pyproject.toml allows
	@mkdir -p .cache
	@$(UV) pip compile pyproject.toml --all-extras --resolution lowest-direct --python-version 3.11 --quiet -o .cache/lowest.txt
	@$(UV) venv --quiet --clear --python $(BIN)/python .cache/lowest
	@VIRTUAL_ENV="$(CURDIR)/.cache/lowest" $(UV) pip sync --quiet .cache/lowest.txt
	@VIRTUAL_ENV="$(CURDIR)/.cache/lowest" $(UV) pip install --quiet --no-deps pyspark==4.0.0 pyspark-client==4.0.0
	@VIRTUAL_ENV="$(CURDIR)/.cache/lowest" $(UV) pip install --quiet --no-deps --no-build-isolation -e .
	@.cache/lowest/bin/python -m pytest -n $(WORKERS) tests/unit tests/integration/runtime/engine/test_local.py $(ARGS)

soak: $(STAMP) ## the long tests, 1,000 kill rounds of each kind, large directories and fleets, long searches; takes hours
	@AIRFLOW_CONNECT_SOAK=1 $(BIN)/python -m pytest -m 'crash or soak or hypothesis or long' --timeout=0 $(ARGS)

bench: $(STAMP) ## measure records per second, CPU and memory; every record is counted back
	@$(BIN)/python tests/bench/run.py $(ARGS)

docs: $(STAMP) ## build the documentation site into build/site; a warning is an error
	@$(BIN)/python docs/site/build.py build/site $(ARGS)

helper: $(STAMP) ## compile the Java program of the plugin host into its jar, which is part of the package
	@$(BIN)/python -m tests.devstack.helper_jar

dist: $(STAMP) ## build the wheel and the source distribution into dist/
	@rm -rf dist
	@$(UV) build --quiet --no-build-isolation --python $(BIN)/python -o dist
	@ls -1 dist

lint: $(STAMP) ## ruff, mypy --strict on the package, direction of imports, code that nothing uses
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary
	@found=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$found"; exit 1; }
	@$(BIN)/vulture

format: $(STAMP) ## write the code as ruff formats it
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

lock: $(STAMP) ## write requirements.lock; ARGS=--upgrade takes newer versions
	@$(UV) pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" --quiet -o requirements.lock $(ARGS)

clean: ## remove .venv and everything else that was made here
	rm -rf $(VENV) dist build .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find airflow_connect tests dags -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# uv installs the 250 packages in a quarter of pip's time; pip brings uv itself, in the version and with the hashes of the lock.
# The project is installed editable by the build backend that is in the lock, so nothing is fetched that the lock does not name.
$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON): install Python 3.11 or newer, or say which one: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else f"$(PYTHON) is Python {v}; 3.11 or newer is needed: make PYTHON=python3.11")'
	@$(PYTHON) -c 'import importlib.util as u, sys; v = "python%d.%d-venv" % sys.version_info[:2]; sys.exit(0 if u.find_spec("ensurepip") else f"$(PYTHON) cannot make an environment, it lacks ensurepip: install the package {v} (Debian, Ubuntu: apt-get install {v})")'
	@test -x $(BIN)/python || { echo "Making $(VENV) (once, about a minute)" >&2; $(PYTHON) -m venv $(VENV); }
	@awk '/^uv==/ { on = 1 } on { print } on && !/\\$$/ { exit }' requirements.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip install --quiet --require-hashes -r $(VENV)/uv.lock
	@export VIRTUAL_ENV="$(CURDIR)/$(VENV)" \
	&& export UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}" \
	&& $(UV) pip sync --quiet --require-hashes --compile-bytecode requirements.lock \
	&& $(UV) pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@
