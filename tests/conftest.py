"""What all tests share, and what says why a test was skipped."""

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
"""Here and nowhere else: each place that imports a fixture of the session has one of its own."""

REQUIRED = os.environ.get("CI") == "true"
"""In CI nothing that a marker needs may be missing."""


# The same examples each time, so that a change is judged by what it changes; `make storm` looks for
# new ones. How long an example takes says more of the machine than of the code.
settings.register_profile(
    "storm", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("test", settings.get_profile("storm"), derandomize=True)


# Most of what importing and collecting makes stays to the end: it is neither looked through while
# it grows nor ever after.
gc.disable()


def pytest_collection(session: pytest.Session) -> None:
    compiling.import_own_share(session.config)


def pytest_collection_finish() -> None:
    gc.freeze()
    # Objects that refer to each other in a circle are few: looking for them after each 700 new
    # ones would take a twelfth of the time.
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
"""Where single files take long. They come first, in this order: the last file of a run that
several processes share should be a short one."""


def _begin_with_long_files(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        found = (at for at, long in enumerate(LONG) if item.nodeid.startswith(long))
        return next(found, len(LONG))

    items.sort(key=place)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _begin_with_long_files(items)
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
    """A PostgreSQL server for this session: the one that `make test` has started, or a new one."""
    given = os.environ.get("VEL_TEST_DATABASE_URL") or os.environ.get("VEL_TEST_SERVER_URL")
    if given:
        yield given
    else:
        with postgres.postgres_server() as url:
            yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Lay a migrated database where pytest-django is about to make one."""
    migrated.lay_database(django_settings.DATABASES["default"]["TEST"]["NAME"])


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """It is taken as it lies there, and goes with the directory or server of this run."""
    return True


@pytest.fixture
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers in this process look ten times a second for what nobody hands to them.

    In life a task hands over a subagent and the parent that it wakes.
    """
    monkeypatch.setattr("agents.engine.process.sweeper.QUEUE_SWEEP_SECONDS", 0.1)


@pytest.fixture(autouse=True)
def _fresh_settings() -> None:
    forget()
