"""Hooks of pytest that keep each test from harming later tests.

- A test that reaches its time limit ends its process. Its report has the stacks of all threads.
  pytest-xdist starts a new process, which continues with the next test on a new database.
  (pytest-timeout raises an exception from a signal handler instead. The exception can interrupt a
  tear-down or a migration, can appear in a frame without a line number, which pytest cannot print,
  and never comes while C code runs.)
- After a failed test the process gets a new copy of the migrated database.
- A test that leaves a process running fails. The environment, the working directory, signal
  handlers and the settings that a test has changed are restored, with a warning.
- Processes and directories of tests do not outlive the test process: see `process_guard`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.support import lasting_helpers, migrated, process_guard
from tests.support.process_guard import Process

STORM_LIMIT = 4 * 3600
"""The time limit in seconds for a test of `make storm`."""
GRACE = float(os.environ.get("VEL_TEST_GRACE", "60"))
"""The time in seconds that a killed process has to end after its test."""
SIGNALS = (signal.SIGALRM, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
TOGETHER = ("tests/browser/",)
"""Directories whose tests all run in the same process: a site and a browser take long to start."""
_NOT_OF_A_TEST = ("multiprocessing.resource_tracker",)
"""Python starts this process once for each process."""


class _State:
    stacks = 2
    """The file descriptor to which the stacks of all threads are written at the time limit.

    It is the standard error that pytest does not capture, or a file if pytest-xdist runs the test.
    """
    surroundings: dict[str, Any] = {}
    """The environment, settings and so on before the test."""
    shared_fixture = False
    """Whether a fixture of several tests was set up or torn down during this test."""
    seen: set[int] = set()
    """The processes of this machine at the end of the last test."""


_failed = pytest.StashKey[bool]()
_limit = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    _State.stacks = os.dup(2)
    process_guard.start()
    if not hasattr(config, "workerinput"):
        os.environ[process_guard.CONTROLLER] = str(os.getpid())
    process_guard.show_problems(_State.stacks)
    _State.seen = process_guard.all_pids()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        # pytest keeps the directories of its last runs. It should not keep those of a killed one.
        process_guard.remove(session.config._tmp_path_factory.getbasetemp())
        return
    # pytest-xdist gives each process a directory in the one of the controller.
    directory = session.config._tmp_path_factory.getbasetemp().parent
    path = _stacks_of(directory, session.config.workerinput["workerid"])
    _State.stacks = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        process_guard.keep(session.config._tmp_path_factory.getbasetemp())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("storm"):
            item.add_marker(pytest.mark.timeout(STORM_LIMIT))


# Time limits -----------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """Set the limit with a C thread, which also works while Python code is blocked."""
    item.stash[_limit] = settings.timeout
    faulthandler.dump_traceback_later(settings.timeout, exit=True, file=_State.stacks)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    faulthandler.cancel_dump_traceback_later()
    return True


def pytest_enter_pdb() -> None:
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any, sched: Any) -> None:
    """Add the stacks to the report of a test that has reached its limit."""
    directory = sched.config._tmp_path_factory.getbasetemp()
    stacks = _stacks_of(directory, report.node.gateway.id).read_text()
    report.longrepr = f"{report.longrepr}\n{stacks}"


def _stacks_of(directory: Path, worker: str) -> Path:
    return directory / f"stacks-{worker}.txt"


class Scheduling(LoadFileScheduling):
    """Keep the tests of some directories together, and continue with the next test after a crash.

    pytest-xdist 3.8 runs the crashed test again, distributes files that are finished, and then
    hangs (issues 1323, 1327 and 1378 of pytest-xdist).
    """

    def _split_scope(self, nodeid: str) -> str:
        directory = next((each for each in TOGETHER if nodeid.startswith(each)), "")
        return directory or super()._split_scope(nodeid)

    def remove_node(self, node: WorkerController) -> str | None:
        units = self.assigned_work.pop(node)
        rest = {
            file: {test: False for test, done in tests.items() if not done}
            for file, tests in units.items()
            if not all(tests.values())
        }
        if not rest:
            return None
        file, tests = next(iter(rest.items()))
        crashed = next(iter(tests))
        del rest[file][crashed]
        if not rest[file]:
            del rest[file]
        # Long files should start early.
        self.workqueue = OrderedDict([*rest.items(), *self.workqueue.items()])
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def _reschedule(self, node: WorkerController) -> None:
        """Assign work to a process until it knows its next test, or shut it down."""
        if node not in self.registered_collections:
            return  # it still collects
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            if self.workqueue:
                self._assign_work_unit(node)
            else:
                node.shutdown()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


# Leftovers of a test ---------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
    if not _is_shared(fixturedef, request):
        return (yield)
    try:
        return (yield)
    finally:
        _State.shared_fixture = True
        process_guard.shared.update(_started())


def pytest_fixture_post_finalizer(fixturedef: Any, request: Any) -> None:
    if _is_shared(fixturedef, request):
        _State.shared_fixture = True


def _is_shared(fixturedef: Any, request: Any) -> bool:
    """Return whether several tests use a fixture. A class-scoped one may have only one test."""
    alone = fixturedef.scope == "class" and request.cls is None
    return fixturedef.scope != "function" and not alone


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    _State.surroundings = _surroundings()
    _State.shared_fixture = False
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    # pytest-timeout cancels the limit when a test fails, because a debugger may start then.
    limit = item.stash.get(_limit, 0.0)
    if limit and item.stash.get(_failed, False):
        faulthandler.dump_traceback_later(limit, exit=True, file=_State.stacks)
    try:
        return (yield)
    finally:
        lasting_helpers.release()
        for what in _restore_changes():
            item.warn(pytest.PytestWarning(f"{item.nodeid} leaves a change of {what}"))
        if left := [process.describe() for process in _left_processes()]:
            raise AssertionError(f"{item.nodeid} leaves behind: {'; '.join(left)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    report = yield
    item.stash[_failed] = report.failed or item.stash.get(_failed, False)
    if call.when == "teardown" and item.stash[_failed]:
        migrated.renew()
    return report


def _surroundings() -> dict[str, Any]:
    environment = dict(os.environ)
    environment.pop("PYTEST_CURRENT_TEST", None)
    return {
        "the working directory": os.getcwd(),
        "signal handlers": [signal.getsignal(number) for number in SIGNALS],
        "Django's settings": settings._wrapped,
        "os.environ": environment,
    }


def _restore_changes() -> list[str]:
    """Restore what the test has changed, and return the names."""
    if _State.shared_fixture:
        return []
    before, now = _State.surroundings, _surroundings()
    changed = [what for what, value in now.items() if value != before[what]]
    for what in changed:
        value = before[what]
        if what == "the working directory":
            os.chdir(value)
        elif what == "signal handlers":
            for number, handler in zip(SIGNALS, value, strict=True):
                if handler is not None:  # a handler of C code
                    signal.signal(number, handler)
        elif what == "Django's settings":
            settings._wrapped = value
        else:
            current = os.environ.get("PYTEST_CURRENT_TEST")
            os.environ.clear()
            os.environ.update(value)
            if current is not None:
                os.environ["PYTEST_CURRENT_TEST"] = current
    return changed


def _left_processes() -> list[Process]:
    """Kill and return the processes of this test that do not end."""
    until = time.monotonic() + GRACE
    while (left := _started()) and time.monotonic() < until:
        time.sleep(0.01)
    for process in left:
        process.send(signal.SIGKILL)
    return left


def _started() -> list[Process]:
    """Return the running processes that this test has started, except those of shared fixtures."""
    reported = process_guard.reported()
    now = process_guard.all_pids()
    token = process_guard.token()
    found = {pid for pid in now - _State.seen if process_guard.carries(pid, token)}
    found |= {process.pid for process in reported} - _State.seen
    if not found:
        _State.seen = now
        return []
    family = process_guard.family(token, reported)
    shared = process_guard.relatives(process_guard.shared, family)
    left = [
        process
        for process in family - shared
        if not any(word in process.command() for word in _NOT_OF_A_TEST)
    ]
    _State.seen = now - {process.pid for process in left}
    return left
