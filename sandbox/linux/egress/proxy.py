"""The network proxy of one command: a thread with an event loop that ends with the command."""

from __future__ import annotations

import asyncio
import resource
import socket
import threading

from sandbox.errors import SandboxSetupError
from sandbox.linux.egress.connection import ConnectionLog, EgressLimits, ProxyConnection
from sandbox.linux.egress.dialling import Destinations
from sandbox.linux.egress.handover import Handover, beginning_with_handover
from sandbox.linux.egress.rules import Rules
from sandbox.linux.egress.wire import Allowance
from sandbox.result import Connection

_PAUSE_SECONDS = 0.05


def _share_of_descriptors() -> int:
    """Return the most connections that the proxies of all commands may have together.

    Each connection needs two descriptors, and all together may use a quarter of the descriptors of
    this process.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, (4096 if soft == resource.RLIM_INFINITY else soft) // 8)


_ALL_CONNECTIONS = threading.BoundedSemaphore(_share_of_descriptors())


class Proxy:
    """The egress proxy of one command. The caller must call `close`.

    Raises `SandboxSetupError` if it cannot start. If its thread dies, the listening socket is
    closed too, and connections fail.
    """

    def __init__(self, rules: Rules, world: Destinations, limits: EgressLimits) -> None:
        self._rules = rules
        self._world = world
        self._limits = limits
        self._allowance = Allowance(limits.bytes)
        self._log = ConnectionLog()
        ours, self._theirs = socket.socketpair()
        self._link = ours
        self._handover = Handover(ours)
        self._up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="vel-egress", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._close_links()
            raise SandboxSetupError(f"The network's proxy could not be started: {error}.") from None
        self._up.wait()
        if self._loop is None:
            self.close()
            raise SandboxSetupError("The network's proxy could not be started.")

    @property
    def descriptor(self) -> int:
        """The number of the descriptor that the sandbox must inherit."""
        return self._theirs.fileno()

    def begin(self, argv: list[str]) -> list[str]:
        """Return a command that passes the sandbox's socket to this proxy, then executes `argv`."""
        return beginning_with_handover(argv, self.descriptor)

    def close(self) -> None:
        """End every connection, and return when the proxy has ended. Repeated calls do nothing."""
        if self._closed:
            return
        self._closed = True
        if self._loop is not None and self._end is not None:
            try:
                self._loop.call_soon_threadsafe(self._end.set)
            except RuntimeError:
                pass  # its thread has died, and the event loop with it
        self._thread.join()
        while self._handover.read():
            pass  # no complete message, because the command ended immediately
        self._close_links()

    def check_command_ran(self, stderr: str) -> None:
        """Raise `SandboxSetupError` if the command did not run. Call this after `close`."""
        self._handover.check(stderr)

    def connections(self) -> tuple[Connection, ...]:
        """Return the allowed and the refused connections. Call this after `close`."""
        return self._log.connections()

    def _close_links(self) -> None:
        self._link.close()
        self._theirs.close()
        if self._handover.listener is not None:
            self._handover.listener.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._up.set()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        arrived = asyncio.Event()

        def read() -> None:
            self._handover.read()
            if self._handover.has_ended:
                loop.remove_reader(self._link)
            if self._handover.listener is not None:
                arrived.set()

        loop.add_reader(self._link, read)
        self._loop = loop
        self._up.set()
        accepting = asyncio.ensure_future(self._accept(arrived))
        ending = asyncio.ensure_future(self._end.wait())
        try:
            await asyncio.wait((accepting, ending), return_when=asyncio.FIRST_COMPLETED)
            if accepting.done():
                accepting.result()
        finally:
            loop.remove_reader(self._link)
            for task in (accepting, ending):
                task.cancel()
            await asyncio.gather(accepting, ending, return_exceptions=True)

    async def _accept(self, arrived: asyncio.Event) -> None:
        await arrived.wait()
        listener = self._handover.listener
        assert listener is not None
        loop = asyncio.get_running_loop()
        places = asyncio.Semaphore(self._limits.connections)
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                await places.acquire()
                try:
                    client, _ = await loop.sock_accept(listener)
                except OSError:
                    # The client disconnected, or this process has too few descriptors at the
                    # moment.
                    places.release()
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                task = loop.create_task(self._serve_one(client))
                running.add(task)

                def ended(task: asyncio.Task[None], client: socket.socket = client) -> None:
                    client.close()  # a task that is cancelled before its start does not close it
                    running.discard(task)
                    places.release()

                task.add_done_callback(ended)
        finally:
            listener.close()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _serve_one(self, client: socket.socket) -> None:
        if not _ALL_CONNECTIONS.acquire(blocking=False):
            self._log.add("", 0, allowed=False, reason="too many connections on this worker")
            client.close()
            return
        try:
            await ProxyConnection(
                client, self._rules, self._world, self._limits, self._allowance, self._log
            ).serve()
        finally:
            _ALL_CONNECTIONS.release()
