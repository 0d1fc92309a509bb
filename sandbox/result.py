"""What a command in the sandbox came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

TIMED_OUT_EXIT_CODE = 124
"""The exit code of a command that was killed at its time limit, as coreutils' `timeout` has it."""

CANCELLED_EXIT_CODE = 137
"""The exit code of a command that the caller killed: 128 + SIGKILL, as a shell has it."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a command went, or wanted to go, through the network's proxy.

    `host` is harmless to show, and empty when the request was not understood. `reason` says why
    it was refused, or how it ended. Bytes are those of all `count` connections that were alike.
    """

    host: str
    port: int
    allowed: bool
    reason: str
    sent: int = 0
    received: int = 0
    count: int = 1


OVER_LIMIT_EXIT_CODE = 137
"""The exit code of a command that was killed for the memory, disk or output it took."""


@dataclass(frozen=True)
class ExecutionResult:
    """Output and ending of one command.

    `stdout` and `stderr` are decoded as UTF-8 with replacement and hold at most the policy's
    output limit; what was cut is said in the text itself and in `truncated`. `exit_code` is the
    command's own, 128 + n when signal n ended it, 124 with `timed_out` at the time limit, 137
    with `cancelled` when the caller killed it, 137 and a note at the end of `stderr` when it took
    more memory, disk or output than its limits give it. `duration` is wall time in seconds.
    `connections` are those that the network's proxy allowed and refused.
    """

    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool = False
    cancelled: bool = False
    truncated: bool = False
    duration: float = 0.0
    connections: tuple[Connection, ...] = ()

    @property
    def success(self) -> bool:
        return self.exit_code == 0 and not self.timed_out and not self.cancelled

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "success": self.success}
