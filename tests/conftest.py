"""Fixtures of all tests, their order, and the reasons for skipped tests."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator

import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, settings

from agents.kernel.settings import forget
from tests.support import compiling, flush, mariadb, migrated, postgres, static_files
from tests.support.site import site

pytest_plugins = [
    "tests.support.isolation",
    "tests.support.one_minute",
    "tests.support.report",
]

__all__ = ["site"]
"""Import this fixture only here: each import of a session fixture creates a separate one."""

REQUIRED = os.environ.get("CI") == "true"
"""In CI, the programs that the markers require must be installed."""


# Use the same examples each time, so that results are comparable; `make storm` searches for new
# ones. No deadline: the time of an example depends on the machine more than on the code.
settings.register_profile(
    "storm", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("test", settings.get_profile("storm"), derandomize=True)


# Most objects from imports and collection live until the end, so the garbage collector need not
# check them: not during the collection (here) and not later (`freeze`).
gc.disable()


def pytest_collection(session: pytest.Session) -> None:
    compiling.import_own_share(session.config)


def pytest_collection_finish() -> None:
    gc.freeze()
    # Reference cycles are rare. With the default threshold of 700, the collector would use a
    # twelfth of the time.
    gc.set_threshold(10_000)
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("storm" if config.option.markexpr == "storm" else "test")
    flush.install()
    static_files.install()


def _missing(marker: str) -> str:
    if marker == "bubblewrap" and shutil.which("bwrap") is None:
        return "bubblewrap is not installed: apt-get install bubblewrap"
    if marker == "postgresql" and postgres.binaries() is None:
        return "PostgreSQL's server is not installed: apt-get install postgresql"
    if marker == "mariadb" and mariadb.binary() is None:
        return "MariaDB's server is not installed: apt-get install mariadb-server-core"
    if marker == "chromium" and shutil.which("chromium") is None:
        return "Chromium is not installed: apt-get install chromium"
    if marker == "node" and (shutil.which("node") is None or shutil.which("npm") is None):
        return "Node.js or npm is not installed: apt-get install nodejs npm"
    if marker == "root" and os.geteuid() != 0:
        return "needs root"
    return ""


LONG = (
    *("tests/browser", "tests/velproject/test_up.py", "tests/chaos"),
    *("tests/velproject", "tests/sandbox/interop", "tests/agents/sdk"),
    *("tests/benchmarks", "tests/foreign_project", "tests/attacks", "tests/skills_app"),
    *("tests/agents/demo", "tests/sandbox"),
)
"""Directories with slow files, which run first and in this order.

The last files of a parallel run should be short, so that all processes end at about the same time.
"""


def _begin_with_long_files(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        found = (at for at, long in enumerate(LONG) if item.nodeid.startswith(long))
        return next(found, len(LONG))

    items.sort(key=place)


def _mark_slow_cases(items: list[pytest.Item]) -> None:
    """Mark as slow all cases but the first of each test with the marker slow_cases."""
    seen = set()
    for item in items:
        if item.get_closest_marker("slow_cases") is not None:
            test = item.nodeid.partition("[")[0]
            if test in seen:
                item.add_marker(pytest.mark.slow)
            seen.add(test)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _begin_with_long_files(items)
    _mark_slow_cases(items)
    markers = ("bubblewrap", "postgresql", "mariadb", "chromium", "node", "root")
    reasons = {marker: _missing(marker) for marker in markers}
    for item in items:
        for marker, reason in reasons.items():
            if not reason or item.get_closest_marker(marker) is None:
                continue
            if REQUIRED and marker != "root":  # CI runs these tests in a separate run as root
                raise pytest.UsageError(f"CI must run the {marker} tests. {reason}")
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Yield a PostgreSQL server for this session: the one from `make test`, or a new one."""
    given = os.environ.get("VEL_TEST_DATABASE_URL") or os.environ.get("VEL_TEST_SERVER_URL")
    if given:
        yield given
    else:
        with postgres.postgres_server() as url:
            yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Copy a migrated database to the place where pytest-django would create one."""
    migrated.lay_database(django_settings.DATABASES["default"]["TEST"]["NAME"])


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Let pytest-django keep the copied database. It is deleted with the directory or server."""
    return True


@pytest.fixture
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers in this process check ten times a second for runs that no task hands to them.

    In production, a task hands over a subagent and the parent that it wakes.
    """
    monkeypatch.setattr("agents.engine.process.sweeper.QUEUE_SWEEP_SECONDS", 0.1)


@pytest.fixture(autouse=True)
def _fresh_settings() -> None:
    forget()
