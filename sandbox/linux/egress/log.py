"""The connections of one command, allowed and refused, in a log of bounded size."""

from __future__ import annotations

from sandbox.linux.egress.hosts import displayed
from sandbox.result import Connection

MOST_ROWS = 100
_OTHERS = "(others)"


class ConnectionLog:
    """Connections that differ only in their bytes are one row with a count.

    After `MOST_ROWS`, the rest is counted in two rows with the host `(others)`. For one thread.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int, bool, str], list[int]] = {}

    def add(
        self, host: str, port: int, *, allowed: bool, reason: str, sent: int = 0, received: int = 0
    ) -> None:
        key = (displayed(host), port, allowed, reason)
        if key not in self._rows and len(self._rows) >= MOST_ROWS:
            key = (_OTHERS, 0, allowed, f"more than {MOST_ROWS} different destinations")
        row = self._rows.setdefault(key, [0, 0, 0])
        for column, count in enumerate((1, sent, received)):
            row[column] += count

    def connections(self) -> tuple[Connection, ...]:
        return tuple(
            Connection(host, port, allowed, reason, sent, received, count)
            for (host, port, allowed, reason), (count, sent, received) in self._rows.items()
        )
