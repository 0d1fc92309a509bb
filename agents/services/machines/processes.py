"""Reports of each process of this installation about itself, every few seconds."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from django.db import DatabaseError, transaction

from agents.models import ProcessKind, ServerProcess
from agents.models.database_clock import DatabaseNow
from agents.telemetry.counters import Values, added, without
from agents.telemetry.process import counters
from sandbox.linux.probe import known_report

logger = logging.getLogger(__name__)

PROCESS_HEARTBEAT_SECONDS = 10.0
RETIRE_SECONDS = 600.0
"""A process without a report for so long is gone, and its numbers are added to the sums."""


class Reporter:
    """The reports of one process, for one thread at a time. All methods write in a transaction."""

    def __init__(self, kind: ProcessKind, name: str, capacity: int = 0) -> None:
        self.kind = kind
        self.name = name
        self._capacity = capacity
        self._started = time.time()
        self._base: Values = {}
        self._written: Values = {}

    @transaction.atomic
    def report(self, driven: int = 0, streams: int = 0) -> None:
        """Store a heartbeat and the counters. Also retire processes that are gone.

        `driven` is the number of runs that the process executes now, and `streams` the number of
        its open event streams.
        """
        numbers = counters()
        if numbers is not None:
            numbers.in_row = True
        now = numbers.snapshot() if numbers is not None else {}
        values = {
            "seen_at": DatabaseNow(),
            "driven": driven,
            "streams": streams,
            "limits": _limits() if self.kind == ProcessKind.WORKER else "",
        }
        mine = ServerProcess.objects.filter(pk=self.name)
        if not mine.update(**values, counters=_text(without(now, self._base))):
            # The first report, or the row was retired: its numbers are already in the sums.
            self._base = self._written
            ServerProcess.objects.create(
                name=self.name,
                kind=self.kind,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=_version(),
                started_at=self._started,
                capacity=self._capacity,
                **values,
                counters=_text(without(now, self._base)),
            )
        self._written = now
        lost = ServerProcess.objects.filter(seen_at__lt=DatabaseNow() - RETIRE_SECONDS)
        names = list(lost.exclude(pk=ServerProcess.RETIRED).values_list("pk", flat=True))
        if names:
            _retire(names)

    @transaction.atomic
    def retire(self) -> None:
        """At the end of the process, add its counters to the sums, and delete its row."""
        if counters() is not None:
            self.report()
        _retire([self.name])


def leave_counts() -> None:
    """Add this process's counters to the stored sums of ended processes.

    For processes without a heartbeat: the supervisor, `vel` commands and programs. Does nothing in
    a process that reports itself, because it has a `ServerProcess` with its counters.

    Raises:
        DatabaseError: The database failed. The numbers are kept for the next call.
    """
    numbers = counters()
    if numbers is None or numbers.in_row or not (counted := numbers.take()):
        return
    try:
        with transaction.atomic():
            sums = _locked_sums()
            sums.counters = _text(added(read_counters(sums.counters), counted))
            sums.save(update_fields=["counters"])
    except BaseException:
        numbers.put_back(counted)
        raise


def try_to_leave_counts() -> None:
    """Call `leave_counts` after the work is done: log a warning if the database fails."""
    try:
        leave_counts()
    except DatabaseError as error:
        logger.warning("cannot store what this process has counted: %s", error)


def _locked_sums() -> ServerProcess:
    ServerProcess.objects.get_or_create(pk=ServerProcess.RETIRED)
    return ServerProcess.objects.select_for_update().get(pk=ServerProcess.RETIRED)


def _retire(names: Sequence[str]) -> None:
    """Add each row to the sums exactly once: the row of the sums is locked first."""
    mine = ServerProcess.objects.filter(pk__in=names)
    if not mine.exclude(counters="").exists():
        mine.delete()
        return
    sums = _locked_sums()
    rows = list(ServerProcess.objects.select_for_update().filter(pk__in=names).order_by("pk"))
    total = read_counters(sums.counters)
    for row in rows:
        total = added(total, read_counters(row.counters))
    sums.counters = _text(total)
    sums.save(update_fields=["counters"])
    ServerProcess.objects.filter(pk__in=[row.pk for row in rows]).delete()


def read_counters(text: str) -> Values:
    return json.loads(text) if text else {}


def _text(values: Values) -> str:
    return json.dumps(values) if values else ""


def _limits() -> str:
    """Return the limits as JSON, empty before this process has started or checked a sandbox."""
    report = known_report()
    if report is None:
        return ""
    return json.dumps([[each.limit, each.by, each.firm] for each in report.limits])


def _version() -> str:
    try:
        return version("vel")
    except PackageNotFoundError:
        return ""
