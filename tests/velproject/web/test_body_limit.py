"""The web process of `vel up` does not receive bodies that are too long, and drops partial ones."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.settings import UploadSettings
from tests.support.runs import wait_until
from tests.support.site import ROOT, Site, migrated_site
from velproject.web.body_limit import FORM_BYTES, longest_body

LIMIT = 50_000_000 + FORM_BYTES
_REFUSED = b"HTTP/1.1 413 "


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("web")
    site = migrated_site(directory)
    temporary = directory / "tmp"
    temporary.mkdir()
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", site.port))
        listening.listen()
        life, hold = os.pipe()
        fds = [listening.fileno(), life]
        command = ["web", "--listen-fd", str(fds[0]), "--life-fd", str(life), "--grace", "5"]
        process = subprocess.Popen(
            [sys.executable, "-m", "velproject.child", *command],
            env={**site.environment, "TMPDIR": str(temporary)},
            cwd=ROOT,
            pass_fds=fds,
            start_new_session=True,
        )
    try:
        yield site
    finally:
        process.kill()
        process.wait()
        os.close(life)
        os.close(hold)
        site.close()


def connect(site: Site) -> socket.socket:
    return socket.create_connection(("localhost", site.port), timeout=60)


def head(*lines: str) -> bytes:
    first = ("POST /api/v1/runs HTTP/1.1", "Host: localhost", "Content-Type: text/plain")
    return ("\r\n".join([*first, *lines]) + "\r\n\r\n").encode()


def answer(connection: socket.socket) -> bytes:
    """Return the response until the server disconnects, or its status line if the server waits."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = connection.recv(65536)
        if not piece:
            break
        found += piece
    return found


@pytest.mark.slow
def test_a_long_body_is_refused_by_its_length(web: Site) -> None:
    with connect(web) as connection:
        connection.sendall(head(f"Content-Length: {LIMIT + 1}"))  # and none of the body
        assert answer(connection).startswith(_REFUSED)
        assert connection.recv(1) == b""
    with connect(web) as connection:  # the view itself can refuse shorter bodies
        connection.sendall(head("Content-Length: 2") + b"xx")
        assert answer(connection).startswith(b"HTTP/1.1 401 ")


def test_a_body_in_chunks_ends_at_the_limit(web: Site) -> None:
    piece = b"x" * 1_000_000
    with connect(web) as connection:
        connection.sendall(head("Transfer-Encoding: chunked"))
        sent = 0
        try:
            while sent < LIMIT * 3:
                connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < LIMIT * 2


def test_half_an_upload_leaves_nothing(web: Site) -> None:
    temporary = Path(web.directory / "tmp")
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf'
    with connect(web) as connection:
        connection.sendall(
            head(f"Content-Length: {20_000_000}") + body + b"x" * 5_000_000,
        )
    wait_until(lambda: not open_files(temporary), "closing what was received")
    assert list(temporary.iterdir()) == []
    workspaces = web.directory / "workspaces"
    assert not workspaces.exists() or not list(workspaces.iterdir())


def open_files(below: Path) -> list[str]:
    """Return the open files of all processes below a directory, including deleted ones."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith(f"{below}/"):
            found.append(target)
    return found


def test_without_a_feature_that_takes_files_the_limit_is_that_of_uploads(settings: Any) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "skills_app"]
    assert longest_body() == UploadSettings.now().UPLOAD_BYTES + FORM_BYTES
