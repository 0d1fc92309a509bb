# make run    set everything up and run the demo to its end (SQLite, offline model unless a key is set)
# make up     web and workers on http://127.0.0.1:8000
# make test   everything that CI runs;  make storm  the long chaos, load and fuzz tests
# make lint   formatting, types, import directions;  make bench  overhead beside other harnesses

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
# Tests wait for other processes half of the time.
WORKERS ?= 4
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Where it is set, each process compiles the whole project anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run up test test-sqlite test-postgres storm lint format bench screenshots client clean

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

clean:
	rm -rf $(VENV) demo-output

# A virtual environment, made again when the dependencies change.

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Vel needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { $(call apt,python3-venv) && $(PYTHON) -m venv --clear $(VENV); }

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/installed

# System packages, by apt where there is apt.

define apt
if command -v apt-get >/dev/null; then \
	$(SUDO) apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $(1) >/dev/null; \
else \
	echo "Please install: $(1)"; exit 1; \
fi
endef

.PHONY: system-run system-test
system-run:
	@command -v bwrap >/dev/null || { $(call apt,bubblewrap); }

system-test: system-run
	@command -v chromium >/dev/null || { $(call apt,chromium fonts-dejavu-core); }
	@# Pages' tests take half as long with it, and do without it where a distribution has none.
	-@command -v chromium-headless-shell >/dev/null \
		|| ! apt-cache show chromium-headless-shell >/dev/null 2>&1 \
		|| { $(call apt,chromium-headless-shell); }
	@command -v npm >/dev/null || { $(call apt,nodejs npm); }
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { $(call apt,postgresql); }
	@PATH=$$PATH:/usr/sbin command -v mariadbd >/dev/null || { $(call apt,mariadb-server-core); }
