# make run    set everything up and run the demo to its end (SQLite, offline model unless a key is set)
# make up     web and workers on http://127.0.0.1:8000
# make test   everything that CI runs;  make storm  the long chaos, load and fuzz tests
# make lint   formatting, types, import directions;  make bench  overhead beside other harnesses

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
# uv or pip. Without a value requirements/setup.sh chooses uv, or pip if only pip knows the index.
INSTALLER ?=
SETUP = PYTHON='$(PYTHON)' VENV='$(VENV)' INSTALLER='$(INSTALLER)' requirements/setup.sh
# Tests wait for other processes half of the time.
WORKERS ?= 4
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Where it is set, each process compiles the whole project anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run up test test-sqlite test-postgres storm lint format bench screenshots client requirements clean

run: $(VENV)/installed system-run
	$(BIN)/vel demo </dev/null  # to its end: at a terminal it would ask you

up: $(VENV)/installed system-run
	$(BIN)/vel up

test: test-sqlite test-postgres

test-sqlite: $(VENV)/installed-dev system-test
	$(BIN)/python -m tests.support.postgres --aside $(PYTEST) -m "not storm"

# What depends on the database's locks and clock, once more on PostgreSQL.
ON_POSTGRES := not storm and not chromium and not node and not any_database
test-postgres: $(VENV)/installed-dev system-test
	$(BIN)/python -m tests.support.postgres $(PYTEST) -m "$(ON_POSTGRES)" tests/chaos \
		$(addprefix tests/agents/,api consumers engine events hosts middleware snapshots test_any_history.py test_states.py)

storm: $(VENV)/installed-dev system-test
	$(BIN)/pytest -m storm --timeout 3600
	$(BIN)/python -m tests.support.postgres $(BIN)/pytest -m storm --timeout 3600 tests/chaos

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python manage.py makemigrations --check --dry-run -v 0

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks

screenshots: $(VENV)/installed-dev system-test
	$(BIN)/python docs/screenshots.py

client: $(VENV)/installed-dev
	$(BIN)/vel schema > openapi.json
	$(BIN)/openapi-python-client generate --overwrite --path openapi.json --config docs/api-client.yml --output-path client

# Each list is valid for Linux and macOS and for all supported versions of Python.
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make requirements' $(BIN)/uv pip compile --quiet --universal \
	--python-version 3.11 --generate-hashes pyproject.toml
UPGRADE = $(if $(PACKAGE),--upgrade-package '$(PACKAGE)',--upgrade)

requirements: $(VENV)/installed-dev # pins the newest versions (PACKAGE=name: of one package)
	$(BIN)/pip install --quiet --require-hashes -r requirements/uv.txt
	$(COMPILE) $(UPGRADE) --group build -o requirements/run.txt
	$(COMPILE) $(UPGRADE) --group build --extra dev -c requirements/run.txt -o requirements/dev.txt
	$(COMPILE:pyproject.toml=) $(UPGRADE) --group install -o requirements/uv.txt

clean:
	rm -rf $(VENV) demo-output

# The environment is updated when the pinned versions change.

$(VENV)/installed: requirements/run.txt requirements/uv.txt pyproject.toml
	@$(SETUP) python run
	@touch $@

$(VENV)/installed-dev: requirements/dev.txt requirements/uv.txt pyproject.toml
	@$(SETUP) python dev
	@touch $@ $(VENV)/installed

.PHONY: system-run system-test
system-run:
	@$(SETUP) system run

system-test:
	@$(SETUP) system test
