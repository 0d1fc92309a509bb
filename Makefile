SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN = $(VENV)/bin
# Without a value tests.run chooses.
WORKERS ?=
# uv or pip. Without a value requirements/setup.sh chooses uv, or pip if only pip knows the index.
INSTALLER ?=
# With this variable set, each process would compile the whole project again.
unexport PYTHONDONTWRITEBYTECODE
SETUP = PYTHON='$(PYTHON)' VENV='$(VENV)' INSTALLER='$(INSTALLER)' requirements/setup.sh
DOCS = $(BIN)/zensical build --clean --strict
TESTS = $(BIN)/python -m tests.run $(if $(WORKERS),--workers '$(WORKERS)')

.DEFAULT_GOAL := help
.PHONY: help run up test test-slow test-sqlite test-postgres test-fast test-python test-lowest test-root storm lint format bench frontend \
	screenshots reference translations docs client requirements release audit baseline clean system-run system-test

help: ## show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-14s%s\n", $$1, $$2}'
	@echo 'Variables: PYTHON, VENV, WORKERS (processes of the tests), INSTALLER (uv or pip)'

run: $(VENV)/installed system-run ## install everything and run the demo (SQLite; the offline model without a key)
	$(BIN)/vel demo </dev/null  # with a terminal as its input, the demo would ask questions

up: $(VENV)/installed system-run ## start the web server and the workers on http://127.0.0.1:8000
	$(BIN)/vel up

test: $(VENV)/installed-dev system-test ## run the tests, on SQLite and on PostgreSQL
	@$(TESTS) sqlite postgres

test-sqlite: $(VENV)/installed-dev system-test ## run the SQLite half of the tests
	@$(TESTS) sqlite

test-postgres: $(VENV)/installed-dev system-test ## run the PostgreSQL half of the tests
	@$(TESTS) postgres

test-fast: $(VENV)/installed-dev ## run the unit tests, in about a minute
	@$(TESTS) fast

test-slow: $(VENV)/installed-dev system-test ## run the slow tests that `make test` leaves out
	@$(TESTS) slow slow-postgres

test-python: $(VENV)/installed-dev system-test ## run the unit tests and some with processes, for another PYTHON
	@$(TESTS) python

test-lowest: override VENV := $(VENV)-lowest
test-lowest: ## run the unit tests with the lowest versions that pyproject.toml allows
	@$(SETUP) python lowest
	@$(TESTS) fast

test-root: $(VENV)/installed-dev system-test ## run the tests that need root, as root
	@$(TESTS) root root-postgres

storm: $(VENV)/installed-dev system-test ## run the long chaos, load and fuzz tests
	@$(TESTS) --workers 1 storm storm-postgres

lint: $(VENV)/installed-dev ## check style, format, types, imports, migrations, English, translations and links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python manage.py makemigrations --check --dry-run -v 0
	$(BIN)/python -m tests.structure.plain_english
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m docs_tools translations --check
	$(DOCS)

format: $(VENV)/installed-dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-dev ## measure the overhead beside other harnesses
	$(BIN)/python -m benchmarks

screenshots: $(VENV)/installed-dev system-test ## take the screenshots of the documentation
	$(BIN)/python -m docs_tools.screenshots

reference: $(VENV)/installed-dev ## write the generated pages and schemas of docs/reference
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m docs_tools

translations: $(VENV)/installed-dev ## write and compile the translations of the pages (needs gettext)
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m docs_tools translations

docs: $(VENV)/installed-dev ## build the documentation site in site/, and check its links
	$(DOCS)

frontend: system-test ## bundle the packages of frontend/ that browsers load
	cd frontend && npm ci --ignore-scripts --no-audit --no-fund && npm run build

client: $(VENV)/installed-dev ## generate a Python client of the REST API in client/
	$(BIN)/vel schema > openapi.json
	$(BIN)/openapi-python-client generate --overwrite --path openapi.json --config docs/guides/api-client.yml --output-path client

# Each list is valid for Linux and macOS and for all supported versions of Python.
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make requirements' $(BIN)/uv pip compile --quiet --universal \
	--python-version 3.11 --generate-hashes pyproject.toml
UPGRADE = $(if $(PACKAGE),--upgrade-package '$(PACKAGE)',--upgrade)

requirements: $(VENV)/installed-dev ## pin the newest versions (PACKAGE=name: of one package)
	$(BIN)/pip install --quiet --require-hashes -r requirements/uv.txt
	$(COMPILE) $(UPGRADE) --group build -o requirements/run.txt
	$(COMPILE) $(UPGRADE) --group build --group docs --extra dev -c requirements/run.txt -o requirements/dev.txt
	$(COMPILE) $(UPGRADE) --group build --extra dev --resolution lowest-direct -o requirements/lowest.txt
	$(COMPILE:pyproject.toml=) $(UPGRADE) --group install -o requirements/uv.txt
	$(COMPILE:pyproject.toml=) $(UPGRADE) --group build --group release -o requirements/release.txt

release: $(VENV)/installed $(VENV)-release/installed ## build the wheel, the sdist, the SBOM and the licence report in dist/
	$(VENV)-release/bin/python -m release_tools --licences-of '$(BIN)/python' $(if $(TAG),--tag '$(TAG)')

audit: $(VENV)-release/installed ## look for known vulnerabilities of the pinned packages (needs the network)
	$(VENV)-release/bin/pip-audit --strict --disable-pip --require-hashes -r requirements/run.txt

baseline: $(VENV)/installed-dev ## store the public documents of this version as those of the last release
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m tests.compatibility.store

clean: ## delete the virtual environments and the output of the demo
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-release dist demo-output

# The environment is updated when the pinned versions change.

$(VENV)/installed: requirements/run.txt requirements/uv.txt pyproject.toml
	@$(SETUP) python run
	@touch $@

$(VENV)/installed-dev: requirements/dev.txt requirements/uv.txt pyproject.toml
	@$(SETUP) python dev
	@touch $@ $(VENV)/installed

$(VENV)-release/installed: override VENV := $(VENV)-release
$(VENV)-release/installed: requirements/release.txt requirements/uv.txt pyproject.toml
	@$(SETUP) python release
	@touch $@

system-run:
	@$(SETUP) system run

system-test:
	@$(SETUP) system test
