"""Sockets of host programs in directories that commands can see."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.base import BaseSandbox
from sandbox.create import create_sandbox
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.workspace import prepare
from tests.sandbox.places import AS_ROOT, account

pytestmark = pytest.mark.bubblewrap

CONNECT = """
import socket
try:
    socket.socket(socket.AF_UNIX).connect(PATH)
    print("connected")
except OSError as error:
    print(error.strerror)
try:
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    print("a pair that can send anywhere")
except OSError as error:
    print(error.strerror)
"""
REFUSED = "Address family not supported by protocol\nOperation not permitted\n"

WORKS = {
    "a pair": "import socket\na, b = socket.socketpair()\na.send(b'10')\nprint(b.recv(9).decode())",
    "asyncio": "import asyncio\nasync def ten(): return 10\nprint(asyncio.run(ten()))",
    "processes": "from concurrent.futures import *\n"
    "if __name__ == '__main__': print(sum(ProcessPoolExecutor(2).map(abs, range(5))))",
    "loopback": "import socket\nserver = socket.create_server(('localhost', 0))\n"
    "a = socket.create_connection(server.getsockname())\na.send(b'10')\n"
    "print(server.accept()[0].recv(9).decode())",
    "accounts": "import pwd\nprint(10 if pwd.getpwuid(65534) else 0)",
}


def directory_in(place: Path, name: str) -> Path:
    path = place / name
    path.mkdir(mode=0o755)
    if AS_ROOT:
        os.chown(path, account() or -1, account() or -1)
    return path


@contextmanager
def listening_in(directory: Path) -> Iterator[Path]:
    with socket.socket(socket.AF_UNIX) as server:
        path = directory / "service"
        server.bind(str(path))
        server.listen()
        path.chmod(0o777)
        yield path


def connect(box: BaseSandbox, path: str) -> str:
    return box.execute_python(CONNECT.replace("PATH", repr(path))).stdout


def test_a_host_socket_in_the_directory_of_a_sandbox_cannot_be_reached(place: Path) -> None:
    directory, read_only = directory_in(place, "project"), directory_in(place, "data")
    box = create_sandbox(str(directory), allowed_paths=[str(read_only)])
    for each in (directory, read_only):
        with listening_in(each) as path:
            assert connect(box, str(path)) == REFUSED


def test_a_host_socket_in_a_callers_own_workspace_cannot_be_reached(place: Path) -> None:
    directory = directory_in(place, "project")
    workspace = prepare(place / "threads", "own", own_directory=directory)
    with listening_in(directory):
        box = BubblewrapSandbox(workspace.policy())
        assert connect(box, "/sandbox/workspace/service") == REFUSED


@pytest.mark.parametrize("what", WORKS)
def test_sockets_without_a_name_work_there(place: Path, what: str) -> None:
    box = create_sandbox(str(directory_in(place, "project")))
    result = box.execute_python(WORKS[what])
    assert result.stdout == "10\n", result.stderr
