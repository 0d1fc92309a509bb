"""A PostgreSQL server for tests, from its binaries, in a temporary directory.

`python -m tests.support.postgres COMMAND …` runs a command with VEL_TEST_DATABASE_URL set to it,
which puts the tests' own database there. `--aside COMMAND …` sets VEL_TEST_SERVER_URL: only tests
that need PostgreSQL use it, and no process of pytest starts another server.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import process_guard

ACCOUNT = "postgres"
"""initdb refuses root, so root starts the server as this account of the package."""


def binaries() -> Path | None:
    """Return the directory of the newest `initdb` and `pg_ctl`, or None if there is no server."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]),
        reverse=True,
    )
    if installed:
        return installed[0].parent
    found = shutil.which("initdb")
    # Debian's wrapper in /usr/local/bin or /usr/bin may be a client only.
    return Path(found).parent if found and shutil.which("pg_ctl") else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server on a private socket. Yield its URL and remove all files afterwards."""
    process_guard.start()
    where = binaries()
    if where is None:
        raise RuntimeError("PostgreSQL's server is missing: apt-get install postgresql")
    base = Path(tempfile.mkdtemp(prefix="vel-pg-", dir="/var/tmp"))
    account = pwd.getpwnam(ACCOUNT) if os.geteuid() == 0 else None
    as_account: dict[str, object] = {}
    if account is not None:
        os.chown(base, account.pw_uid, account.pw_gid)
        as_account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    data = base / "data"
    # Also if this process is killed: a killed server leaves its shared memory behind.
    stop = f"{where}/pg_ctl -D {data} -m immediate -w -s stop"
    process_guard.run_before(f"cd /; test ! -e {data}/postmaster.pid || {stop}", **as_account)

    def run(*command: str) -> None:
        done = subprocess.run(
            command, cwd=base, text=True, capture_output=True, check=False, **as_account
        )  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")

    run(
        str(where / "initdb"), "-D", str(data), "-U", "vel", "--auth=trust", "-E", "UTF8",
        "--locale=C.UTF-8", "--no-sync",
    )  # fmt: skip
    options = (
        f"-c listen_addresses='' -c unix_socket_directories='{base}' -c fsync=off "
        "-c max_connections=200 -c shared_buffers=64MB"
    )
    try:
        # Not -l: pg_ctl's children keep its standard output open, and a pipe would never end.
        run(
            str(where / "pg_ctl"), "-D", str(data), "-o", options, "-w", "-s",
            "-l", str(base / "log"), "start",
        )  # fmt: skip
        yield f"postgresql://vel@/postgres?host={base}"
    finally:
        if (data / "postmaster.pid").exists():
            run(str(where / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "-s", "stop")
        shutil.rmtree(base)


def main() -> int:
    aside = sys.argv[1] == "--aside"
    command = sys.argv[2:] if aside else sys.argv[1:]
    if aside and binaries() is None:
        return subprocess.run(command, check=False).returncode  # the tests report it
    # Handle SIGTERM like Ctrl-C. Otherwise the server would outlive a terminated job.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    name = "VEL_TEST_SERVER_URL" if aside else "VEL_TEST_DATABASE_URL"
    with postgres_server() as url:
        return subprocess.run(command, env={**os.environ, name: url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
