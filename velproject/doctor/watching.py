"""The doctor's checks of monitoring: the checks of `/readyz`, traces and metrics."""

from __future__ import annotations

from collections.abc import Iterator

from agents.telemetry.process import content_wanted, metrics_wanted, traces_wanted
from velproject.checks.watching import can_send_traces
from velproject.doctor.findings import Finding, Level
from velproject.monitoring.readiness import check_disk


def check_watching() -> Iterator[Finding]:
    """Yield the findings about monitoring: a failed check is a note, not a problem.

    Needs a migrated database.
    """
    for check in check_disk():
        yield Finding(check.name, Level.OK if check.ok else Level.NOTE, check.detail)
    if traces_wanted() and can_send_traces():
        what = "with messages and results" if content_wanted() else "without content"
        yield Finding("traces", Level.OK, f"sent, {what}")
    if metrics_wanted():
        yield Finding("metrics", Level.OK, "/metrics is available with VEL_METRICS_TOKEN")
