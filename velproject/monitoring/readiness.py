"""Readiness checks of this process and of the installation, with cached results.

At most one thread checks, every `KEEP_SECONDS`, for any number of requests. Other requests get the
last results, so that nobody can cause load with them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass

from django.db import DatabaseError, connection

from agents.disk_space import DATA_DIRECTORY, is_short, room
from agents.doors.database_schema import (
    feature_refusal,
    incompatible_columns,
    is_development_database,
    missing_migrations,
    unknown_migrations,
)
from agents.models import ProcessKind
from agents.selectors.metrics import ALIVE_SECONDS, seen_processes
from agents.settings import DataSettings
from agents.telemetry.spans import short
from sandbox.linux.probe import check_host

KEEP_SECONDS = 5.0
PATIENCE = 10.0
"""Seconds after which a check has failed, for example because the database hangs."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `detail` is only for operators and contains no secrets."""

    name: str
    ok: bool
    detail: str = ""


def check_database() -> Iterator[Check]:
    """Check that the database answers, and that this version can use its tables.

    A newer version may have migrated it: during a rolling upgrade, processes of both versions work.
    """
    try:
        is_old = is_development_database()
        missing, unknown = missing_migrations(), unknown_migrations()
        problems = incompatible_columns() if unknown and not missing else []
        refusal = feature_refusal()
    except DatabaseError as error:
        yield Check("database", False, short(str(error)))
        return
    yield Check("database", not refusal, short(refusal) or connection.vendor)
    if is_old:
        yield Check("migrations", False, "created by a development version before 0.1.0")
    elif missing:
        yield Check("migrations", False, f"{len(missing)} to apply")
    elif unknown and problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        newer = f"prepared by a newer Vel ({unknown[-1]})"
        yield Check("migrations", False, f"{newer}: {problems[0]}{more}")
    elif unknown:
        detail = f"prepared by a newer Vel ({unknown[-1]}): this version can still use it"
        yield Check("migrations", True, detail)
    else:
        yield Check("migrations", True)


def check_workers() -> Iterator[Check]:
    """Check that at least one worker has reported within `ALIVE_SECONDS`."""
    workers = [each for each in seen_processes() if each.row.kind == ProcessKind.WORKER]
    alive = sum(1 for each in workers if each.is_alive)
    within = f"{alive} seen within {ALIVE_SECONDS:.0f} s"
    yield Check("workers", alive > 0, within if alive else f"none: {within}; start vel worker")


def check_disk() -> Iterator[Check]:
    """Check that the disk has enough space for new runs."""
    directory, left = DataSettings.now().DATA_DIR, room()
    if not directory.is_dir():
        yield Check("disk", False, f"{directory} does not exist")
        return
    detail = f"{left.free / 1e6:,.0f} MB free at {directory}"
    if left.place != DATA_DIRECTORY:
        detail = f"{left.free / 1e6:,.0f} MB free at the disk of {left.place}"
    yield Check("disk", not is_short(), detail)


def check_sandbox() -> Iterator[Check]:
    """Check that commands can run in a sandbox. A success is kept for the life of the process."""
    report = check_host()
    yield Check("sandbox", report.usable, short(" ".join(report.problems)))


def look() -> list[Check]:
    """Run all checks now. Workers are checked only if the database can be used.

    Never raises: after an error in a check, the result ends with a failed check `look`.
    """
    found: list[Check] = []
    try:
        for check in (check_database, check_disk, check_sandbox):
            found += check()
        if all(each.ok for each in found if each.name in ("database", "migrations")):
            found += check_workers()
        else:
            found.append(Check("workers", False, "unknown: see the database"))
    except Exception as error:  # noqa: BLE001  # a health endpoint must always answer
        found.append(Check("look", False, short(f"{type(error).__name__}: {error}")))
    finally:
        with suppress(Exception):  # a broken connection: the next check opens another one
            connection.close()
    return found


class Readiness:
    """The last results, and the lock for the next checks."""

    def __init__(
        self,
        looking: Callable[[], list[Check]] = look,
        keep: float = KEEP_SECONDS,
        patience: float = PATIENCE,
    ) -> None:
        self._looking = looking
        self._keep = keep
        self._patience = patience
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="vel-readiness")
        self._found: list[Check] | None = None
        self._until = float("-inf")

    def checks(self) -> list[Check]:
        """Return the last results. If they are old, one caller checks again; others do not wait.

        Before the first results, all callers wait.
        """
        if self._found is None:
            with self._lock:
                return self._found if self._found is not None else self._renewed()
        if time.monotonic() >= self._until and self._lock.acquire(blocking=False):
            try:
                return self._renewed()
            finally:
                self._lock.release()
        return self._found

    def _renewed(self) -> list[Check]:
        self._found = self._look()
        self._until = time.monotonic() + self._keep
        return self._found

    def _look(self) -> list[Check]:
        future = self._pool.submit(self._looking)
        try:
            return future.result(self._patience)
        except FutureTimeout:
            future.cancel()
            return [Check("look", False, f"it took longer than {self._patience:g} s")]


readiness = Readiness()
"""The readiness of this process."""
