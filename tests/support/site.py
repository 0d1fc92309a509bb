"""A separate site for a test: a database, a process that writes to it, and a web server."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import psycopg
import pytest

from tests.support.forked_site import Talking, fork_server
from tests.support.forking import Forked
from tests.support.hang import HANG
from tests.support.migrated import copy_postgres, copy_sqlite

PASSWORD = "a-long-enough-password"
ROOT = Path(__file__).resolve().parents[2]


class Site:
    """A site in other processes, which the test observes from outside.

    `site.do("append", run=…, events=[…])` returns when the other process has committed.
    """

    def __init__(
        self, directory: Path, database_url: str = "", namespaces_of: int | None = None
    ) -> None:
        """Create a site without starting it. It joins the namespaces of a process, if given."""
        self.directory = directory
        self.namespaces_of = namespaces_of
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "velproject.settings",
            "DATABASE_URL": database_url or f"sqlite:///{directory / 'site.sqlite3'}",
            "VEL_DATA_DIR": str(directory),
            "VEL_SECRET_KEY": "not-a-secret-only-for-tests",
            "VEL_PROVIDER": "scripted",
            "VEL_SCRIPTS_DIR": "/",
            "PYTHONPATH": str(ROOT),
        }
        self._writer: Talking | None = None
        self._server: Forked | None = None
        # Bound, but not listening: the site keeps its port while its server is down.
        self._port_holder = socket.socket()
        self._port_holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port_holder.bind(("127.0.0.1", 0))
        self.port: int = self._port_holder.getsockname()[1]

    @property
    def database_file(self) -> Path:
        return self.directory / "site.sqlite3"

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def do(self, command: str, **arguments: Any) -> Any:
        if self._writer is None:
            self._writer = Talking("writer", self.environment, namespaces_of=self.namespaces_of)
        print(json.dumps({"do": command, **arguments}), file=self._writer.stdin, flush=True)
        answer = self._writer.stdout.readline()
        assert answer, f"{command} failed: see the writer's stderr"
        return json.loads(answer)["result"]

    def start_server(self) -> None:
        """Start the server of `vel up`, on its previous port if any. Wait until it answers."""
        with socket.socket() as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(("127.0.0.1", self.port))
            listening.listen()
            self._server = fork_server(
                self.environment, listening.fileno(), namespaces_of=self.namespaces_of
            )
        # The socket listens already, so this waits for the response and not for the port.
        try:
            urlopen(f"{self.url}/login/", timeout=HANG).close()
        except HTTPError as error:
            error.close()

    @property
    def server_pid(self) -> int:
        assert self._server is not None
        return self._server.pid

    def kill_server(self) -> None:
        assert self._server is not None
        with self._server:
            self._server.send_signal(signal.SIGKILL)
            self._server.wait()
        self._server = None

    def close(self) -> None:
        self._port_holder.close()
        if self._writer is not None:
            self._writer.close(HANG)
        if self._server is not None:
            self.kill_server()


def migrated_site(directory: Path, server_url: str = "") -> Site:
    """Return a site with a migrated database: a SQLite file, or a new one on PostgreSQL."""
    if not server_url:
        site = Site(directory)
        copy_sqlite(site.database_file)
        return site
    name = f"site_{secrets.token_hex(8)}"
    copy_postgres(server_url, name)
    return Site(directory, urlsplit(server_url)._replace(path=f"/{name}").geturl())


def new_database(server_url: str) -> str:
    """Create an empty database on the PostgreSQL server of `server_url` and return its URL."""
    name = f"site_{secrets.token_hex(8)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve the site of this process.

    Its users are olga, who has a password, peter, and ada, who may decide all requests.
    """
    directory = tmp_path_factory.mktemp("site")
    site = migrated_site(directory, os.environ.get("VEL_TEST_DATABASE_URL", ""))
    try:
        site.do("make_user", name="olga", password=PASSWORD)
        site.do("make_user", name="peter")
        site.do("make_user", name="ada", approver=True)
        site.start_server()
        yield site
    finally:
        site.close()
