"""The supervisor of `vel up`: it watches its children, web and workers.

Each child leads its own session, so that Ctrl-C reaches the supervisor only. To stop a child, the
supervisor signals only its main process: django-q2 hangs if its whole group gets the signal. After
the grace period, the supervisor kills the rest of the group.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from django.db import connection

from agents.doors.cli.terminal import visible
from agents.ids import own_executor
from agents.services.machines.dead_workers import settle_dead
from agents.services.machines.processes import try_to_leave_counts
from velproject.lives import KEPT, new_life
from velproject.signals import handling
from velproject.stalled import Due, StallWatch, read_due_work

T = TypeVar("T")

LOOK_SECONDS = 5.0
"""How often the supervisor looks for due work that no worker takes."""
STALL_GRACE = 10.0
"""Seconds that a stalled cluster gets to stop: a frozen pool never does."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a dead child is started again; doubled while children die without useful work."""
OLD_ENOUGH = 30.0
"""After this number of seconds, a child's death was not caused by its start."""
DEATH_SECONDS = 10.0
"""How long the supervisor waits for the end of all processes of a killed child."""


def say(line: str, who: str = "vel") -> None:
    if os.environ.get("VEL_LOG_FORMAT", "").strip().lower() == "json":
        print(as_record(line, who), flush=True)
    else:
        print(f"{who:<7} | {visible(line)}", flush=True)


