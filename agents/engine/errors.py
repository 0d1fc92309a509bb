"""Reasons why a driver stops before its run has ended."""

from __future__ import annotations

from enum import StrEnum

from agents.kernel.lease import FenceLost as FenceLost


class StopReason(StrEnum):
    CANCEL = "cancel"  # a person cancelled the run
    LEASE_LOST = "lease_lost"  # another driver may have the run: write nothing more
    DRAIN = "drain"  # this process shuts down: release the run
    DISK_FULL = "disk_full"  # the run waits for disk space: release it
    WALL_TIME = "wall_time"  # the run has reached its own limit


class Stopped(Exception):
    """Raised in a driver that is stopped from outside."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason
