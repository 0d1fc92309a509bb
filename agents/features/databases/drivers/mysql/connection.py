"""Connections to MySQL and MariaDB servers, with PyMySQL.

Vel creates the sockets, so that another thread can shut them down. Files of this host (`my.cnf`,
LOCAL INFILE) are never read, and the protocol accepts one statement at a time.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from agents.features.databases.drivers.address import is_local, parsed
from agents.features.databases.drivers.errors import MYSQL_DRIVER_MISSING, QueryFailed
from agents.features.databases.drivers.target import DatabaseTarget

_DEFAULT_PORT = 3306
_READ_LATER = 30.0
"""Seconds after a statement's time limit before a silent server is given up."""
_RESET_CONNECTION = 0x1F
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}


def driver() -> ModuleType:
    """Return PyMySQL, an optional dependency. Raises QueryFailed if it is not installed."""
    try:
        import_module("pymysql.cursors")  # an optional dependency
        return import_module("pymysql")
    except ImportError:
        raise QueryFailed(MYSQL_DRIVER_MISSING, "configuration") from None


class MysqlSession:
    """A connection of PyMySQL with a duplicate of its socket."""

    def __init__(self, raw: Any, aside: socket.socket) -> None:
        self._raw = raw
        self._aside = aside
        self.number = 0
        """The server's id of the connection. The greeting can have a proxy's id instead."""

    @property
    def closed(self) -> bool:
        return not self._raw.open

    def fileno(self) -> int:
        return self._aside.fileno()

    def close(self) -> None:
        if self._raw.open:
            self._raw.close()
        self._aside.close()

    def cut(self) -> None:
        """Shut down the connection from another thread."""
        with suppress(OSError):
            self._aside.shutdown(socket.SHUT_RDWR)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement of Vel's own and return all of its rows."""
        with self._raw.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    @contextmanager
    def streamed(self, statement: str) -> Iterator[Any]:
        """Yield a cursor that streams rows. The session is closed if not all rows are read."""
        cursor = driver().cursors.SSCursor(self._raw)
        try:
            cursor.execute(statement)
            yield cursor
        finally:
            rows = cursor._result
            if rows is not None and rows.unbuffered_active:
                # The protocol cannot skip the other rows: PyMySQL would read all of them.
                rows.unbuffered_active = False
                self._raw._force_close()

    def reset(self) -> None:
        """Reset transaction, variables, locks, temporary tables and prepared statements."""
        # PyMySQL has no method for this command.
        self._raw._execute_command(_RESET_CONNECTION, b"")
        self._raw._read_ok_packet()


def connect(target: DatabaseTarget, seconds: float) -> MysqlSession:
    """Return a new connection, whose session has the server's defaults.

    `seconds`, or the shorter `connect_timeout` of the URL, limits the connection to an address, and
    then the handshake. Raises QueryFailed and PyMySQL's errors.
    """
    url = parsed(target)
    if not url.username or not url.host or not url.database:
        raise QueryFailed(
            f"The URL of {target.name} must name a host, a database and a user.", "configuration"
        )
    seconds = min(seconds, float(str(url.query.get("connect_timeout", seconds))))
    pymysql, tls = driver(), _tls(target)
    raw = pymysql.connect(
        defer_connect=True,
        host=url.host,
        user=url.username,
        password=(url.password or "").encode(),
        database=url.database,
        charset="utf8mb4",
        autocommit=True,
        local_infile=False,
        read_timeout=target.statement_seconds + _READ_LATER,
        write_timeout=_READ_LATER,
        program_name="vel",
        ssl=tls,
        ssl_disabled=tls is None,
        conv=_values(pymysql),
        # The plugin would send the password in clear text to any server that requests it.
        auth_plugin_map={"mysql_clear_password": _Refused},
    )
    sock = socket.create_connection((url.host, url.port or _DEFAULT_PORT), seconds)
    aside = sock.dup()
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):  # macOS does not have all of them
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        session = MysqlSession(raw, aside)
        with cut_after(seconds, session):
            raw.connect(sock)
    except BaseException:
        sock.close()
        aside.close()
        raise
    return session


@contextmanager
def cut_after(seconds: float, session: MysqlSession) -> Iterator[None]:
    """Shut down the session's connection if the block takes longer than `seconds`.

    A server that accepts the connection may never answer.
    """
    timer = threading.Timer(seconds, session.cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Refused:
    def __init__(self, connection: Any) -> None:
        del connection

    def authenticate(self, packet: Any) -> Any:
        raise RuntimeError("it asks for the password in clear text.")


def _tls(target: DatabaseTarget) -> ssl.SSLContext | None:
    """Return the TLS context for `sslmode`, with PostgreSQL's names of modes.

    None means no TLS, the default for this host only.
    """
    url = parsed(target)
    mode = url.query.get("sslmode", "disable" if is_local(str(url.host)) else "require")
    if mode == "disable":
        return None
    context = ssl.create_default_context()
    if mode not in ("require", "verify-ca", "verify-full"):
        raise QueryFailed(f"The URL of {target.name} has an unknown sslmode.", "configuration")
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_NONE if mode == "require" else ssl.CERT_REQUIRED
    return context


def _values(pymysql: ModuleType) -> dict[int, Any]:
    """Return the converters: numbers become Python's, other values keep the server's text."""
    kinds = pymysql.constants.FIELD_TYPE
    integers = (kinds.TINY, kinds.SHORT, kinds.INT24, kinds.LONG, kinds.LONGLONG, kinds.YEAR)
    return dict.fromkeys(integers, int) | {kinds.FLOAT: float, kinds.DOUBLE: float}
