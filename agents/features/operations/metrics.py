"""Metrics of backups."""

from __future__ import annotations

from collections.abc import Iterator

from agents.features.operations.backups.status import read_status
from agents.telemetry.counters import Gauge


def _gauges() -> Iterator[Gauge]:
    """Yield the times of the last backups. They have no value before the first one."""
    status = read_status()
    yield Gauge(
        "vel_backup_last_success_timestamp_seconds",
        "When this machine made the last backup.",
        {(): status.succeeded_at} if status.succeeded_at else {},
    )
    yield Gauge(
        "vel_backup_last_failure_timestamp_seconds",
        "When this machine last failed to make one.",
        {(): status.failed_at} if status.failed_at else {},
    )


GAUGES = [_gauges]
