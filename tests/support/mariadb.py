"""A MariaDB server for tests, from its binaries, in a temporary directory."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ACCOUNT = "nobody"
"""The account of the server when root starts it."""
_SQL = Path("/usr/share/mysql")
_SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
_ONLY_BY_SOCKET = "DELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';\n"
_SMALL = (
    "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M", "--innodb-flush-method=nosync",
    "--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite", "--aria-log-file-size=8M",
)  # fmt: skip


@dataclass(frozen=True)
class MariaDB:
    """A server on 127.0.0.1; `root` has no password and connects only by the socket."""

    directory: Path
    port: int

    @property
    def certificate(self) -> str:
        """Return the path of the server's self-signed certificate for `localhost`."""
        return str(self.directory / "server.pem")

    @property
    def socket(self) -> str:
        return str(self.directory / "socket")


def binary() -> Path | None:
    """Return the path of the server's program, or None if it is not installed."""
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    has_tables = all((_SQL / name).exists() for name in _SYSTEM_TABLES)
    return Path(found) if found and has_tables else None


@contextmanager
def mariadb_server() -> Iterator[MariaDB]:
    """Start a server. Remove all its files afterwards."""
    from tests.support.runs import wait_until  # it imports models, and conftest.py this

    where = binary()
    if where is None:
        raise RuntimeError("MariaDB's server is missing: apt-get install mariadb-server-core")
    base = Path(tempfile.mkdtemp(prefix="vel-my-", dir="/var/tmp"))
    # The system tables are in the database `mysql`, which is a directory.
    (base / "data" / "mysql").mkdir(parents=True)
    (base / "tmp").mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost",
         "-keyout", base / "server.key", "-out", base / "server.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    as_account: dict[str, object] = {}
    if os.geteuid() == 0:
        account = pwd.getpwnam(_ACCOUNT)
        for place in (base, *base.rglob("*")):
            os.chown(place, account.pw_uid, account.pw_gid)
        as_account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    command = [
        str(where), "--no-defaults", f"--datadir={base}/data", f"--tmpdir={base}/tmp", *_SMALL
    ]  # fmt: skip
    sql = "USE mysql;\nSET @auth_root_socket = NULL;\n"
    sql += "".join((_SQL / name).read_text() for name in _SYSTEM_TABLES) + _ONLY_BY_SOCKET
    made = subprocess.run(
        [*command, "--bootstrap", "--skip-networking"], input=sql, cwd=base, text=True,
        capture_output=True, check=False, **as_account,
    )  # type: ignore[call-overload]  # fmt: skip
    if made.returncode:
        shutil.rmtree(base)
        raise RuntimeError(f"mariadbd --bootstrap failed: {made.stdout}{made.stderr}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = base / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                *command, f"--socket={base}/socket", f"--port={port}", "--bind-address=127.0.0.1",
                "--skip-name-resolve", "--secure-file-priv=", f"--pid-file={base}/pid",
                f"--ssl-cert={base}/server.pem", f"--ssl-key={base}/server.key",
            ],
            cwd=base, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **as_account,
        )  # type: ignore[call-overload]  # fmt: skip

    def ready() -> bool:
        if server.poll() is not None:
            raise RuntimeError(f"mariadbd has ended: {log.read_text()}")
        return "ready for connections" in log.read_text()

    try:
        wait_until(ready, "the start of MariaDB")
        yield MariaDB(base, port)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(base)
