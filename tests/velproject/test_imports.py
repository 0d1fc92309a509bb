"""Each kind of process imports no modules that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.structure.test_structure import PACKAGES
from tests.support.migrated import copy_sqlite
from tests.velproject.command import DEADLINE, Vel

LIBRARIES = {
    *("anthropic", "openai", "google.genai", "mcp", "opentelemetry.sdk"),
    *("psycopg", "pymysql", "duckdb", "sqlalchemy", "numpy", "pandas", "matplotlib"),
}
"""Libraries of models without a key, of databases without an agent, and of `vel doctor`."""
PAGES = {"agents.admin.agents", "agents.api.urls", "agents.web.urls"}
SERVER = {"twisted", "daphne", "autobahn"}
ENGINE = {"agents.engine", "agents.middleware.registry", "pydantic", "rest_framework.serializers"}

RARELY_USED = {
    *("agents.features.google_workspace.middleware.gmail", "agents.features.mcp_client.runs"),
    *("agents.features.databases.middleware.calls", "agents.features.notifications.delivery"),
    *("agents.features.schedules.firing", "agents.agent_files", "drf_spectacular", "jsonschema"),
    *("rich.status", "rich.table", "smtplib", "rest_framework.views", "channels.layers"),
}
"""Modules that a run without these features, outside a terminal, does not use."""
MOST_MODULES = 731
"""Vel's own modules in the process of a run with one turn. Each takes about half a millisecond of
each start: lower the number if the test shows fewer."""

A_RUN = """
import json, sys
from velproject.cli.main import run_command_line

code = run_command_line(["--provider", "scripted", "--model", "echo", "hello"])
print("\\n" + json.dumps([code, *sorted(sys.modules)]))
"""

STAGES = """
import json, sys
from importlib import import_module

def say():
    print(json.dumps(sorted(sys.modules)))

from velproject import child, supervise
child.set_up_without_admin()
import_module("velproject.up").supervise
say()
child.preload_workers(child.Life())
say()
import_module("django.contrib.admin").autodiscover()  # as with the settings of servers
import_module("velproject.web.server")
import_module("velproject.asgi")
import_module("django.urls").get_resolver().url_patterns
say()
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> list[set[str]]:
    """Return the modules of a supervisor, then with workers' parent, then with web."""
    data = tmp_path_factory.mktemp("imports")
    copy_sqlite(data / "vel.sqlite3")
    done = subprocess.run(
        [sys.executable, "-P", "-c", STAGES],
        env=Vel(data).env(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


def test_the_supervisor_does_not_import_pages_or_the_engine(imported: list[set[str]]) -> None:
    supervisor, _, _ = imported
    assert "velproject.stalled" in supervisor
    assert not supervisor & (LIBRARIES | PAGES | SERVER | ENGINE)


def test_workers_import_no_pages_no_server_and_no_library_that_is_not_configured(
    imported: list[set[str]],
) -> None:
    _, workers, _ = imported
    assert workers >= {
        *("agents.engine.worker", "agents.features.slack.middleware", "velproject.cluster")
    }
    assert not workers & (LIBRARIES | PAGES | SERVER)


def test_web_imports_no_library_that_is_not_configured(imported: list[set[str]]) -> None:
    _, _, web = imported
    assert web >= {"agents.web.urls", "daphne.server"}
    assert not web & (LIBRARIES - {"psycopg"})  # Django REST framework imports psycopg


@pytest.fixture(scope="module")
def of_a_run(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the modules of `vel TASK` at its end, with an existing database."""
    data = tmp_path_factory.mktemp("run")
    copy_sqlite(data / "vel.sqlite3")
    done = subprocess.run(
        [sys.executable, "-P", "-c", A_RUN],
        env=Vel(data).env(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    code, *modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


def test_a_command_imports_no_pages_and_nothing_that_its_run_does_not_use(
    of_a_run: set[str],
) -> None:
    assert "agents.engine.turns" in of_a_run
    assert not of_a_run & (LIBRARIES | PAGES | SERVER | RARELY_USED)


def test_a_command_imports_few_modules(of_a_run: set[str]) -> None:
    own = [name for name in of_a_run if name.partition(".")[0] in PACKAGES]
    assert len(own) <= MOST_MODULES
