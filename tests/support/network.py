"""A network namespace with a cable that a test can unplug: for root only. And `forwarding`.

with Network() as network, network.forward(port_or_socket) as port:
    Cluster(..., inside=network.inside)   # reaches this machine as network.address:port
    network.unplug()
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import TextIO

from tests.support import process_guard
from tests.support.hang import HANG

NUMBERS = iter(range(1, 200))
_locks: list[TextIO] = []


@cache
def _own_block() -> int:
    """Return the third part of this process's addresses, which no other process has."""
    for block in range(250):
        lock = open(f"{tempfile.gettempdir()}/vel-test-network-{block}.lock", "w")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        _locks.append(lock)  # until this process ends
        return block
    raise RuntimeError("250 processes have networks: end some of them.")


def missing() -> str:
    """Return why no namespace is possible here, or ""."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("ip") is None:
        return "needs iproute2: apt-get install iproute2"
    trial = f"vel-{os.getpid()}-try"
    if subprocess.run(["ip", "netns", "add", trial], capture_output=True, check=False).returncode:
        return "needs permission to create network namespaces"
    _ip("netns", "del", trial)
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """A context manager. Processes inside must end before it does."""

    def __init__(self) -> None:
        number = next(NUMBERS)
        self.name = f"vel-{os.getpid()}-{number}"
        # The limit is 15 characters.
        self._outer, self._inner = (f"v{end}{os.getpid()}x{number}" for end in "oi")
        base = f"10.213.{_own_block()}"
        self.address = f"{base}.{4 * number % 252 + 1}"
        """The address of this machine from inside."""
        self._there = f"{base}.{4 * number % 252 + 2}"
        self.inside = ["ip", "netns", "exec", self.name]

    def __enter__(self) -> Network:
        # Also delete the namespace if this process is killed.
        process_guard.run_after(f"test ! -e /run/netns/{self.name} || ip netns del {self.name}")
        _ip("netns", "add", self.name)
        try:
            _ip("link", "add", self._outer, "type", "veth", "peer", "name", self._inner,
                "netns", self.name)  # fmt: skip
            _ip("addr", "add", f"{self.address}/30", "dev", self._outer)
            _ip("link", "set", self._outer, "up")
            _ip("-n", self.name, "addr", "add", f"{self._there}/30", "dev", self._inner)
            _ip("-n", self.name, "link", "set", "lo", "up")
            _ip("-n", self.name, "link", "set", self._inner, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _ip("netns", "del", self.name)  # this also deletes the cable

    def unplug(self) -> None:
        """Drop all packets. Neither end gets an error."""
        _ip("link", "set", self._outer, "down")

    def plug(self) -> None:
        _ip("link", "set", self._outer, "up")

    def forward(self, target: int | str) -> AbstractContextManager[int]:
        """Open a port on `address` that forwards to a loopback port or a Unix socket."""
        return forwarding(target, self.address)


@contextmanager
def forwarding(target: int | str, address: str = "127.0.0.1") -> Iterator[int]:
    """Open a port on `address` that forwards to a loopback port or a Unix socket.

    Its connections are closed at the end.
    """
    ready: list[int] = []
    ends: list[Callable[[], object]] = []
    begun = threading.Event()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        except OSError:
            pass  # one end is closed, so close the other
        finally:
            sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(target, int):
            far = await asyncio.open_connection("127.0.0.1", target)
        else:
            far = await asyncio.open_unix_connection(target)
        try:
            await asyncio.gather(pump(reader, far[1]), pump(far[0], writer))
        except asyncio.CancelledError:
            pass  # the end of the forwarding; asyncio would log it

    async def main() -> None:
        server = await asyncio.start_server(serve, address, 0)
        ready.append(server.sockets[0].getsockname()[1])
        ended = asyncio.Event()
        ends.append(partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set))
        begun.set()
        await ended.wait()
        server.close()
        # Open connections are closed, because `asyncio.run` cancels their tasks.

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert begun.wait(HANG)
    try:
        yield ready[0]
    finally:
        ends[0]()
        thread.join(HANG)
