"""The reasons why a driver stops before its run has ended."""

from __future__ import annotations

from enum import StrEnum

from agents.kernel.lease import FenceLost as FenceLost


class StopReason(StrEnum):
    CANCEL = "cancel"  # a person cancelled the run
    LEASE_LOST = "lease_lost"  # another driver may have it: write nothing more
    DRAIN = "drain"  # this process shuts down: hand the run back
    DISK_FULL = "disk_full"  # the run waits for disk space: hand it back
    WALL_TIME = "wall_time"  # the run's own limit


class Stopped(Exception):
    """The driver was interrupted from outside."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason
