"""The result of a command in the sandbox."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

TIMED_OUT_EXIT_CODE = 124
"""The exit code of a command that was killed at its time limit, as with `timeout` (coreutils)."""

CANCELLED_EXIT_CODE = 137
"""The exit code of a command that the caller killed: 128 + SIGKILL, as in a shell."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection of a command through the egress proxy, or an attempt.

    `host` is safe to display, and empty if the request was invalid. `reason` says why the
    connection was refused or how it ended. `count` equal connections are combined, with the sums of
    their bytes.
    """

    host: str
    port: int
    allowed: bool
    reason: str
    sent: int = 0
    received: int = 0
    count: int = 1


OVER_LIMIT_EXIT_CODE = 137
"""The exit code of a command that was killed because it used too much memory, disk or output."""


@dataclass(frozen=True)
class ExecutionResult:
    """The output and the end of one command.

    `stdout` and `stderr` are decoded as UTF-8 with replacement and are at most as long as the
    policy's output limit. A note in the text and `truncated` report a cut. `exit_code` is the
    command's own exit code; 128 + n if signal n ended it; 124 with `timed_out` at the time limit;
    137 with `cancelled` if the caller killed it; 137 with a note at the end of `stderr` if it
    exceeded its limits of memory, disk or output. `duration` is wall time in seconds.
    `connections` are the connections that the network's proxy allowed and refused.

    >>> result = create_sandbox("./work").execute("exit 3")
    >>> result.success, result.exit_code
    (False, 3)
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