def as_record(line: str, who: str) -> str:
    """Return a line of output as JSON.

    A record of the child `who` stays unchanged; other text becomes the text of a record.
    """
    if line.startswith("{"):
        try:
            return json.dumps({**json.loads(line), "child": who})
        except (ValueError, RecursionError):
            pass  # it only looks like JSON
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps(
        {"time": now, "level": "INFO", "logger": "vel.up", "message": line, "child": who}
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a bound, listening socket. Raises `OSError` (EADDRINUSE if the port is in use)."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(1024)
    except OSError:
        bound.close()
        raise
    return bound


@dataclass
class Child:
    """One child process, with its restarts. `arguments` are those of the Python interpreter."""

    name: str
    arguments: list[str]
    keep_fds: tuple[int, ...]
    process: asyncio.subprocess.Process | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    has_worked: bool = False
    """Whether the process did useful work: a worker claimed a run, or the web server answered."""
    dead: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT), repr=False)
    """The names of earlier lives whose processes have all ended."""
    on_death: Callable[[str], int] | None = None
    """Called in a thread with the name of a life when all its processes have ended."""
    output: asyncio.Task[None] | None = field(default=None, repr=False)
    news: asyncio.Task[None] | None = field(default=None, repr=False)
    settling: asyncio.Task[None] | None = field(default=None, repr=False)
    life: str = ""

    async def start(self) -> None:
        self.life, self.has_worked = new_life(), False
        read_news, write_news = os.pipe()
        os.set_blocking(write_news, False)
        about_life = ["--news-fd", str(write_news), "--life", self.life, "--dead", *self.dead]
        try:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                *self.arguments,
                *about_life,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(*self.keep_fds, write_news),
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        finally:
            os.close(write_news)
        self.started = time.monotonic()
        self.output = asyncio.create_task(self._copy_output(self.process))
        self.news = asyncio.create_task(self._hear(read_news))

    async def _hear(self, read_news: int) -> None:
        """Read reports of useful work until all processes of the child have closed the pipe."""
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        pipe = os.fdopen(read_news, "rb", buffering=0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
        try:
            while await reader.read(1024):
                self.has_worked = True
        finally:
            transport.close()

    async def _copy_output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        rest = b""
        while chunk := await process.stdout.read(65_536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                say(line.decode("utf-8", "replace"), self.name)
            if len(rest) > 65_536:
                lines, rest = [rest], b""
                say(lines[0].decode("utf-8", "replace"), self.name)
        if rest:
            say(rest.decode("utf-8", "replace"), self.name)

    async def ended(self) -> int:
        assert self.process is not None
        return await self.process.wait()

    async def bury(self) -> None:
        """Kill all processes of the child, and record the end of this life for the next one."""
        self.kill_all()
        assert self.news is not None
        try:
            async with asyncio.timeout(DEATH_SECONDS):
                await asyncio.shield(self.news)
        except TimeoutError:
            say(f"a process of {self.name} cannot be killed; its runs wait for the end of leases")
        else:
            self.dead.append(self.life)
            if self.on_death is not None:
                # Do not wait for this: the next life must not wait for the database.
                self.settling = asyncio.create_task(self._settle(self.on_death, self.life))

    async def _settle(self, on_death: Callable[[str], int], life: str) -> None:
        """End the leases of a dead life now, so that its runs do not wait for the next life."""
        try:
            count = await in_own_thread(on_death, life)
        except Exception as error:  # noqa: BLE001  # the next life tries again
            say(f"cannot end the leases of dead {self.name}: {error}")
        else:
            if count:
                say(f"ended {count} leases of dead {self.name}")

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the child's main process only."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)

    def kill_all(self) -> None:
        """Kill the child's main process and the rest of its session."""
        if self.process is not None:
            kill_session(self.process.pid)

    async def stop(self, grace: float) -> bool:
        """Stop the child and all processes that it started. Return False if it had to be killed.

        `grace` is the time for stopping, in seconds.
        """
        process = self.process
        if process is None:
            return True
        self.ask_to_stop()
        try:
            async with asyncio.timeout(grace):
                await process.wait()
            return True
        except TimeoutError:
            return False
        finally:
            kill_session(process.pid)
            await process.wait()


async def in_own_thread(function: Callable[..., T], *arguments: object) -> T:
    """Call `function` in a thread for which this process does not wait at its end.

    The threads of `asyncio.to_thread` would delay the end while a database does not answer.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(outcome: Callable[[], object]) -> None:
        try:
            loop.call_soon_threadsafe(lambda: None if done.done() else outcome())
        except RuntimeError:
            pass  # the event loop is closed: the supervisor has ended

    def work() -> None:
        try:
            result = function(*arguments)
        except BaseException as error:  # noqa: BLE001  # goes to the caller
            tell(partial(done.set_exception, error))
        else:
            tell(partial(done.set_result, result))

    threading.Thread(target=work, name="vel-supervisor", daemon=True).start()
    return await done


def kill_session(leader: int) -> None:
    """Kill a session by the pid of its leader, which is not reused while a member lives."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Supervisor:
    """Restarts children until a signal to stop.

    `read_due` returns the due work and is called in a thread. `life_fd` is the writing end of the
    pipe that children watch: only the end of this process closes it.
    """

    def __init__(
        self,
        children: list[Child],
        *,
        grace: float,
        read_due: Callable[[], Due],
        restart_on_stall: Child | None = None,
        watch: StallWatch | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._children = children
        self._grace = grace
        self._read_due = read_due
        self._on_stall = restart_on_stall
        self._watch = watch or StallWatch()
        self._look_seconds = look_seconds
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        """Start the children and keep them running until SIGTERM, SIGINT or SIGHUP.

        After the first signal, runs have the grace period. After a second one, do not wait.
        """
        async with handling((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), self._signalled):
            await self._run()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        keepers = [loop.create_task(self._keep(child)) for child in self._children]
        watcher = loop.create_task(self._watch_for_stalls())
        stopping = loop.create_task(self._stopping.wait())
        # A keeper task ends only after an error.
        until: list[asyncio.Task[Any]] = [stopping, *keepers]
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
        for task in (watcher, *keepers):
            task.cancel()
        results = await asyncio.gather(watcher, *keepers, return_exceptions=True)
        await self._stop_children()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _signalled(self, number: int) -> None:
        if self._stopping.is_set():
            self._hurry.set()
        else:
            say(f"stopping; runs have {self._grace:.0f} s (repeat to stop immediately)")
            self._stopping.set()

    async def _keep(self, child: Child) -> None:
        while True:
            await child.start()
            code = await child.ended()
            await child.bury()
            lived = time.monotonic() - child.started
            if child.has_worked or lived > OLD_ENOUGH:
                child.pause = FIRST_PAUSE
            say(
                f"{child.name} ended ({describe_exit(code)}); "
                f"starting it again in {child.pause:.1f} s"
            )
            await asyncio.sleep(child.pause)
            child.pause = min(child.pause * 2, LONGEST_PAUSE)

    async def _watch_for_stalls(self) -> None:
        while self._on_stall is not None:
            await asyncio.sleep(self._look_seconds)
            try:
                due = await in_own_thread(self._read_due)
            except Exception as error:  # noqa: BLE001  # no database: try again later
                say(f"cannot look for due work: {error}")
                continue
            if self._watch.looks_stalled(due):
                say(f"no worker takes {len(due)} due tasks and runs: restarting workers")
                self._on_stall.pause = FIRST_PAUSE  # this end is not a crash
                # The keeper task notices the end and starts the child again.
                await self._on_stall.stop(min(self._grace, STALL_GRACE))

    async def _stop_children(self) -> None:
        stops = [
            asyncio.ensure_future(child.stop(self._grace))
            for child in self._children
            if child.process is not None
        ]
        if not stops:
            return
        hurry = asyncio.ensure_future(self._hurry.wait())
        together = asyncio.gather(*stops)
        until: list[asyncio.Future[Any]] = [together, hurry]
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
        if hurry.done():
            for child in self._children:
                child.kill_all()
        hurry.cancel()
        clean = all(await together)
        say("stopped" if clean else "stopped; killed processes that did not end in time")


async def supervise(listen_fd: int, grace: float, *, with_workers: bool = True) -> None:
    """Start the web server, on a listening socket, and the workers; run until a signal to stop."""
    # Nothing is ever written to the pipe. Its end tells the children that this process has ended.
    life_read, life_write = os.pipe()
    common = ["--life-fd", str(life_read), "--grace", str(grace)]
    web = Child(
        "web",
        ["-m", "velproject.child", "web", *common, "--listen-fd", str(listen_fd)],
        keep_fds=(life_read, listen_fd),
    )
    workers = Child(
        "workers",
        ["-m", "velproject.child", "workers", *common],
        keep_fds=(life_read,),
        on_death=settle_dead_cluster,
    )
    supervisor = Supervisor(
        [web, workers] if with_workers else [web],
        grace=grace,
        read_due=read_due_work,
        restart_on_stall=workers if with_workers else None,
    )
    await supervisor.run()
    os.close(life_write)


def settle_dead_cluster(life: str) -> int:
    """End the leases of a dead cluster's workers, and return how many. For a short-lived thread."""
    try:
        try:
            return settle_dead([life], own_executor())
        finally:
            try_to_leave_counts()
    finally:
        connection.close()


def describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return f"killed by {signal.Signals(-code).name}"
